// Group rules: choices at one start and whole searches against all sets of candidates; pools that
// change against their free time prepared again.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "pools.hpp"
#include "slotkern/window/find.hpp"

using namespace slotkern;
using namespace unit;

namespace {

// Levels of up to four kinds on some nodes, with rules on them.
struct Topology {
  std::vector<std::vector<std::int32_t>> groups;  // [level][place]
  std::vector<GroupRule> rules;

  // Each level merges groups of the one before, unless it crosses it.
  void draw(std::size_t nodes, std::size_t levels, bool crossing) {
    groups.assign(levels, std::vector<std::int32_t>(nodes));
    for (std::size_t l = 0; l < levels; ++l) {
      const std::size_t many = 1 + below(l == 0 ? nodes : 4);
      std::vector<std::int32_t> parent(std::max<std::size_t>(nodes, 4));
      for (auto& g : parent) g = static_cast<std::int32_t>(below(many));
      for (std::size_t i = 0; i < nodes; ++i) {
        const std::size_t finer =
            l == 0 || crossing ? i : static_cast<std::size_t>(groups[l - 1][i]);
        groups[l][i] = parent[finer];
      }
    }
  }
  void draw_rules(std::size_t n) {
    rules.clear();
    for (std::size_t k = 1 + below(3); k > 0; --k) {
      const auto& level = groups[below(groups.size())];
      rules.push_back({static_cast<GroupRuleKind>(below(3)), level.data(),
                       static_cast<std::int64_t>(1 + below(std::min<std::size_t>(n, 4)))});
    }
  }
  bool obeys(const std::vector<std::size_t>& places) const {
    for (const GroupRule& rule : rules) {
      std::map<std::int32_t, std::int64_t> parts;
      for (const std::size_t place : places) ++parts[rule.group[place]];
      std::int64_t fullest = 0;
      for (const auto& [group, count] : parts) fullest = std::max(fullest, count);
      const auto touched = static_cast<std::int64_t>(parts.size());
      if (rule.kind == GroupRuleKind::max_groups && touched > rule.bound) return false;
      if (rule.kind == GroupRuleKind::min_groups && touched < rule.bound) return false;
      if (rule.kind == GroupRuleKind::max_parts && fullest > rule.bound) return false;
    }
    return true;
  }
  // The plan; returns false if levels cross.
  bool compile(std::size_t nodes, GroupRules& plan) const {
    std::size_t crossed = 0;
    const std::size_t crossing = plan.compile(rules, nodes, crossed);
    if (crossing == GroupRules::kNested) return true;
    CHECK(crossed < crossing && crossing < rules.size());
    return false;
  }
};

int greedy = 0, tables = 0, infeasible = 0, crossings = 0, within = 0;

void choices_equal_the_best_of_all_sets(int rounds) {
  GroupChoice choice;
  for (int round = 0; round < rounds; ++round) {
    const std::size_t nodes = 1 + below(9), n = 1 + below(std::min<std::size_t>(nodes, 5));
    Topology topology;
    topology.draw(nodes, 1 + below(3), !below(6));
    topology.draw_rules(n);
    GroupRules plan;
    if (!topology.compile(nodes, plan)) {
      ++crossings;
      continue;
    }
    // Costs with many ties; tenths, so that the order of additions matters in one double. Powers
    // of two times a tenth are exact multiples of it.
    const double unit = below(2) ? 0.1 : 0.25;
    std::vector<std::vector<GroupCandidate>> live(plan.divisions);
    std::vector<GroupCandidate> all;
    for (std::size_t place = 0; place < nodes; ++place) {
      if (!below(5)) continue;
      all.push_back({unit * static_cast<double>(1 << below(3)), 1, 9, place,
                     static_cast<std::int32_t>((place * 7) % 31),
                     static_cast<std::int32_t>(place)});
    }
    std::sort(all.begin(), all.end());
    for (const GroupCandidate& c : all) live[plan.division_of(c.place)].push_back(c);

    using Ids = std::vector<std::int32_t>;
    std::pair<double, Ids> best{kInfinity, {}}, found = best;
    const auto value_of = [&](const std::vector<GroupCandidate>& set) {
      std::pair<double, Ids> value;
      // Multiples of the unit, so that sums are exact.
      for (const GroupCandidate& c : set) {
        value.first += std::round(c.key / unit);
        value.second.push_back(c.node);
      }
      std::sort(value.second.begin(), value.second.end());
      return value;
    };
    each_set(static_cast<int>(all.size()), static_cast<int>(n), [&](const std::vector<int>& ids) {
      std::vector<GroupCandidate> set;
      std::vector<std::size_t> places;
      for (const int i : ids) {
        set.push_back(all[static_cast<std::size_t>(i)]);
        places.push_back(static_cast<std::size_t>(set.back().place));
      }
      if (topology.obeys(places)) best = std::min(best, value_of(set));
    });
    CHECK(GroupChoice::supports(plan, n));
    for (const bool canonical : {true, false}) {
      found = {kInfinity, {}};
      for (const auto& list : live) {
        if (!choice.choose(plan, n, list, canonical)) continue;
        CHECK(choice.chosen.size() == n &&
              std::is_sorted(choice.chosen.begin(), choice.chosen.end()));
        std::vector<GroupCandidate> set;
        for (const std::uint32_t i : choice.chosen) set.push_back(list[i]);
        found = std::min(found, value_of(set));
      }
      if (canonical)
        CHECK(found == best);
      else
        CHECK(found.first == best.first);
    }
    infeasible += best.second.empty();
    within += plan.is_within();
    (plan.is_matroid ? greedy : tables) += 1;
  }
}

// The best window by definition: all starts, all sets of live slots.
struct Best {
  double value = kInfinity, start = kInfinity, cost = kInfinity;
  std::vector<std::int32_t> ids;
  auto operator<=>(const Best&) const = default;
};

int windows = 0, no_windows = 0;

void windows_equal_the_best_of_all_windows(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::size_t nodes = 2 + below(7), n = 1 + below(std::min<std::size_t>(nodes, 4));
    std::vector<Row> rows;
    std::vector<double> speed(nodes);
    for (double& p : speed) p = below(3) ? 1 : 2;
    for (std::size_t node = 0; node < nodes; ++node)
      for (double t = static_cast<double>(below(4)); t < 12;) {
        const double length = static_cast<double>(1 + below(8));
        rows.push_back({static_cast<std::int32_t>(3 * node), t, t + length, speed[node],
                        static_cast<double>(below(4)) * 0.5});
        t += length + static_cast<double>(below(4));
      }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.start != b.start ? a.start < b.start : a.node < b.node;
    });
    PreparedSlots prepared(options);
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    Topology topology;
    topology.draw(nodes, 1 + below(3), !below(6));
    topology.draw_rules(n);
    // Groups are by place; the topology is by node number.
    auto by_place = topology.groups;
    for (std::size_t l = 0; l < by_place.size(); ++l)
      for (std::size_t k = 0; k < nodes; ++k)
        by_place[l][k] = topology.groups[l][static_cast<std::size_t>(prepared.nodes[k].id / 3)];
    std::vector<GroupRule> rules = topology.rules;
    for (GroupRule& rule : rules)
      for (std::size_t l = 0; l < by_place.size(); ++l)
        if (rule.group == topology.groups[l].data()) rule.group = by_place[l].data();
    GroupRules plan;
    std::size_t crossed;
    if (plan.compile(rules, nodes, crossed) != GroupRules::kNested) continue;

    Query query;
    query.n = static_cast<std::int64_t>(n);
    query.volume = static_cast<double>(1 + below(6));
    query.groups = &plan;
    if (below(2)) query.budget = static_cast<double>(below(12));
    if (!below(3)) query.earliest = static_cast<double>(below(6)) + 0.5;
    if (!below(3)) query.deadline = static_cast<double>(6 + below(8));
    if (!below(4)) query.latest = static_cast<double>(6 + below(4));
    if (!below(4)) query.max_price = 1;
    if (!below(5)) query.min_performance = 2;
    if (!below(4)) query.setup = 0.5;
    if (!below(4)) query.step = 2;

    for (const ShapeKind shape : {ShapeKind::square, ShapeKind::ragged})
      for (int criterion = 1; criterion < kBuiltins; ++criterion) {
        Best best;
        std::set<double> starts;
        for (const Row& row : rows) starts.insert(std::max(row.start, query.earliest));
        for (const double t : starts) {
          if (t > query.latest) continue;
          std::vector<const Row*> live;
          for (const Row& row : rows)
            if (row.start <= t && row.performance >= query.min_performance &&
                row.price <= query.max_price &&
                t + query.length(row.performance) <= std::min(row.end, query.deadline))
              live.push_back(&row);
          each_set(static_cast<int>(live.size()), static_cast<int>(n),
                   [&](const std::vector<int>& ids) {
            double longest = 0, cost = 0;
            std::vector<std::size_t> places;
            Best trial;
            for (const int i : ids) {
              const Row& row = *live[static_cast<std::size_t>(i)];
              longest = std::max(longest, query.length(row.performance));
              trial.ids.push_back(row.node);
              places.push_back(static_cast<std::size_t>(row.node / 3));
            }
            for (const int i : ids) {
              const Row& row = *live[static_cast<std::size_t>(i)];
              const double length =
                  shape == ShapeKind::square ? longest : query.length(row.performance);
              if (t + length > std::min(row.end, query.deadline)) return;
              cost += row.price * length;
            }
            if (cost > query.budget || !topology.obeys(places)) return;
            std::sort(trial.ids.begin(), trial.ids.end());
            trial.value = with_criterion(
                criterion, [&](auto c) { return c.value(t, longest, cost); });
            trial.start = t, trial.cost = cost;
            best = std::min(best, trial);
          });
        }
        const Answer answer = find_window(prepared, query, criterion, shape);
        ++(best.ids.empty() ? no_windows : windows);
        CHECK(answer.status == (best.ids.empty() ? Status::none : Status::ok));
        if (answer.status != Status::ok || best.ids.empty()) continue;
        Best found{answer.found.value, answer.found.start, answer.found.cost, {}};
        for (std::size_t i = 0; i < n; ++i) found.ids.push_back(answer.parts[i].node);
        CHECK(found == best);
        // The first step has a window no later than the earliest start, and never without one.
        const Answer first = find_window(prepared, query, criterion_index("first"), shape);
        CHECK(first.status == Status::ok);
        if (criterion == criterion_index("start")) CHECK(first.found.start == best.start);
      }
  }
}

int by_rows = 0, late = 0, replaced = 0;

// Pools that change between searches, against a search of their free time prepared again.
void pools_equal_prepared_slots(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const std::size_t nodes = 3 + below(8);
    const bool one_speed = below(4), one_price = below(2), touching = !below(5);
    // Free time is replaced, not booked; then all slots of a node have one price.
    const bool derived = one_price && !below(2);
    std::vector<Row> rows;
    for (std::size_t node = 0; node < nodes; ++node) {
      const double speed = one_speed || below(2) ? 1 : 2;
      double price = one_price ? 1 : static_cast<double>(below(3));
      for (double t = 0; t < 20;) {
        const double end = t + static_cast<double>(4 + below(16));
        rows.push_back({static_cast<std::int32_t>(2 * node), t, below(9) ? end : kInfinity, speed,
                        price});
        if (rows.back().end == kInfinity) break;
        t = end + (touching && below(2) ? 0 : static_cast<double>(1 + below(3)));
        if (!one_price && !below(3)) price += 1;
      }
    }
    std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.start != b.start ? a.start < b.start : a.node < b.node;
    });
    Pool pool(rows);
    Topology topology;
    topology.draw(nodes, 2, !below(4));
    GroupRules plan;
    std::size_t crossed;
    std::vector<std::int32_t> by_place(nodes);  // nodes are ranked by performance
    for (std::size_t k = 0; k < nodes; ++k)
      by_place[k] =
          topology.groups[below(2)][static_cast<std::size_t>(pool.prepared.nodes[k].id / 2)];
    CHECK(plan.compile({{GroupRuleKind::max_groups, by_place.data(), 1}}, nodes, crossed) ==
          GroupRules::kNested);
    const GroupRules same = plan;
    std::vector<std::pair<Found, std::vector<Part>>> booked;
    for (int step = 0; step < 40; ++step) {
      Query query;
      query.n = static_cast<std::int64_t>(1 + below(4));
      query.volume = static_cast<double>(1 + below(5));
      query.groups = below(2) ? &plan : &same;
      if (!below(3)) query.budget = static_cast<double>(below(30));
      if (!below(4)) query.earliest = static_cast<double>(below(20)) + 0.5;
      if (!below(5)) query.deadline = static_cast<double>(10 + below(20));
      if (!below(6)) query.latest = static_cast<double>(5 + below(20));
      if (!below(6)) query.setup = 1;
      if (!below(8)) query.max_price = 1;
      const int criterion =
          below(3) ? criterion_index("start") : static_cast<int>(below(kBuiltins));
      const auto shape = static_cast<ShapeKind>(below(2));
      Found found;
      Workspace& work = workspace();
      const Status status = pool.pool.find(query, criterion, shape, work, found);
      const std::vector<Part> parts = work.parts;

      pool.pool.trim_before_now();
      const PoolState state = pool.pool.state();
      std::vector<Row> left;
      for (std::size_t i = 0; i < state.free.size(); ++i) {
        const Row& row = rows[state.free[i].origin_row];
        left.push_back(
            {row.node, state.free[i].start, state.free[i].end, row.performance, row.price});
      }
      std::sort(left.begin(), left.end(), [](const Row& a, const Row& b) {
        return a.start != b.start ? a.start < b.start : a.node < b.node;
      });
      if (left.empty()) break;
      PreparedSlots again(options);
      CHECK(prepare_slots(again, view_of(left), true, ShapeKind::square, 0).status == Status::ok);
      std::vector<std::int32_t> group(again.nodes.size());
      for (std::size_t k = 0; k < group.size(); ++k)
        for (std::size_t j = 0; j < nodes; ++j)
          if (pool.prepared.nodes[j].id == again.nodes[k].id) group[k] = by_place[j];
      GroupRules other;
      CHECK(other.compile({{GroupRuleKind::max_groups, group.data(), 1}}, group.size(), crossed) ==
            GroupRules::kNested);
      Query plain = query;
      plain.groups = &other;
      plain.earliest = std::max(plain.earliest, pool.pool.now());
      const Answer answer = find_window(again, plain, criterion, shape);
      CHECK(status == answer.status);
      if (status == Status::ok && answer.status == Status::ok) {
        CHECK(found.start == answer.found.start && found.cost == answer.found.cost &&
              found.runtime == answer.found.runtime && found.value == answer.found.value &&
              found.processor_time == answer.found.processor_time);
        bool equal = parts.size() == static_cast<std::size_t>(query.n);
        for (std::size_t i = 0; equal && i < parts.size(); ++i)
          equal = parts[i].node == answer.parts[i].node &&
                  parts[i].length == answer.parts[i].length &&
                  parts[i].cost == answer.parts[i].cost &&
                  rows[parts[i].row].node == parts[i].node;
        CHECK(equal);
        by_rows += criterion == criterion_index("start") && one_speed && !touching;
        late += found.start > 0;
        std::size_t failed;
        if (!derived && below(4) &&
            pool.pool.book(found.start, parts.data(), parts.size(), failed) == Status::ok)
          booked.push_back({found, parts});
      }
      if (!booked.empty() && !below(3)) {
        const std::size_t i = below(booked.size());
        std::size_t failed;
        const auto& [window, of] = booked[i];
        CHECK(pool.pool.release(window.start, of.data(), of.size(), failed) == Status::ok);
        booked.erase(booked.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (derived) {
        // Replaces the free spans of a node from a time on.
        const std::size_t row = below(rows.size());
        const auto k = static_cast<std::size_t>(pool.pool.place_of(rows[row].node));
        const std::vector<Span> before = pool.pool.free_at(k);
        const std::size_t first = before.empty() ? 0 : below(before.size());
        std::vector<Span> fresh;
        double t = first > 0 ? before[first - 1].end + 1 : static_cast<double>(below(9));
        for (std::size_t i = below(3); i > 0; --i) {
          const double end = t + static_cast<double>(1 + below(12));
          fresh.push_back({t, end, row});
          t = end + static_cast<double>(1 + below(4));
        }
        pool.pool.replace(k, first, before.size(), fresh);
        pool.pool.settle();
        replaced += !fresh.empty();
        continue;
      }
      if (!below(12)) {
        const double t = static_cast<double>(below(20));
        const std::int32_t node = rows[below(rows.size())].node;
        pool.pool.close({node}, {node}, {{t, t + 3, 0}});
      }
      if (!below(25)) pool.pool.close({rows[0].node}, {}, {});
      if (!below(12)) CHECK(pool.pool.advance(pool.pool.now() + 1) == Status::ok);
      if (step == 0) CHECK(pool.pool.advance(0) == Status::ok);
      if (!below(60)) pool.pool.remove(rows[below(rows.size())].node);
    }
  }
}

void refused_searches_say_so() {
  const std::vector<Row> rows{{0, 0, 9, 1, 1}, {1, 0, 9, 1, 1}};
  PreparedSlots prepared(options);
  CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
  const std::vector<std::int32_t> rack{0, 1}, line{0, 0};
  GroupRules plan;
  std::size_t crossed;
  CHECK(plan.compile({{GroupRuleKind::max_parts, rack.data(), 1}}, 2, crossed) ==
        GroupRules::kNested);
  Query query;
  query.n = 2, query.volume = 1, query.groups = &plan;
  SumConstraints limits;
  query.limits = &limits;
  CHECK(find_window(prepared, query, 1, ShapeKind::square).status == Status::groups_not_supported);
  query.limits = nullptr;
  CHECK(find_window(prepared, query, 1, ShapeKind::square).status == Status::ok);
  CHECK(!query.is_cacheable());
  // Two levels of a table too large: 4,000 * 101 * 101 states.
  std::vector<std::int32_t> node(2);
  std::iota(node.begin(), node.end(), 0);
  CHECK(plan.compile({{GroupRuleKind::max_groups, rack.data(), 100},
                      {GroupRuleKind::max_groups, line.data(), 100}},
                     2, crossed) == GroupRules::kNested);
  CHECK(GroupChoice::supports(plan, 8) && !GroupChoice::supports(plan, 4000));
}

}  // namespace

int main(int argc, char** argv) {
  const int many = argc > 1 ? std::atoi(argv[1]) : 1;
  choices_equal_the_best_of_all_sets(20'000 * many);
  CHECK(greedy > 3000 && tables > 1500 && infeasible > 1000 && crossings > 200 && within > 500);
  windows_equal_the_best_of_all_windows(400 * many);
  CHECK(windows > 1000 && no_windows > 300);
  pools_equal_prepared_slots(300 * many);
  CHECK(by_rows > 1000 && late > 1000 && replaced > 1000);
  refused_searches_say_so();
  std::printf("%d greedy, %d tables, %d infeasible, %d crossings, %d within; %d windows, %d none; "
              "%d by rows\n",
              greedy, tables, infeasible, crossings, within, windows, no_windows, by_rows);
  return report();
}

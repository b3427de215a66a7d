// Group rules: choices at one start and whole searches against all sets of candidates.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "slotkern/window/find.hpp"
#include "support.hpp"

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
      std::vector<std::int32_t> parent(nodes);
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
                     static_cast<std::int32_t>((place * 7) % 31), static_cast<std::int32_t>(place)});
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
            trial.value = with_criterion(criterion, [&](auto c) { return c.value(t, longest, cost); });
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
  refused_searches_say_so();
  std::printf("%d greedy, %d tables, %d infeasible, %d crossings, %d within; %d windows, %d none\n",
              greedy, tables, infeasible, crossings, within, windows, no_windows);
  return report();
}

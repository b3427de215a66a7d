// Fuzzes every criterion under group rules against an enumeration of all windows.
#include <map>

#include "oracle.hpp"

namespace {

fuzz::Tally tally{"groups"};

using namespace slotkern;
using fuzz::Row;

// Levels and rules by node id.
struct Rules {
  std::vector<std::map<std::int32_t, std::int32_t>> levels;  // node id to group
  struct Rule {
    GroupRuleKind kind;
    std::size_t level;
    std::int64_t bound;
  };
  std::vector<Rule> rules;

  Rules(fuzz::Bytes& bytes, const std::vector<Row>& rows) {
    levels.resize(1 + bytes.below(3));
    for (std::size_t l = 0; l < levels.size(); ++l) {
      std::vector<std::int32_t> parent(8);
      const std::size_t groups = 1 + bytes.below(4);
      const bool crossing = bytes.one_in(8);
      for (auto& group : parent) group = static_cast<std::int32_t>(bytes.below(groups));
      std::int32_t next = 0;
      for (const Row& row : rows) {
        if (levels[l].contains(row.node)) continue;
        const std::int32_t finer = l == 0 || crossing ? next++ : levels[l - 1].at(row.node);
        levels[l][row.node] = parent[static_cast<std::size_t>(finer) % parent.size()];
      }
    }
    for (std::size_t k = 1 + bytes.below(3); k > 0; --k)
      rules.push_back({static_cast<GroupRuleKind>(bytes.below(3)), bytes.below(levels.size()),
                       static_cast<std::int64_t>(1 + bytes.below(4))});
  }

  bool obeys(const std::vector<Row>& all, const fuzz::Rows& rows) const {
    for (const Rule& rule : rules) {
      std::map<std::int32_t, std::int64_t> parts;
      std::int64_t fullest = 0;
      for (const auto i : rows)
        fullest = std::max(fullest, ++parts[levels[rule.level].at(all[i].node)]);
      const auto touched = static_cast<std::int64_t>(parts.size());
      if (rule.kind == GroupRuleKind::max_groups ? touched > rule.bound
          : rule.kind == GroupRuleKind::min_groups ? touched < rule.bound
                                                   : fullest > rule.bound)
        return false;
    }
    return true;
  }

  // Returns false if levels cross.
  bool compile(const PreparedSlots& prepared, GroupRules& plan) const {
    std::vector<std::vector<std::int32_t>> groups(rules.size());
    std::vector<GroupRule> given;
    for (std::size_t k = 0; k < rules.size(); ++k) {
      for (const Node& node : prepared.nodes)
        groups[k].push_back(levels[rules[k].level].at(node.id));
      given.push_back({rules[k].kind, groups[k].data(), rules[k].bound});
    }
    std::size_t crossed;
    return plan.compile(given, prepared.nodes.size(), crossed) == GroupRules::kNested;
  }
};

// The window of the least (value, start, cost, node ids), and for "first" of the least (start,
// runtime if square, last row, cost).
struct BestWindow {
  bool any = false;
  std::tuple<double, double, double, double> least;
  fuzz::Seen seen;

  void offer(const fuzz::Oracle& oracle, const fuzz::Totals& w,
             const std::tuple<double, double, double, double>& now) {
    if (any && least < now) return;
    const fuzz::Seen next = oracle.window(w);
    if (any && least == now && !(next.nodes < seen.nodes)) return;
    any = true, least = now, seen = next;
  }
};

// True if sums of the keys and costs are exact, so that equal costs are equal without rounding.
bool is_exact(const Query& query, const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [&](const Row& row) {
    const double length = fuzz::length_on(query, row.performance);
    for (const double x : {row.price, length, fuzz::key_of(query, row, false)})
      if (x != std::round(x * 0x1p10) * 0x1p-10 || x > 0x1p12) return false;
    return row.price / row.performance * row.performance == row.price;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  const std::vector<Row> rows = make_rows(bytes, 6, 3);
  const FilteredQuery request = make_query(bytes, rows, 4);
  const ShapeKind shape = bytes.below(2) ? ShapeKind::ragged : ShapeKind::square;
  const bool square = shape == ShapeKind::square;
  ++tally.runs;
  PreparedSlots prepared(IndexOptions::for_small_pools());
  if (prepare_slots(prepared, view_of(rows), true, shape, 0).status != Status::ok)
    fail("valid slots are refused", rows);
  Query query = request.query;
  if (!request.mask.empty()) query.mask = request.mask.data();
  const Rules rules(bytes, rows);
  GroupRules plan;
  if (!rules.compile(prepared, plan)) return 0;
  query.groups = &plan;
  const bool exact = is_exact(query, rows);
  const Oracle oracle(rows, request, shape);
  std::array<BestWindow, kBuiltins> best;
  for (const double t : oracle.starts())
    oracle.windows_at(t, [&](const Totals& w) {
      if (!rules.obeys(rows, w.rows)) return;
      const auto last = static_cast<double>(*std::max_element(w.rows.begin(), w.rows.end()));
      best[0].offer(oracle, w, {w.start, square ? w.runtime : 0, last, w.cost});
      for (int criterion = 1; criterion < kBuiltins; ++criterion) {
        const double value = with_criterion(
            criterion, [&](auto c) { return c.value(w.start, w.runtime, w.cost); });
        best[static_cast<std::size_t>(criterion)].offer(oracle, w, {value, w.start, w.cost, 0});
      }
    });
  for (int criterion = 0; criterion < kBuiltins; ++criterion) {
    const Answer answer = find_window(prepared, query, criterion, shape);
    if (answer.status == Status::volume_too_small) return check_refusal(rows, request), 0;
    const BestWindow& expected = best[static_cast<std::size_t>(criterion)];
    ++tally.searches;
    if (answer.status != (expected.any ? Status::ok : Status::none))
      fail(expected.any ? "a window is missed" : "a window is invented", rows, request,
           expected.seen);
    if (!expected.any) continue;
    ++tally.found;
    const Seen found = seen_of(answer.found, answer.parts, query.n);
    const Seen& other = expected.seen;
    const double value = with_criterion(criterion, [&](auto c) {
      return c.value(found.start, found.runtime, found.cost);
    });
    if (!rules.obeys(rows, found.rows)) fail("a rule is broken", rows, request, found);
    if ((criterion > 0 && value != std::get<0>(expected.least)) || found.start != other.start ||
        (exact ? !same(found, other) : criterion > 0 && found.cost != other.cost)) {
      std::fprintf(stderr, "criterion %d, shape %d\n", criterion, static_cast<int>(shape));
      fail("not the best window", rows, request, found, other);
    }
  }
  return 0;
}

// The cheapest window, searched by cells of time: a branch and bound over the lower bounds of
// pool/cost_bounds.hpp.
//
// A cell is first bounded for this volume from the bytes of the matrix: the n nodes of lowest rate
// that can do the work. If the bound is within the incumbent, the free spans of these nodes are
// read, and of more nodes in the order of rates until the next one is too expensive with n - 1 of
// them; each start of a span in the cell is then evaluated. The cells of the lowest bounds are
// searched first, for a low incumbent. Then all cells that remain are bounded in the order of time,
// and searched in the order of these bounds, because reading spans costs ten times as much as
// reading bytes.
//
// Exact: sums of keys are exact and rounded once, so that they are monotone in each key; plain sums
// only exclude, with a margin for their rounding. A cell is skipped only if each of its windows
// costs more, or as much and starts no earlier. The window obeys the tie rule, because all spans
// with keys up to the n-th were read. If the work exceeds the budget (for example if all windows
// cost the same), the search gives up, and its incumbent is a ceiling for the sweep that follows.
//
// Expected cost: O(cells / 8), some walks, and O(n) spans in some cells; O(cells) more for a new
// row of bounds.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/pool/cost_bounds.hpp"
#include "slotkern/window/best.hpp"

namespace slotkern {

// A free span that can hold a part of a window.
struct CostCandidate {
  double from, until, length;
  std::size_t row;  // of the origin array
  std::size_t place;
};

// A start to evaluate, and the sum of its cheapest parts among the candidates so far.
struct CostTime {
  double start;
  double sum = 0, last_key = 0;
  std::size_t parts = 0;
};

struct CostScratch {
  std::vector<float> open_bounds;  // [cell]: cost per unit of work; +inf: out of range, or done
  std::vector<float> block_mins;   // [block of 64 cells]: minimum of open_bounds
  std::vector<Entry> cells;        // open cells, by the cost of their n cheapest nodes
  std::vector<std::size_t> ranks;
  std::vector<const Span*> spans;
  std::vector<CostTime> times;
  std::vector<CostCandidate> candidates;
  std::vector<Entry> order;  // candidates by key, the cost of a part
  std::vector<Entry> chosen;
  std::vector<Part> parts;  // of the incumbent, in the order of cost
};

class CostSearch {
 public:
  // `lease`: row for n parts and a class not above that of the volume. `prices` by row of the
  // origin array. `max_work`: budget in steps.
  CostSearch(const MaxWorkMatrix& cells, const CostBoundCache::RowLease& lease,
             const PreparedSlots& prepared, const std::vector<double>& prices,
             const SpanLists& free, const Query& query, LowestCost& goal, CostScratch& scratch,
             std::size_t max_work)
      : cells_(cells), prepared_(prepared), prices_(prices), free_(free), query_(query),
        goal_(goal), w_(scratch), n_(static_cast<std::size_t>(query.n)), volume_(query.volume),
        class_(lease.row), table_(*lease.table), row_(*table_.rows[class_]),
        first_(cells.cell_at(query.earliest)), last_(cells.cell_at(query.latest)),
        bound_work_(n_ / 8 + 1), max_work_(max_work), work_left_(max_work) {
    if (w_.ranks.size() < cells.nodes()) w_.ranks.resize(cells.nodes());
    if (w_.spans.size() < cells.nodes()) w_.spans.resize(cells.nodes());
  }

  // Improves goal.best to the cheapest window and, among these, the earliest; extract_window() then
  // returns it by the tie rule. Returns false if the budget was exceeded.
  bool run() {
    if (first_ > last_) return true;
    ceiling_ = unit_cost_bound(goal_.ceiling());
    const std::size_t blocks = (last_ + 64) / 64;
    w_.open_bounds.resize(64 * blocks);
    w_.block_mins.resize(blocks);
    std::copy_n(row_.least.data(), 64 * blocks, w_.open_bounds.data());
    std::fill(w_.open_bounds.begin(), w_.open_bounds.begin() + first_, kClosed);
    std::fill(w_.open_bounds.begin() + last_ + 1, w_.open_bounds.end(), kClosed);
    for (std::size_t block = first_ / 64; block < blocks; ++block)
      w_.block_mins[block] = detail::min64(&w_.open_bounds[block * 64]);
    for (std::size_t num_probed = 0; num_probed < kMinProbedCells || !goal_.best.found;) {
      const auto least = std::min_element(w_.block_mins.begin() + first_ / 64, w_.block_mins.end());
      const float bound = *least;
      if (!(bound <= ceiling_)) return true;
      const auto block = static_cast<std::size_t>(least - w_.block_mins.begin());
      const std::size_t cell = block * 64 + lowest_bit(open_cells(block, bound));
      double sum;
      if (!charge(bound_work_)) return false;
      const bool may_improve = compute_cell_bound(cell, sum), bound_rose = row_.least[cell] > bound;
      if (!may_improve || !bound_rose) {
        ++num_probed;
        if (may_improve && !search_cell(cell, sum)) return false;
      }
      w_.open_bounds[cell] = may_improve && bound_rose ? row_.least[cell] : kClosed;
      w_.block_mins[block] = detail::min64(&w_.open_bounds[block * 64]);
    }
    w_.cells.clear();
    for (std::size_t block = first_ / 64; block < blocks; ++block) {
      if (!(w_.block_mins[block] <= ceiling_)) continue;
      for (std::uint64_t remaining = open_cells(block, ceiling_); remaining;
           remaining &= remaining - 1)
        w_.cells.push_back({0, block * 64 + lowest_bit(remaining)});
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < w_.cells.size(); ++i) {
      if (i + kAhead < w_.cells.size()) {
        const std::size_t next = w_.cells[i + kAhead].row;
        cells_.prefetch_cell(next, row_.skipped_groups[next]);
      }
      const std::size_t cell = w_.cells[i].row;
      double sum;
      if (!charge(bound_work_)) return false;
      // Reuses the place of a cell already read.
      if (compute_cell_bound(cell, sum)) insert_sorted(w_.cells, count++, {sum, cell}, ByKey{});
    }
    for (std::size_t i = 0; i < count; ++i)
      if (can_improve(w_.cells[i].row, w_.cells[i].key) &&
          !search_cell(w_.cells[i].row, w_.cells[i].key))
        return false;
    return true;
  }

  // The effort spent, in the unit of sweeps.
  std::size_t effort() const {
    return kEffort * (max_work_ - work_left_) + 16 + cells_.size() / 64;
  }
  static constexpr std::size_t kEffort = 5;  // effort of a step
  // The effort of a search with good bounds: it reads kMinProbedCells cells.
  static std::size_t usual_effort(const Query& query) {
    const auto n = static_cast<std::size_t>(query.n);
    return kEffort * kMinProbedCells * (n / 8 + 1 + n + kBatch);
  }
  // True if most of the effort built bounds that later searches reuse.
  bool was_mostly_build() const { return 2 * kEffort * build_work_ >= effort(); }

  // Returns the window of goal.best.
  void extract_window(Found& found, std::vector<Part>& parts) const {
    found = {};
    found.start = goal_.best.start;
    found.cost =
        exact_sum(w_.parts.size(), [this](std::size_t i) { return w_.parts[i].cost; });
    for (const Part& part : w_.parts) {
      found.processor_time += part.length;
      found.runtime = std::max(found.runtime, part.length);
    }
    parts = w_.parts;
    found.value = found.cost;
    std::sort(parts.begin(), parts.end(),
              [](const Part& a, const Part& b) { return a.node < b.node; });
  }

 private:
  using NodeEnumerator = MaxWorkMatrix::NodeEnumerator;
  static constexpr std::size_t kEnd = NodeEnumerator::kEnd;

  // Returns a bit mask of the cells of the block that are open and bounded by at most `max_bound`.
  std::uint64_t open_cells(std::size_t block, float max_bound) const {
    return detail::mask_at_most64(&w_.open_bounds[block * 64], max_bound);
  }

  static std::size_t lowest_bit(std::uint64_t bits) {
    return static_cast<std::size_t>(std::countr_zero(bits));
  }

  // Rounds the cost per unit of work of this total up. Finite, so that closed cells stay excluded.
  float unit_cost_bound(double total) const {
    return std::min(round_up((total + kUnderflow) / volume_ * (1 + 2 * kMargin)), kMaxFloat);
  }

  // Takes the steps from the budget. Returns false if it is exceeded.
  bool charge(std::size_t steps) {
    const bool is_within = steps <= work_left_;
    work_left_ = is_within ? work_left_ - steps : 0;
    return is_within;
  }

  // Bounds the cell by its n cheapest nodes, and raises the cached bound. `sum`: lower bound on
  // their cost. Returns false if the cell has no better window.
  bool compute_cell_bound(std::size_t cell, double& sum) {
    poll();
    const float old_bound = row_.least[cell];
    NodeEnumerator walk(cells_, cell, class_, row_.skipped_groups[cell]);
    PairSum keys;
    std::size_t first = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t rank = walk.next();
      if (rank == kEnd) {
        table_.raise(class_, cell, kClosed, 0);
        build_work_ += bound_work_;
        return false;
      }
      if (i == 0) first = rank;
      keys.add(volume_ * cells_.rate(rank));
    }
    sum = keys.lower();
    // The cost overflows, but the cell is not closed.
    table_.raise(class_, cell, std::min(round_down(sum / volume_ * (1 - kMargin)), kMaxFloat),
                 static_cast<std::uint8_t>(std::min<std::size_t>(first / 64, 255)));
    if (row_.least[cell] > old_bound) build_work_ += bound_work_;
    return can_improve(cell, sum);
  }
  bool can_improve(std::size_t cell, double sum) const {
    const Best& best = goal_.best;
    return !(sum > goal_.ceiling()) &&
           !(best.found && sum == best.total && cells_.begin(cell) >= best.start);
  }

  // Searches the cell by free spans. Returns false if the budget is exceeded. A window of the cell
  // has a part on a span that starts there, or starts at the query's earliest start. So first all
  // nodes with such a span are read that are not too expensive with the n - 1 cheapest, and then
  // the others by rising rate. `sum`: lower bound on the cost of the n cheapest.
  bool search_cell(std::size_t cell, double sum) {
    poll();
    NodeEnumerator walk(cells_, cell, class_, row_.skipped_groups[cell]);
    for (std::size_t i = 0; i < n_; ++i) w_.ranks[i] = walk.next();
    cell_begin_ = cells_.begin(cell), cell_end_ = cells_.end(cell);
    elapsed_share_ = static_cast<double>(cell) / static_cast<double>(cells_.size());
    const double last_key = volume_ * cells_.rate(w_.ranks[n_ - 1]), others = sum - last_key;
    const bool includes_earliest = cell_begin_ <= query_.earliest && query_.earliest < cell_end_;
    bool has_start = includes_earliest;
    for (std::size_t i = 0; i < n_; ++i) has_start |= walk.starts_here(w_.ranks[i]);
    std::size_t listed = n_;
    for (NodeEnumerator more = walk;;) {
      const std::size_t rank = more.next_starting_here();
      if (rank == kEnd || exceeds_ceiling(others + volume_ * cells_.rate(rank))) break;
      w_.ranks[listed++] = rank;
    }
    if (!has_start && listed == n_) return true;
    if (!charge(n_ + (listed - n_) / 4)) return false;
    w_.candidates.clear();
    w_.times.clear();
    if (includes_earliest) w_.times.push_back({query_.earliest});

    const Best before = goal_.best;
    const std::size_t batch = std::max(kBatch, n_ / 8);
    std::size_t following = walk.next_already_free();  // the nodes not read cost at least as much
    for (std::size_t most = batch, evaluated = 0;; listed = 0) {
      for (; listed < most && following != kEnd; following = walk.next_already_free())
        w_.ranks[listed++] = following;
      const std::size_t sorted = w_.candidates.size();
      if (!collect_candidates(listed)) return false;
      sort_order(evaluated, sorted);
      if (!charge(w_.times.size() * (w_.candidates.size() - evaluated) / 16)) return false;
      const double next = following == kEnd ? kInfinity : volume_ * cells_.rate(following);
      if (!evaluate_times(evaluated, next)) break;
      if (!charge(batch)) return false;
    }
    const Best& best = goal_.best;
    if (best.found && (!before.found || best.total != before.total || best.start != before.start))
      build_parts();
    return true;
  }

  // True even if the total was rounded up.
  bool exceeds_ceiling(double total) const {
    return total * (1 - kMargin) > goal_.ceiling() + kUnderflow;
  }

  // Collects candidates from the nodes in w_.ranks: spans free at the start of the cell, or that
  // start within it. Returns false if the budget is exceeded, as in cells with thousands of starts.
  bool collect_candidates(std::size_t count) {
    // Most nodes have about the same share of their spans before the cell as there are cells before
    // it: prefetch the spans there.
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<Span>& spans = free_[cells_.node(w_.ranks[i]).place];
      const auto guess =
          static_cast<std::size_t>(elapsed_share_ * static_cast<double>(spans.size()));
      w_.spans[i] = spans.data() + guess;
      prefetch(w_.spans[i]), prefetch(spans.data() + std::min(guess + 2, spans.size()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<Span>& spans = free_[cells_.node(w_.ranks[i]).place];
      const Span* const at = first_from(spans, w_.spans[i], cell_begin_);
      w_.spans[i] = at == spans.data() ? at : at - 1;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const MaxWorkMatrix::RankedNode& node = cells_.node(w_.ranks[i]);
      const std::vector<Span>& spans = free_[node.place];
      const Span* const end = spans.data() + spans.size();
      const Span* span = w_.spans[i];
      for (std::size_t seen = 0; span != end && span->start < cell_end_; ++span, ++seen) {
        if (seen >= kFreeSpansPerNode && !charge(1 + w_.candidates.size() / 64)) return false;
        add(node, *span);
      }
    }
    return true;
  }
  // Returns the first span that starts at t or later: linear near the guess, else by bisection.
  static const Span* first_from(const std::vector<Span>& spans, const Span* guess, double t) {
    const Span *const first = spans.data(), *const end = first + spans.size();
    const Span *const low = guess - std::min<std::ptrdiff_t>(guess - first, kMaxLinearSteps),
               *const high = guess + std::min<std::ptrdiff_t>(end - guess, kMaxLinearSteps);
    const Span* at = guess;
    while (at != high && at->start < t) ++at;
    while (at != low && !(at[-1].start < t)) --at;
    if ((at != high || at == end || !(at->start < t)) &&
        (at != low || at == first || at[-1].start < t))
      return at;
    return std::partition_point(first, end, [t](const Span& s) { return s.start < t; });
  }
  void add(const MaxWorkMatrix::RankedNode& node, const Span& span) {
    const double length = query_.length(node.performance);
    const double price = node.has_one_price ? node.price : prices_[span.origin_row],
                 rate = node.has_one_price ? node.rate : price / node.performance;
    const Slot slot{span.start, span.end, node.performance, price, rate, 0, 0};
    const double from = query_.start_in(slot), until = query_.limit(slot);
    if (!(std::max(from, cell_begin_) + length <= until && query_.admits(slot, 0))) return;
    append(volume_ * rate, {from, until, length, span.origin_row, node.place});
    if (span.start < cell_begin_) return;
    const auto same = [from](const CostTime& time) { return time.start == from; };
    if (std::none_of(w_.times.begin(), w_.times.end(), same)) w_.times.push_back({from});
  }

  void grow_order() {
    if (w_.order.size() <= w_.candidates.size()) w_.order.resize(2 * w_.order.size() + 64);
  }
  void append(double key, const CostCandidate& candidate) {
    grow_order();
    w_.order[w_.candidates.size()] = {key, w_.candidates.size()};
    w_.candidates.push_back(candidate);
  }

  // Sorts the candidates by key. The first `evaluated` cost less than all others, and the first
  // `sorted` are in order; all are, unless slots of a node differ in price.
  void sort_order(std::size_t evaluated, std::size_t sorted) {
    const std::size_t size = w_.candidates.size();
    if (size - sorted <= kMaxInsertions) {
      for (; sorted < size; ++sorted) {
        const Entry entry = w_.order[sorted];
        if (sorted > 0 && entry.key < w_.order[sorted - 1].key)
          insert_sorted(w_.order, sorted, entry, ByKey{});
      }
      return;
    }
    const auto first = w_.order.begin() + static_cast<std::ptrdiff_t>(evaluated),
               last = w_.order.begin() + static_cast<std::ptrdiff_t>(size);
    if (!std::is_sorted(first, last, ByKey{})) std::sort(first, last, ByKey{});
  }

  static bool is_live(const CostCandidate& part, double t) {
    return (part.from <= t) & (t + part.length <= part.until);
  }

  // Updates the n cheapest parts at each start, given that every node not read costs at least
  // `next`. The first `evaluated` candidates are counted already. Returns true if unread nodes
  // might still give a window no more expensive than the incumbent.
  bool evaluate_times(std::size_t& evaluated, double next) {
    std::size_t last = evaluated, num_open = 0;
    while (last < w_.candidates.size() && w_.order[last].key < next) ++last;
    for (CostTime time : w_.times) {
      for (std::size_t i = evaluated; i < last && time.parts < n_; ++i) {
        // Branch-free: the outcome is unpredictable.
        const bool counts = is_live(w_.candidates[w_.order[i].row], time.start);
        const double key = w_.order[i].key;
        time.sum += counts ? key : 0;
        time.last_key = counts ? key : time.last_key;
        time.parts += counts;
      }
      if (time.parts < n_) {
        const double missing = static_cast<double>(n_ - time.parts);
        if (can_fit(time.sum + missing * next)) w_.times[num_open++] = time;
      } else if (can_fit(time.sum)) {
        accept(time);
      }
    }
    w_.times.resize(num_open);
    evaluated = last;
    return num_open > 0;
  }

  // True if the exact sum of the n keys with this plain sum might be within the ceiling.
  bool can_fit(double sum) const {
    return sum * (1 - 0x1p-51 * static_cast<double>(n_)) <= goal_.ceiling();
  }

  // Makes the n cheapest parts at this start the incumbent if they are better.
  SLOTKERN_NOINLINE void accept(const CostTime& time) {
    const double total = exact_sum_of([&](auto visit) {
      std::size_t parts = 0;
      for (std::size_t i = 0; parts < n_; ++i) {
        if (!is_live(w_.candidates[w_.order[i].row], time.start)) continue;
        visit(w_.order[i].key);
        ++parts;
      }
    });
    if (!goal_.accepts(time.start, total)) return;
    goal_.best.found = true;
    goal_.best.start = time.start;
    goal_.best.total = total;
    goal_.best.nth_key = time.last_key;
    ceiling_ = unit_cost_bound(total);
  }

  // Builds the parts of goal.best; all its candidates have been collected.
  void build_parts() {
    w_.chosen.clear();
    for (std::size_t i = 0; i < w_.candidates.size() && w_.order[i].key <= goal_.best.nth_key; ++i)
      if (is_live(w_.candidates[w_.order[i].row], goal_.best.start))
        w_.chosen.push_back(w_.order[i]);
    std::sort(w_.chosen.begin(), w_.chosen.end(), [this](const Entry& a, const Entry& b) {
      return a.key != b.key ? a.key < b.key : node_of(a) < node_of(b);
    });
    w_.chosen.resize(n_);
    w_.parts.clear();
    for (const Entry& entry : w_.chosen) {
      const CostCandidate& part = w_.candidates[entry.row];
      w_.parts.push_back({part.row, node_of(entry), part.length, entry.key});
    }
  }
  std::int32_t node_of(const Entry& entry) const {
    return prepared_.nodes[w_.candidates[entry.row].place].id;
  }

  static constexpr float kClosed = std::numeric_limits<float>::infinity(),
                         kMaxFloat = std::numeric_limits<float>::max();
  static constexpr std::size_t kBatch = 4, kMinProbedCells = 8, kAhead = 4;
  // Starts of one node in a cell that are not charged to the budget.
  static constexpr std::size_t kFreeSpansPerNode = 3;
  static constexpr std::ptrdiff_t kMaxLinearSteps = 16;  // beyond: bisection
  static constexpr std::size_t kMaxInsertions = 32;      // into sorted candidates; beyond: sort

  const MaxWorkMatrix& cells_;
  const PreparedSlots& prepared_;
  const std::vector<double>& prices_;
  const SpanLists& free_;
  const Query& query_;
  LowestCost& goal_;
  CostScratch& w_;
  const std::size_t n_;
  const double volume_;
  const std::uint8_t class_;
  CostBoundCache::Table& table_;
  const CostBoundCache::Row& row_;
  const std::size_t first_, last_;
  const std::size_t bound_work_;  // steps to bound a cell
  const std::size_t max_work_;
  std::size_t work_left_, build_work_ = 0;
  double elapsed_share_ = 0, cell_begin_ = 0, cell_end_ = 0;  // of the cell being searched
  float ceiling_ = kMaxFloat;
};

}  // namespace slotkern

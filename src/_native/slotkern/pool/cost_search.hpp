// The cheapest window of slots of which costs are known: looked for only in those cells of time
// where what is known of them (pool/cost_bounds.hpp) lets it be.
//
// First bytes tell what a window of a cell costs at least for the volume asked; then the free spans
// of its cheapest nodes are looked up, until n of them can serve and the next one is too dear
// beside n - 1 of them. These spans are judged at each time of the cell at which one begins, by the
// expressions that define the answer. The cells of the least bounds come first, for a low ceiling;
// then the bytes of all that may hold a window as cheap, in the order of time, and the spans of
// those that are left, by what bytes have told: spans cost ten times as much as bytes.
//
// Exact: exact sums over ascending keys that are no larger one by one are no larger, also once
// rounded; a plain sum only rules out, beyond its rounding. So a cell is left out only where each window is dearer, or as dear and no earlier; what
// is kept has a margin. The window is the one by the tie rule: all spans with a key of at most the
// n-th are among those looked up. It may turn out to be more work than is allowed (all windows cost
// the same, say): then it says so, and what it has found is a ceiling for whoever goes on.
// Expected O(cells / 8), some walks, and O(n) spans looked up in some cells. A new row of bounds is
// made in O(cells).
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

// A free span that may hold a part of a window.
struct CostCandidate {
  double from, until, length;
  std::size_t row;  // of the origin array
  std::size_t place;
};

// A time at which a window may begin, and its cheapest parts as far as they are known.
struct CostTime {
  double start;
  double sum = 0, last_key = 0;
  std::size_t parts = 0;
};

struct CostScratch {
  std::vector<float> open_bounds;   // what is known of a cell; infinite: not asked for, or examined
  std::vector<float> block_mins;  // of 64 cells that are left
  std::vector<Entry> cells;  // that are left, by what their n cheapest nodes cost
  std::vector<std::size_t> ranks;
  std::vector<const Span*> spans;
  std::vector<CostTime> times;
  std::vector<CostCandidate> candidates;
  std::vector<Entry> order;  // of the candidates, by key: what a part costs
  std::vector<Entry> chosen;
  std::vector<Part> parts;  // of the best window so far, in cost order
};

class CostSearch {
 public:
  // `known` for n parts, with a row of at most the class of the volume; `prices` by row of the
  // origin array.
  CostSearch(const MaxWorkMatrix& cells, const CostBoundCache::RowLease& lease, const PreparedSlots& prepared,
             const std::vector<double>& prices, const SpanLists& free, const Query& query,
             LowestCost& goal, CostScratch& scratch, std::size_t max_work)
      : cells_(cells), prepared_(prepared), prices_(prices), free_(free), query_(query),
        goal_(goal), w_(scratch), n_(static_cast<std::size_t>(query.n)), volume_(query.volume),
        class_(lease.row), table_(*lease.table),
        row_(*table_.rows[class_]), first_(cells.cell_at(query.earliest)),
        last_(cells.cell_at(query.latest)),
        bound_work_(n_ / 8 + 1), max_work_(max_work), work_left_(max_work) {
    if (w_.ranks.size() < cells.nodes()) w_.ranks.resize(cells.nodes());
    if (w_.spans.size() < cells.nodes()) w_.spans.resize(cells.nodes());
  }

  // Raises goal.best to the cheapest window, then the earliest; take() has it by the tie rule.
  // False: it was too much work.
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
      w_.block_mins[block] = detail::least64(&w_.open_bounds[block * 64]);
    for (std::size_t few = 0; few < kMinProbedCells || !goal_.best.found;) {
      const auto least = std::min_element(w_.block_mins.begin() + first_ / 64, w_.block_mins.end());
      const float bound = *least;
      if (!(bound <= ceiling_)) return true;
      const auto block = static_cast<std::size_t>(least - w_.block_mins.begin());
      const std::size_t cell = block * 64 + lowest_bit(open_cells(block, bound));
      double sum;
      if (!charge(bound_work_)) return false;
      const bool may = compute_cell_bound(cell, sum), rises = row_.least[cell] > bound;
      if (!may || !rises) {
        ++few;
        if (may && !search_cell(cell, sum)) return false;
      }
      w_.open_bounds[cell] = may && rises ? row_.least[cell] : kClosed;
      w_.block_mins[block] = detail::least64(&w_.open_bounds[block * 64]);
    }
    w_.cells.clear();
    for (std::size_t block = first_ / 64; block < blocks; ++block) {
      if (!(w_.block_mins[block] <= ceiling_)) continue;
      for (std::uint64_t remaining = open_cells(block, ceiling_); remaining; remaining &= remaining - 1)
        w_.cells.push_back({0, block * 64 + lowest_bit(remaining)});
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < w_.cells.size(); ++i) {
      if (i + kAhead < w_.cells.size()) {
        const std::size_t next = w_.cells[i + kAhead].row;
        cells_.prefetch_cell(next, row_.before[next]);
      }
      const std::size_t cell = w_.cells[i].row;
      double sum;
      if (!charge(bound_work_)) return false;
      // In the place of one that was looked at.
      if (compute_cell_bound(cell, sum)) insert_sorted(w_.cells, count++, {sum, cell}, ByKey{});
    }
    for (std::size_t i = 0; i < count; ++i)
      if (can_improve(w_.cells[i].row, w_.cells[i].key) && !search_cell(w_.cells[i].row, w_.cells[i].key))
        return false;
    return true;
  }

  // In the measure of sweeps.
  std::size_t effort() const {
    return kEffort * (max_work_ - work_left_) + 16 + cells_.size() / 64;
  }
  static constexpr std::size_t kEffort = 3;  // of a step of work
  // Whether most of it went into what searches to come will know.
  bool was_mostly_build() const { return 2 * kEffort * build_work_ >= effort(); }

  // The window that was found.
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
  using Walk = MaxWorkMatrix::Walk;

  // Of 64 cells those that are left and known to cost no more than `most`.
  std::uint64_t open_cells(std::size_t block, float max_bound) const {
    return detail::at_most64(&w_.open_bounds[block * 64], max_bound);
  }

  static std::size_t lowest_bit(std::uint64_t bits) {
    return static_cast<std::size_t>(std::countr_zero(bits));
  }

  // At least what a total pays for each unit of work; finite, as no cell that is out is.
  float unit_cost_bound(double total) const {
    return std::min(round_up((total + kUnderflow) / volume_ * (1 + 2 * kMargin)), kMaxFloat);
  }

  // False: this is too much.
  bool charge(std::size_t steps) {
    const bool may = steps <= work_left_;
    work_left_ = may ? work_left_ - steps : 0;
    return may;
  }

  // Whether a better window may begin in the cell, and what its n cheapest nodes cost at least.
  bool compute_cell_bound(std::size_t cell, double& sum) {
    poll();
    const float before = row_.least[cell];
    Walk walk(cells_, cell, class_, row_.before[cell]);
    PairSum keys;
    std::size_t first = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const std::size_t rank = walk.next();
      if (rank == Walk::kEnd) {
        table_.raise(class_, cell, kClosed, 0);
        build_work_ += bound_work_;
        return false;
      }
      if (i == 0) first = rank;
      keys.add(volume_ * cells_.rate(rank));
    }
    sum = keys.lower();
    // What overflows is dear, but not nothing.
    table_.raise(class_, cell, std::min(round_down(sum / volume_ * (1 - kMargin)), kMaxFloat),
                 static_cast<std::uint8_t>(std::min<std::size_t>(first / 64, 255)));
    if (row_.least[cell] > before) build_work_ += bound_work_;
    return can_improve(cell, sum);
  }
  bool can_improve(std::size_t cell, double sum) const {
    const Best& best = goal_.best;
    return !(sum > goal_.ceiling()) &&
           !(best.found && sum == best.total && cells_.begin(cell) >= best.start);
  }

  // Looks for it by free spans. False: too much work. A window of the cell holds a span that begins
  // there, or begins at the earliest start of all: so all nodes with such a span are listed that
  // are not too dear beside the n - 1 cheapest. `sum`: what the n cheapest cost.
  bool search_cell(std::size_t cell, double sum) {
    poll();
    Walk walk(cells_, cell, class_, row_.before[cell]);
    for (std::size_t i = 0; i < n_; ++i) w_.ranks[i] = walk.next();
    cell_begin_ = cells_.begin(cell), cell_end_ = cells_.end(cell);
    elapsed_share_ = static_cast<double>(cell) / static_cast<double>(cells_.size());
    const double last_key = volume_ * cells_.rate(w_.ranks[n_ - 1]), others = sum - last_key;
    const bool any = cell_begin_ <= query_.earliest && query_.earliest < cell_end_;
    bool fresh = any;
    for (std::size_t i = 0; i < n_; ++i) fresh |= walk.starts_here(w_.ranks[i]);
    std::size_t listed = n_;
    for (Walk more = walk;;) {
      const std::size_t rank = more.next_starting_here();
      if (rank == Walk::kEnd || exceeds_ceiling(others + volume_ * cells_.rate(rank))) break;
      w_.ranks[listed++] = rank;
    }
    if (!fresh && listed == n_) return true;
    if (!charge(n_ + (listed - n_) / 4)) return false;
    w_.candidates.clear();
    w_.times.clear();
    if (any) w_.times.push_back({query_.earliest});

    const Best before = goal_.best;
    const std::size_t batch = std::max(kBatch, n_ / 8);
    std::size_t following = walk.next_already_free();  // all nodes not listed cost as much as this one
    for (std::size_t most = batch, evaluated = 0;; listed = 0) {
      for (; listed < most && following != Walk::kEnd; following = walk.next_already_free())
        w_.ranks[listed++] = following;
      if (!collect_candidates(listed)) return false;
      if (!charge(w_.times.size() * (w_.candidates.size() - evaluated) / 16)) return false;
      const double next = following == Walk::kEnd ? kInfinity : volume_ * cells_.rate(following);
      if (!evaluate_times(evaluated, next)) break;
      if (!charge(batch)) return false;
    }
    const Best& best = goal_.best;
    if (best.found && (!before.found || best.total != before.total || best.start != before.start))
      build_parts();
    return true;
  }

  // Beyond what may be rounded.
  bool exceeds_ceiling(double total) const { return total * (1 - kMargin) > goal_.ceiling() + kUnderflow; }

  // Candidates of the nodes in w_.ranks: free when the cell begins, or from a time in it. False:
  // too much work, as in cells in which thousands begin.
  bool collect_candidates(std::size_t count) {
    // Most nodes have as large a share of their spans before the cell as there are cells: what
    // stands there is on its way while others are looked for.
    for (std::size_t i = 0; i < count; ++i) {
      const std::vector<Span>& spans = free_[cells_.node(w_.ranks[i]).place];
      const auto guess = static_cast<std::size_t>(elapsed_share_ * static_cast<double>(spans.size()));
      w_.spans[i] = spans.data() + guess;
      fetch(w_.spans[i]), fetch(spans.data() + std::min(guess + 2, spans.size()));
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
  // The first that starts at t or later: near the guess, or by halves.
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
    const double price = node.one_price ? node.price : prices_[span.origin_row],
                 rate = node.one_price ? node.rate : price / node.performance;
    const Slot slot{span.start, span.end, node.performance, price, rate, 0, 0};
    const double from = query_.start_in(slot), until = query_.limit(slot);
    if (!(std::max(from, cell_begin_) + length <= until && query_.admits(slot, 0))) return;
    insert(volume_ * rate, {from, until, length, span.origin_row, node.place});
    if (span.start < cell_begin_) return;
    const auto same = [from](const CostTime& time) { return time.start == from; };
    if (std::none_of(w_.times.begin(), w_.times.end(), same)) w_.times.push_back({from});
  }

  void grow_order() {
    if (w_.order.size() <= w_.candidates.size()) w_.order.resize(2 * w_.order.size() + 64);
  }
  void insert(double key, const CostCandidate& fresh) {
    grow_order();
    const std::size_t size = w_.candidates.size();
    const Entry entry{key, size};
    if (size == 0 || !(key < w_.order[size - 1].key))  // most are looked up in this order
      w_.order[size] = entry;
    else
      insert_sorted(w_.order, size, entry, ByKey{});
    w_.candidates.push_back(fresh);
  }

  static bool is_live(const CostCandidate& part, double t) {
    return (part.from <= t) & (t + part.length <= part.until);
  }

  // The n cheapest at each time of the cell at which a window may begin, where any number of others
  // costs as much as `next`: the first `judged` in order are counted already. Whether others may
  // change a window that is no dearer than the best.
  bool evaluate_times(std::size_t& evaluated, double next) {
    std::size_t last = evaluated, open = 0;
    while (last < w_.candidates.size() && w_.order[last].key < next) ++last;
    for (CostTime time : w_.times) {
      for (std::size_t i = evaluated; i < last && time.parts < n_; ++i) {
        // Without a branch: whether it is live is hard to guess.
        const bool counts = is_live(w_.candidates[w_.order[i].row], time.start);
        const double key = w_.order[i].key;
        time.sum += counts ? key : 0;
        time.last_key = counts ? key : time.last_key;
        time.parts += counts;
      }
      if (time.parts < n_) {
        double sum = time.sum;
        for (std::size_t i = time.parts; i < n_ && can_fit(sum); ++i) sum += next;
        if (can_fit(sum)) w_.times[open++] = time;
      } else if (can_fit(time.sum)) {
        accept(time);
      }
    }
    w_.times.resize(open);
    evaluated = last;
    return open > 0;
  }

  // Whether a plain sum of n keys may be within the ceiling as the exact one.
  bool can_fit(double sum) const {
    return sum * (1 - 0x1p-51 * static_cast<double>(n_)) <= goal_.ceiling();
  }

  // Takes the n cheapest at this time if they are better.
  SLOTKERN_APART void accept(const CostTime& time) {
    const double total = exact_sum_of([&](auto visit) {
      std::size_t parts = 0;
      for (std::size_t i = 0; parts < n_; ++i) {
        if (!is_live(w_.candidates[w_.order[i].row], time.start)) continue;
        visit(w_.order[i].key);
        ++parts;
      }
    });
    if (!goal_.fits(time.start, total)) return;
    goal_.best.found = true;
    goal_.best.start = time.start;
    goal_.best.total = total;
    goal_.best.nth_key = time.last_key;
    ceiling_ = unit_cost_bound(total);
  }

  // The window at goal.best, whose candidates are all there.
  void build_parts() {
    w_.chosen.clear();
    for (std::size_t i = 0; i < w_.candidates.size() && w_.order[i].key <= goal_.best.nth_key; ++i)
      if (is_live(w_.candidates[w_.order[i].row], goal_.best.start)) w_.chosen.push_back(w_.order[i]);
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
  static constexpr std::size_t kFreeSpansPerNode = 3;  // spans of a node that begin in a cell
  static constexpr std::ptrdiff_t kMaxLinearSteps = 16;  // spans: farther, halving is faster

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
  const std::size_t bound_work_;  // work of looking through a cell
  const std::size_t max_work_;
  std::size_t work_left_, build_work_ = 0;
  double elapsed_share_ = 0, cell_begin_ = 0, cell_end_ = 0;  // of the cell that is examined
  float ceiling_ = kMaxFloat;
};

}  // namespace slotkern

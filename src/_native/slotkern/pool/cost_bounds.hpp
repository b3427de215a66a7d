// Cache of lower bounds on the cost of a window that starts in a given cell, a stretch of time of
// the matrix in pool/max_work.hpp, maintained while free time changes.
//
// The n nodes of lowest rate (price / performance) that can do the work from a start in the cell
// bound the cost of every window of n parts that starts there. CostSearch (pool/cost_search.hpp)
// computes these bounds, per unit of work, for each n and class of work (a quantized logarithm of
// the volume). A bound also holds for larger volumes, because only some of these nodes can do them.
// Bounds remain valid while free time is only removed. A release raises the class of a node in some
// cells; there the bounds of the classes above the old one, up to the new one, are reset to 0.
//
// Memory besides the matrix: at most 64 bytes for each slot, and 3 kB for each n. Cost of a
// release: for each cell whose class changes, the rows of bounds between the two classes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "slotkern/pool/adaptive_budget.hpp"
#include "slotkern/pool/max_work.hpp"

namespace slotkern {

class CostBoundCache {
 public:
  CostBoundCache() = default;
  // A copy starts empty: the bounds are a cache.
  CostBoundCache(const CostBoundCache&) {}
  CostBoundCache& operator=(const CostBoundCache&) { return reset(), *this; }
  CostBoundCache(CostBoundCache&&) = default;
  CostBoundCache& operator=(CostBoundCache&&) = default;

  // Drops everything. Changes need not be notified until build().
  void reset() {
    reset_keeping(1);
    budgets_ = {};
  }
  bool is_built() const { return is_built_; }
  // True if bounds exist that distinguish this volume.
  bool covers(double volume) const { return is_built_ && cells_.can_distinguish(volume); }

  // True if the pool has grown to kMaxGrowth times its rows at build(): its cells have become too
  // coarse. A build costs less than the searches that have added these rows.
  bool is_outgrown(const PreparedSlots& prepared) const {
    return is_built_ && prepared.slots.size() >= kMaxGrowth * rows_at_build_;
  }

  // Heuristic: true if these slots are enough for bounds to pay, and few enough for the memory
  // limit.
  static bool is_applicable(const PreparedSlots& prepared) {
    const std::size_t rows = prepared.slots.size(), nodes = prepared.nodes.size();
    return rows >= prepared.options.min_cost_bound_rows && nodes > 0 && nodes <= kMaxNodes &&
           (nodes <= kManyNodes || rows >= kMinRowsPerNode * nodes) &&
           MaxWorkMatrix::count_cells(prepared) >= 2 &&
           MaxWorkMatrix::count_bytes(prepared) <= kMaxBytes;
  }
  // True if a search for this volume should use bounds: they cover it, or sweeps have spent as much
  // more than cell searches as a multiple (rebuild_threshold_) of the effort of build(). Requires
  // is_applicable().
  bool should_use(const PreparedSlots& prepared, double volume) {
    drop_if_useless();
    if (covers(volume)) return true;
    largest_uncovered_volume_ = std::max(largest_uncovered_volume_, volume);
    // Outside these ranges quotients may under- or overflow, and the relative safety margins do not
    // hold; such requests are left to sweeps.
    const double least = volume / prepared.nodes.front().performance;
    if (!(least > 1e-100 && volume > 1e-100 && volume < 1e100)) return false;
    return static_cast<std::size_t>(missed_effort_) >=
           rebuild_threshold_ * prepared.options.effort_before_build * build_effort(prepared);
  }
  // Records a sweep for this query; a cell search with good bounds would have spent `by_cells`.
  void record_sweep(const Query& query, std::size_t effort, std::size_t by_cells) {
    const std::int64_t missed = budget_for(query).record_sweep(effort, by_cells);
    if (!covers(query.volume)) missed_effort_ = std::max<std::int64_t>(0, missed_effort_ + missed);
    drop_if_useless();
  }
  // Records a cell search as AdaptiveBudget does, and its savings for the whole cache.
  void record_cell_search(const Query& query, bool completed, std::size_t effort, bool was_build) {
    gain_ += budget_for(query).record_cell_search(completed, effort, was_build);
    if (gain_ < max_gain_) return;
    gain_ = max_gain_;
    rebuild_threshold_ = 1;
  }

  // Returns the budget of similar queries: the same number of nodes up to a factor of two, and both
  // with filters or both without.
  AdaptiveBudget& budget_for(const Query& query) {
    const bool has_filters = query.min_performance > 0 || query.max_price < kInfinity ||
                             query.deadline < std::numeric_limits<double>::max();
    const int width_bits = std::bit_width(static_cast<std::uint64_t>(query.n));
    return budgets_[2 * std::min(static_cast<std::size_t>(width_bits), kMaxWidthBits) +
                    has_filters];
  }

  // Builds the matrix. Strong exception guarantee. `prices` by row of the origin array.
  void build(const PreparedSlots& prepared, const std::vector<double>& prices,
             const AvailabilityTimeline& spans, double volume) {
    // An outlier must not push all other volumes below the lowest class.
    const double largest = std::clamp(largest_uncovered_volume_, volume, 16 * volume);
    MaxWorkMatrix matrix;
    matrix.build(prepared, prices, spans, largest);
    reset_keeping(!is_built_ || gain_ >= max_gain_ / kMaxGain ? rebuild_threshold_
                                                              : backoff_threshold());
    cells_ = std::move(matrix);
    is_built_ = true;
    rows_at_build_ = prepared.slots.size();
    max_rows_ = prepared.options.max_bound_rows;
    gain_ = static_cast<std::int64_t>(build_effort(prepared));
    max_gain_ = kMaxGain * gain_;
    uncounted_effort_ += build_effort(prepared);
  }

  // Returns the effort of builds and changes since the last call.
  std::size_t take_effort() { return std::exchange(uncounted_effort_, 0); }

  const MaxWorkMatrix& cells() const { return cells_; }

 private:
  // Returns the listener that resets the bounds of the classes that a node has reached in cell j; the
  // others keep their bounds.
  auto on_class_changed() {
    return [this](std::size_t j, std::size_t before, std::size_t now) {
      for (Table& table : tables_)
        for (std::size_t c = table.next_class[before]; c != 0 && c <= now; c = table.next_class[c])
          table.rows[c]->least[j] = 0, table.rows[c]->skipped_groups[j] = 0;
    };
  }

 public:
  // See MaxWorkMatrix.
  void on_booked(std::size_t k, const std::vector<Span>& free, double begin, double end) {
    charge_change();
    cells_.on_booked(k, free, begin, end);
  }
  void on_released(std::size_t k, const std::vector<Span>& free, const Span& freed,
                   const Span& grown) {
    charge_change();
    cells_.on_released(k, free, freed, grown, on_class_changed());
  }
  void on_replaced(std::size_t k, const std::vector<Span>& free, double begin, double end) {
    charge_change();
    cells_.on_replaced(k, free, begin, end, on_class_changed());
  }
  void on_node_removed(std::size_t k) { cells_.on_node_removed(k); }

  // Bounds for windows of n parts of a class or a higher one, by cell. `least`: lower bound on the
  // cost per unit of work, padded with +inf to a multiple of 64. `skipped_groups`: all nodes of
  // rank below 64 * skipped_groups have a lower class.
  struct Row {
    std::vector<float> least;
    std::vector<std::uint8_t> skipped_groups;
  };
  // The rows for one n. Invariant: bounds do not decrease with the class.
  struct Table {
    std::int64_t n;
    std::array<std::unique_ptr<Row>, MaxWorkMatrix::kClasses> rows;  // none: use the next lower one
    // The next higher class with a row; 0: none.
    std::array<std::uint8_t, MaxWorkMatrix::kClasses> next_class{};

    void raise(std::size_t c, std::size_t cell, float least, std::uint8_t skipped_groups) {
      do {
        Row& row = *rows[c];
        if (!(row.least[cell] < least)) return;
        row.least[cell] = least;
        row.skipped_groups[cell] = skipped_groups;
      } while ((c = next_class[c]) != 0);
    }
  };

  // The row found for windows of n parts of a class: its own, or that of the next lower class if no
  // more rows fit. `new_cells`: number of cells, if the row was created. Valid until the next
  // find_or_create_row(), build() or reset().
  struct RowLease {
    Table* table;
    std::uint8_t row;
    std::size_t new_cells;
  };
  RowLease find_or_create_row(std::int64_t n, std::uint8_t c) {
    auto found = std::find_if(tables_.begin(), tables_.end(),
                              [n](const Table& t) { return t.n == n; });
    if (found != tables_.end()) {
      std::uint8_t row = c;
      if (num_rows_ >= max_rows_)
        while (row > 0 && !found->rows[row]) --row;
      if (found->rows[row]) return {&*found, row, 0};
    }
    if (num_rows_ >= max_rows_ || tables_.size() >= kMaxTables)
      num_rows_ = 0, tables_.clear(), found = tables_.end();
    auto row = std::make_unique<Row>(make_row(n, c));
    if (found == tables_.end()) found = tables_.insert(tables_.end(), Table{n, {}, {}});
    found->rows[c] = std::move(row);
    ++num_rows_;
    std::uint8_t next = 0;
    for (std::size_t k = MaxWorkMatrix::kClasses; k-- > 0;) {
      found->next_class[k] = next;
      if (found->rows[k]) next = static_cast<std::uint8_t>(k);
    }
    return {&*found, c, cells_.size()};
  }

 private:
  // Drops everything but the budgets.
  void reset_keeping(std::size_t threshold) {
    is_built_ = false;
    cells_.clear();
    tables_.clear();
    num_rows_ = 0, missed_effort_ = 0;
    largest_uncovered_volume_ = 0;
    rebuild_threshold_ = threshold;
  }

  void charge_change() {
    gain_ -= static_cast<std::int64_t>(kChangeEffort);
    uncounted_effort_ += kChangeEffort;
  }
  // Effort of build() in the unit of sweeps.
  static std::size_t build_effort(const PreparedSlots& prepared) {
    return 4 * prepared.slots.size() + MaxWorkMatrix::count_bytes(prepared) / 8;
  }
  // Drops the cache if its upkeep has cost more than cell searches have saved.
  void drop_if_useless() {
    if (is_built_ && gain_ < 0) reset_keeping(backoff_threshold());
  }
  // Returns the rebuild threshold after bounds that did not pay.
  std::size_t backoff_threshold() const {
    return std::min(2 * rebuild_threshold_, kMaxRebuildThreshold);
  }

  static constexpr std::size_t kMaxTables = 32, kMaxRebuildThreshold = 8,
                               kMaxWidthBits = 13;  // wider n share one budget
  static constexpr std::size_t kChangeEffort = 16;  // to book or release a part
  static constexpr std::size_t kMaxGrowth = 2;      // of the rows of the pool since build()
  static constexpr std::int64_t kMaxGain = 4;       // times the effort of build()
  static constexpr std::size_t kMaxNodes = 1 << 14, kMaxBytes = 1 << 25;  // beyond: sweeps only
  // With fewer rows a node, cells of many nodes have too many starts to be searched.
  static constexpr std::size_t kManyNodes = 4096, kMinRowsPerNode = 10;

  // Returns a new row with bounds inherited from lower classes and from the next smaller number of
  // parts m: n parts cost at least n / m times as much as the m cheapest of them.
  Row make_row(std::int64_t n, std::size_t c) const {
    Row row;
    row.least.assign((cells_.size() + 63) / 64 * 64, std::numeric_limits<float>::infinity());
    std::fill_n(row.least.begin(), cells_.size(), 0.0f);
    row.skipped_groups.assign(cells_.size(), 0);
    const Table* fewer = nullptr;
    for (const Table& table : tables_) {
      if (table.n == n) inherit(table, c, 1, row);
      if (table.n < n && (!fewer || fewer->n < table.n)) fewer = &table;
    }
    if (fewer) inherit(*fewer, c, static_cast<double>(n) / static_cast<double>(fewer->n), row);
    return row;
  }
  static void inherit(const Table& table, std::size_t c, double times, Row& row) {
    while (c > 0 && !table.rows[c]) --c;
    if (!table.rows[c]) return;
    const Row& source = *table.rows[c];
    for (std::size_t j = 0; j < row.skipped_groups.size(); ++j) {
      const float least =
          times > 1 ? round_down(source.least[j] * times * (1 - kMargin)) : source.least[j];
      if (!(row.least[j] < least)) continue;
      row.least[j] = least;
      row.skipped_groups[j] = source.skipped_groups[j];
    }
  }

  MaxWorkMatrix cells_;
  std::vector<Table> tables_;
  std::array<AdaptiveBudget, 2 * kMaxWidthBits + 2> budgets_;
  bool is_built_ = false;
  std::size_t rows_at_build_ = 0;            // of the pool
  std::size_t num_rows_ = 0, max_rows_ = 0;  // of bounds
  std::int64_t missed_effort_ = 0;  // that bounds would have saved, for volumes not covered
  std::size_t rebuild_threshold_ = 1;  // times the effort of build()
  // Effort that cell searches have saved since build(), less that of changes, plus that of one
  // build(); and the most that is remembered.
  std::int64_t gain_ = 0, max_gain_ = 0;
  std::size_t uncounted_effort_ = 0;  // of builds and changes since take_effort()
  double largest_uncovered_volume_ = 0;  // since the last build
};

}  // namespace slotkern

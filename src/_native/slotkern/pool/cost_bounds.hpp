// What a window costs at least in each stretch of time, also while what is free changes.
//
// The first n nodes in the order of rising rates that may do the work asked for in a cell of time
// (pool/max_work.hpp) bound what a window of the cell costs. What has been found so is kept by n
// and class of work, and holds for all greater volumes too: as long as free time is only taken it
// stays true, also where nodes can do less. Where free time comes back what is kept of its cells
// and the classes that they reach now begins anew.
// Memory: beside that of the cells at most 64 bytes a slot, and 3 kB for each n. A part given back
// costs for each of its cells as much as there are classes kept.
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

#include "slotkern/pool/max_work.hpp"
#include "slotkern/pool/adaptive_budget.hpp"

namespace slotkern {

class CostBoundCache {
 public:
  CostBoundCache() = default;
  // A copy knows nothing.
  CostBoundCache(const CostBoundCache&) {}
  CostBoundCache& operator=(const CostBoundCache&) { return reset(), *this; }
  CostBoundCache(CostBoundCache&&) = default;
  CostBoundCache& operator=(CostBoundCache&&) = default;

  // Nothing is known, and nothing need be told, until build().
  void reset() {
    reset_keeping(kMinRebuildThreshold);
    budgets_ = {};
  }
  bool is_built() const { return is_built_; }
  // Whether the class of this volume is told from others.
  bool covers(double volume) const { return is_built_ && cells_.can_distinguish(volume); }

  // Whether there may be so much to tell of these slots that it is worth a try.
  static bool is_applicable(const PreparedSlots& prepared) {
    const std::size_t rows = prepared.slots.size(), nodes = prepared.nodes.size();
    return rows >= 8 * kFewRows && nodes > 0 && nodes <= kMaxNodes &&
           MaxWorkMatrix::count_cells(prepared) >= 2 && MaxWorkMatrix::count_bytes(prepared) <= kMaxBytes;
  }
  // Whether it pays to know costs for this volume of slots that fit, or they are known: once sweeps
  // have taken some times as long as build() does.
  bool should_use(const PreparedSlots& prepared, double volume) {
    if (is_built_ && utility_ < 0) reset_keeping(backoff_threshold());  // what is asked is too unlike
    if (covers(volume)) return true;
    largest_uncovered_volume_ = std::max(largest_uncovered_volume_, volume);
    // Lengths and costs so small that margins do not hold are left to others.
    const double least = volume / prepared.nodes.front().performance;
    if (!(least > 1e-100 && volume > 1e-100 && volume < 1e100)) return false;
    const std::size_t rows = prepared.slots.size(), bytes = MaxWorkMatrix::count_bytes(prepared);
    return missed_effort_ >= rebuild_threshold_ * (4 * rows + bytes / 8);
  }
  // After a sweep for such a query.
  void record_sweep(const Query& query, std::size_t effort) {
    const std::size_t counts = budget_for(query).record_sweep(effort);
    if (!covers(query.volume)) missed_effort_ += counts;
    if (is_built_) utility_ -= kSweepPenalty;
  }

  // What searches like this one take: for about so many parts, of all nodes and times or of some.
  AdaptiveBudget& budget_for(const Query& query) {
    const bool some = query.min_performance > 0 || query.max_price < kInfinity ||
                      query.deadline < std::numeric_limits<double>::max();
    const int about = std::bit_width(static_cast<std::uint64_t>(query.n));
    return budgets_[2 * std::min(static_cast<std::size_t>(about), kMaxWidthBits) + some];
  }

  // All of it or, without memory, nothing new is known. `prices` by row of the origin array.
  void build(const PreparedSlots& prepared, const std::vector<double>& prices,
             const AvailabilityTimeline& spans, double volume) {
    // One that is much too large must not hide all others.
    const double largest = std::clamp(largest_uncovered_volume_, volume, 16 * volume);
    MaxWorkMatrix fresh;
    fresh.build(prepared, prices, spans, largest);
    reset_keeping(!is_built_ || utility_ >= kInitialUtility ? rebuild_threshold_ : backoff_threshold());
    cells_ = std::move(fresh);
    is_built_ = true;
    utility_ = kInitialUtility;
  }

  const MaxWorkMatrix& cells() const { return cells_; }

  // See MaxWorkMatrix.
  void on_booked(std::size_t k, const std::vector<Span>& free, double begin, double end) {
    cells_.on_booked(k, free, begin, end);
  }
  void on_released(std::size_t k, const std::vector<Span>& free, const Span& freed, const Span& grown) {
    --utility_;
    cells_.on_released(k, free, freed, grown, [this](std::size_t j, std::size_t before, std::size_t now) {
      for (Table& table : tables_)  // of other classes nothing changes
        for (std::size_t c = table.next_class[before]; c != 0 && c <= now; c = table.next_class[c])
          table.rows[c]->least[j] = 0, table.rows[c]->before[j] = 0;
    });
  }
  void on_node_removed(std::size_t k) { cells_.on_node_removed(k); }

  // What is kept of windows of n parts of a class or a higher one, by cell: at least so much they
  // cost for each unit of work (infinite behind the last cell, up to a multiple of 64), and all
  // nodes before so many times 64 can do less.
  struct Row {
    std::vector<float> least;
    std::vector<std::uint8_t> before;
  };
  // By class. Bounds are no less in a higher one.
  struct Table {
    std::int64_t n;
    std::array<std::unique_ptr<Row>, MaxWorkMatrix::kClasses> rows;  // none: as the next lower one
    std::array<std::uint8_t, MaxWorkMatrix::kClasses> next_class{};  // the next class with a row; 0: none

    void raise(std::size_t c, std::size_t cell, float least, std::uint8_t before) {
      do {
        Row& row = *rows[c];
        if (!(row.least[cell] < least)) return;
        row.least[cell] = least;
        row.before[cell] = before;
      } while ((c = next_class[c]) != 0);
    }
  };

  // A row for windows of n parts that holds for a class: its own or, where no more are made, that of
  // the next one below. `made`: how many cells are new.
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
      if (num_rows_ >= kMaxRows)
        while (row > 0 && !found->rows[row]) --row;
      if (found->rows[row]) {
        utility_ = std::min(utility_ + kRowUtility, kRowUtility * kMaxUtilityRows);
        if (utility_ == kRowUtility * kMaxUtilityRows) rebuild_threshold_ = kMinRebuildThreshold;
        return {&*found, row, 0};
      }
    }
    utility_ -= kRowUtility;
    if (num_rows_ >= kMaxRows || tables_.size() >= kMaxTables)
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
  // But what searches take, and what building costs.
  void reset_keeping(std::size_t threshold) {
    is_built_ = false;
    cells_.clear();
    tables_.clear();
    num_rows_ = missed_effort_ = 0;
    largest_uncovered_volume_ = 0;
    rebuild_threshold_ = threshold;
  }

  // What building costs where what was built did not pay.
  std::size_t backoff_threshold() const { return std::min(2 * rebuild_threshold_, kMaxRebuildThreshold); }

  // Tests, whose pools are small, build at once.
  static constexpr std::size_t kMaxRows = MaxWorkMatrix::kMaxBytesPerRow * MaxWorkMatrix::kMinRowsPerCell / 5,
                               kMaxTables = 32, kMinRebuildThreshold = kFewRows == 0 ? 0 : 1, kMaxRebuildThreshold = 16,
                               kMaxWidthBits = 13;  // of how many nodes there may be
  // A row that is there is worth as much as one that is made costs, so many parts given back, or
  // some sweeps.
  static constexpr std::int64_t kRowUtility = 64, kMaxUtilityRows = 256, kSweepPenalty = 4,
                                kInitialUtility = kRowUtility * kMaxRows;
  static constexpr std::size_t kMaxNodes = 4096, kMaxBytes = 1 << 24;  // beyond, sweeps are left

  // What is known for a lower class, and for the most parts that are fewer, tells of a new row: all
  // parts together cost no less than so many times the mean of the cheapest.
  Row make_row(std::int64_t n, std::size_t c) const {
    Row row;
    row.least.assign((cells_.size() + 63) / 64 * 64, std::numeric_limits<float>::infinity());
    std::fill_n(row.least.begin(), cells_.size(), 0.0f);
    row.before.assign(cells_.size(), 0);
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
    for (std::size_t j = 0; j < row.before.size(); ++j) {
      const float least =
          times > 1 ? round_down(source.least[j] * times * (1 - kMargin)) : source.least[j];
      if (!(row.least[j] < least)) continue;
      row.least[j] = least;
      row.before[j] = source.before[j];
    }
  }

  MaxWorkMatrix cells_;
  std::vector<Table> tables_;
  std::array<AdaptiveBudget, 2 * kMaxWidthBits + 2> budgets_;
  bool is_built_ = false;
  std::size_t num_rows_ = 0;
  std::size_t missed_effort_ = 0;             // effort of sweeps for volumes that are not told
  std::size_t rebuild_threshold_ = kMinRebuildThreshold;        // of building, in times of what it takes
  std::int64_t utility_ = 0;           // below zero what is kept is not worth its keep
  double largest_uncovered_volume_ = 0;                   // work asked for that was not told from other work
};

}  // namespace slotkern

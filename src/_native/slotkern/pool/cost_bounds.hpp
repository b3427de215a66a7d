// What a window costs at least in each stretch of time, also while what is free changes.
//
// The first n nodes in the order of rising rates that may do the work asked for in a cell of time
// (pool/cell_work.hpp) bound what a window of the cell costs. What has been found so is kept by n
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

#include "slotkern/pool/cell_work.hpp"
#include "slotkern/pool/cost_account.hpp"

namespace slotkern {

class CostBounds {
 public:
  CostBounds() = default;
  // A copy knows nothing.
  CostBounds(const CostBounds&) {}
  CostBounds& operator=(const CostBounds&) { return forget(), *this; }
  CostBounds(CostBounds&&) = default;
  CostBounds& operator=(CostBounds&&) = default;

  // Nothing is known, and nothing need be told, until build().
  void forget() {
    forget_but(kPrice);
    accounts_ = {};
  }
  bool known() const { return known_; }
  // Whether the class of this volume is told from others.
  bool tells(double volume) const { return known_ && cells_.tells(volume); }

  // Whether there may be so much to tell of these slots that it is worth a try.
  static bool fits(const PreparedSlots& prepared) {
    const std::size_t rows = prepared.slots.size(), nodes = prepared.nodes.size();
    return rows >= 8 * kFewRows && nodes > 0 && nodes <= kMostNodes &&
           CellWork::cells_for(prepared) >= 2 && CellWork::bytes_for(prepared) <= kMostInAll;
  }
  // Whether it pays to know costs for this volume of slots that fit, or they are known: once sweeps
  // have taken some times as long as build() does.
  bool pays(const PreparedSlots& prepared, double volume) {
    if (known_ && credit_ < 0) forget_but(dearer());  // what is asked is too unlike
    if (tells(volume)) return true;
    most_ = std::max(most_, volume);
    // Lengths and costs so small that margins do not hold are left to others.
    const double least = volume / prepared.nodes.front().performance;
    if (!(least > 1e-100 && volume > 1e-100 && volume < 1e100)) return false;
    const std::size_t rows = prepared.slots.size(), bytes = CellWork::bytes_for(prepared);
    return spent_ >= price_ * (4 * rows + bytes / 8);
  }
  // After a sweep for such a query.
  void swept(const Query& query, std::size_t effort) {
    const std::size_t counts = account(query).swept(effort);
    if (!tells(query.volume)) spent_ += counts;
    if (known_) credit_ -= kSwept;
  }

  // What searches like this one take: for about so many parts, of all nodes and times or of some.
  CostAccount& account(const Query& query) {
    const bool some = query.min_performance > 0 || query.max_price < kInfinity ||
                      query.deadline < std::numeric_limits<double>::max();
    const int about = std::bit_width(static_cast<std::uint64_t>(query.n));
    return accounts_[2 * std::min(static_cast<std::size_t>(about), kMostBits) + some];
  }

  // All of it or, without memory, nothing new is known. `prices` by row of the origin array.
  void build(const PreparedSlots& prepared, const std::vector<double>& prices,
             const PoolSpans& spans, double volume) {
    // One that is much too large must not hide all others.
    const double largest = std::clamp(most_, volume, 16 * volume);
    CellWork fresh;
    fresh.build(prepared, prices, spans, largest);
    forget_but(!known_ || credit_ >= kFirstCredit ? price_ : dearer());
    cells_ = std::move(fresh);
    known_ = true;
    credit_ = kFirstCredit;
  }

  const CellWork& cells() const { return cells_; }

  // See CellWork.
  void took(std::size_t k, const std::vector<Span>& free, double begin, double end) {
    cells_.took(k, free, begin, end);
  }
  void gave(std::size_t k, const std::vector<Span>& free, const Span& freed, const Span& grown) {
    --credit_;
    cells_.gave(k, free, freed, grown, [this](std::size_t j, std::size_t before, std::size_t now) {
      for (Table& table : tables_)  // of other classes nothing changes
        for (std::size_t c = table.above[before]; c != 0 && c <= now; c = table.above[c])
          table.rows[c]->least[j] = 0, table.rows[c]->before[j] = 0;
    });
  }
  void lost(std::size_t k) { cells_.lost(k); }

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
    std::array<std::unique_ptr<Row>, CellWork::kClasses> rows;  // none: as the next lower one
    std::array<std::uint8_t, CellWork::kClasses> above{};  // the next class with a row; 0: none

    void raise(std::size_t c, std::size_t cell, float least, std::uint8_t before) {
      do {
        Row& row = *rows[c];
        if (!(row.least[cell] < least)) return;
        row.least[cell] = least;
        row.before[cell] = before;
      } while ((c = above[c]) != 0);
    }
  };

  // A row for windows of n parts that holds for a class: its own or, where no more are made, that of
  // the next one below. `made`: how many cells are new.
  struct Known {
    Table* table;
    std::uint8_t row;
    std::size_t made;
  };
  Known known(std::int64_t n, std::uint8_t c) {
    auto found = std::find_if(tables_.begin(), tables_.end(),
                              [n](const Table& t) { return t.n == n; });
    if (found != tables_.end()) {
      std::uint8_t row = c;
      if (rows_ >= kMostRows)
        while (row > 0 && !found->rows[row]) --row;
      if (found->rows[row]) {
        credit_ = std::min(credit_ + kCredit, kCredit * kMostCredit);
        if (credit_ == kCredit * kMostCredit) price_ = kPrice;
        return {&*found, row, 0};
      }
    }
    credit_ -= kCredit;
    if (rows_ >= kMostRows || tables_.size() >= kMostTables)
      rows_ = 0, tables_.clear(), found = tables_.end();
    auto row = std::make_unique<Row>(first_row(n, c));
    if (found == tables_.end()) found = tables_.insert(tables_.end(), Table{n, {}, {}});
    found->rows[c] = std::move(row);
    ++rows_;
    std::uint8_t next = 0;
    for (std::size_t k = CellWork::kClasses; k-- > 0;) {
      found->above[k] = next;
      if (found->rows[k]) next = static_cast<std::uint8_t>(k);
    }
    return {&*found, c, cells_.size()};
  }

 private:
  // But what searches take, and what building costs.
  void forget_but(std::size_t price) {
    known_ = false;
    cells_.forget();
    tables_.clear();
    rows_ = spent_ = 0;
    most_ = 0;
    price_ = price;
  }

  // What building costs where what was built did not pay.
  std::size_t dearer() const { return std::min(2 * price_, kMostPrice); }

  // Tests, whose pools are small, build at once.
  static constexpr std::size_t kMostRows = CellWork::kMostBytes * CellWork::kCellRows / 5,
                               kMostTables = 32, kPrice = kFewRows == 0 ? 0 : 1, kMostPrice = 16,
                               kMostBits = 13;  // of how many nodes there may be
  // A row that is there is worth as much as one that is made costs, so many parts given back, or
  // some sweeps.
  static constexpr std::int64_t kCredit = 64, kMostCredit = 256, kSwept = 4,
                                kFirstCredit = kCredit * kMostRows;
  static constexpr std::size_t kMostNodes = 4096, kMostInAll = 1 << 24;  // beyond, sweeps are left

  // What is known for a lower class, and for the most parts that are fewer, tells of a new row: all
  // parts together cost no less than so many times the mean of the cheapest.
  Row first_row(std::int64_t n, std::size_t c) const {
    Row row;
    row.least.assign((cells_.size() + 63) / 64 * 64, std::numeric_limits<float>::infinity());
    std::fill_n(row.least.begin(), cells_.size(), 0.0f);
    row.before.assign(cells_.size(), 0);
    const Table* fewer = nullptr;
    for (const Table& table : tables_) {
      if (table.n == n) learn(table, c, 1, row);
      if (table.n < n && (!fewer || fewer->n < table.n)) fewer = &table;
    }
    if (fewer) learn(*fewer, c, static_cast<double>(n) / static_cast<double>(fewer->n), row);
    return row;
  }
  static void learn(const Table& table, std::size_t c, double times, Row& row) {
    while (c > 0 && !table.rows[c]) --c;
    if (!table.rows[c]) return;
    const Row& known = *table.rows[c];
    for (std::size_t j = 0; j < row.before.size(); ++j) {
      const float least =
          times > 1 ? round_down(known.least[j] * times * (1 - kMargin)) : known.least[j];
      if (!(row.least[j] < least)) continue;
      row.least[j] = least;
      row.before[j] = known.before[j];
    }
  }

  CellWork cells_;
  std::vector<Table> tables_;
  std::array<CostAccount, 2 * kMostBits + 2> accounts_;
  bool known_ = false;
  std::size_t rows_ = 0;
  std::size_t spent_ = 0;             // effort of sweeps for volumes that are not told
  std::size_t price_ = kPrice;        // of building, in times of what it takes
  std::int64_t credit_ = 0;           // below zero what is kept is not worth its keep
  double most_ = 0;                   // work asked for that was not told from other work
};

}  // namespace slotkern

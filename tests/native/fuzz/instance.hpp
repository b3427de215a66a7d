// Builds slots and requests from a fuzzer's bytes: few nodes, many ties, touching slots, equal
// ends, numbers that differ by ulps, huge and tiny ones, limits met exactly or missed by one bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "slotkern/pool/adaptive_cost_search.hpp"

// Stack traces of allocations took most of the time: two frames suffice, and so short runs do not
// use memory that was freed long ago.
extern "C" __attribute__((used)) const char* __asan_default_options() {
  return "malloc_context_size=2:quarantine_size_mb=4";
}

namespace fuzz {

using namespace slotkern;

// Counts the searches and those that found something; printed at the end.
struct Tally {
  const char* what;
  std::uint64_t runs = 0, searches = 0, found = 0;

  ~Tally() {
    std::fprintf(stderr, "%s: %llu instances, %llu searches, %llu found something\n", what,
                 static_cast<unsigned long long>(runs), static_cast<unsigned long long>(searches),
                 static_cast<unsigned long long>(found));
  }
};

// Returns the exact sum of term(i) over some rows, rounded once; not finite if a plain sum is not.
template <class All, class Term>
double rounded_sum(const All& rows, Term term) {
  static thread_local ExactSum sum;
  double plain = 0;
  sum.clear();
  for (const auto& i : rows) plain += term(i);
  if (!std::isfinite(plain)) return plain;
  for (const auto& i : rows) sum.add(term(i));
  return sum.value();
}

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  std::size_t left() const { return size_; }
  std::uint8_t next() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::size_t below(std::size_t n) { return next() % n; }
  bool one_in(std::size_t n) { return below(n) == n - 1; }
  template <class T, std::size_t N>
  T pick(const T (&options)[N]) {
    return options[below(N)];
  }
  template <class T>
  const T& pick(const std::vector<T>& options) {
    return options[below(options.size())];
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

struct Row {
  std::int32_t node;
  double start, end, performance, price;
};

inline SlotView view_of(const std::vector<Row>& rows) {
  SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(Row), view.size = rows.size();
  view.node = offsetof(Row, node), view.start = offsetof(Row, start);
  view.end = offsetof(Row, end), view.performance = offsetof(Row, performance);
  view.price = offsetof(Row, price);
  return view;
}

inline void sort_rows(std::vector<Row>& rows) {
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start < b.start || (a.start == b.start && a.node < b.node);
  });
}

inline double next_down(double x) { return std::nextafter(x, -kInfinity); }
inline double next_up(double x) { return std::nextafter(x, kInfinity); }

// --- slots

struct Palette {
  std::vector<double> values;

  static Palette performances(Bytes& bytes) {
    static const std::vector<double> sets[] = {
        {1},          {1, 2, 3, 4},           {0.3, 0.7, 0.9, 2.1}, {0.1, 1 / 3.0, 7.3},
        {1, 3, 3 + 1e-10, 3 - 1e-10},         {3, 3 * (1 - 2e-7), 3 * (1 + 3e-8), 1},
        {1, 1 + 0x1p-52, 1 + 0x1p-51, 2},     {1e-200, 1, 1e200},   {1e-308, 1e308, 3},
        {5e-324, 1e-310, 2}};
    return {bytes.one_in(4) ? bytes.pick(sets) : sets[bytes.below(7)]};
  }
  static Palette prices(Bytes& bytes) {
    static const std::vector<double> sets[] = {
        {0},          {1},          {0, 1, 2, 3},  {0.1, 0.3, 0.7, 0.9},
        {1 / 3.0, 5}, {2, 2 + 1e-10, 2 - 1e-10},   {1, 1 + 0x1p-52, 1 - 0x1p-53, 2},
        {1, 2, 1e308},              {1e-308, 5e-324, 0, 1},         {1e16, 1, 3, 0x1p53}};
    return {bytes.one_in(4) ? bytes.pick(sets) : sets[bytes.below(7)]};
  }
};

// Creates at most `nodes` nodes with at most `per_node` slots each, valid and sorted.
inline std::vector<Row> make_rows(Bytes& bytes, std::size_t nodes, std::size_t per_node) {
  static const std::int32_t ids[] = {0, 1, 2, 5, 40, 41, 2147483647, 7};
  static const double origins[] = {0, 0, 0, -7, 1.7e9, 1e15};
  static const double units[] = {1, 1, 0.1, 1 / 3.0, 0x1p-20, 1e100};
  const double origin = bytes.pick(origins), unit = bytes.pick(units);
  const auto performances = Palette::performances(bytes), prices = Palette::prices(bytes);
  const std::size_t price_exponent = bytes.below(4);  // fast nodes are often expensive
  std::vector<Row> rows;
  const std::size_t count = nodes - std::min(bytes.below(2 * nodes), nodes);
  for (std::size_t k = 0; k < count; ++k) {
    const double performance = bytes.pick(performances.values);
    double now = static_cast<double>(bytes.below(4)), last = -kInfinity;
    for (std::size_t j = 1 + bytes.below(per_node); j-- > 0;) {
      const double length = static_cast<double>(1 + bytes.below(6));
      Row row{k < 8 ? ids[k] : static_cast<std::int32_t>(50 + k), origin + now * unit,
              origin + (now + length) * unit, performance, bytes.pick(prices.values)};
      for (std::size_t d = 1; d < price_exponent; ++d) row.price *= performance;
      if (j == 0 && bytes.one_in(8)) row.end = kInfinity;
      now += length + static_cast<double>(bytes.below(4) / 2 * bytes.below(3));
      if (!(row.start < row.end) || row.start < last || !std::isfinite(row.price)) continue;
      rows.push_back(row);
      last = row.end;
    }
  }
  sort_rows(rows);
  return rows;
}

// --- requests

struct FilteredQuery {
  Query query;
  std::vector<std::uint8_t> mask;  // empty: no filter
};

// The run time of a part, and the key that orders parts by cost: the price, or the part's cost. The
// cost of a unit of work must be finite.
inline double length_on(const Query& query, double performance) {
  const double time = query.setup + query.volume / performance;
  if (query.step == 0 || time / query.step >= 0x1p52) return time;
  const double up = std::max(1.0, std::ceil(time / query.step));
  const double spare = time / query.step - (up - 1);
  const bool rounding = up > 1 && spare <= 4 * 0x1p-52 * (time / query.step);
  return query.step * (up - (rounding ? 1 : 0));
}
inline double key_of(const Query& query, const Row& row, bool square) {
  const double rate = row.price / row.performance;
  if (square) return row.price;
  if ((query.setup == 0 && query.step == 0) || std::isinf(rate)) return query.volume * rate;
  return row.price > 0 ? row.price * length_on(query, row.performance) : 0;
}

// Returns the cost of n of the rows, in a shape.
inline double cost_of(Bytes& bytes, const std::vector<Row>& rows, std::size_t n,
                      const Query& query, bool square) {
  std::vector<double> keys;
  double slowest = kInfinity;
  const std::size_t first = bytes.below(rows.size());
  for (std::size_t i = 0; i < n; ++i) {
    const Row& row = rows[(first + i * (1 + bytes.below(2))) % rows.size()];
    keys.push_back(key_of(query, row, square));
    slowest = std::min(slowest, row.performance);
  }
  std::sort(keys.begin(), keys.end());
  const double sum = rounded_sum(keys, [](double key) { return key; });
  return square ? length_on(query, slowest) * sum : sum;
}

// Creates a request; its limits are often met exactly, or missed by one bit.
inline FilteredQuery make_query(Bytes& bytes, const std::vector<Row>& rows, std::size_t nodes,
                        bool filtered = true) {
  static const double parts[] = {1, 0.5, 1 / 3.0, 0.25, 0.1, 1e-9};
  FilteredQuery request;
  Query& query = request.query;
  query.n = static_cast<std::int64_t>(1 + bytes.below(nodes + 1));
  query.volume = 1;
  query.earliest = -kInfinity;
  if (rows.empty()) return request.query.earliest = 0, request;
  const auto any = [&]() -> const Row& { return bytes.pick(rows); };
  const auto length_of = [](const Row& row, double from) {
    return std::isinf(row.end) ? 1.0 : row.end - std::max(row.start, from);
  };
  query.earliest = bytes.one_in(3) ? 0 : -1e20;
  if (bytes.one_in(4)) {
    const Row& row = any();
    query.earliest = bytes.below(2) && std::isfinite(row.end) ? row.end : row.start + 0.5;
  }
  const Row& row = any();
  const double length = length_of(row, query.earliest);
  if (length > 0) query.volume = bytes.pick(parts) * length * row.performance;
  if (!(query.volume > 0) || std::isinf(query.volume)) query.volume = 1;
  if (bytes.one_in(4)) {  // with overhead: lengths similar to those of the slots
    static const double shares[] = {0, 1, 0.5, 0.1, 1 / 3.0, 2};
    const double own = query.volume / row.performance;
    if (std::isfinite(own)) {
      if (bytes.below(3)) query.step = bytes.pick(shares) * own;
      if (bytes.below(2)) query.setup = bytes.pick(shares) * own;
      if (bytes.below(2) && query.volume / 2 > 0) query.volume /= 2;
    }
    if (!query.is_valid()) query.setup = query.step = 0;
  }
  if (bytes.one_in(6)) query.latest = any().start;
  if (bytes.one_in(6)) {
    const double length = length_on(query, any().performance);
    query.max_runtime = bytes.below(2) ? length : next_down(length);
    if (!(query.max_runtime > 0)) query.max_runtime = length > 0 ? length : 1;  // it may underflow
  }
  if (bytes.one_in(4)) query.min_performance = any().performance;
  if (bytes.one_in(4)) query.max_price = any().price;
  if (bytes.one_in(4)) {
    const double finish =
        std::max(any().start, query.earliest) + length_on(query, any().performance);
    if (std::isfinite(finish)) query.deadline = bytes.below(2) ? finish : next_down(finish);
  }
  if (bytes.below(3)) {
    query.budget = cost_of(bytes, rows, static_cast<std::size_t>(query.n), query, bytes.below(2));
    if (std::isnan(query.budget)) query.budget = kInfinity;  // infinite length at price 0
    const std::size_t off = bytes.below(8);
    if (off == 6) query.budget = std::max(0.0, next_down(query.budget));
    if (off == 7) query.budget *= 1 - 0x1p-49;  // by more than the rounding of decimals
    if (bytes.one_in(16)) query.budget = bytes.below(2) ? 0 : 5e-324;
    if (std::isnan(query.budget)) query.budget = kInfinity;  // price 0 for an infinite time
  }
  if (filtered && bytes.one_in(5))
    for (std::size_t i = 0; i < rows.size(); ++i) request.mask.push_back(bytes.below(4) != 0);
  return request;
}

// --- output before a target stops

inline void print(const std::vector<Row>& rows) {
  std::fprintf(stderr, "slots: node, start, end, performance, price\n");
  for (const Row& r : rows)
    std::fprintf(stderr, "  %d, %.17g, %.17g, %.17g, %.17g\n", r.node, r.start, r.end,
                 r.performance, r.price);
}

inline void print(const FilteredQuery& request) {
  const Query& q = request.query;
  std::fprintf(stderr, "request: n %lld, ", static_cast<long long>(q.n));
  for (const QueryField& field : kQueryFields)
    std::fprintf(stderr, "%s %.17g, ", field.name, q.*field.member);
  std::fprintf(stderr, "mask ");
  for (const std::uint8_t x : request.mask) std::fprintf(stderr, "%d", x);
  std::fprintf(stderr, "\n");
}

template <class... Shown>
[[noreturn]] void fail(const char* what, const Shown&... shown) {
  std::fprintf(stderr, "WRONG: %s\n", what);
  (print(shown), ...);
  std::abort();
}

}  // namespace fuzz

// A window with its parts, and a table of windows: the result of every search.
//
// WindowTable: row i is a window, or none (no parts, figures NaN). Its parts lie at first(i) to
// ends[i], ascending by node. Memory: 48 bytes per window and 32 per part, up to a quarter more for
// tables of many (window/find.hpp), and 9 per window if a value is not proven.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "slotkern/base/memory.hpp"

namespace slotkern {

struct Part {
  std::size_t row;
  std::int32_t node;
  std::uint32_t at = 0;  // row of PreparedSlots; only a hint
  double length, cost;

  Part() = default;
  Part(std::size_t from, std::int32_t id, double time, double money, std::uint32_t found_at = 0)
      : row(from), node(id), at(found_at), length(time), cost(money) {}
};

// The figures of a window; `runtime` and `processor_time` in the slots' time unit.
struct Found {
  double start = 0, runtime = 0, cost = 0, processor_time = 0, value = 0;
};

// Rows of the tables that the bindings return: a window, and a part with its times.
struct WindowRow {
  double start, finish, runtime, cost, processor_time, value;
};
struct PartRow {
  std::int64_t row;
  std::int32_t node;
  double start, end, cost;
};

struct WindowTable {
  std::vector<Found> found;
  std::vector<std::size_t> ends;  // end of the parts of each window
  std::vector<Part> parts;
  std::vector<double> bounds;  // bounds and proven are empty while every value is proven
  std::vector<std::uint8_t> proven;

  std::size_t size() const { return found.size(); }
  std::size_t first(std::size_t i) const { return i > 0 ? ends[i - 1] : 0; }
  bool any(std::size_t i) const { return first(i) < ends[i]; }
  std::size_t count(std::size_t i) const { return ends[i] - first(i); }
  const Part* parts_of(std::size_t i) const { return parts.data() + first(i); }
  double bound(std::size_t i) const { return bounds.empty() ? found[i].value : bounds[i]; }
  bool is_proven(std::size_t i) const { return proven.empty() || proven[i]; }

  void clear() {
    found.clear(), ends.clear(), parts.clear(), bounds.clear(), proven.clear();
  }

  void reserve(std::size_t windows, std::size_t of_parts) {
    found.reserve(windows), ends.reserve(windows), parts.reserve(of_parts);
  }

  // Strong guarantee on bad_alloc for all add functions except add_all(), which may have appended a
  // prefix.
  void add(const Found& window, const Part* from, std::size_t n) {
    make_room(n);
    parts.insert(parts.end(), from, from + n);
    end_row(window);
  }

  // Adds a window whose n parts the caller writes to the returned array.
  Part* add_row(const Found& window, std::size_t n) {
    make_room(n);
    parts.resize(parts.size() + n);
    end_row(window);
    return parts.data() + (parts.size() - n);
  }

  void add_none() {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    add({nan, nan, nan, nan, nan}, nullptr, 0);
  }

  void drop_last() {
    found.pop_back();
    ends.pop_back();
    parts.resize(first(ends.size()));
    if (!bounds.empty()) bounds.pop_back(), proven.pop_back();
  }

  // Sets the bound and the proof of the last window.
  void set_bound(double bound, bool is_proven) {
    if (bounds.empty()) {
      if (is_proven && bound == found.back().value) return;
      reserve_extra(found.size(), bounds, proven);
      for (const Found& window : found) bounds.push_back(window.value);
      proven.assign(found.size(), 1);
    }
    bounds.back() = bound;
    proven.back() = is_proven;
  }

  void add_from(const WindowTable& other, std::size_t i) {
    add(other.found[i], other.parts_of(i), other.count(i));
    if (other.any(i)) set_bound(other.bound(i), other.is_proven(i));
  }

  // Appends all rows of another table.
  void add_all(const WindowTable& other) {
    if (!bounds.empty() || !other.bounds.empty()) {
      for (std::size_t i = 0; i < other.size(); ++i) add_from(other, i);
      return;
    }
    const std::size_t before = parts.size();
    found.insert(found.end(), other.found.begin(), other.found.end());
    parts.insert(parts.end(), other.parts.begin(), other.parts.end());
    for (const std::size_t end : other.ends) ends.push_back(before + end);
  }

  void fill(WindowRow* out) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const Found& w = found[i];
      *out++ = {w.start, w.start + w.runtime, w.runtime, w.cost, w.processor_time, w.value};
    }
  }

  void fill(PartRow* out) const {
    for (std::size_t i = 0; i < size(); ++i)
      for (std::size_t k = first(i); k < ends[i]; ++k) {
        const Part& part = parts[k];
        const double start = found[i].start;
        *out++ = {static_cast<std::int64_t>(part.row), part.node, start, start + part.length,
                  part.cost};
      }
  }

 private:
  void make_room(std::size_t n) {
    reserve_extra(1, found, ends);
    reserve_extra(n, parts);
    if (!bounds.empty()) reserve_extra(1, bounds, proven);
  }
  void end_row(const Found& window) {
    found.push_back(window);
    ends.push_back(parts.size());
    if (!bounds.empty()) bounds.push_back(window.value), proven.push_back(1);
  }
};

}  // namespace slotkern

// The free amounts of each resource by host and time: the state of hosts that are shared.
//
// Hosts are in groups of kLanes. A group is a list of rows by time; a row holds the free vectors of
// its hosts from its start to the start of the next row: amount d of the host in lane l is
// `cells[d * kLanes + l]`. Amounts are whole numbers.
//
// Invariant: the first row starts at -inf, starts ascend, and adjacent rows differ. So the rows are
// a function of the free amounts alone: undoing changes restores them bit for bit.
//
// A host that is not available (outside its free time, or closed) has kUnavailable less of resource
// 0 for each reason, and so holds no demand; changes of its amounts commute with that. Amounts may
// be negative (capacity that failed while it was booked): such a host holds no demand either.
//
// Cost: O(log rows + rows changed) for a change, and a copy of one row for each new start. Memory: 4
// bytes for each resource, host and row.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "slotkern/base/memory.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/slots/prepared.hpp"

namespace slotkern {

using Amount = std::int32_t;

class ShareRows {
 public:
  static constexpr std::size_t kLanes = 32;
  // Largest amount of a capacity and of a sum of reservations; a power of two more is unavailable.
  static constexpr Amount kMaxAmount = (Amount{1} << 27) - 1, kUnavailable = Amount{1} << 28;

  // The rows of kLanes hosts. Cells do not move when rows are inserted between others.
  struct HostGroup {
    std::vector<double> begins;       // [row]
    std::vector<std::uint32_t> slots;  // [row]: index of its cells, in units of one row
    std::vector<Amount> cells;
    std::vector<Amount> tops;  // [slot * resources + d]: largest amount d of all hosts
    std::vector<std::uint32_t> vacant;  // slots without a row

    std::size_t size() const { return begins.size(); }
    // Returns the row in which time t lies.
    std::size_t row_at(double t) const {
      std::size_t at = 0;
      for (std::size_t size = begins.size(); size > 1; size -= size / 2)
        at += (begins[at + size / 2] <= t) * (size / 2);
      return at;
    }
    double end_of(std::size_t row) const {
      return row + 1 < begins.size() ? begins[row + 1] : kInfinity;
    }
  };

  // Starts over with hosts that are never available.
  void open(std::size_t hosts, std::size_t resources) {
    hosts_ = hosts, resources_ = resources;
    groups_.clear();
    groups_.resize((hosts + kLanes - 1) / kLanes);
    for (HostGroup& group : groups_) {
      group.begins = {-kInfinity};
      group.slots = {0};
      group.cells.assign(stride(), 0);
      std::fill_n(group.cells.begin(), kLanes, -kUnavailable);
      group.tops.assign(resources, 0);
      group.tops[0] = -kUnavailable;
    }
  }

  std::size_t hosts() const { return hosts_; }
  std::size_t resources() const { return resources_; }
  const std::vector<HostGroup>& groups() const { return groups_; }
  const HostGroup& group_of(std::size_t host) const { return groups_[host / kLanes]; }
  // The amounts of all hosts of a row: resources() times kLanes.
  const Amount* cells(const HostGroup& group, std::size_t row) const {
    return group.cells.data() + group.slots[row] * stride();
  }
  // True if the largest amounts of the row hold the demand: else no host does.
  bool may_hold(const HostGroup& group, std::size_t row, const Amount* demand) const {
    const Amount* const tops = group.tops.data() + group.slots[row] * resources_;
    bool holds = true;
    for (std::size_t d = 0; d < resources_; ++d) holds &= tops[d] >= demand[d];
    return holds;
  }
  // Amount d of the host in the row.
  Amount amount(std::size_t host, std::size_t row, std::size_t d) const {
    return cells(group_of(host), row)[d * kLanes + host % kLanes];
  }
  bool is_available(std::size_t host, std::size_t row) const {
    return amount(host, row, 0) >= -kMaxAmount;
  }
  // The free amount without what marks the host as unavailable.
  Amount free_amount(std::size_t host, std::size_t row, std::size_t d) const {
    Amount x = amount(host, row, d);
    while (d == 0 && x < -kMaxAmount) x += kUnavailable;
    return x;
  }

  // Returns true if the host holds `times` times the demand in [begin, end).
  bool holds(std::size_t host, double begin, double end, const Amount* demand,
             Amount times = 1) const {
    const HostGroup& group = group_of(host);
    for (std::size_t row = group.row_at(begin); row < group.size() && group.begins[row] < end;
         ++row)
      if (!holds_in_row(host, row, demand, times)) return false;
    return true;
  }
  bool holds_in_row(std::size_t host, std::size_t row, const Amount* demand, Amount times) const {
    const Amount* at = cells(group_of(host), row) + host % kLanes;
    bool holds = true;
    for (std::size_t d = 0; d < resources_; ++d)
      holds = holds && at[d * kLanes] >= static_cast<std::int64_t>(demand[d]) * times;
    return holds;
  }

  // Calls visit(begin, end) for the maximal spans within [from, to) in which the host holds
  // `times` times the demand, ascending.
  template <class Visit>
  void each_span(std::size_t host, double from, double to, const Amount* demand, Amount times,
                 Visit visit) const {
    if (!(from < to)) return;
    const HostGroup& group = group_of(host);
    bool is_open = false;
    double begin = from;
    for (std::size_t row = group.row_at(from); row < group.size() && group.begins[row] < to;
         ++row) {
      const bool holds = holds_in_row(host, row, demand, times);
      if (holds && !is_open) begin = std::max(group.begins[row], from);
      if (!holds && is_open) visit(begin, group.begins[row]);
      is_open = holds;
    }
    if (is_open) visit(begin, to);
  }

  // Returns the start of a row at or up to 4 ulp after `finish`, else `finish`: a remainder that
  // short is a rounding error.
  double snapped(std::size_t host, double finish) const {
    const HostGroup& group = group_of(host);
    const std::size_t row = group.row_at(finish);
    if (group.begins[row] == finish || row + 1 == group.size()) return finish;
    return snap_finish(finish, group.begins[row + 1]);
  }

  // Reserves memory for one change of the host, which then cannot fail.
  void reserve(std::size_t host) { reserve_two(groups_[host / kLanes]); }

  // Adds `sign` times the amounts to the host in [begin, end). The amounts stay within kMaxAmount:
  // the caller checks. Strong exception guarantee.
  void add(std::size_t host, double begin, double end, const Amount* amounts, Amount sign) {
    change(host, begin, end, [&](Amount* lane, Amount* tops) {
      for (std::size_t d = 0; d < resources_; ++d)
        if (amounts[d] != 0)
          add(lane[d * kLanes], sign * amounts[d], row_of(lane, host, d), tops[d]);
    });
  }
  // As add() for several hosts of the group of `host`: each(visit) calls visit(host, amounts,
  // sign).
  template <class Each>
  void add_each(std::size_t host, double begin, double end, Each each) {
    HostGroup& group = groups_[host / kLanes];
    change_rows(group, begin, end, host % kLanes, [&](Amount* row, Amount* tops) {
      bool changes_tops = false;
      each([&](std::size_t other, const Amount* amounts, Amount sign) {
        Amount* const lane = row + other % kLanes;
        for (std::size_t d = 0; d < resources_; ++d) {
          const Amount before = lane[d * kLanes];
          lane[d * kLanes] += sign * amounts[d];
          changes_tops |= before == tops[d] || lane[d * kLanes] > tops[d];
        }
      });
      for (std::size_t d = 0; changes_tops && d < resources_; ++d)
        tops[d] = top_of(row + d * kLanes);
    });
  }
  // Adds or removes one reason for which the host is not available in [begin, end).
  void set_available(std::size_t host, double begin, double end, bool available) {
    change(host, begin, end, [&](Amount* lane, Amount* tops) {
      add(*lane, available ? kUnavailable : -kUnavailable, row_of(lane, host, 0), *tops);
    });
  }

  // Drops the rows that end by `now`. O(rows of all groups).
  void drop_before(double now) {
    for (HostGroup& group : groups_) {
      const std::size_t count = group.row_at(now);
      if (count == 0) continue;
      for (std::size_t row = 0; row < count; ++row) group.vacant.push_back(group.slots[row]);
      erase_rows(group, 0, count);
      group.begins[0] = -kInfinity;
    }
  }

  std::size_t count_rows() const {
    std::size_t rows = 0;
    for (const HostGroup& group : groups_) rows += group.size();
    return rows;
  }
  std::size_t bytes() const {
    std::size_t bytes = groups_.capacity() * sizeof(HostGroup);
    for (const HostGroup& group : groups_)
      bytes += (group.cells.capacity() + group.tops.capacity()) * sizeof(Amount) + group.begins.capacity() * sizeof(double) +
               (group.slots.capacity() + group.vacant.capacity()) * sizeof(std::uint32_t);
    return bytes;
  }

 private:
  std::size_t stride() const { return resources_ * kLanes; }

  // Applies `update` to the host's cells of the rows in [begin, end), then joins equal rows. Only
  // the rows at both ends can have become equal to their neighbours: within, all differences stay.
  template <class Update>
  void change(std::size_t host, double begin, double end, Update update) {
    change_rows(groups_[host / kLanes], begin, end, host % kLanes,
                [&](Amount* row, Amount* tops) { update(row + host % kLanes, tops); });
  }
  // Applies `update` to all cells of the rows in [begin, end); `lane` is one that changes.
  template <class Update>
  void change_rows(HostGroup& group, double begin, double end, std::size_t lane, Update update) {
    if (!(begin < end)) return;
    reserve_two(group);
    const std::size_t first = cut(group, begin), last = cut(group, end);
    for (std::size_t row = first; row < last; ++row)
      update(group.cells.data() + group.slots[row] * stride(),
             group.tops.data() + group.slots[row] * resources_);
    join(group, last, lane);
    join(group, first, lane);
  }

  // The amounts of all hosts, from that of one in its lane.
  static const Amount* row_of(const Amount* lane, std::size_t host, std::size_t d) {
    return lane + d * kLanes - host % kLanes;
  }
  // Adds to one of the amounts `of_row`; `top` is the largest of them.
  static void add(Amount& amount, Amount more, const Amount* of_row, Amount& top) {
    const bool was_top = amount == top;
    amount += more;
    if (amount >= top)
      top = amount;
    else if (was_top)
      top = top_of(of_row);
  }
  static Amount top_of(const Amount* amounts) {
    Amount top = amounts[0];
    for (std::size_t l = 1; l < kLanes; ++l) top = top > amounts[l] ? top : amounts[l];
    return top;
  }

  // Reserves the memory of two more rows.
  void reserve_two(HostGroup& group) {
    reserve_extra(2, group.begins, group.slots);
    if (group.vacant.size() < 2) [[unlikely]] {
      const std::size_t more = std::max<std::size_t>(4, group.size() / 4);
      const std::size_t slots = group.cells.size() / stride();
      group.vacant.reserve(slots + more);  // all slots may become vacant: join() cannot fail
      group.cells.reserve((slots + more) * stride());
      group.tops.reserve((slots + more) * resources_);
      group.cells.resize((slots + more) * stride());
      group.tops.resize((slots + more) * resources_);
      for (std::size_t k = more; k-- > 0;)
        group.vacant.push_back(static_cast<std::uint32_t>(slots + k));
    }
  }
  // Returns the row that begins at t, which is made if there is none.
  std::size_t cut(HostGroup& group, double t) {
    if (t == kInfinity) return group.size();
    const std::size_t row = group.row_at(t);
    if (group.begins[row] == t) return row;
    const std::uint32_t slot = group.vacant.back();
    group.vacant.pop_back();
    std::memcpy(group.cells.data() + slot * stride(),
                group.cells.data() + group.slots[row] * stride(), stride() * sizeof(Amount));
    std::copy_n(group.tops.data() + group.slots[row] * resources_, resources_,
                group.tops.data() + slot * resources_);
    const auto at = static_cast<std::ptrdiff_t>(row + 1);
    group.begins.insert(group.begins.begin() + at, t);
    group.slots.insert(group.slots.begin() + at, slot);
    return row + 1;
  }
  // Joins the row with the one before it if both are equal; they can differ in this lane only if
  // they were equal before, so that it is compared first.
  void join(HostGroup& group, std::size_t row, std::size_t lane) {
    if (row == 0 || row >= group.size()) return;
    const Amount *const a = cells(group, row - 1), *const b = cells(group, row);
    for (std::size_t d = 0; d < resources_; ++d)
      if (a[d * kLanes + lane] != b[d * kLanes + lane]) return;
    if (std::memcmp(a, b, stride() * sizeof(Amount)) != 0) return;
    group.vacant.push_back(group.slots[row]);
    erase_rows(group, row, row + 1);
  }
  static void erase_rows(HostGroup& group, std::size_t first, std::size_t last) {
    const auto from = static_cast<std::ptrdiff_t>(first), to = static_cast<std::ptrdiff_t>(last);
    group.begins.erase(group.begins.begin() + from, group.begins.begin() + to);
    group.slots.erase(group.slots.begin() + from, group.slots.begin() + to);
  }

  std::size_t hosts_ = 0, resources_ = 0;
  std::vector<HostGroup> groups_;
};

}  // namespace slotkern

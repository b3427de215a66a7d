// Pools of the maximal spans in which a host holds a demand: a view for each demand, so that every
// search of a pool, with every criterion, shape and limit, is exact on shared hosts.
//
// Node j = 1..stack of a host has the spans in which it holds j times the demand. If a host holds m
// parts at a time, its nodes 1..m are free, so choosing parts is choosing nodes. The price of a slot
// is the price of a part, and each origin row lasts for the whole time of all hosts: what comes back
// merges with its neighbours as if it had never been taken. Row h * stack + j - 1 is node j of host
// h. Views contain free time only; bookings are in shares/bookings.hpp.
//
// Views are a cache. A change of a host is appended to a journal; a view reads the journal from its
// own position when it is searched, and replaces the spans that touch the changed time. A view that
// lags by more changes than there are hosts is dropped, and so is the one used least recently while
// all need more than kMaxBytes.
//
// Cost: O(hosts * rows of a group) to make a view; O(changed hosts * (rows changed + 64)) to catch
// up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "slotkern/pool/schedule.hpp"
#include "slotkern/shares/earliest.hpp"

namespace slotkern {

// A pool of the spans of one demand.
struct ShareView {
  std::vector<Amount> demand;
  Amount stack = 1;
  std::vector<double> prices;  // [host]
  PreparedSlots prepared;
  SlotPool pool;
  std::size_t position = 0;  // in the journal, counted from its beginning
  std::size_t last_use = 0;
  std::size_t spans = 0;     // when it was made
};

class ShareViews {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 20, kBytesPerSpan = 270;

  // Options of the pools made from here on.
  IndexOptions options;

  std::size_t size() const { return views_.size(); }
  void clear() { views_.clear(), journal_.clear(), dropped_ = 0; }

  // Records that the amounts of the host have changed in [begin, end). Allocates nothing if there
  // are no views; if memory runs out, all views are dropped.
  void record(std::size_t host, double begin, double end) noexcept {
    if (views_.empty()) return;
    try {
      journal_.push_back({static_cast<std::uint32_t>(host), begin, end});
    } catch (const std::bad_alloc&) {
      clear();
    }
  }

  // Returns the view for this request, brought up to date; makes it if there is none.
  ShareView& find_or_create(const ShareRows& rows, const ShareHosts& hosts, double now,
                            const ShareRequest& request) {
    const auto found = std::find_if(views_.begin(), views_.end(), [&](const auto& view) {
      return view->stack == request.stack &&
             std::equal(view->demand.begin(), view->demand.end(), request.demand) &&
             std::equal(view->prices.begin(), view->prices.end(), request.prices);
    });
    trim_journal(hosts.ids.size());
    ShareView* view = found == views_.end() ? nullptr : found->get();
    if (view && view->position < dropped_) {  // it lags too far
      views_.erase(found);
      view = nullptr;
    }
    if (view) {
      try {
        catch_up(*view, rows, hosts, now);
      } catch (...) {  // a part of the changes may have been applied
        clear(), last_change_.clear();
        throw;
      }
    } else {
      view = &create(rows, hosts, now, request);
    }
    view->last_use = ++uses_;
    return *view;
  }

 private:
  struct Change {
    std::uint32_t host;
    double begin, end;
  };

  static std::int32_t id_of(const ShareHosts& hosts, std::size_t row, Amount stack) {
    return stack == 1 ? hosts.ids[row] : static_cast<std::int32_t>(row);
  }

  // Drops what all views have read, and more if the journal is longer than the list of hosts.
  void trim_journal(std::size_t hosts) {
    const std::size_t end = dropped_ + journal_.size();
    std::size_t first = end;
    for (const auto& view : views_) first = std::min(first, view->position);
    first = std::max(first, end - std::min(end, 2 * hosts + 64));
    if (first <= dropped_) return;
    // Dropping from the front costs as much as the rest is long, so it waits for as many changes.
    if (2 * (first - dropped_) < journal_.size()) return;
    journal_.erase(journal_.begin(), journal_.begin() + static_cast<std::ptrdiff_t>(first - dropped_));
    dropped_ = first;
  }

  ShareView& create(const ShareRows& rows, const ShareHosts& hosts, double now,
                    const ShareRequest& request) {
    auto view = std::make_unique<ShareView>();
    view->demand.assign(request.demand, request.demand + rows.resources());
    view->stack = request.stack;
    view->prices.assign(request.prices, request.prices + hosts.ids.size());
    const auto stack = static_cast<std::size_t>(request.stack);
    struct HostRow {
      std::int32_t node;
      double start, end, performance, price;
    };
    std::vector<HostRow> slots;
    std::vector<double> prices;
    PoolState state;
    state.now = now;
    for (std::size_t h = 0; h < hosts.ids.size(); ++h)
      for (std::size_t j = 0; j < stack; ++j) {
        poll();
        const std::size_t row = h * stack + j;
        const std::int32_t id = id_of(hosts, row, request.stack);
        slots.push_back({id, hosts.begin, hosts.end, hosts.performance[h], request.prices[h]});
        prices.push_back(request.prices[h]);
        rows.each_span(h, std::max(hosts.begin, now), hosts.end, request.demand,
                       static_cast<Amount>(j + 1), [&](double begin, double end) {
                         state.free.push_back({begin, end, row});
                         state.free_nodes.push_back(id);
                       });
      }
    state.first_new_span = state.free.size();
    SlotView given;
    given.base = reinterpret_cast<const char*>(slots.data());
    given.stride = sizeof(HostRow), given.size = slots.size();
    given.node = offsetof(HostRow, node), given.start = offsetof(HostRow, start);
    given.end = offsetof(HostRow, end), given.performance = offsetof(HostRow, performance);
    given.price = offsetof(HostRow, price);
    CheckScratch scratch;
    view->prepared = PreparedSlots(options);
    const Fault fault = view->prepared.build(given, true, ShapeKind::square, 0, scratch);
    if (fault.status != Status::ok) throw std::logic_error("a host is no valid slot");
    view->pool.open(view->prepared, prices, &state);
    view->position = dropped_ + journal_.size();
    view->spans = state.free.size() + slots.size();
    make_room(view->spans);
    views_.push_back(std::move(view));
    return *views_.back();
  }
  // Drops the views used least recently until a new one of this size fits.
  void make_room(std::size_t spans) {
    std::size_t all = spans;
    for (const auto& view : views_) all += view->spans;
    while (!views_.empty() && all * kBytesPerSpan > kMaxBytes) {
      const auto oldest = std::min_element(
          views_.begin(), views_.end(),
          [](const auto& a, const auto& b) { return a->last_use < b->last_use; });
      all -= (*oldest)->spans;
      views_.erase(oldest);
    }
  }

  // Replaces the spans that touch time that has changed since the view was last searched.
  void catch_up(ShareView& view, const ShareRows& rows, const ShareHosts& hosts, double now) {
    if (now > view.pool.now()) view.pool.advance(now);
    const std::size_t end = dropped_ + journal_.size();
    if (view.position == end) return;
    // One range of time for each changed host: a node may be replaced only once.
    merged_.clear();
    last_change_.resize(hosts.ids.size(), kNone);
    for (std::size_t i = view.position - dropped_; i < journal_.size(); ++i) {
      const Change& change = journal_[i];
      std::uint32_t& at = last_change_[change.host];
      if (at == kNone) {
        at = static_cast<std::uint32_t>(merged_.size());
        merged_.push_back(change);
      } else {
        merged_[at].begin = std::min(merged_[at].begin, change.begin);
        merged_[at].end = std::max(merged_[at].end, change.end);
      }
    }
    for (const Change& change : merged_) last_change_[change.host] = kNone;
    const auto stack = static_cast<std::size_t>(view.stack);
    bool any = false;
    for (const Change& change : merged_)
      for (std::size_t j = 0; j < stack; ++j)
        any |= replace(view, rows, hosts, change, change.host * stack + j,
                       static_cast<Amount>(j + 1));
    if (any) view.pool.settle();
    view.position = end;
  }
  // Replaces the spans of one node; returns false if they are as before.
  bool replace(ShareView& view, const ShareRows& rows, const ShareHosts& hosts,
               const Change& change, std::size_t row, Amount times) {
    const auto place =
        static_cast<std::size_t>(view.pool.place_of(id_of(hosts, row, view.stack)));
    const std::vector<Span>& spans = view.pool.free_at(place);
    const auto first =
        std::lower_bound(spans.begin(), spans.end(), change.begin,
                         [](const Span& span, double t) { return span.end < t; });
    auto last = first;
    while (last != spans.end() && last->start <= change.end) ++last;
    // Spans that end before now() may be in the pool still; time before it is not derived again.
    double from = std::max(change.begin, view.pool.now()), to = change.end;
    if (first != last)
      from = std::min(from, first->start), to = std::max(to, std::prev(last)->end);
    from = std::max(from, hosts.begin), to = std::min(to, hosts.end);
    fresh_.clear();
    rows.each_span(change.host, from, to, view.demand.data(), times, [&](double begin, double end) {
      fresh_.push_back({begin, end, row});
    });
    const bool same = std::equal(first, last, fresh_.begin(), fresh_.end(),
                                 [](const Span& a, const Span& b) {
                                   return a.start == b.start && a.end == b.end;
                                 });
    if (!same)
      view.pool.replace(place, static_cast<std::size_t>(first - spans.begin()),
                        static_cast<std::size_t>(last - spans.begin()), fresh_);
    return !same;
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  std::vector<std::unique_ptr<ShareView>> views_;
  std::vector<Change> journal_;
  std::size_t dropped_ = 0;  // changes dropped from the front of the journal
  std::size_t uses_ = 0;
  std::vector<Change> merged_;              // scratch
  std::vector<std::uint32_t> last_change_;  // scratch: [host], index in merged_
  std::vector<Span> fresh_;                 // scratch
};

}  // namespace slotkern

// A pool of slots that changes (book, release, close, advance, remove) and is searched in between.
//
// The free and booked time by node is in pool/availability.hpp; the rows that searches read,
// derived from it, are in pool/usable_slots.hpp; lower bounds on starts and on costs are cached in
// pool/start_bounds.hpp and pool/cost_bounds.hpp. Each change updates all four, so a search returns
// what it would return on a pool built again from the free time.
//
// Cost: O(log m + 64 + spans of the node) to book or release a part, and what pool/cost_bounds.hpp
// states once cost bounds are built.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

#include "slotkern/pool/adaptive_cost_search.hpp"
#include "slotkern/pool/availability.hpp"
#include "slotkern/pool/change_log.hpp"
#include "slotkern/pool/group_timelines.hpp"
#include "slotkern/pool/pool_tariffs.hpp"
#include "slotkern/pool/start_bounds.hpp"
#include "slotkern/pool/usable_slots.hpp"
#include "slotkern/window/find.hpp"

namespace slotkern {

class SlotPool {
 public:
  // Takes over a PreparedSlots just built from all slots of the origin array; `prices` are theirs.
  // Without `state` all of them are free. With it, the free time is that of `state`: the state of
  // this pool before, plus the free spans from first_new_span on, so that cached bounds are kept
  // and lowered for the new spans. Searches will be for parts of at least the volume `least`.
  void open(PreparedSlots& prepared, const std::vector<double>& prices, const PoolState* state,
            double least = 0) {
    if (prepared.slots.size() > kLongRunningSlots) enable_interrupts();
    ++version_;
    changes_since_trim_ = started_at_trim_ = 0, is_trimmed_ = true;
    prepared_ = &prepared;
    costs_.reset();
    timelines_.clear();
    tariffs_.open(prepared.tariffs, prepared.nodes.size());
    spans_.reset(prepared.nodes);
    rows_.open(prepared, prices, least);
    if (!state) {
      for (StartBoundCache& start_bounds : start_bounds_) start_bounds.clear();
      for (std::size_t i = 0; i < prepared.slots.size(); ++i, poll()) {
        const Slot& slot = prepared.slots[i];
        spans_.append_free(static_cast<std::size_t>(slot.place), {slot.start, slot.end, i});
      }
      return rows_.build_all();
    }
    spans_.load(*state);
    for (std::size_t i = state->first_new_span; i < state->free.size(); ++i)
      lower_start_bounds(spans_.place_of_existing(state->free_nodes[i]), state->free[i]);
    rows_.build(spans_.free());
  }

  // Copies another pool; `prepared` is a copy of its slots. On bad_alloc this pool is unusable
  // until it is copied or opened again. The version of this pool rises, as after any change.
  void copy(const SlotPool& other, PreparedSlots& prepared) {
    const std::size_t next = std::max(version_, other.version_) + 1;
    ChangeLog log = std::move(changes_);
    *this = other;
    version_ = next;
    attach(prepared);
    if (log.is_on()) log.skip_to(version_);
    changes_ = std::move(log);
  }

  // Adds slots: `fresh` is prepared from the old and the new ones. Strong exception guarantee.
  void extend(PreparedSlots& fresh, const std::vector<double>& prices, const PoolState& state) {
    SlotPool next;
    next.version_ = version_;
    next.start_bounds_ = start_bounds_;
    next.open(fresh, prices, &state);
    if (changes_.is_on()) next.changes_.restart(next.version_, fresh.nodes.size());
    std::swap(*prepared_, fresh);
    next.attach(*prepared_);
    *this = std::move(next);
  }

  // Writes the nodes whose free time has changed after this version, ascending. Returns false if
  // they are not known; then later changes will be.
  bool changed_since(std::size_t version, std::vector<std::int32_t>& nodes) {
    if (changes_.is_on()) return changes_.nodes_since(version, nodes);
    changes_.restart(version_, prepared_->nodes.size());
    return false;
  }

  // Returns a snapshot of what is free, booked, closed and removed, nodes by id.
  PoolState state() const { return spans_.state(); }
  PoolState free_between(double begin, double end) const {
    return spans_.free_between(begin, end);
  }

  // Ensures that the rows include all spans usable for parts of this volume. Call before a search.
  void ensure_rows_for(double volume) { rows_.ensure_threshold(volume, spans_.free()); }

 private:
  // Returns the listener that keeps cached bounds true after a span of node k was freed.
  auto on_freed() {
    return [this](std::size_t k, const Span& freed, const Span& grown) {
      lower_start_bounds(k, grown);
      if (tariffs_.any()) tariffs_.mark(k);
      update_timelines(k, freed.start, freed.end);
      if (costs_.is_built()) costs_.on_released(k, spans_.free()[k], freed, grown);
    };
  }

 public:
  // Books the parts (ascending by node); if `is_final` they cannot be released. On not_free nothing
  // has changed, and `failed_part` is the part that is not free.
  Status book(double start, const Part* parts, std::size_t n, std::size_t& failed_part,
              bool is_final = false) {
    const Status status = spans_.locate_free(start, parts, n, rows_, failed_part);
    if (status != Status::ok) return status;
    spans_.book(start, parts, is_final, rows_);
    ++version_;
    record_changes(parts, n);
    changes_since_trim_ += n;
    mark_tariffs(parts, n);
    if (!timelines_.empty())
      for (const Part* part = parts; part != parts + n; ++part)
        update_timelines(spans_.place_of_existing(part->node), start, start + part->length);
    if (costs_.is_built())
      for (const Part* part = parts; part != parts + n; ++part) {
        const std::size_t k = spans_.place_of_existing(part->node);
        costs_.on_booked(k, spans_.free()[k], start, start + part->length);
      }
    rows_.compact_if_needed(spans_.free());
    return Status::ok;
  }

  // Returns ok if release() would succeed; else `failed_part` is the part that is not booked.
  Status locate_booked(double start, const Part* parts, std::size_t n, std::size_t& failed_part) {
    return spans_.locate_booked(start, parts, n, failed_part);
  }

  // Releases the parts except for time that is past and for removed nodes. On not_booked nothing
  // has changed, and `failed_part` is the part that is not booked.
  Status release(double start, const Part* parts, std::size_t n, std::size_t& failed_part) {
    const Status status = spans_.locate_booked(start, parts, n, failed_part);
    if (status != Status::ok) return status;
    spans_.release(start, rows_, on_freed());
    ++version_;
    record_changes(parts, n);
    changes_since_trim_ += n;
    return Status::ok;
  }

  // Sets the closed time of `nodes`, sorted by id: `span_nodes[i]` is the node of `times[i]`,
  // sorted by node id, then start; times may overlap, and a node without times is open. Closed time
  // is not free, even if parts are released in it. On bad_alloc each node has all of its new closed
  // time or its old one.
  void close(const std::vector<std::int32_t>& nodes, const std::vector<std::int32_t>& span_nodes,
             const std::vector<Span>& times) {
    ++version_;
    std::size_t next = 0;
    for (const std::int32_t node : nodes) {
      std::vector<Span> joined;
      for (; next < span_nodes.size() && span_nodes[next] <= node; ++next) {
        if (span_nodes[next] < node) continue;
        joined.push_back(times[next]);
      }
      merge_overlapping(joined);
      const std::int32_t place = place_of(node);
      if (place < 0 || removed()[static_cast<std::size_t>(place)]) continue;
      changes_since_trim_ += joined.size() + 1;
      changes_.record(version_, node);
      spans_.close(static_cast<std::size_t>(place), std::move(joined), rows_,
                   [&](std::size_t k, double start, double end) {
                     if (tariffs_.any()) tariffs_.mark(k);
                     update_timelines(k, start, end);
                     if (costs_.is_built()) costs_.on_booked(k, spans_.free()[k], start, end);
                   },
                   on_freed());
    }
    rows_.compact_if_needed(spans_.free());
  }

  // Replaces the free spans first..last - 1 of a node by `fresh`, ascending, for a pool whose free
  // time is derived from other data (shares/views.hpp): nothing may be booked or closed in it. The
  // change is visible after settle(); at most one for each node may come before that.
  void replace(std::size_t k, std::size_t first, std::size_t last,
               const std::vector<Span>& fresh) {
    if (is_replaced_.size() < prepared_->nodes.size())
      is_replaced_.resize(prepared_->nodes.size(), 0);
    if (is_replaced_[k]) throw std::logic_error("a node was replaced twice before settle()");
    reserve_extra(1, replaced_);
    const std::vector<Span>& spans = spans_.free()[k];
    double begin = kInfinity, end = -kInfinity;
    for (std::size_t i = first; i < last; ++i)
      begin = std::min(begin, spans[i].start), end = std::max(end, spans[i].end);
    for (std::size_t i = first, j = 0; j < fresh.size(); ++j) {
      begin = std::min(begin, fresh[j].start), end = std::max(end, fresh[j].end);
      while (i < last && spans[i].end < fresh[j].end) ++i;
      if (i == last || spans[i].start > fresh[j].start) lower_start_bounds(k, fresh[j]);
    }
    spans_.replace(k, first, last, fresh, rows_);
    is_replaced_[k] = 1, replaced_.push_back(k);
    changes_since_trim_ += 1 + fresh.size();
    if (tariffs_.any()) tariffs_.mark(k);
    if (begin < end) update_timelines(k, begin, end);
    if (costs_.is_built() && begin < end) costs_.on_replaced(k, spans_.free()[k], begin, end);
  }
  // Makes all replacements visible.
  void settle() {
    rows_.apply_pending();
    for (const std::size_t k : replaced_) is_replaced_[k] = 0;
    ++version_;
    for (const std::size_t k : replaced_) changes_.record(version_, prepared_->nodes[k].id);
    replaced_.clear();
    rows_.compact_if_needed(spans_.free());
  }

  // Speculative release: until end_assume_free(), searches for a start by `latest`, which must be
  // before `start`, see the booked parts as free. Only the rows change; they must not be rebuilt
  // meanwhile.
  void assume_free(double start, double latest, const Part* parts, std::size_t n) {
    spans_.assume_free(start, latest, parts, n, rows_);
    if (rows_.was_invalidated()) throw std::bad_alloc{};
    mark_tariffs(parts, n);
  }
  // Call with the parts of assume_free().
  void end_assume_free(const Part* parts, std::size_t n) {
    spans_.end_assume_free(rows_);
    mark_tariffs(parts, n);
  }

  // Moves the clock to `now` and removes the free time before it; an earlier `now` is ignored.
  // Amortized O(1 + spans that end): expired spans and rows are removed together, once they and the
  // changes since the last removal outnumber the nodes, because removal visits every node.
  Status advance(double now) {
    if (std::isnan(now)) return Status::time_is_nan;
    set_clock(now);
    const std::size_t started = rows_.count_started(spans_.now());
    const std::size_t come = started - std::min(started, started_at_trim_);
    if (come + changes_since_trim_ > prepared_->nodes.size() + started_at_trim_ + 256)
      erase_expired();
    return Status::ok;
  }

  // Moves the clock only, O(1). Expired rows stay, and searches skip them.
  void set_clock(double now) {
    ++version_;
    if (now > spans_.now()) is_trimmed_ = false, changes_.skip_to(version_);
    spans_.set_clock(now);
  }

  // Trims all free spans and rows to start at now() or later. O(nodes + rows before now).
  void trim_before_now() {
    if (is_trimmed_) return;
    if (rows_.can_update_incrementally(spans_.count_expired())) {
      spans_.trim_before_now(rows_);
      rows_.compact_if_needed(spans_.free());
    } else {
      AvailabilityTimeline::NullObserver none;
      spans_.trim_before_now(none);
      rows_.trim_before(spans_.now());
    }
    spans_.erase_expired(rows_);  // trims closed time only: no free span has expired
    is_trimmed_ = true;
    record_trim();
  }

  // Removes the node with all its time. Returns false if there is no such node.
  bool remove(std::int32_t node) {
    const std::int32_t found = place_of(node);
    if (found < 0 || removed()[static_cast<std::size_t>(found)]) return false;
    ++version_;
    changes_.record(version_, node);
    spans_.remove_node(static_cast<std::size_t>(found), rows_);
    if (tariffs_.any()) tariffs_.mark(static_cast<std::size_t>(found));
    for (GroupTimelines& timelines : timelines_)
      timelines.on_removed(static_cast<std::size_t>(found));
    if (costs_.is_built()) costs_.on_node_removed(static_cast<std::size_t>(found));
    return true;
  }

  // As search_validated(), but uses and updates the cached start bounds. `least`: a lower bound on
  // the value of any window, for example the value found by an earlier search for the same query if
  // there were only bookings since.
  Status find(const Query& given, int criterion, ShapeKind shape, Workspace& work, Found& found,
              double least = -kInfinity) {
    Query from;
    Status valid = normalize(given, criterion, from);
    if (valid == Status::volume_too_small && !is_trimmed_) {
      // The part may be too short only for the time of a row that ends now and is not free any more.
      trim_before_now();
      valid = normalize(given, criterion, from);
    }
    if (valid != Status::ok) return valid;
    if (from.groups && tariffs_.any()) [[unlikely]]
      return Status::groups_not_supported;
    if (tariffs_.any()) [[unlikely]]
      return tariffs_.find(*prepared_, rows_.prices(), spans_, from, criterion, shape, work.parts,
                           found);
    // The order of rows affects the results of the papers' first step, and the work limit of
    // searches under sum limits.
    if (criterion_name(criterion) == First::name || given.limits) {
      trim_before_now();
      ensure_rows_for(given.volume);  // rebuilds rows invalidated by trim_before_now(), or throws
    }
    StartBoundCache& start_bounds = start_bounds_[cache_index(from, shape)];
    const double requested_earliest = from.earliest, cached_start = start_bounds.bound(from);
    if (cached_start == kInfinity) return Status::none;
    from.earliest = std::max(requested_earliest, cached_start);
    if (from.groups) [[unlikely]]
      return find_in_groups(from, requested_earliest, criterion, shape, work, found);
    if (finds_shortest(criterion) && shape == ShapeKind::ragged && from.is_cacheable() &&
        caches_starts()) {
      from.earliest = requested_earliest;
      return find_min_runtime(from, work, found);
    }
    const Status status = search(from, criterion, shape, work, found, least);
    const bool from_the_first = requested_earliest <= std::max(prepared_->first_start(), now());
    const double earliest = from_the_first ? -kInfinity : requested_earliest;
    if (status == Status::none && prepared_->options.start_bounds)
      start_bounds.record(from, fastest(), earliest, kInfinity);
    else if (status == Status::ok && caches_starts() &&
             finds_earliest(criterion) && found.start > cached_start)
      start_bounds.record(from, fastest(), earliest, found.start);
    return status;
  }

  // As find(), for windows that start in [first, latest]; neither uses nor updates cached bounds.
  // Under tariffs a request by another criterion than the start is not valid.
  Status find_in_range(double first, double latest, const Query& given, int criterion,
                       ShapeKind shape, Workspace& work, Found& found) {
    Query from;
    if (const Status status = normalize(given, criterion, from); status != Status::ok)
      return status;
    if (tariffs_.any()) {
      if (criterion_name(criterion) != Start::name || from.groups)
        return Status::request_not_valid;
      return tariffs_.find_in_range(*prepared_, rows_.prices(), spans_, first, latest, from,
                                    shape, work.parts, found);
    }
    from.earliest = std::max(from.earliest, first);
    from.latest = std::min(from.latest, latest);
    return search_validated(*prepared_, from, criterion, shape, work, found);
  }

  // Returns a time before which no window for the query starts.
  double earliest_possible_start(const Query& given, ShapeKind shape) const {
    Query from = prepared_->normalized_for_search(given);
    from.earliest = std::max(from.earliest, now());
    return std::max(from.earliest, start_bounds_[cache_index(from, shape)].bound(from));
  }

  // The free spans of a node, ascending, by its index; the index is -1 for an unknown node.
  const std::vector<Span>& free_at(std::size_t place) const { return spans_.free()[place]; }
  std::int32_t place_of(std::int32_t node) const { return spans_.place_of(node); }

  bool has_tariffs() const { return tariffs_.any(); }
  // Call before readers other than find() search the prepared slots for parts of this volume or
  // more. Under tariffs these readers index the rows once, so a new index is due if the pool has
  // changed, or if the rows may have been fewer than this volume needs.
  void renew_prices(double volume) {
    if (!tariffs_.any() || (renewed_version_ == version_ && volume >= renewed_volume_)) return;
    prepared_->tariffs = prepared_->tariffs->for_other_slots();
    renewed_version_ = version_, renewed_volume_ = volume;
  }

  // Returns the free spans of these nodes from now() on.
  PoolState free_of(const std::vector<std::int32_t>& nodes) const { return spans_.free_of(nodes); }

  double now() const { return spans_.now(); }
  std::size_t version() const { return version_; }  // incremented by every change
  const std::vector<std::uint8_t>& removed() const { return spans_.removed(); }

 private:
  void record_changes(const Part* parts, std::size_t n) noexcept {
    if (!changes_.is_on()) return;
    for (const Part* part = parts; part != parts + n; ++part) changes_.record(version_, part->node);
  }

  // Records a change of the free time of the nodes of these parts.
  void mark_tariffs(const Part* parts, std::size_t n) noexcept {
    if (!tariffs_.any()) return;
    for (const Part* part = parts; part != parts + n; ++part)
      tariffs_.mark(spans_.place_of_existing(part->node));
  }

  void erase_expired() {
    if (!rows_.can_update_incrementally(spans_.count_expired())) return trim_before_now();
    spans_.erase_expired(rows_);
    rows_.compact_if_needed(spans_.free());
    record_trim();
  }
  void record_trim() {
    started_at_trim_ = rows_.count_started(spans_.now());
    changes_since_trim_ = 0;
  }

  void attach(PreparedSlots& prepared) {
    prepared_ = &prepared;
    rows_.attach(prepared);
  }

  // True if the starts of windows are cached, and not only failures.
  bool caches_starts() const {
    return prepared_->options.start_bounds &&
           prepared_->slots.size() > prepared_->options.max_rows_without_start_bounds;
  }

  double fastest() const {
    return prepared_->nodes.empty() ? 1 : prepared_->nodes.front().performance;
  }

  static std::size_t cache_index(const Query& query, ShapeKind shape) {
    return 2 * query.has_overhead() + static_cast<std::size_t>(shape);
  }

  // Finds the best window under group rules. If they allow one group only, starts are cached for
  // their divisions, and the earliest start is found by the rows of each group.
  Status find_in_groups(Query from, double requested_earliest, int criterion, ShapeKind shape,
                        Workspace& work, Found& found) {
    if (!from.groups->is_within())
      return search_validated(*prepared_, from, criterion, shape, work, found);
    GroupTimelines& timelines = timelines_for(*from.groups);
    StartBoundCache& start_bounds = timelines.start_bounds[cache_index(from, shape)];
    const double cached_start = start_bounds.bound(from);
    if (cached_start == kInfinity) return Status::none;
    from.earliest = std::max(from.earliest, cached_start);
    Status status = Status::none;
    bool swept = true;
    if (criterion_name(criterion) == Start::name && timelines.is_exact() &&
        GroupTimelines::supports(from)) {
      const auto find = [&](const auto& parts) {
        return timelines.find(
            *prepared_, from, parts, spans_.free(),
            [this](std::size_t k, const Span& span) { return rows_.slot_of(k, span); }, work,
            found);
      };
      status = shape == ShapeKind::square ? find(square_of(from)) : find(AnyRagged(from));
      swept = timelines.overflows;
    }
    if (swept) status = search_validated(*prepared_, from, criterion, shape, work, found);
    if (!prepared_->options.start_bounds) return status;
    Query plain = from;  // bounds of one division set hold for it alone, so rules need no key
    plain.groups = nullptr;
    const bool from_the_first = requested_earliest <= std::max(prepared_->first_start(), now());
    const double earliest = from_the_first ? -kInfinity : requested_earliest;
    if (status == Status::none)
      start_bounds.record(plain, fastest(), earliest, kInfinity);
    else if (status == Status::ok && finds_earliest(criterion) && found.start > cached_start)
      start_bounds.record(plain, fastest(), earliest, found.start);
    return status;
  }

  Square square_of(const Query& query) const {
    const double performance = prepared_->groups.front().performance;
    return {query.length(performance), performance};
  }

  // Returns the timelines of these divisions. They have rows from the second search on.
  GroupTimelines& timelines_for(const GroupRules& rules) {
    auto found = std::find_if(timelines_.begin(), timelines_.end(),
                              [&](const GroupTimelines& t) { return t.id() == rules.id; });
    if (found == timelines_.end())
      found = std::find_if(timelines_.begin(), timelines_.end(),
                           [&](const GroupTimelines& t) { return t.is_for(rules); });
    if (found != timelines_.end()) {
      found->set_id(rules.id);
      if (!found->is_built()) found->build(*prepared_, spans_.free(), now());
      return *found;
    }
    if (timelines_.size() < kMaxTimelines) timelines_.emplace_back();
    GroupTimelines& next = timelines_[oldest_timeline_++ % timelines_.size()];
    next = {};
    next.open(rules);
    return next;
  }
  // Updates the rows of all groups after the free time of node k has changed in [start, end).
  void update_timelines(std::size_t k, double start, double end) {
    for (GroupTimelines& timelines : timelines_)
      timelines.on_changed(k, spans_.free()[k], start, end, now());
  }

  // Lowers the cached start bounds after the span has become free or has grown.
  void lower_start_bounds(std::size_t k, const Span& span) {
    Slot slot = rows_.slot_of(k, span);
    slot.start = std::max(slot.start, now());
    for (StartBoundCache& start_bounds : start_bounds_) start_bounds.lower_for_freed(slot);
    for (GroupTimelines& timelines : timelines_)
      for (StartBoundCache& start_bounds : timelines.start_bounds)
        start_bounds.lower_for_freed(slot);
  }

  // Validates the query, brings the rows up to date for it, and returns it in normal form.
  Status normalize(const Query& given, int criterion, Query& from) {
    if (!given.is_valid() || criterion < 0 || criterion >= kBuiltins)
      return Status::request_not_valid;
    ensure_rows_for(given.volume);
    from = prepared_->normalized_for_search(given);
    from.earliest = std::max(from.earliest, now());
    return prepared_->check(from);
  }

  // Finds the ragged window of the least runtime, which the slowest of its nodes determines: the
  // earliest window on the groups up to the fastest group that suffices. Gallops from the group of
  // the last answer, then bisects; find() caches that faster groups have no window.
  Status find_min_runtime(const Query& query, Workspace& work, Found& found) {
    static const int start = criterion_index(Start::name);
    const auto groups = prepared_->groups.begin();
    // The groups that may contain the slowest node of the window.
    auto end = std::partition_point(groups, prepared_->groups.end(), [&](const Group& group) {
      return group.performance >= query.min_performance;
    });
    auto first = std::partition_point(groups, end, [&](const Group& group) {
      return group.end < static_cast<std::size_t>(query.n);
    });
    const auto length = [&](const Group& group) { return query.length(group.performance); };
    bool any = false, none = false;
    for (std::ptrdiff_t step = 0, at = last_group_; first != end; step = 2 * step + 1) {
      auto group = groups + std::clamp(at, first - groups, end - groups - 1);
      while (end - group > 1 && length(group[1]) == length(group[0])) ++group;
      Query fast = query;
      fast.min_performance = group->performance;
      Found other;
      const Status status = find(fast, start, ShapeKind::ragged, work, other);
      if (status == Status::ok) {
        any = true;
        std::swap(work.parts, work.trial_parts);
        found = other;
        found.value = found.runtime;
        end = std::partition_point(first, group, [&](const Group& faster) {
          return length(faster) < found.runtime;
        });
        last_group_ = end - groups;
      } else if (status == Status::none) {
        none = true;
        first = group + 1;
      } else {
        return status;
      }
      at = any && none ? first - groups + (end - first) / 2
           : any       ? end - groups - 1 - step
                       : first - groups + step;
    }
    if (any) std::swap(work.parts, work.trial_parts);
    return any ? Status::ok : Status::none;
  }

  // Runs search_validated(), or for the cheapest ragged window search_cheapest().
  Status search(const Query& query, int criterion, ShapeKind shape, Workspace& work, Found& found,
                double least) {
    if (!can_use_cost_cache(*prepared_, query, criterion, shape))
      return search_validated(*prepared_, query, criterion, shape, work, found, least);
    return search_cheapest(*prepared_, query, costs_, least, work, found,
                           [this] { return FreeTimeView{rows_.prices(), spans_}; });
  }

  PreparedSlots* prepared_ = nullptr;
  std::size_t version_ = 0;
  // Changes since expired rows were last removed, and rows that had started then.
  std::size_t changes_since_trim_ = 0, started_at_trim_ = 0;
  bool is_trimmed_ = true;  // no row starts before now()
  // Slowest group of the last answer of find_min_runtime().
  std::ptrdiff_t last_group_ = 0;
  CostBoundCache costs_;
  // The divisions of group rules searched last, and the next to be replaced.
  static constexpr std::size_t kMaxTimelines = 4;
  std::vector<GroupTimelines> timelines_;
  std::size_t oldest_timeline_ = 0;
  PoolTariffs tariffs_;
  // The version and the volume of the last renew_prices(); version 0: none.
  std::size_t renewed_version_ = 0;
  double renewed_volume_ = kInfinity;
  AvailabilityTimeline spans_;
  UsableSlotIndex rows_;
  ChangeLog changes_;
  std::vector<std::size_t> replaced_;      // nodes replaced since settle()
  std::vector<std::uint8_t> is_replaced_;  // [place]; grows at the first replace()
  std::array<StartBoundCache, 4> start_bounds_;  // [cache_index()]
};

}  // namespace slotkern

// Finds the earliest window of whole groups of a tree of levels, on the rows of shared hosts.
//
// Input: rows, hosts of one performance, a tree of groups (racks of switches, nodes of racks), a
// query, how many groups of each level are taken inside each group of the level above, and what is
// taken of each innermost group: a number of parts, or all of its hosts; and what the window uses of
// the capacities of the pool. Output: the earliest start
// at which such groups exist, and of the choices at that start the cheapest. Tie rule: each group
// takes the cheapest of its groups and hosts, of equal cost those that come first in the tree.
//
// At a time t each host has the number of parts that it takes if they start at t, and a time before
// which it takes no more: the first row from which on it holds one more for as long as a part, or a
// row before that. So the k-th least of these times in a group is a lower bound on the time at which
// k of its hosts serve, the k-th least of the bounds of groups one on the time of the level above,
// and the bound of the root one on the start. The search goes from bound to bound until the bound is
// t itself. A bound after t remains true at later times, so only the groups whose bounds are reached
// are evaluated again. Exact because the parts of a host only fall between these times, and because
// choices in disjoint groups are independent: the least cost of a group is the sum of the least
// costs of its cheapest groups.
//
// Cost: for each time visited O(kMaxRows or rows met * resources) of each kLanes hosts of the groups
// reached, and O(groups and hosts of these). Earlier searches of no harder requests give the first
// time (shares/start_bounds.hpp); those of requests that use capacities of the pool only as long as
// the counters of these capacities keep their epochs (pool/caps.hpp): amounts that rise end an epoch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "slotkern/shares/earliest.hpp"
#include "slotkern/shares/lanes.hpp"
#include "slotkern/shares/tree_choice.hpp"
#include "slotkern/shares/tree_request.hpp"

namespace slotkern {

class EarliestTrees {
 public:
  void open(const ShareRows& rows) {
    resources_ = rows.resources();
    trees_.clear();
  }
  // Returns the index of the tree, for requests.
  std::size_t add(HostTree tree) {
    Known& known = trees_.emplace_back();
    for (ShareStartBounds& bounds : known.bounds) bounds.reset(resources_ + tree.first.size());
    known.tree = std::move(tree);
    for (std::size_t g = 0; g + 1 < known.tree.first.back().size(); ++g) {
      known.first_lanes.push_back(static_cast<std::uint32_t>(known.lanes.size()));
      for (std::uint32_t i = known.tree.first.back()[g]; i < known.tree.first.back()[g + 1]; ++i) {
        const std::uint32_t lanes = known.tree.hosts[i] / kLanes;
        const auto begin = known.lanes.begin() + known.first_lanes.back();
        if (std::find(begin, known.lanes.end(), lanes) == known.lanes.end())
          known.lanes.push_back(lanes);
      }
    }
    known.first_lanes.push_back(static_cast<std::uint32_t>(known.lanes.size()));
    return trees_.size() - 1;
  }
  std::size_t size() const { return trees_.size(); }
  std::size_t levels(std::size_t tree) const { return trees_[tree].tree.first.size(); }

  // Finds the earliest window that starts at `now` or later. Its parts are in work.parts, ascending
  // by host. Requires a valid query and hosts of one performance.
  Status find(const ShareRows& rows, const ShareHosts& hosts, double now,
              const TreeRequest& request, Workspace& work, Found& found) {
    TreeSweep search(*this, rows, hosts, request);
    return search.run(now, work, found);
  }

  // Keeps the bounds true after amounts came back from `begin` on.
  void lower(double begin) {
    for (Known& known : trees_) {
      for (ShareStartBounds& bounds : known.bounds) bounds.lower(begin);
      for (CountedBounds& each : known.counted) each.bounds.lower(begin);
    }
  }

 private:
  static constexpr std::size_t kLanes = detail::kLanes;
  static constexpr std::size_t kMaxRows = 32;  // scanned for later starts

  // Bounds of requests that use the same capacities, in one epoch of each.
  struct CountedBounds {
    std::vector<std::uint64_t> epochs;  // after the index in Known::bounds; empty: no bounds yet
    ShareStartBounds bounds;
  };
  static constexpr std::size_t kMaxCounted = 64, kMaxCountedBounds = 256;

  struct Known {
    HostTree tree;
    // The groups of kLanes hosts that contain hosts of each innermost group, and their offsets.
    std::vector<std::uint32_t> lanes, first_lanes;
    ShareStartBounds bounds[3];  // of parts of one demand, of whole hosts, and of whole groups
    std::vector<CountedBounds> counted;  // a table by hash; empty: no request used a capacity
  };
  // The evaluation of kLanes hosts.
  struct LaneState {
    std::size_t first;       // row of `time`
    double time;             // of the evaluation, which is not before; -infinity: none
    double due;              // none of the hosts takes a part from `time` to here
  };
  // Memory of the searches, which only grows.
  struct SweepScratch : TreeScratch {
    std::vector<double> when;   // [host]: no more parts before
    std::vector<Amount> demand, least, more;  // [resource * kLanes + lane]
    std::vector<double> values;  // [host] at least
    std::vector<LaneState> lanes;  // [group of kLanes hosts]
    std::vector<Amount> key;  // of ShareStartBounds
    std::vector<std::uint64_t> epochs;  // of CountedBounds
  };

  class TreeSweep {
   public:
    TreeSweep(EarliestTrees& owner, const ShareRows& rows, const ShareHosts& hosts,
              const TreeRequest& request)
        : known_(owner.trees_[request.tree]), tree_(known_.tree), scratch_(owner.scratch_),
          rows_(rows), hosts_(hosts), request_(request), query_(*request.query) {}

    Status run(double now, Workspace& work, Found& found) {
      if (hosts_.ids.empty()) return Status::none;
      length_ = query_.length(hosts_.performances[0]);
      if (hosts_.performances[0] < query_.min_performance || length_ > query_.max_runtime)
        return Status::none;
      prepare();
      TreeChoice choice(tree_, hosts_, request_, scratch_, length_, are_prices_equal_);
      const double first = std::max(now, hosts_.begin);
      const std::size_t kind = takes_all() ? 2 : request_.demand.stride != 0;
      ShareStartBounds& bounds = known_.bounds[kind];
      const std::int64_t parts = std::max(request_.parts, 1);
      // Those of requests that use the same capacities; null: they keep none.
      ShareStartBounds* const counted = find_counted(kind);
      const ShareDemand demand{scratch_.key.data(), request_.stack, query_.volume, query_.setup,
                               query_.step, length_};
      const double plain = bounds.bound(demand, parts);
      const double bound = counted ? std::max(plain, counted->bound(demand, parts)) : plain;
      double t = std::max({query_.earliest, first, bound});
      bool records = !is_filtered_ && t <= std::max(first, plain);
      bool records_counted = counted && !is_filtered_ && t <= std::max(first, bound);
      // Records that the groups do not exist before `start`, the first time at which they may.
      const auto record = [&](double start) {
        if (records)
          bounds.record(demand, parts, start);
        else if (records_counted)
          counted->record(demand, parts, start);
        records = records_counted = false;
      };
      for (;;) {
        if (request_.uses) {
          const double allowed = first_start_with_enough(*request_.uses, t, length_);
          if (allowed > t) records = false;  // the groups may have existed in between
          t = allowed;
        }
        if (!(t <= query_.latest && t < kInfinity && t + length_ <= query_.deadline)) break;
        double next = bound_of_root(t);
        if (next == t) {
          record(t);
          if (choice.choose(t, work, found)) return clock_moves(t, length_) ? Status::ok
                                                                     : Status::volume_too_small;
          next = next_gain(t);
        }
        poll();
        t = next;
      }
      if (t == kInfinity) record(t);
      return Status::none;
    }

   private:
    // Returns the bounds of requests with uses of the same step functions in the same epochs; null
    // for a function without an epoch.
    ShareStartBounds* find_counted(std::size_t kind) {
      if (!request_.uses) return nullptr;
      std::vector<std::uint64_t>& epochs = scratch_.epochs;
      epochs.assign(1, kind);
      std::uint64_t hash = kind;
      for (const CapacityUse& use : *request_.uses) {
        if (use.free->epoch() == 0 || use.amount > ShareRows::kMaxAmount) return nullptr;
        scratch_.key.push_back(static_cast<Amount>(use.amount));
        epochs.push_back(use.free->epoch());
        hash = (hash ^ epochs.back()) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
      }
      if (known_.counted.empty()) known_.counted.resize(kMaxCounted);
      CountedBounds& found = known_.counted[hash % kMaxCounted];
      if (found.epochs != epochs) {
        found.epochs.clear();
        found.bounds.reset(scratch_.key.size(), kMaxCountedBounds);
        found.epochs = epochs;
      }
      return &found.bounds;
    }

    void prepare() {
      const std::size_t hosts = rows_.groups().size() * kLanes, r = rows_.resources();
      scratch_.when.resize(hosts), scratch_.parts.resize(hosts);
      scratch_.least.resize(r * kLanes), scratch_.more.resize(r * kLanes);
      scratch_.values.resize(hosts);
      scratch_.lanes.assign(rows_.groups().size(), {0, -kInfinity, -kInfinity});
      scratch_.bounds.resize(std::max(scratch_.bounds.size(), levels()));
      scratch_.costs.resize(std::max(scratch_.costs.size(), levels()));
      scratch_.picked.resize(std::max(scratch_.picked.size(), levels()));
      for (std::size_t level = 0; level < levels(); ++level)
        scratch_.bounds[level].assign(groups_of(level), -kInfinity);
      scratch_.key.assign(r, 0);
      if (request_.demand.stride == 0) std::copy_n(request_.demand.first, r, scratch_.key.data());
      scratch_.key.insert(scratch_.key.end(), request_.counts, request_.counts + levels());
      double least = 0, most = 0;
      detail::find_price_range(request_.prices, hosts_.ids.size(), least, most);
      are_prices_equal_ = least == most;
      is_filtered_ = query_.mask || most > query_.max_price;
      const std::size_t groups = request_.demand.stride == 0 ? 1 : rows_.groups().size();
      scratch_.demand.resize(groups * r * kLanes);
      for (std::size_t h = 0; h < groups * kLanes; ++h)
        for (std::size_t d = 0; d < r; ++d)
          scratch_.demand[(h / kLanes * r + d) * kLanes + h % kLanes] =
              request_.demand.of(std::min(h, hosts_.ids.size() - 1))[d];
    }
    std::size_t levels() const { return tree_.first.size(); }
    std::size_t groups_of(std::size_t level) const { return tree_.first[level].size() - 1; }
    bool takes_all() const { return request_.parts == 0; }

    // Sets the parts of each of kLanes hosts at t, and the time before which it has no more of them.
    void evaluate(std::size_t g, double t) {
      LaneState& lanes = scratch_.lanes[g];
      if (lanes.time == t || (request_.stack == 1 && lanes.due > t)) return;
      const ShareRows::HostGroup& group = rows_.groups()[g];
      std::size_t first = lanes.first;  // times only rise
      if (lanes.time == -kInfinity) first = group.row_at(t);
      while (first + 1 < group.size() && group.begins[first + 1] <= t) ++first;
      lanes.first = first, lanes.time = t;
      const std::size_t host = g * kLanes, hosts = std::min(kLanes, hosts_.ids.size() - host);
      std::int32_t next[kLanes];
      const Amount* wanted = scratch_.demand.data();
      if (request_.demand.stride != 0) wanted += g * rows_.resources() * kLanes;
      if (request_.stack > 1) {
        std::size_t count = 1;
        while (first + count < group.size() && group.begins[first + count] < t + length_) ++count;
        detail::least_of_lanes(group.cells.data(), group.slots.data() + first, count,
                               rows_.resources(), scratch_.least.data());
        count_stacks(host);
        wanted = scratch_.more.data();
      }
      const std::size_t rows = group.size() - first;
      detail::scan_starts(group.cells.data(), group.slots.data() + first,
                          group.begins.data() + first, t, rows, kMaxRows, rows_.resources(), wanted,
                          length_, next);
      const double* const begins = group.begins.data() + first;
      for (std::size_t l = 0; l < hosts; ++l) {
        const auto row = static_cast<std::size_t>(next[l]);
        scratch_.when[host + l] = row == 0 ? t : row < rows ? begins[row] : kInfinity;
      }
      if (request_.stack == 1)
        for (std::size_t l = 0; l < hosts; ++l) scratch_.parts[host + l] = next[l] == 0;
      if (is_filtered_) filter(host, hosts);
      double due = kInfinity;
      for (std::size_t l = 0; l < hosts; ++l) due = std::min(due, scratch_.when[host + l]);
      lanes.due = due;
    }
    // Reads the parts of the hosts of a group from `least`; `more` becomes the demand of one more.
    void count_stacks(std::size_t host) {
      Amount* const parts = scratch_.parts.data() + host;
      for (std::size_t l = 0; l < kLanes; ++l) parts[l] = request_.stack;
      for (std::size_t d = 0; d < rows_.resources(); ++d) {
        const Amount *const least = &scratch_.least[d * kLanes], one = request_.demand.first[d];
        for (std::size_t l = 0; l < kLanes; ++l) {
          const Amount free = std::max(least[l], 0);
          const Amount most = one == 1 ? free : one > 1 ? free / one : least[l] < 0 ? 0 : parts[l];
          parts[l] = std::min(parts[l], most);
        }
      }
      for (std::size_t d = 0; d < rows_.resources(); ++d)  // a full stack has no more
        for (std::size_t l = 0; l < kLanes; ++l)
          scratch_.more[d * kLanes + l] =
              request_.demand.first[d] * std::min(parts[l] + 1, request_.stack);
    }
    void filter(std::size_t host, std::size_t hosts) {
      for (std::size_t h = host; h < host + hosts; ++h) {
        if (query_.passes(h) && request_.prices[h] <= query_.max_price) continue;
        scratch_.parts[h] = 0, scratch_.when[h] = kInfinity;
      }
    }

    // Returns a lower bound on the start of a window, which is t if one starts at t. The bounds of
    // groups are stored; only those that are not after t are computed again.
    double bound_of_root(double t) {
      std::vector<double>& finest = scratch_.bounds[levels() - 1];
      const std::vector<std::uint32_t>& first = tree_.first[levels() - 1];
      // Then the first groups are the window: it is not too dear, and no other is cheaper.
      const bool is_first_best = levels() == 1 && !takes_all() && are_prices_equal_ &&
                                 query_.budget == kInfinity;
      Amount found = 0;
      for (std::size_t g = 0; g < finest.size(); ++g) {
        if (finest[g] > t) continue;
        for (std::uint32_t k = known_.first_lanes[g]; k < known_.first_lanes[g + 1]; ++k)
          evaluate(known_.lanes[k], t);
        finest[g] = bound_of_hosts(first[g], first[g + 1], t);
        if (is_first_best && finest[g] == t && ++found == request_.counts[0]) return t;
      }
      for (std::size_t level = levels() - 1; level-- > 0;) {
        std::vector<double>& bounds = scratch_.bounds[level];
        for (std::size_t g = 0; g < bounds.size(); ++g)
          if (bounds[g] <= t)
            bounds[g] = bound_of_groups(level + 1, tree_.first[level][g],
                                        tree_.first[level][g + 1], t);
      }
      return bound_of_groups(0, 0, static_cast<std::uint32_t>(groups_of(0)), t);
    }
    double bound_of_groups(std::size_t level, std::uint32_t begin, std::uint32_t end, double t) {
      const double* const bounds = scratch_.bounds[level].data();
      return kth_of(begin, end, static_cast<std::size_t>(request_.counts[level]), t,
                    [&](std::uint32_t g) { return bounds[g]; });
    }
    double bound_of_hosts(std::uint32_t begin, std::uint32_t end, double t) {
      const auto when = [&](std::uint32_t i) { return scratch_.when[tree_.hosts[i]]; };
      if (request_.stack > 1) {
        std::int64_t parts = 0;
        double next = kInfinity;
        for (std::uint32_t i = begin; i < end; ++i) {
          parts += scratch_.parts[tree_.hosts[i]];
          if (when(i) > t) next = std::min(next, when(i));
        }
        return parts >= request_.parts ? t : next;
      }
      if (!takes_all())
        return kth_of(begin, end, static_cast<std::size_t>(request_.parts), t, when);
      double last = t;
      for (std::uint32_t i = begin; i < end; ++i) last = std::max(last, when(i));
      return last;
    }
    // Returns the k-th least of the values of [begin, end), which are t or later; infinity if there
    // are fewer.
    template <class Value>
    double kth_of(std::uint32_t begin, std::uint32_t end, std::size_t k, double t, Value value) {
      if (k == 1) {
        double least = kInfinity;
        for (std::uint32_t i = begin; i < end; ++i) least = std::min(least, value(i));
        return std::max(least, t);
      }
      double* const later = scratch_.values.data();
      std::size_t size = 0;
      for (std::uint32_t i = begin; i < end; ++i) {
        const double x = value(i);
        later[size] = x;
        size += x > t;
      }
      const std::size_t now = end - begin - size;
      if (now >= k) return t;
      if (k - now > size) return kInfinity;
      std::nth_element(later, later + (k - now - 1), later + size);
      return later[k - now - 1];
    }
    // Returns the first time after t at which a group may have other parts.
    double next_gain(double t) const {
      double next = kInfinity;
      const std::vector<double>& finest = scratch_.bounds[levels() - 1];
      for (std::size_t g = 0; g < finest.size(); ++g) {
        if (finest[g] > t) {
          next = std::min(next, finest[g]);
          continue;
        }
        const std::vector<std::uint32_t>& first = tree_.first[levels() - 1];
        for (std::uint32_t i = first[g]; i < first[g + 1]; ++i)
          if (const double when = scratch_.when[tree_.hosts[i]]; when > t)
            next = std::min(next, when);
      }
      return next;
    }

    Known& known_;
    const HostTree& tree_;
    SweepScratch& scratch_;
    const ShareRows& rows_;
    const ShareHosts& hosts_;
    const TreeRequest& request_;
    const Query& query_;
    double length_ = 0;
    bool is_filtered_ = false;       // some hosts may not take part
    bool are_prices_equal_ = false;  // of all hosts
  };

  std::size_t resources_ = 0;
  std::vector<Known> trees_;
  SweepScratch scratch_;
};

}  // namespace slotkern

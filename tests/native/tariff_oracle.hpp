// The plain definition of windows under tariffs, for tests: enumerates all turns of all parts, all
// ticks up to a horizon, and at each start the n cheapest parts or all sets of n parts.
//
// Independent of slotkern/tariff: integrals add every segment exactly. Slow: turns * parts *
// lengths.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/slots/request.hpp"

namespace tariffs {

using slotkern::kInfinity;
using slotkern::Query;

struct PlainTariff {
  std::vector<double> breakpoints, factors;  // one factor more; neighbours may be equal

  double integral(double t, double length) const {
    const std::size_t m = breakpoints.size();
    const double end = t + length;
    // Segments of one factor: equal neighbours are one.
    std::vector<double> b, f{factors[0]};
    for (std::size_t k = 0; k < m; ++k)
      if (factors[k + 1] != f.back()) b.push_back(breakpoints[k]), f.push_back(factors[k + 1]);
    std::size_t i = 0, j = 0;
    while (i < b.size() && b[i] <= t) ++i;
    while (j < b.size() && b[j] < end) ++j;
    if (j <= i) return f[i] * length;
    slotkern::ExactSum middle;
    for (std::size_t k = i + 1; k < j; ++k) middle.add(f[k] * (b[k] - b[k - 1]));
    return (f[i] * (b[i] - t) + middle.value()) + f[j] * (end - b[j - 1]);
  }

  // Calls visit(b) for each breakpoint at which the factor falls, or rises.
  template <class Visit>
  void each(bool falls, Visit visit) const {
    double before = factors[0];
    for (std::size_t k = 0; k < breakpoints.size(); ++k) {
      const double factor = factors[k + 1];
      if (falls ? factor < before : factor > before) visit(breakpoints[k]);
      before = factor;
    }
  }
};

struct PlainSlot {
  std::int32_t node;
  double start, end, performance, price;
  int tariff;  // -1: none
  bool admitted = true;  // by a mask
};

struct PlainWindow {
  bool found = false;
  double start = 0, runtime = 0, total = 0;
  std::vector<double> costs;  // ascending
  std::vector<std::int32_t> nodes;  // ascending
};

inline std::uint64_t key_of(double cost) {
  std::uint64_t bits;
  const double positive = cost + 0.0;
  std::memcpy(&bits, &positive, sizeof bits);
  return (bits + (1u << 23)) >> 24;
}

class PlainPart {
 public:
  double begin, limit, latest, length, own_length, price, slot_start;
  std::int32_t node;
  std::set<double> turns;

  PlainPart(const PlainSlot& slot, double time, const std::vector<PlainTariff>& all,
            const Query& query)
      : begin(std::max(slot.start, query.earliest)),
        limit(std::min(slot.end, query.deadline)),
        latest(query.latest),
        length(time),
        own_length(query.length(slot.performance)),
        price(slot.price),
        slot_start(slot.start),
        node(slot.node),
        tariff_(slot.tariff < 0 ? nullptr : &all[static_cast<std::size_t>(slot.tariff)]) {
    double last = kInfinity;
    if (limit < std::numeric_limits<double>::max()) {
      last = limit - length;
      for (int k = 0; k < 4 && last + length > limit; ++k) last = std::nextafter(last, -kInfinity);
    }
    add(begin);
    add(std::min(last, latest));
    if (!tariff_) return;
    tariff_->each(true, [this](double b) { add(b); });
    tariff_->each(false, [this](double b) { add(b - length); });
  }

  bool live(double t) const { return begin <= t && t + length <= limit && t <= latest; }
  double cost(double t) const {
    return price * (tariff_ ? tariff_->integral(t, length) : 1.0 * length);
  }

 private:
  void add(double t) {
    if (std::isfinite(t) && live(t)) turns.insert(t);
  }
  const PlainTariff* tariff_;
};

class Oracle {
 public:
  // tick: allowed starts besides turns are its multiples; 0: turns only.
  Oracle(std::vector<PlainSlot> slots, const std::vector<PlainTariff>& all, const Query& query,
         bool square, double tick)
      : query_(query), square_(square), tick_(tick) {
    std::set<double> lengths;
    std::erase_if(slots, [&](const PlainSlot& s) {
      return !s.admitted || s.performance < query.min_performance || s.price > query.max_price ||
             query.length(s.performance) > query.max_runtime;
    });
    for (const PlainSlot& s : slots) lengths.insert(query.length(s.performance));
    lengths_.assign(lengths.begin(), lengths.end());
    for (const double most : square ? lengths_ : std::vector<double>{kInfinity}) {
      groups_.emplace_back();
      for (const PlainSlot& s : slots)
        if (query.length(s.performance) <= most)
          groups_.back().emplace_back(s, square ? most : query.length(s.performance), all, query);
    }
  }

  // Finds the best window of each criterion; `sets`: by all sets of n parts, not the n cheapest.
  void run(bool sets) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::vector<PlainPart>& parts = groups_[g];
      const double span = square_ ? lengths_[g] : 0;
      std::set<double> times;
      for (const PlainPart& part : parts) times.insert(part.turns.begin(), part.turns.end());
      if (times.empty()) continue;
      const double first = *times.begin(), last = *times.rbegin();
      if (tick_ > 0)
        for (double k = std::ceil(first / tick_); k <= last / tick_ + 2; ++k)
          times.insert(k * tick_);
      for (const double t : times) {
        const bool on_tick = tick_ > 0 && std::fmod(t, tick_) == 0;
        const std::vector<double> limits = square_ ? std::vector<double>{span} : lengths_;
        for (const double most : limits) {
          const bool all = square_ || most == lengths_.back();
          PlainWindow window;
          bool own = false;
          if (!choose(parts, t, most, sets, window, own)) continue;
          if (square_ && window.runtime != span) continue;
          if (square_) window.runtime = span;
          if (!(window.total <= query_.max_cost()) || !(own || on_tick)) continue;
          window.start = t;
          const auto rank = [&](double value) {
            return std::make_tuple(value, t, window.total, window.nodes);
          };
          offer(2, rank(t + window.runtime), window);
          offer(3, rank(window.runtime), window);
          if (!all) continue;
          offer(1, rank(t), window);
          if (own) offer(4, rank(static_cast<double>(key_of(window.total))), window);
          // The square search for the first step keeps the shortest span at equal starts.
          if (!best_[0].found || t < best_[0].start) best_[0] = first_step(parts, t, window);
        }
      }
    }
  }

  // By criterion number.
  const PlainWindow& best(int criterion) const { return best_[criterion]; }

  // True if the n cheapest parts at t, of one kind of parts (ragged: up to the length `most`;
  // square: the span), fit the budget.
  bool fits(double t, double most) const {
    PlainWindow window;
    bool own = false;
    for (std::size_t g = 0; g < groups_.size(); ++g)
      if (!square_ || lengths_[g] == most)
        return choose(groups_[g], t, most, false, window, own) &&
               window.total <= query_.max_cost();
    return false;
  }
  const std::vector<double>& lengths() const { return lengths_; }

 private:
  using Rank = std::tuple<double, double, double, std::vector<std::int32_t>>;

  void offer(int criterion, const Rank& rank, const PlainWindow& window) {
    if (best_[criterion].found && !(rank < ranks_[criterion])) return;
    best_[criterion] = window;
    ranks_[criterion] = rank;
  }

  struct Priced {
    double cost;
    std::int32_t node;
    const PlainPart* part;
    bool operator<(const Priced& o) const {
      return cost != o.cost ? cost < o.cost : node < o.node;
    }
  };

  static PlainWindow window_of(std::vector<Priced> parts, double t) {
    std::sort(parts.begin(), parts.end());
    PlainWindow window;
    window.found = true;
    window.start = t;
    for (const Priced& x : parts) {
      window.costs.push_back(x.cost);
      window.nodes.push_back(x.node);
      window.runtime = std::max(window.runtime, x.part->own_length);
    }
    std::sort(window.nodes.begin(), window.nodes.end());
    window.total = slotkern::exact_sum(parts.size(), [&](std::size_t k) { return parts[k].cost; });
    return window;
  }

  bool choose(const std::vector<PlainPart>& parts, double t, double most, bool sets,
              PlainWindow& window, bool& own) const {
    std::vector<Priced> live;
    for (const PlainPart& part : parts)
      if (part.own_length <= most && part.live(t)) live.push_back({part.cost(t), part.node, &part});
    const auto n = static_cast<std::size_t>(query_.n);
    if (live.size() < n) return false;
    std::sort(live.begin(), live.end());
    std::vector<Priced> chosen(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(n));
    if (sets) {
      for (unsigned bits = 0; bits < 1u << live.size(); ++bits) {
        std::vector<Priced> some;
        for (std::size_t k = 0; k < live.size(); ++k)
          if (bits >> k & 1) some.push_back(live[k]);
        if (some.size() != n) continue;
        const PlainWindow a = window_of(some, t), b = window_of(chosen, t);
        if (std::tie(a.total, a.costs, a.nodes) < std::tie(b.total, b.costs, b.nodes))
          chosen = some;
      }
    }
    window = window_of(chosen, t);
    own = false;
    for (const Priced& x : chosen) own = own || x.part->turns.count(t);
    return true;
  }

  PlainWindow first_step(const std::vector<PlainPart>& parts, double t,
                         const PlainWindow& all) const {
    std::vector<const PlainPart*> coming;
    std::vector<Priced> in;
    for (const PlainPart& part : parts) {
      if (!part.live(t)) continue;
      if (part.begin < t)
        in.push_back({part.cost(t), part.node, &part});
      else
        coming.push_back(&part);
    }
    std::sort(coming.begin(), coming.end(), [](const PlainPart* a, const PlainPart* b) {
      return std::tie(a->slot_start, a->node) < std::tie(b->slot_start, b->node);
    });
    const auto n = static_cast<std::size_t>(query_.n);
    for (std::size_t k = 0; k <= coming.size(); ++k) {
      if (k > 0) in.push_back({coming[k - 1]->cost(t), coming[k - 1]->node, coming[k - 1]});
      if (in.size() < n) continue;
      std::sort(in.begin(), in.end());
      PlainWindow window =
          window_of({in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n)}, t);
      if (!(window.total <= query_.max_cost())) continue;
      if (square_) window.runtime = all.runtime;
      return window;
    }
    return all;
  }

  Query query_;
  bool square_;
  double tick_;
  std::vector<double> lengths_;  // distinct, ascending
  std::vector<std::vector<PlainPart>> groups_;
  PlainWindow best_[5];
  Rank ranks_[5];
};

}  // namespace tariffs

// Random sequences of changes of shared hosts, and their comparison with the plain definition
// (share_oracle.hpp), for the unit test and the fuzzer.
//
// After each change, or a search in between: the rows hold the plain amounts; searches on rows, on
// views that catch up and on new views return one window, and its value is that of the plain
// definition. In the end all is given back, and the rows are those of a new pool.
#pragma once

#include <cstdio>
#include <utility>
#include <vector>

#include "random_draws.hpp"
#include "share_oracle.hpp"
#include "slotkern/shares/schedule.hpp"

namespace shares {

using namespace slotkern;

struct Tally {
  std::uint64_t searches = 0, found = 0, compared = 0, changes = 0;
};

class Sequence {
 public:
  Sequence(Random& random, Tally& tally, const IndexOptions& options)
      : random_(random), tally_(tally), options_(options) {
    const int hosts = random.in(1, random.one_in(20) ? 40 : 5);
    resources_ = static_cast<std::size_t>(random.in(1, random.one_in(8) ? 5 : 3));
    const bool alike = random.one_in(2);
    std::vector<std::int32_t> ids;
    std::vector<double> performance;
    int id = random.in(0, 3);
    for (int h = 0; h < hosts; ++h, id += random.in(1, 3)) {
      ids.push_back(id);
      performance.push_back(alike || random.one_in(2) ? 1 : 2);
      plain_.hosts.push_back({performance.back(),
                              std::vector<Amounts>(PlainHosts::kUnits, Amounts(resources_)),
                              std::vector<int>(PlainHosts::kUnits, 1)});
    }
    pool_.view_options() = options;
    pool_.open(ids, performance, resources_, 0, kEnd);
    for (std::size_t h = 0; h < plain_.hosts.size(); ++h) add_free(h, 0);
    ids_ = ids, performance_ = performance;
    initial_ = pool_.state();
  }

  // Runs the sequence; returns false, and prints the first difference.
  bool run(int steps) {
    for (int step = 0; step < steps && !random_.is_empty(); ++step) {
      ++tally_.changes;
      if (!change()) return false;
      if (random_.one_in(3) && !rows_are_right()) return false;
    }
    return rows_are_right() && give_all_back();
  }

 private:
  static constexpr double kEnd = 0.5 * PlainHosts::kUnits;
  struct Booked {
    double start;
    std::vector<Part> parts;
    Amounts demand;
  };
  struct Reservation {
    HostSpan span;
    Amounts amounts;
  };

  bool fail(const char* what) const {
    std::printf("shares: %s (hosts %zu, resources %zu, now %g)\n", what, plain_.hosts.size(),
                resources_, plain_.now);
    return false;
  }
  double time(int least, int most) { return 0.5 * random_.in(least, most); }
  std::size_t host() { return static_cast<std::size_t>(random_.in(0, static_cast<int>(plain_.hosts.size()) - 1)); }
  Amounts amounts(int most) {
    Amounts out(resources_);
    for (std::int32_t& x : out) x = random_.in(0, most);
    return out;
  }
  Amounts demand() {
    Amounts out(resources_);
    for (std::int32_t& x : out) x = random_.one_in(3) ? 0 : random_.in(0, 4);
    if (std::all_of(out.begin(), out.end(), [](int x) { return x == 0; })) out[0] = 1;
    return out;
  }

  void add_free(std::size_t h, double from) {
    while (from < kEnd) {
      const double start = from + (random_.one_in(3) ? time(0, 20) : 0);
      const double end = random_.one_in(3) ? start + time(1, 30) : kEnd;
      if (!(start < end) || end > kEnd) break;
      const Amounts free = amounts(8);
      if (pool_.add_free({h, start, end}, free.data()) == Status::ok) {
        plain_.add(h, start, end, free, 1);
        plain_.set_off(h, start, end, -1);
      }
      from = end;
      if (random_.one_in(2)) break;
    }
  }

  bool change() {
    switch (random_.in(0, 15)) {
      case 0: return release();
      case 1: return release();
      case 2: return reserve();
      case 3: return unreserve();
      case 4: return disable();
      case 5: return enable();
      case 6: return advance();
      case 7: return reload();
      default: return search();
    }
  }

  bool release() {
    if (booked_.empty()) return true;
    const auto i = static_cast<std::size_t>(random_.in(0, static_cast<int>(booked_.size()) - 1));
    const Booked booking = booked_[i];
    booked_.erase(booked_.begin() + static_cast<std::ptrdiff_t>(i));
    return release(booking);
  }
  bool release(const Booked& booking) {
    std::size_t failed = 0;
    const auto call = [&] {
      return pool_.release(booking.start, booking.parts.data(), booking.parts.size(),
                           booking.demand.data(), failed);
    };
    if (call() != Status::ok) return fail("a booked window was not released");
    bool any_left = false;
    for (const Part& part : booking.parts) {
      const double end = booking.start + part.length;
      if (end <= plain_.now) continue;
      plain_.add(part.row, std::max(booking.start, plain_.now), end, booking.demand, 1);
      any_left = true;
    }
    // An equal booking may exist, and may be released then.
    const bool has_equal = std::any_of(booked_.begin(), booked_.end(), [&](const Booked& other) {
      return other.start == booking.start && other.demand == booking.demand;
    });
    if (any_left && !has_equal && call() != Status::not_booked)
      return fail("a window was released twice");
    return true;
  }
  bool reserve() {
    const double start = time(0, PlainHosts::kUnits - 1);
    const Reservation made{{host(), start, std::min(kEnd, start + time(1, 20))}, demand()};
    if (pool_.reserve(made.span, made.amounts.data()) != Status::ok)
      return fail("a reservation was refused");
    plain_.add(made.span.host, made.span.start, made.span.end, made.amounts, -1);
    reserved_.push_back(made);
    return true;
  }
  bool unreserve() {
    if (reserved_.empty()) return true;
    const Reservation made = reserved_.back();
    reserved_.pop_back();
    const Status status = pool_.unreserve(made.span, made.amounts.data());
    // A snapshot omits reservations that are past.
    if (status != Status::ok && made.span.end > plain_.now) return fail("a reservation was lost");
    if (made.span.end > plain_.now)
      plain_.add(made.span.host, std::max(made.span.start, plain_.now), made.span.end, made.amounts,
                 1);
    return true;
  }
  bool disable() {
    const double start = time(0, PlainHosts::kUnits - 1);
    const HostSpan span{host(), start, std::min(kEnd, start + time(1, 20))};
    pool_.disable(span);
    auto& closed = closed_;
    closed.resize(plain_.hosts.size(), std::vector<int>(PlainHosts::kUnits, 0));
    for (int u = static_cast<int>(2 * span.start); u < static_cast<int>(2 * span.end); ++u)
      if (!std::exchange(closed[span.host][static_cast<std::size_t>(u)], 1))
        plain_.set_off(span.host, 0.5 * u, 0.5 * u + 0.5, 1);
    return true;
  }
  bool enable() {
    const std::size_t h = host();
    pool_.enable(h);
    if (h < closed_.size())
      for (int u = 0; u < PlainHosts::kUnits; ++u)
        if (std::exchange(closed_[h][static_cast<std::size_t>(u)], 0))
          plain_.set_off(h, 0.5 * u, 0.5 * u + 0.5, -1);
    return true;
  }
  bool advance() {
    if (!random_.one_in(3)) return true;
    plain_.now = std::max(plain_.now, time(0, 24));
    return pool_.advance(plain_.now) == Status::ok || fail("the clock did not advance");
  }
  // Continues with a pool made from the state of this one.
  bool reload() {
    const SharePool::ShareState state = pool_.state();
    SharePool next;
    std::size_t failed = 0;
    next.view_options() = options_;
    next.open(ids_, performance_, resources_, 0, kEnd);
    if (next.load(state, failed) != Status::ok) return fail("a state was not loaded");
    if (plain_.now == -kInfinity && !are_equal(next, pool_))
      return fail("the rows of a loaded state differ");
    pool_ = std::move(next);
    return true;
  }

  bool search() {
    Query query;
    const auto hosts = static_cast<int>(plain_.hosts.size());
    const Amounts wanted = demand();
    ShareRequest request{&query, wanted.data(), random_.one_in(4) ? random_.in(2, 3) : 1, nullptr,
                         0, 0, random_.one_in(2) ? ShapeKind::ragged : ShapeKind::square};
    query.n = random_.in(1, std::min(hosts, 4) + (request.stack > 1));
    query.volume = random_.in(1, 8);
    if (random_.one_in(6)) query.setup = time(1, 3);
    if (random_.one_in(6)) query.step = time(1, 4);
    if (random_.one_in(6)) query.earliest = time(0, 30);
    if (random_.one_in(6)) query.latest = time(0, 50);
    if (random_.one_in(6)) query.deadline = time(4, 60);
    if (random_.one_in(6)) query.budget = random_.in(0, 40);
    if (random_.one_in(8)) query.max_price = random_.in(0, 3);
    if (random_.one_in(8)) query.min_performance = 2;
    if (random_.one_in(8)) query.max_runtime = time(2, 14);
    std::vector<std::uint8_t> mask;
    if (random_.one_in(8)) {
      for (int h = 0; h < hosts; ++h) mask.push_back(static_cast<std::uint8_t>(random_.in(0, 1)));
      query.mask = mask.data(), query.masked = mask.size();
    }
    std::vector<double> prices(plain_.hosts.size(), 1);
    if (random_.one_in(2))
      for (double& price : prices) price = random_.in(0, 3);
    request.prices = prices.data();
    const int goal = random_.one_in(2) ? kStart : random_.in(kFirst, kCost);
    Window found, other;
    if (!find(pool_, request, goal, ShareMethod::automatic, found)) return false;
    if (!find(pool_, request, goal, ShareMethod::views, other)) return false;
    if (!(found == other)) return fail("rows and views differ");
    if (random_.one_in(8)) {
      SharePool fresh;
      std::size_t failed = 0;
      fresh.view_options() = options_;
      fresh.open(ids_, performance_, resources_, 0, kEnd);
      if (fresh.load(pool_.state(), failed) != Status::ok) return fail("a state was not loaded");
      if (!find(fresh, request, goal, ShareMethod::views, other)) return false;
      if (!(found == other)) return fail("a view made late differs");
      if (!find(fresh, request, goal, ShareMethod::automatic, other)) return false;
      if (!(found == other)) return fail("rows without bounds differ");
    }
    ++tally_.searches, tally_.found += found.exists;
    if (!is_right(found, query, wanted, request, goal)) return false;
    if (found.exists && random_.in(0, 3)) return book(found, wanted);
    return true;
  }

  struct Window {
    bool exists = false;
    Found found;
    std::vector<Part> parts;
    bool operator==(const Window& other) const {
      if (!exists || !other.exists) return exists == other.exists;
      return found.start == other.found.start && found.runtime == other.found.runtime &&
             found.cost == other.found.cost && found.value == other.found.value &&
             found.processor_time == other.found.processor_time &&
             std::equal(parts.begin(), parts.end(), other.parts.begin(), other.parts.end(),
                        [](const Part& a, const Part& b) {
                          return a.row == b.row && a.node == b.node && a.length == b.length &&
                                 a.cost == b.cost;
                        });
    }
  };
  bool find(SharePool& pool, const ShareRequest& request, int goal, ShareMethod method,
            Window& out) const {
    const Answer answer = find_shares(pool, request, goal, method);
    out.exists = answer.status == Status::ok;
    if (!out.exists) return answer.status == Status::none || fail("a search failed");
    out.found = answer.found;
    out.parts.assign(answer.parts, answer.parts + request.query->n);
    return true;
  }

  // Compares the window with the plain definition.
  bool is_right(const Window& window, const Query& query, const Amounts& wanted,
                const ShareRequest& request, int goal) {
    const bool square = request.shape == ShapeKind::square;
    if (window.exists) {
      std::vector<int> counts(plain_.hosts.size(), 0);
      for (const Part& part : window.parts) ++counts[part.row];
      for (std::size_t h = 0; h < counts.size(); ++h) {
        const double length = square ? window.found.runtime : query.length(performance_[h]);
        if (counts[h] > request.stack ||
            (counts[h] > 0 && !plain_.holds(h, window.found.start, window.found.start + length,
                                            wanted, counts[h])))
          return fail("a part of a window is not free");
      }
    }
    if (goal == kFirst || plain_.hosts.size() > 5) return true;  // no value of its own; too many
    ++tally_.compared;
    const std::vector<double> prices(request.prices, request.prices + plain_.hosts.size());
    const PlainWindow best = plain_.find(query, wanted, request.stack, prices, goal, square);
    if (best.exists != window.exists) return fail("a window is missing, or should be");
    if (!best.exists) return true;
    const Found& found = window.found;
    const double finish = found.start + found.runtime;
    const bool right = goal == kStart     ? found.start == best.start && found.cost == best.cost
                       : goal == kFinish  ? finish == best.finish
                       : goal == kRuntime ? found.runtime == best.runtime
                                          : found.cost == best.cost;
    return right || fail("a window is not the best one");
  }

  bool book(const Window& window, const Amounts& wanted) {
    std::size_t failed = 0;
    const auto call = [&](double start) {
      return pool_.book(start, window.parts.data(), window.parts.size(), wanted.data(), failed);
    };
    if (call(window.found.start) != Status::ok) return fail("a window was not booked");
    for (const Part& part : window.parts)
      plain_.add(part.row, window.found.start, window.found.start + part.length, wanted, -1);
    booked_.push_back({window.found.start, window.parts, wanted});
    return true;
  }

  bool rows_are_right() const {
    for (std::size_t h = 0; h < plain_.hosts.size(); ++h) {
      const ShareRows::HostGroup& group = pool_.rows().group_of(h);
      for (int u = 0; u < PlainHosts::kUnits; ++u) {
        if (0.5 * u < plain_.now) continue;
        const std::size_t row = group.row_at(0.5 * u);
        const auto unit = static_cast<std::size_t>(u);
        bool equal = pool_.rows().is_available(h, row) ==
                     (plain_.hosts[h].reasons_to_be_off[unit] == 0);
        for (std::size_t d = 0; d < resources_; ++d)
          equal = equal && pool_.rows().free_amount(h, row, d) == plain_.hosts[h].free[unit][d];
        if (!equal) return fail("a row is not right");
      }
    }
    return true;
  }

  bool are_equal(const SharePool& a, const SharePool& b) const {
    for (std::size_t g = 0; g < a.rows().groups().size(); ++g) {
      const ShareRows::HostGroup &x = a.rows().groups()[g], &y = b.rows().groups()[g];
      if (x.begins != y.begins) return false;
      for (std::size_t row = 0; row < x.size(); ++row)
        if (!std::equal(a.rows().cells(x, row),
                        a.rows().cells(x, row) + resources_ * ShareRows::kLanes,
                        b.rows().cells(y, row)))
          return false;
    }
    return true;
  }
  bool give_all_back() {
    while (!booked_.empty()) {
      const Booked booking = booked_.back();
      booked_.pop_back();
      if (!release(booking)) return false;
    }
    while (!reserved_.empty())
      if (!unreserve()) return false;
    for (std::size_t h = 0; h < plain_.hosts.size(); ++h) pool_.enable(h);
    if (plain_.now > -kInfinity) return true;  // what is past did not come back
    SharePool fresh;
    std::size_t failed = 0;
    fresh.open(ids_, performance_, resources_, 0, kEnd);
    if (fresh.load(initial_, failed) != Status::ok) return fail("the first state was not loaded");
    return are_equal(pool_, fresh) || fail("the rows are not those of a new pool");
  }

  Random& random_;
  Tally& tally_;
  const IndexOptions options_;
  std::size_t resources_ = 1;
  PlainHosts plain_;
  SharePool pool_;
  SharePool::ShareState initial_;
  std::vector<std::int32_t> ids_;
  std::vector<double> performance_;
  std::vector<Booked> booked_;
  std::vector<Reservation> reserved_;
  std::vector<std::vector<int>> closed_;  // [host][unit]
};

}  // namespace shares

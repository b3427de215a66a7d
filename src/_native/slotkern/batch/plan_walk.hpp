// A random walk over the plans of a batch: simulated annealing with ruin and recreate.
//
// A plan gives some jobs a window; its total is the sum of their signed targets and a penalty for
// each other job. In each step some jobs that begin at about the same time leave the plan; a job
// without a window is tried with them. They get their least windows in random order: half of the
// time at rates of 0, otherwise at the given rates times a random number below 2. The price of the
// expense stays. A plan with a larger total is accepted at times, less and less often.
//
// The walk is the same on all machines: the number of jobs is the seed of its generator, and of the
// functions of the system's library it uses only square root and absolute value, whose results
// IEEE 754 defines exactly.
// Cost: at most one search for a least window (batch/least_window.hpp) for each job that leaves.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/status.hpp"
#include "slotkern/batch/least_window.hpp"

namespace slotkern {

// The windows of all jobs; one without rows is none.
using BatchPlan = std::vector<PricedWindow>;

// Limits of a walk: the penalty of a job without a window, a lower bound on the total of each job,
// the limit on the expense (infinite: none), and the number of searches.
struct WalkRules {
  double penalty = 0;
  std::vector<double> least;
  double limit = kInfinity;
  std::int64_t searches = 0;
  double hot = 0, cold = 0;  // mean accepted rise, as a share of the target: at first, at last
};

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
class RandomBits {
 public:
  explicit RandomBits(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double share() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // from 0, below 1
  std::size_t below(std::size_t n) {
    return std::min(static_cast<std::size_t>(share() * static_cast<double>(n)), n - 1);
  }

 private:
  std::uint64_t state_;
};

class PlanWalk {
 public:
  PlanWalk(const PricingRules& rules, const std::vector<PricedJob>& jobs,
           std::span<const FreePiece> free)
      : jobs_(jobs), free_(free.begin(), free.end()), search_(rules), by_place_{rules} {
    std::sort(free_.begin(), free_.end(), by_place_);
  }

  // Improves a plan; returns the number of searches in `searched`.
  Status run(BatchPlan& best, const Pricing& pricing, const WalkRules& walk,
             std::int64_t& searched) {
    walk_ = &walk, pricing_ = pricing;
    pricing_.exact = false;
    RandomBits random(jobs_.size());
    BatchPlan plan = best, other;
    double total = total_of(plan), least = total;
    double value = 0;
    for (const PricedWindow& window : plan) value += std::fabs(window.cost);
    const double cooling = std::max(walk.cold / walk.hot, 0.0);
    searched = 0;
    enable_interrupts();
    while (searched < walk.searches && !leave(plan, random)) {
      poll();
      const double share =
          static_cast<double>(searched) / static_cast<double>(walk.searches);
      const double heat = value * walk.hot * power(cooling, share);
      const double most = total + 2 * random.share() * heat;
      pricing_.scale = random.share() < kFree ? 0 : pricing.scale * 2 * random.share();
      other = plan;
      for (const std::size_t i : out_) other[i].rows.clear(), other[i].ends.clear();
      if (const Status status = fill(other, most, searched); status != Status::ok) return status;
      const double reached = total_of(other);
      if (reached <= most && is_within_limit(other)) {
        plan.swap(other);
        total = reached;
        if (total < least) best = plan, least = total;
      }
    }
    return Status::ok;
  }

 private:
  // The order of nodes, then of rows, then of time.
  struct ByPlace {
    const PricingRules& rules;
    bool operator()(const FreePiece& a, const FreePiece& b) const {
      const std::int64_t x = rules.node[static_cast<std::size_t>(a.row)];
      const std::int64_t y = rules.node[static_cast<std::size_t>(b.row)];
      if (x != y) return x < y;
      return a.row != b.row ? a.row < b.row : a.start < b.start;
    }
  };

  static constexpr std::size_t kLeaving = 8, kFewest = 2;  // jobs that leave: from kFewest on
  static constexpr double kFree = 0.5;                     // share of steps without prices

  // base^share for a share below 1, by square roots, which round the same on all machines.
  static double power(double base, double share) {
    double result = 1;
    for (int bit = 0; bit < 8; ++bit) {
      base = std::sqrt(base);
      share *= 2;
      if (share >= 1) result *= base, share -= 1;
    }
    return result;
  }

  double total_of(const BatchPlan& plan) const {
    double total = 0;
    for (const PricedWindow& window : plan)
      total += window.rows.empty() ? walk_->penalty : window.cost;
    return total;
  }

  bool is_within_limit(const BatchPlan& plan) const {
    if (!(walk_->limit < kInfinity)) return true;
    return exact_sum(plan.size(), [&](std::size_t i) {
             return plan[i].rows.empty() ? 0 : plan[i].expense;
           }) <= walk_->limit;
  }

  // Chooses the jobs that leave, in random order; true if there is none.
  bool leave(const BatchPlan& plan, RandomBits& random) {
    near_.clear(), failed_.clear(), out_.clear();
    for (std::size_t i = 0; i < plan.size(); ++i)
      if (plan[i].rows.empty()) failed_.push_back(i);
      else near_.push_back({0, i});
    if (near_.empty()) return true;
    const PricedWindow& middle = plan[near_[random.below(near_.size())].second];
    for (auto& [distance, i] : near_)
      distance = std::fabs(plan[i].start - middle.start) * (1 + random.share());
    std::sort(near_.begin(), near_.end());
    const std::size_t count = std::min(kFewest + random.below(kLeaving), near_.size());
    for (std::size_t j = 0; j < count; ++j) out_.push_back(near_[j].second);
    if (!failed_.empty()) out_.push_back(failed_[random.below(failed_.size())]);
    for (std::size_t j = out_.size() - 1; j > 0; --j) std::swap(out_[j], out_[random.below(j + 1)]);
    return false;
  }

  // Gives the jobs that left their least windows, until the total will exceed `most` anyway.
  Status fill(BatchPlan& plan, double most, std::int64_t& searched) {
    double total = 0;
    for (std::size_t i = 0; i < plan.size(); ++i)
      total += plan[i].rows.empty() ? walk_->least[i] : plan[i].cost;
    for (std::size_t i = 0; i < plan.size(); ++i)
      if (plan[i].rows.empty() && std::find(out_.begin(), out_.end(), i) == out_.end())
        total += walk_->penalty - walk_->least[i];
    list_busy(plan);
    for (const std::size_t i : out_) {
      if (total > most) break;
      list_rest();
      double bound = 0;
      const Status status = search_.find(jobs_[i], rest_, pricing_, 1, bound, found_);
      if (status != Status::ok) return status;
      ++searched;
      total -= walk_->least[i];
      total += found_.empty() ? walk_->penalty : found_.front().cost;
      if (found_.empty()) continue;
      plan[i] = found_.front();
      for (std::size_t k = 0; k < plan[i].rows.size(); ++k) {
        const FreePiece part{plan[i].rows[k], plan[i].start, plan[i].ends[k]};
        busy_.insert(std::upper_bound(busy_.begin(), busy_.end(), part, by_place_), part);
      }
    }
    return Status::ok;
  }

  // Lists the parts of a plan, by place and start.
  void list_busy(const BatchPlan& plan) {
    busy_.clear();
    for (const PricedWindow& window : plan)
      for (std::size_t k = 0; k < window.rows.size(); ++k)
        busy_.push_back({window.rows[k], window.start, window.ends[k]});
    std::sort(busy_.begin(), busy_.end(), by_place_);
  }

  // Lists the free time between the busy parts.
  void list_rest() {
    rest_.clear();
    auto next = busy_.begin();
    for (const FreePiece& piece : free_) {
      double start = piece.start;
      for (; next != busy_.end() && next->row == piece.row; ++next) {
        if (start < next->start) rest_.push_back({piece.row, start, next->start});
        start = next->end;
      }
      if (start < piece.end) rest_.push_back({piece.row, start, piece.end});
    }
  }

  const std::vector<PricedJob>& jobs_;
  std::vector<FreePiece> free_;  // one piece for each row, by node and row
  LeastWindow search_;
  ByPlace by_place_;
  const WalkRules* walk_ = nullptr;
  Pricing pricing_;
  std::vector<std::pair<double, std::size_t>> near_;
  std::vector<std::size_t> failed_, out_;
  std::vector<FreePiece> busy_, rest_;
  std::vector<PricedWindow> found_;
};

// Finds the least windows of one job; see LeastWindow::find().
inline Status find_least(const PricingRules& rules, const PricedJob& job,
                         const std::vector<FreePiece>& free, const Pricing& pricing,
                         std::size_t spans, double& bound,
                         std::vector<PricedWindow>& found) noexcept {
  return guarded(
      [&] { return LeastWindow(rules).find(job, free, pricing, spans, bound, found); });
}

// Finds the least windows of all jobs.
inline Status find_all_least(const PricingRules& rules, const std::vector<PricedJob>& jobs,
                             const std::vector<FreePiece>& free, const Pricing& pricing,
                             std::size_t spans, std::vector<double>& bounds,
                             std::vector<std::vector<PricedWindow>>& found) noexcept {
  return guarded([&] {
    LeastWindow search(rules);
    bounds.assign(jobs.size(), kInfinity);
    found.resize(jobs.size());
    enable_interrupts();
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      poll();
      const Status status = search.find(jobs[i], free, pricing, spans, bounds[i], found[i]);
      if (status != Status::ok) return status;
    }
    return Status::ok;
  });
}

// Improves a plan by a random walk; see PlanWalk::run().
inline Status walk_plans(const PricingRules& rules, const std::vector<PricedJob>& jobs,
                         const std::vector<FreePiece>& free, BatchPlan& plan,
                         const Pricing& pricing, const WalkRules& walk,
                         std::int64_t& searched) noexcept {
  return guarded([&] { return PlanWalk(rules, jobs, free).run(plan, pricing, walk, searched); });
}

}  // namespace slotkern

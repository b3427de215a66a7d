// Least windows at prices of node-time against all starts at fine steps; walks over plans.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/batch/plan_walk.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

constexpr std::size_t kNodes = 4;
constexpr double kHorizon = 24;

// A batch on nodes that are free from 0 to kHorizon; lengths and rates are small integers.
struct Case {
  PricingRules rules;
  std::vector<PricedJob> jobs;
  std::vector<FreePiece> free;
  NodePrices prices;

  Case() {
    rules.nodes = kNodes;
    rules.target.kind = Measure::cost, rules.expense.kind = Measure::processor_time;
    for (std::size_t k = 0; k < kNodes; ++k) {
      rules.node.push_back(static_cast<std::int64_t>(k));
      rules.price.push_back(static_cast<double>(1 + below(4)));
      free.push_back({static_cast<std::int64_t>(k), 0, kHorizon});
    }
    for (int i = 0; i < 4; ++i) {
      PricedJob job;
      job.nodes = static_cast<int>(1 + below(3));
      job.usable.assign(kNodes, 1);
      for (std::size_t k = 0; k < kNodes; ++k)
        job.own.push_back(static_cast<double>(1 + below(6)));
      jobs.push_back(job);
    }
    std::vector<std::int64_t> node;
    std::vector<double> start, end, rate;
    for (std::size_t i = below(40); i > 0; --i) {
      node.push_back(static_cast<std::int64_t>(below(kNodes)));
      start.push_back(static_cast<double>(below(20)));
      end.push_back(start.back() + static_cast<double>(1 + below(4)));
      rate.push_back(static_cast<double>(below(4)));
    }
    prices.build(kNodes, node.size(), node.data(), start.data(), end.data(), rate.data());
  }

  // The least total of a job from t on.
  double least_at(const PricedJob& job, double t, double scale = 1) const {
    double least = kInfinity;
    each_set(kNodes, job.nodes, [&](const std::vector<int>& rows) {
      double total = 0;
      for (const int row : rows) {
        const auto k = static_cast<std::size_t>(row);
        if (t + job.own[k] > kHorizon) return;
        total += job.own[k] * rules.price[k] + scale * prices.integral(k, t, job.own[k]);
      }
      if (total < least) least = total;
    });
    return least;
  }
};

void check_least_windows(const Case& one) {
  for (const PricedJob& job : one.jobs) {
    const double scale = static_cast<double>(below(3)) / 2;
    double least = kInfinity, bound = 0;
    for (double t = 0; t < kHorizon; t += 0.5)
      least = std::min(least, one.least_at(job, t, scale));
    std::vector<PricedWindow> found;
    CHECK(find_least(one.rules, job, one.free, {&one.prices, scale}, 1, bound, found) ==
          Status::ok);
    CHECK(found.size() == 1 && bound == least && found.front().total == least);
    CHECK(one.least_at(job, found.front().start, scale) == least);
  }
}

void check_walk(const Case& one) {
  BatchPlan plan(one.jobs.size());
  std::vector<double> bounds;
  std::vector<std::vector<PricedWindow>> found;
  CHECK(find_all_least(one.rules, one.jobs, one.free, {&one.prices}, 1, bounds, found) ==
        Status::ok);
  plan[0] = found[0].front();
  const double before = 3 * 1000 + plan[0].cost;
  WalkRules walk;
  walk.penalty = 1000, walk.least.assign(one.jobs.size(), 0), walk.searches = 200;
  walk.hot = 1e-2, walk.cold = 1e-4;
  std::int64_t searched = 0;
  CHECK(walk_plans(one.rules, one.jobs, one.free, plan, {&one.prices}, walk, searched) ==
        Status::ok);
  CHECK(searched >= 200);
  double total = 0;
  for (const PricedWindow& window : plan) total += window.rows.empty() ? 1000 : window.cost;
  CHECK(total <= before);
  for (std::size_t i = 0; i < plan.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      for (std::size_t a = 0; a < plan[i].rows.size(); ++a)
        for (std::size_t b = 0; b < plan[j].rows.size(); ++b)
          CHECK(plan[i].rows[a] != plan[j].rows[b] || plan[i].ends[a] <= plan[j].start ||
                plan[j].ends[b] <= plan[i].start);
}

}  // namespace

int main() {
  for (int i = 0; i < 200; ++i) {
    const Case one;
    check_least_windows(one);
    check_walk(one);
  }
  return report();
}

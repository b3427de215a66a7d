// Times the cheapest ragged window under tariffs, as a ratio to the search with constant prices.
//
//   g++ -std=c++20 -O3 -ffp-contract=off -I src/_native benchmarks/tariffs.cpp -o tariffs
//   ./tariffs [NODES [PARTS]]
//
// `make programs` compiles it, too.
//
// Slots, jobs and tariffs are random: 20 free spans per node over 3600 time units, performances of
// 2 to 10, and hourly factors with two peaks per day, cheap weekends and a season, shifted for each
// tariff. Times are CPU microseconds per search: the mean of the first 20 searches and of the other
// 280. The last column is a loop in a pool: find the cheapest window of each of 1,000 jobs, and book
// it if there is one.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "slotkern/pool/schedule.hpp"

namespace {

using namespace slotkern;

constexpr double kHorizon = 3600;
constexpr int kFirst = 20, kJobs = 300, kLoop = 1000;

double now() { return 1e6 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

struct Row {
  std::int32_t node;
  double start, end, performance, price;
};

std::vector<Row> make_slots(int nodes, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  std::vector<Row> rows;
  for (int node = 0; node < nodes; ++node) {
    const auto performance = static_cast<double>(2 + random() % 9);
    double t = 60 * unit(random);
    for (int slot = 0; slot < 20 && t < kHorizon; ++slot) {
      const double end = t + 200 * unit(random);
      const double price = performance * std::exp(unit(random) - 0.5);
      rows.push_back({node, t, end, performance, price});
      t = end + 160 * unit(random);
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  return rows;
}

Tariff make_tariff(int breakpoints, std::mt19937_64& random) {
  std::uniform_real_distribution<double> unit(0, 1);
  const double shift = 24 * unit(random);
  std::vector<double> times, factors;
  for (int k = 0; k <= breakpoints; ++k) {
    const double hour = std::fmod(k + shift, 24);
    const auto peak = [hour](double at, double width) {
      return std::exp(-(hour - at) * (hour - at) / (width * width));
    };
    const double week = std::fmod(k / 24, 7) >= 5 ? 0.8 : 1.05;
    const double season = 1 + 0.15 * std::cos(2 * 3.14159 * k / 8760);
    const double day = 1 + 0.4 * peak(8, 2.5) + 0.5 * peak(19, 2.5) - 0.3 * peak(13, 2.5);
    factors.push_back(week * season * day * std::exp(0.16 * (unit(random) - 0.5)));
    if (k > 0) times.push_back(kHorizon * k / (breakpoints + 1));
  }
  Tariff tariff;
  if (tariff.set(times, factors) != Status::ok) std::abort();
  return tariff;
}

struct Times {
  double first = 0, later = 0;
  int found = 0;

  void add(int job, double time, bool any) {
    (job < kFirst ? first : later) += time / (job < kFirst ? kFirst : kJobs - kFirst);
    found += any;
  }
};

template <class Find>
Times time_all(const std::vector<Query>& jobs, Find find) {
  Times times;
  for (int job = 0; job < kJobs; ++job) {
    const double before = now();
    const bool any = find(jobs[static_cast<std::size_t>(job)]) == Status::ok;
    times.add(job, now() - before, any);
  }
  return times;
}

// Returns the CPU microseconds for each job of a loop that books the cheapest window of each.
double time_loop(const PreparedSlots& base, const std::vector<Query>& jobs) {
  PreparedSlots slots;
  slots.copy_without_zone_maps(base);
  std::vector<double> prices;
  for (const Slot& slot : base.slots) prices.push_back(slot.price);
  SlotPool pool;
  if (open_pool(pool, slots, prices, nullptr) != Status::ok) std::abort();
  const double before = now();
  for (int k = 0; k < kLoop; ++k) {
    const Query& job = jobs[static_cast<std::size_t>(k) % jobs.size()];
    const Answer answer = find_window(pool, job, criterion_index("cost"), ShapeKind::ragged);
    if (answer.status != Status::ok) continue;
    std::size_t failed = 0;
    const std::vector<Part> parts(answer.parts, answer.parts + job.n);
    if (book(pool, answer.found.start, parts.data(), parts.size(), failed) != Status::ok)
      std::abort();
  }
  return (now() - before) / kLoop;
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937_64 random(1);
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 100;
  const int parts = argc > 2 ? std::atoi(argv[2]) : 5;
  const std::vector<Row> rows = make_slots(nodes, random);
  SlotView view;
  view.base = reinterpret_cast<const char*>(rows.data());
  view.stride = sizeof(Row), view.size = rows.size();
  view.node = offsetof(Row, node), view.start = offsetof(Row, start);
  view.end = offsetof(Row, end), view.performance = offsetof(Row, performance);
  view.price = offsetof(Row, price);
  PreparedSlots prepared;
  if (prepare_slots(prepared, view, true, ShapeKind::ragged, 1).status != Status::ok) return 1;
  std::vector<Query> jobs(kJobs);
  for (Query& job : jobs) {
    job.n = parts;
    job.volume = 60 + static_cast<double>(random() % 540);
    job.budget = 1.5 * static_cast<double>(parts) * job.volume;
  }

  CostCachePool memory;
  const Times constant = time_all(jobs, [&](const Query& job) {
    return find_window(prepared, memory, job, criterion_index("cost"), ShapeKind::ragged).status;
  });
  const double loop = time_loop(prepared, jobs);
  std::printf("%d nodes, %zu slots, %d parts; constant prices %.1f us, first %.1f, %d found, loop "
              "%.1f\n",
              nodes, rows.size(), parts, constant.later, constant.first, constant.found, loop);
  std::printf("%8s %12s %10s %10s %8s %12s %8s %10s %10s\n", "tariffs", "breakpoints", "us",
              "first us", "ratio", "first ratio", "found", "loop us", "loop ratio");
  for (const int count : {1, 10, 100})
    for (const int breakpoints : {1, 24, 168, 8760}) {
      std::vector<Tariff> tariffs;
      for (int k = 0; k < count; ++k) tariffs.push_back(make_tariff(breakpoints, random));
      std::vector<std::int32_t> tariff_of;
      for (std::size_t k = 0; k < prepared.nodes.size(); ++k)
        tariff_of.push_back(static_cast<std::int32_t>(random() % tariffs.size()));
      if (set_tariffs(prepared, tariffs, tariff_of, 0) != Status::ok) return 1;
      const Times times = time_all(jobs, [&](const Query& job) {
        return find_window(prepared, memory, job, criterion_index("cost"), ShapeKind::ragged)
            .status;
      });
      const double mine = time_loop(prepared, jobs);
      std::printf("%8d %12d %10.1f %10.1f %8.1f %12.1f %8d %10.1f %10.1f\n", count, breakpoints,
                  times.later, times.first, times.later / constant.later,
                  times.first / constant.first, times.found, mine, mine / loop);
    }
}

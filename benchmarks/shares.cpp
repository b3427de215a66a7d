// Times queues of jobs on hosts that they share: the earliest start of each, found and booked.
//
//   g++ -std=c++20 -O3 -ffp-contract=off -DSLOTKERN_MULTIVERSION=1 -I src/_native
//       benchmarks/shares.cpp -o shares
//   ./shares [HOSTS JOBS DEMANDS WIDEST]
//
// Hosts have 64 cores, 4 GPUs and 512 GB. A job has 1..WIDEST parts of one of DEMANDS demands, and
// lasts 1..24 h. The queue is planned three times: on rows, on views (if the demands are few enough)
// and, for comparison, on whole nodes. Rows and views must choose the same hosts and starts. Times
// are CPU microseconds for each job; memory is that of rows and bookings.
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <vector>

#include "slotkern/shares/schedule.hpp"

namespace {

using namespace slotkern;

constexpr int kMostViewedDemands = 50;
const std::vector<Amount> kCapacity{64, 4, 512};

double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

struct Job {
  int parts, demand;
  double hours;
};

struct Plan {
  std::vector<double> starts;
  std::vector<std::size_t> hosts;
  double time = 0, bytes = 0;

  double makespan(const std::vector<Job>& jobs) const {
    double last = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) last = std::max(last, starts[i] + jobs[i].hours);
    return last;
  }
};

struct Queue {
  int hosts;
  std::vector<std::vector<Amount>> demands{{1, 0, 4},    {4, 0, 16},   {8, 0, 32},   {16, 0, 64},
                                           {32, 0, 128}, {64, 0, 256}, {8, 1, 64},   {16, 1, 64},
                                           {16, 2, 128}, {32, 4, 256}};
  std::vector<Job> jobs;

  Queue(int hosts_, int count, int kinds, int widest) : hosts(hosts_) {
    std::mt19937 random(5);
    const auto in = [&](int least, int most) {
      return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
    };
    while (static_cast<int>(demands.size()) < kinds)
      demands.push_back({in(1, 64), in(0, 4), 4 * in(1, 128)});
    for (int i = 0; i < count; ++i)
      jobs.push_back({in(1, widest), in(0, kinds - 1), static_cast<double>(in(1, 24))});
  }

  Plan on_shares(ShareMethod method) const {
    const auto count = static_cast<std::size_t>(hosts);
    std::vector<std::int32_t> ids(count);
    for (std::size_t h = 0; h < count; ++h) ids[h] = static_cast<std::int32_t>(h);
    SharePool pool;
    pool.open(ids, std::vector<double>(count, 1), kCapacity.size(), 0, kInfinity);
    for (std::size_t h = 0; h < count; ++h) pool.add_free({h, 0, kInfinity}, kCapacity.data());
    const std::vector<double> prices(count, 1);
    ShareRequest priced{nullptr, nullptr, 1, prices.data(), 0, 0, ShapeKind::square};
    Plan plan;
    const double begin = now();
    priced.set_price_range(count);
    for (const Job& job : jobs) {
      Query query;
      query.n = job.parts, query.volume = job.hours;
      const std::vector<Amount>& demand = demands[static_cast<std::size_t>(job.demand)];
      ShareRequest request = priced;
      request.query = &query, request.demand = demand.data();
      const Answer answer = find_shares(pool, request, criterion_index(Start::name), method);
      if (answer.status != Status::ok) std::abort();
      std::size_t failed = 0;
      const auto n = static_cast<std::size_t>(query.n);
      plan.starts.push_back(answer.found.start);
      for (std::size_t i = 0; i < n; ++i) plan.hosts.push_back(answer.parts[i].row);
      if (book_shares(pool, answer.found.start, answer.parts, n, demand.data(), failed) !=
          Status::ok)
        std::abort();
    }
    plan.time = (now() - begin) / static_cast<double>(jobs.size());
    plan.bytes = static_cast<double>(pool.bytes());
    return plan;
  }

  Plan on_whole_nodes() const {
    struct Row {
      std::int32_t node;
      double start, end, performance, price;
    };
    std::vector<Row> rows;
    for (int h = 0; h < hosts; ++h) rows.push_back({h, 0, kInfinity, 1, 1});
    SlotView view;
    view.base = reinterpret_cast<const char*>(rows.data());
    view.stride = sizeof(Row), view.size = rows.size();
    view.node = offsetof(Row, node), view.start = offsetof(Row, start);
    view.end = offsetof(Row, end), view.performance = offsetof(Row, performance);
    view.price = offsetof(Row, price);
    PreparedSlots prepared;
    SlotPool pool;
    if (prepare_slots(prepared, view, true, ShapeKind::square, 0).status != Status::ok ||
        open_pool(pool, prepared, std::vector<double>(rows.size(), 1), nullptr) != Status::ok)
      std::abort();
    Plan plan;
    const double begin = now();
    for (const Job& job : jobs) {
      Query query;
      query.n = job.parts, query.volume = job.hours;
      const Answer answer =
          find_window(pool, query, criterion_index(Start::name), ShapeKind::square);
      std::size_t failed = 0;
      plan.starts.push_back(answer.found.start);
      if (answer.status != Status::ok ||
          book(pool, answer.found.start, answer.parts, static_cast<std::size_t>(query.n),
               failed) != Status::ok)
        std::abort();
    }
    plan.time = (now() - begin) / static_cast<double>(jobs.size());
    return plan;
  }
};

void run(int hosts, int jobs, int demands, int widest) {
  const Queue queue(hosts, jobs, demands, widest);
  const Plan rows = queue.on_shares(ShareMethod::rows);
  const Plan whole = queue.on_whole_nodes();
  std::printf("%d,%d,%d,%d,%.2f,", hosts, jobs, demands, widest, rows.time);
  if (demands <= kMostViewedDemands) {
    const Plan views = queue.on_shares(ShareMethod::views);
    if (views.starts != rows.starts || views.hosts != rows.hosts) {
      std::fprintf(stderr, "rows and views differ\n");
      std::exit(1);
    }
    std::printf("%.2f,", views.time);
  } else {
    std::printf(",");
  }
  std::printf("%.2f,%.1f,%.0f,%.0f\n", whole.time, rows.bytes / 1e6, rows.makespan(queue.jobs),
              whole.makespan(queue.jobs));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::puts("hosts,jobs,demands,widest,rows,views,whole,megabytes,shared hours,whole hours");
  if (argc == 5) {
    run(std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
    return 0;
  }
  run(1000, 20000, 10, 8);
  run(1000, 20000, 10, 1);
  run(1000, 20000, 50, 8);
  run(1000, 20000, 1000, 8);
  run(10000, 50000, 10, 8);
  run(10000, 20000, 50, 8);
  run(10000, 20000, 1000, 8);
}

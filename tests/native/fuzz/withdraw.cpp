// Compares the schedulers of replays with a slow model that recomputes everything, while waiting
// jobs are withdrawn and resubmitted as in a community: equal starts, equal numbers of waiting
// jobs, and, with conservative backfilling, equal next reservations.
#include "instance.hpp"
#include "slotkern/community/local.hpp"

namespace {

namespace rp = slotkern::replay;
using slotkern::Backfill;

fuzz::Tally tally{"withdraw"};

struct Job {
  double run, estimate;
  std::int32_t width;
};

struct Span {
  double start, end;
  std::int32_t width;
};

struct Model {
  const std::vector<Job>& jobs;
  std::int32_t processors;
  Backfill policy;
  std::vector<double> key, start, promised;
  std::vector<std::size_t> running, waiting, arrived;
  double now = 0;
  bool freed = false;  // reserved time was released

  Span span(std::size_t j, double begin) const {
    return {begin, begin + jobs[j].estimate, jobs[j].width};
  }

  bool fits(std::size_t j, double at) const {
    std::vector<Span> busy;
    for (const std::size_t k : running) busy.push_back(span(k, start[k]));
    for (const std::size_t k : waiting)
      if (k != j && promised[k] < slotkern::kInfinity) busy.push_back(span(k, promised[k]));
    const Span wanted = span(j, at);
    const auto free_at = [&](double moment) {
      std::int32_t free = processors;
      for (const Span& s : busy) free -= s.start <= moment && moment < s.end ? s.width : 0;
      return free >= wanted.width;
    };
    bool all = free_at(at);
    for (const Span& s : busy)
      if (at < s.start && s.start < wanted.end) all = all && free_at(s.start);
    return all;
  }

  double earliest(std::size_t j) const {
    std::vector<double> times{now};
    for (const std::size_t k : running) times.push_back(start[k] + jobs[k].estimate);
    for (const std::size_t k : waiting)
      if (promised[k] < slotkern::kInfinity) times.push_back(promised[k] + jobs[k].estimate);
    std::sort(times.begin(), times.end());
    for (const double t : times)
      if (t >= now && fits(j, t)) return t;
    std::abort();
  }

  std::vector<std::size_t> queue() const {
    std::vector<std::size_t> order = waiting;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return key[a] < key[b] || (key[a] == key[b] && a < b);
    });
    return order;
  }

  void begin(std::size_t j) {
    std::erase(waiting, j);
    promised[j] = slotkern::kInfinity;
    running.push_back(j);
    start[j] = now;
  }

  void withdraw(std::size_t j) {
    std::erase(waiting, j);
    promised[j] = slotkern::kInfinity;
    freed = true;
  }

  void end(std::size_t j) {
    std::erase(running, j);
    freed |= start[j] + jobs[j].estimate > now;
  }

  void decide() {
    if (policy != Backfill::conservative) {
      waiting.insert(waiting.end(), arrived.begin(), arrived.end());
      arrived.clear();
      return start_by_queue();
    }
    if (freed)
      for (const std::size_t j : queue()) promised[j] = earliest(j);
    freed = false;
    for (const std::size_t j : arrived) {
      waiting.push_back(j);
      promised[j] = earliest(j);
    }
    arrived.clear();
    for (const std::size_t j : std::vector<std::size_t>(waiting))
      if (promised[j] <= now) begin(j);
  }

  void start_by_queue() {
    const std::vector<std::size_t> order = queue();
    std::size_t k = 0;
    for (; k < order.size() && fits(order[k], now); ++k) begin(order[k]);
    if (k == order.size() || policy == Backfill::none) return;
    const std::size_t head = order[k];
    if (policy == Backfill::easy) promised[head] = earliest(head);
    for (++k; k < order.size(); ++k)
      if (fits(order[k], now)) begin(order[k]);
    promised[head] = slotkern::kInfinity;
  }

  double next_promise() const {
    double next = slotkern::kInfinity;
    for (const std::size_t j : waiting) next = std::min(next, promised[j]);
    return next;
  }
};

template <class Scheduler>
void drive(fuzz::Bytes& bytes, const std::vector<Job>& jobs, double unit, bool shortest,
           Model model, std::vector<double>& key, Scheduler kernel) {
  const bool promises = model.policy == Backfill::conservative;
  std::vector<double> started(jobs.size(), -1);
  std::vector<std::size_t> outside;
  for (std::size_t j = jobs.size(); j-- > 0;) outside.push_back(j);
  double coming = 0, arrivals = 0;
  while (true) {
    double next = bytes.left() > 0 ? coming : slotkern::kInfinity;
    for (const std::size_t j : model.running)
      next = std::min(next, model.start[j] + jobs[j].run);
    if (promises) next = std::min(next, model.next_promise());
    if (next == slotkern::kInfinity) break;
    const double now = model.now = next;
    for (const std::size_t j : std::vector<std::size_t>(model.running))
      if (model.start[j] + jobs[j].run == now) {
        kernel.on_end(static_cast<rp::JobId>(j), now);
        model.end(j);
      }
    while (bytes.left() > 0 && coming <= now) {
      if (bytes.one_in(3) && !model.waiting.empty()) {
        const std::size_t j = model.waiting[bytes.below(model.waiting.size())];
        kernel.on_withdraw(static_cast<rp::JobId>(j), now);
        model.withdraw(j);
        ++tally.found;
        if (bytes.below(4)) outside.push_back(j);  // else it never returns
      } else if (!outside.empty()) {
        const std::size_t j = outside.back();
        outside.pop_back();
        key[j] = model.key[j] = shortest ? jobs[j].estimate : arrivals++;
        kernel.on_submit(static_cast<rp::JobId>(j), now);
        model.arrived.push_back(j);
      }
      coming += unit * static_cast<double>(bytes.below(4));
    }
    model.decide();
    kernel.start_jobs(now, [&](rp::JobId job) {
      if (started[job] >= 0) std::abort();  // started twice
      started[job] = now;
    });
    ++tally.searches;
    if (started != model.start) std::abort();
    if (kernel.waiting() != model.waiting.size()) std::abort();
    if (promises && kernel.next_wakeup() != model.next_promise()) std::abort();
  }
  if (!model.waiting.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  const std::int32_t processors = bytes.pick({1, 3, 7, 64});
  const double unit = bytes.pick({1.0, 0.1, 1.0 / 3});
  const auto policy = static_cast<Backfill>(bytes.below(4));
  const bool shortest = bytes.one_in(3);
  const std::size_t count = bytes.one_in(8) ? 80 : 1 + bytes.below(12);
  std::vector<Job> jobs;
  std::vector<double> submit(count), run, estimate;
  std::vector<std::int32_t> width;
  while (jobs.size() < count) {
    const double length = unit * static_cast<double>(1 + bytes.below(12));
    const double share = bytes.pick({1.0, 1.0, 0.5, 0.25, 0.0});
    const std::size_t most = bytes.one_in(3) ? static_cast<std::size_t>(processors)
                                             : std::min<std::size_t>(4, processors);
    jobs.push_back({share * length, length, static_cast<std::int32_t>(1 + bytes.below(most))});
    run.push_back(jobs.back().run), estimate.push_back(length);
    width.push_back(jobs.back().width);
  }
  ++tally.runs;
  const rp::JobColumns view{submit.data(), run.data(), estimate.data(), width.data(), count};
  std::vector<double> key(count);
  const rp::QueueOrder order{key.data()};
  Model model{jobs, processors, policy, key, std::vector<double>(count, -1.0),
              std::vector<double>(count, slotkern::kInfinity), {}, {}, {}};
  if (policy == Backfill::conservative)
    drive(bytes, jobs, unit, shortest, model, key,
          rp::ConservativeScheduler(view, processors, order, {}));
  else
    drive(bytes, jobs, unit, shortest, model, key,
          rp::QueueScheduler(view, processors, order, policy, {}));
  return 0;
}

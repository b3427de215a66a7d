// Compares a replay with a slow model of the definitions (as in tests/support/replay_model.py): all
// starts must be equal, and no processor may run two jobs at once.
#include "instance.hpp"
#include "slotkern/replay/replay.hpp"

namespace {

namespace rp = slotkern::replay;

fuzz::Tally tally{"replay"};

struct Job {
  double submit, run, estimate;
  std::int32_t width;
};

struct Span {
  double start, end;
  std::int32_t width;
};

struct Model {
  const std::vector<Job>& jobs;
  const std::vector<double>& key;
  std::vector<Span> blocked;
  std::int32_t processors;
  slotkern::Backfill policy;
  std::vector<double> start, promised;
  std::vector<int> running, waiting;
  double now = 0;

  Span span(int j, double begin) const {
    const auto i = static_cast<std::size_t>(j);
    return {begin, begin + jobs[i].estimate, jobs[i].width};
  }

  std::vector<Span> busy(int but) const {
    std::vector<Span> spans = blocked;
    for (int j : running) spans.push_back(span(j, start[static_cast<std::size_t>(j)]));
    for (int j : waiting)
      if (j != but && promised[static_cast<std::size_t>(j)] < slotkern::kInfinity)
        spans.push_back(span(j, promised[static_cast<std::size_t>(j)]));
    return spans;
  }

  bool fits(const std::vector<Span>& spans, const Span& wanted) const {
    const auto free_at = [&](double moment) {
      std::int32_t free = processors;
      for (const Span& s : spans) free -= s.start <= moment && moment < s.end ? s.width : 0;
      return free >= wanted.width;
    };
    if (!free_at(wanted.start)) return false;
    for (const Span& s : spans)
      if (wanted.start < s.start && s.start < wanted.end && !free_at(s.start)) return false;
    return true;
  }

  double earliest(int j) const {
    const std::vector<Span> spans = busy(j);
    std::vector<double> times{now};
    for (const Span& s : spans)
      if (s.end > now) times.push_back(s.end);
    std::sort(times.begin(), times.end());
    for (double t : times)
      if (fits(spans, span(j, t))) return t;
    std::abort();
  }

  std::vector<int> queue() const {
    std::vector<int> order = waiting;
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const double x = key[static_cast<std::size_t>(a)], y = key[static_cast<std::size_t>(b)];
      return x < y || (x == y && a < b);
    });
    return order;
  }

  void begin(int j) {
    waiting.erase(std::find(waiting.begin(), waiting.end(), j));
    promised[static_cast<std::size_t>(j)] = slotkern::kInfinity;
    running.push_back(j);
    start[static_cast<std::size_t>(j)] = now;
  }

  void start_jobs() {
    std::vector<int> order = queue();
    std::size_t k = 0;
    for (; k < order.size() && fits(busy(order[k]), span(order[k], now)); ++k) begin(order[k]);
    if (k == order.size() || policy == slotkern::Backfill::none) return;
    const auto head = static_cast<std::size_t>(order[k]);
    if (policy == slotkern::Backfill::easy) promised[head] = earliest(order[k]);
    for (++k; k < order.size(); ++k)
      if (fits(busy(order[k]), span(order[k], now))) begin(order[k]);
    promised[head] = slotkern::kInfinity;
  }

  void replay() {
    const bool promises = policy == slotkern::Backfill::conservative;
    std::size_t coming = 0;
    while (coming < jobs.size() || !waiting.empty() || !running.empty()) {
      double next = coming < jobs.size() ? jobs[coming].submit : slotkern::kInfinity;
      for (int j : running) {
        const auto i = static_cast<std::size_t>(j);
        next = std::min(next, start[i] + jobs[i].run);
      }
      for (int j : waiting) next = std::min(next, promised[static_cast<std::size_t>(j)]);
      if (!waiting.empty())
        for (const Span& s : blocked)
          if (s.end > now) next = std::min(next, s.end);
      now = next;
      bool early = false;
      for (std::size_t k = 0; k < running.size();) {
        const auto i = static_cast<std::size_t>(running[k]);
        if (start[i] + jobs[i].run != now) {
          ++k;
          continue;
        }
        early |= start[i] + jobs[i].estimate > now;
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(k));
      }
      if (promises && early)
        for (int j : queue()) promised[static_cast<std::size_t>(j)] = earliest(j);
      for (; coming < jobs.size() && jobs[coming].submit == now; ++coming) {
        waiting.push_back(static_cast<int>(coming));
        if (promises) promised[coming] = earliest(static_cast<int>(coming));
      }
      if (!promises) {
        start_jobs();
        continue;
      }
      for (int j : std::vector<int>(waiting))
        if (promised[static_cast<std::size_t>(j)] == now) begin(j);
    }
  }
};

void check_nodes(const std::vector<Job>& jobs, const rp::Replay& replay, std::int32_t most) {
  const rp::Placement& placed = replay.placement();
  for (std::size_t a = 0; a < jobs.size(); ++a) {
    std::int32_t assigned = 0;
    for (std::uint64_t k = placed.first[a]; k < placed.first[a] + placed.count[a]; ++k) {
      const rp::ProcessorSpan span = placed.spans[k];
      if (span.first < 0 || span.count < 1 || span.first + span.count > most) std::abort();
      assigned += span.count;
      for (std::size_t b = 0; b < a; ++b) {
        const double from = std::max(replay.start()[a], replay.start()[b]);
        const double to = std::min(replay.start()[a] + jobs[a].run,
                                   replay.start()[b] + jobs[b].run);
        if (!(from < to)) continue;
        for (std::uint64_t m = placed.first[b]; m < placed.first[b] + placed.count[b]; ++m) {
          const rp::ProcessorSpan other = placed.spans[m];
          if (span.first < other.first + other.count && other.first < span.first + span.count)
            std::abort();
        }
      }
    }
    if (assigned != jobs[a].width) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Bytes bytes(data, size);
  const std::int32_t processors = bytes.pick({1, 3, 7, 64, 65, 130});
  const double unit = bytes.pick({1.0, 0.1, 1.0 / 3}), origin = bytes.pick({0.0, 0.0, 1.7e9});
  std::vector<Span> blocked;
  for (std::size_t k = bytes.below(4), left = static_cast<std::size_t>(processors); k > 0; --k) {
    const auto width = static_cast<std::int32_t>(bytes.below(left + 1));
    left -= static_cast<std::size_t>(width);
    const double start = origin + unit * static_cast<double>(bytes.below(40));
    const double end = start + unit * static_cast<double>(1 + bytes.below(9));
    if (width > 0) blocked.push_back({start, end, width});
  }
  std::vector<Job> jobs;
  std::vector<double> key;
  const bool keys = bytes.one_in(2);
  const auto kind = static_cast<slotkern::Backfill>(bytes.below(4));
  const std::size_t most_jobs = bytes.one_in(8) ? 40 : 12;
  while (bytes.left() > 4 && jobs.size() < most_jobs) {
    const double estimate = unit * static_cast<double>(1 + bytes.below(12));
    const double share = bytes.pick({1.0, 1.0, 0.5, 0.25, 0.0});
    const std::size_t most = bytes.one_in(3) ? static_cast<std::size_t>(processors)
                                             : std::min<std::size_t>(4, processors);
    jobs.push_back({origin + unit * static_cast<double>(bytes.below(48)), share * estimate,
                    estimate, static_cast<std::int32_t>(1 + bytes.below(most))});
  }
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& a, const Job& b) { return a.submit < b.submit; });
  std::vector<double> submit, run, estimate;
  std::vector<std::int32_t> width;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    submit.push_back(jobs[j].submit), run.push_back(jobs[j].run);
    estimate.push_back(jobs[j].estimate), width.push_back(jobs[j].width);
    key.push_back(keys ? static_cast<double>((j * 7) % 5) : 0);
  }
  const rp::JobColumns view{submit.data(), run.data(), estimate.data(), width.data(), jobs.size()};
  rp::Machine machine;
  machine.processors = processors;
  for (const Span& span : blocked) machine.blocked.push_back({span.start, span.end, span.width});
  rp::QueueOrder order;
  if (keys) order.fixed = key.data();
  ++tally.runs;
  rp::Replay replay(view, machine, kind, order, nullptr, nullptr, true);
  while (replay.run(7) == slotkern::Status::interrupted) {
  }
  Model model{jobs, key, blocked, processors, kind,
              std::vector<double>(jobs.size()),
              std::vector<double>(jobs.size(), slotkern::kInfinity), {}, {}, -1};
  model.replay();
  ++tally.searches;
  tally.found += !jobs.empty();
  for (std::size_t j = 0; j < jobs.size(); ++j)
    if (replay.start()[j] != model.start[j]) std::abort();
  check_nodes(jobs, replay, processors);
  return 0;
}

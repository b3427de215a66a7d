// Unit tests of the data structures of replays, each against its definition.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "slotkern/replay/events.hpp"
#include "slotkern/replay/processors.hpp"
#include "slotkern/replay/availability_profile.hpp"
#include "slotkern/replay/reservation_heap.hpp"
#include "support.hpp"

using namespace slotkern::replay;
using namespace unit;

namespace {

constexpr std::int32_t kProcessors = 10;

// A naive profile: the list of all reserved spans.
struct ReservedSpans {
  struct Span {
    double start, end;
    std::int32_t width;
  };
  std::vector<Span> spans;

  std::int32_t free(double time) const {
    std::int32_t left = kProcessors;
    for (const Span& span : spans) left -= span.start <= time && time < span.end ? span.width : 0;
    return left;
  }

  std::int32_t least(double from, double until) const {
    std::int32_t left = free(from);
    for (const Span& span : spans)
      if (from < span.start && span.start < until) left = std::min(left, free(span.start));
    return left;
  }

  std::int32_t most(double from, double until) const {
    std::int32_t left = free(from);
    for (const Span& span : spans)
      if (from < span.end && span.end < until) left = std::max(left, free(span.end));
    return left;
  }

  // The earliest start is either now or the end of a span.
  double find(double now, double length, std::int32_t width) const {
    double found = least(now, now + length) >= width ? now : INFINITY;
    for (const Span& span : spans)
      if (now <= span.end && span.end < found && least(span.end, span.end + length) >= width)
        found = span.end;
    return found;
  }

  double free_since(double now, double time, std::int32_t width) const {
    double found = least(now, time) >= width ? now : time;
    for (const Span& span : spans)
      if (now <= span.end && span.end < found && least(span.end, time) >= width)
        found = span.end;
    return found;
  }
};

// Spans are reserved and released. Cached hole bounds never exclude a start that exists.
void profile_matches_the_reserved_spans() {
  for (int round = 0; round < 1000; ++round) {
    const double unit = std::array{1.0, 0.1, 1.0 / 3}[below(3)];
    const auto some = [&](std::size_t most) { return unit * static_cast<double>(1 + below(most)); };
    AvailabilityProfile profile(kProcessors);
    ReservedSpans plain;
    double now = 0;
    for (int step = 0; step < 80; ++step) {
      profile.advance(now);
      const double length = some(12), limit = below(3) == 0 ? now + some(20) : INFINITY;
      const auto width = static_cast<std::int32_t>(1 + below(kProcessors));
      const double start = plain.find(now, length, width);
      CHECK(profile.find_start(now, length, width, limit) == std::min(start, limit));
      if (below(3) != 0) {
        profile.reserve(start, start + length, width);
        plain.spans.push_back({start, start + length, width});
      }
      const double until = now + some(20);
      CHECK(profile.max_free(now, until) == plain.most(now, until));
      if (below(2) == 0 && !plain.spans.empty()) {
        const std::size_t k = below(plain.spans.size());
        const ReservedSpans::Span old = plain.spans[k];
        if (old.start > now) {
          CHECK(profile.free_since(now, old.start, old.width) ==
                plain.free_since(now, old.start, old.width));
        }
        plain.spans.erase(plain.spans.begin() + static_cast<std::ptrdiff_t>(k));
        profile.release(std::max(old.start, now), old.end, old.width);
      }
      if (below(4) == 0) now += some(2);
    }
  }
}

// A span moves to its earliest start; its own old time counts as free.
void spans_move_to_the_earliest_start() {
  for (int round = 0; round < 1000; ++round) {
    const double unit = std::array{1.0, 0.1, 1.0 / 3}[below(3)];
    AvailabilityProfile profile(kProcessors);
    ReservedSpans plain;
    std::vector<double> lengths;
    for (int step = 0; step < 60; ++step) {
      const double length = unit * static_cast<double>(1 + below(12));
      const auto width = static_cast<std::int32_t>(1 + below(kProcessors));
      const double start = profile.find_start(0, length, width, INFINITY);
      CHECK(start == plain.find(0, length, width));
      profile.reserve(start, start + length, width);
      plain.spans.push_back({start, start + length, width});
      lengths.push_back(length);
      const std::size_t leaves = below(plain.spans.size()), moves = below(plain.spans.size());
      if (below(3) == 0) {
        profile.release(plain.spans[leaves].start, plain.spans[leaves].end,
                        plain.spans[leaves].width);
        plain.spans.erase(plain.spans.begin() + static_cast<std::ptrdiff_t>(leaves));
        lengths.erase(lengths.begin() + static_cast<std::ptrdiff_t>(leaves));
      }
      if (moves >= plain.spans.size() || plain.spans[moves].start == 0) continue;
      const ReservedSpans::Span old = plain.spans[moves];
      plain.spans[moves].width = 0;
      const double own = profile.free_since(0, old.start, old.width);
      const double begin = profile.find_start(0, lengths[moves], old.width, own);
      CHECK(begin == std::min(old.start, plain.find(0, lengths[moves], old.width)));
      if (begin < old.start) profile.move(old.start, begin, lengths[moves], old.width);
      plain.spans[moves] = {begin, begin + lengths[moves], old.width};
    }
  }
}

// The top is the earliest reservation, and the smallest job among equal times.
void reservations_are_ordered() {
  constexpr std::size_t jobs = 40;
  for (int round = 0; round < 200; ++round) {
    ReservationHeap heap(jobs);
    std::vector<double> time(jobs, kNever);
    for (int step = 0; step < 200; ++step) {
      const std::size_t job = below(jobs);
      const auto id = static_cast<JobId>(job);
      if (time[job] == kNever) {
        heap.add(id, time[job] = static_cast<double>(below(30)));
      } else if (below(2) == 0) {
        heap.decrease_key(id, time[job] -= static_cast<double>(below(4)));
      } else {
        heap.remove(id);
        time[job] = kNever;
      }
      const auto least = std::min_element(time.begin(), time.end());
      CHECK(heap.time() == *least);
      if (*least != kNever)
        CHECK(heap.job() == static_cast<JobId>(least - time.begin()));
    }
  }
}

// Events are popped by time and then by job, whatever is pushed and popped in between.
void events_are_ordered() {
  const auto later = [](const Event& a, const Event& b) { return b < a; };
  for (int round = 0; round < 200; ++round) {
    EventQueue queue;
    std::vector<Event> kept;  // descending: the next event is last
    for (JobId job = 0; job < 200 || !kept.empty(); ++job) {
      if (job < 200 && below(3) > 0) {
        const Event event{static_cast<double>(below(50)), job};
        queue.push(event);
        kept.insert(std::upper_bound(kept.begin(), kept.end(), event, later), event);
      } else if (!kept.empty()) {
        queue.pop();
        kept.pop_back();
      }
      CHECK(queue.empty() == kept.empty());
      CHECK(queue.time() == (kept.empty() ? kNever : kept.back().time));
      if (!kept.empty()) CHECK(queue.top().job == kept.back().job);
    }
  }
}

// Jobs get the lowest free processors, in the minimum number of spans.
void jobs_get_the_lowest_processors() {
  for (int round = 0; round < 100; ++round) {
    const auto processors = static_cast<std::int32_t>(1 + below(300));
    constexpr std::size_t jobs = 40;
    ProcessorAllocator allocator(processors);
    Placement placement;
    placement.resize(jobs);
    std::vector<char> busy(static_cast<std::size_t>(processors), 0);
    std::vector<std::vector<std::int32_t>> assigned(jobs);
    for (std::size_t job = 0; job < jobs; ++job) {
      const auto free = static_cast<std::size_t>(std::count(busy.begin(), busy.end(), 0));
      const std::size_t width = free == 0 ? 0 : 1 + below(free);
      std::vector<std::int32_t> lowest;
      for (std::int32_t k = 0; lowest.size() < width; ++k)
        if (!busy[static_cast<std::size_t>(k)]) lowest.push_back(k);
      if (width > 0)
        allocator.allocate(static_cast<JobId>(job), static_cast<std::int32_t>(width), placement);
      std::size_t runs = 0;
      for (std::size_t i = 0; i < width; ++i)
        runs += i == 0 || lowest[i] != lowest[i - 1] + 1;
      CHECK(placement.count[job] == runs);
      std::vector<std::int32_t> taken;
      for (std::uint32_t s = 0; s < placement.count[job]; ++s) {
        const ProcessorSpan& span = placement.spans[placement.first[job] + s];
        for (std::int32_t k = 0; k < span.count; ++k) taken.push_back(span.first + k);
      }
      CHECK(taken == lowest);
      for (const auto k : lowest) busy[static_cast<std::size_t>(k)] = 1;
      assigned[job] = lowest;
      const std::size_t other = below(job + 1);
      if (assigned[other].empty()) continue;
      allocator.release(static_cast<JobId>(other), placement);
      for (const auto k : assigned[other]) busy[static_cast<std::size_t>(k)] = 0;
      assigned[other].clear();
    }
  }
}

}  // namespace

int main() {
  profile_matches_the_reserved_spans();
  spans_move_to_the_earliest_start();
  reservations_are_ordered();
  events_are_ordered();
  jobs_get_the_lowest_processors();
  return report();
}

// Parts of the replay, each against its plain definition.
#include <algorithm>
#include <cmath>
#include <vector>

#include "slotkern/replay/nodes.hpp"
#include "slotkern/replay/profile.hpp"
#include "support.hpp"

using namespace slotkern::replay;
using namespace unit;

namespace {

// Whole times up to 60, a count of free processors for each.
void profiles_count_what_is_free() {
  constexpr std::int32_t processors = 10;
  constexpr int last = 60;
  for (int round = 0; round < 200; ++round) {
    Profile profile(processors);
    std::vector<int> free(last + 40, processors);
    double now = 0;
    for (int step = 0; step < 40; ++step) {
      const int start = static_cast<int>(now) + static_cast<int>(below(20)),
                end = start + static_cast<int>(below(15)),
                width = 1 + static_cast<int>(below(4));
      bool room = end <= last;
      for (int t = start; t < end; ++t) room = room && free[static_cast<std::size_t>(t)] >= width;
      if (room) {
        profile.add(start, end, -width);
        for (int t = start; t < end; ++t) free[static_cast<std::size_t>(t)] -= width;
      }
      const int length = 1 + static_cast<int>(below(12)), wanted = 1 + static_cast<int>(below(10));
      const int from = static_cast<int>(now) + static_cast<int>(below(8));
      const int limit = below(3) == 0 ? from + static_cast<int>(below(20)) : last + 20;
      int first = from;
      const auto fits = [&](int begin) {
        for (int t = begin; t < begin + length; ++t)
          if (free[static_cast<std::size_t>(t)] < wanted) return false;
        return true;
      };
      while (first < limit && !fits(first)) ++first;
      CHECK(profile.find(from, length, wanted, INFINITY, limit) == first);
      CHECK(profile.free_before(now + 1) == free[static_cast<std::size_t>(now)]);
      std::vector<Profile::Peak> peaks;
      profile.peaks(from, last, peaks);
      int most = 0;
      std::size_t k = 0;
      for (int t = from; t < last; ++t) {
        const int here = free[static_cast<std::size_t>(t)];
        if (here <= most) continue;
        CHECK(k < peaks.size() && peaks[k].time == t && peaks[k].free == here);
        most = here, ++k;
      }
      CHECK(k == peaks.size());
      if (below(6) == 0) profile.advance(now = std::min(now + 1, last - 30.0));
    }
  }
}

// The lowest processors that are free, in as few spans as there can be.
void jobs_take_the_lowest_processors() {
  for (int round = 0; round < 100; ++round) {
    const auto processors = static_cast<std::int32_t>(1 + below(300));
    constexpr std::size_t jobs = 40;
    FreeNodes nodes(processors);
    Placement placement;
    placement.resize(jobs);
    std::vector<char> busy(static_cast<std::size_t>(processors), 0);
    std::vector<std::vector<std::int32_t>> held(jobs);
    for (std::size_t job = 0; job < jobs; ++job) {
      const auto free = static_cast<std::size_t>(std::count(busy.begin(), busy.end(), 0));
      const std::size_t width = free == 0 ? 0 : 1 + below(free);
      std::vector<std::int32_t> lowest;
      for (std::int32_t k = 0; lowest.size() < width; ++k)
        if (!busy[static_cast<std::size_t>(k)]) lowest.push_back(k);
      if (width > 0) nodes.take(static_cast<JobId>(job), static_cast<std::int32_t>(width), placement);
      std::size_t runs = 0;
      for (std::size_t i = 0; i < width; ++i)
        runs += i == 0 || lowest[i] != lowest[i - 1] + 1;
      CHECK(placement.count[job] == runs);
      std::vector<std::int32_t> taken;
      for (std::uint32_t s = 0; s < placement.count[job]; ++s) {
        const NodeSpan& span = placement.spans[placement.first[job] + s];
        for (std::int32_t k = 0; k < span.count; ++k) taken.push_back(span.first + k);
      }
      CHECK(taken == lowest);
      for (const auto k : lowest) busy[static_cast<std::size_t>(k)] = 1;
      held[job] = lowest;
      const std::size_t other = below(job + 1);
      if (held[other].empty()) continue;
      nodes.give(static_cast<JobId>(other), placement);
      for (const auto k : held[other]) busy[static_cast<std::size_t>(k)] = 0;
      held[other].clear();
    }
  }
}

}  // namespace

int main() {
  profiles_count_what_is_free();
  jobs_take_the_lowest_processors();
  return report();
}

// Allocates processors to jobs: the lowest free numbers at the start of the job.
//
// The allocation never affects when a job starts, because all processors are alike and the
// scheduler has counted the free ones. A word of the bitset holds 64 processors; runs of set bits
// are allocated together, so that a job gets few spans. Cost for a job: O(words scanned + spans).
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "slotkern/replay/jobs.hpp"

namespace slotkern::replay {

// The processors [first, first + count).
struct ProcessorSpan {
  std::int32_t first, count;
};

// The spans of job j are spans[first[j]] to spans[first[j] + count[j] - 1].
struct Placement {
  std::vector<std::uint64_t> first;
  std::vector<std::uint32_t> count;
  std::vector<ProcessorSpan> spans;

  void resize(std::size_t jobs) {
    first.assign(jobs, 0);
    count.assign(jobs, 0);
    spans.reserve(2 * jobs);
  }
};

// The set of free processors.
class ProcessorAllocator {
 public:
  explicit ProcessorAllocator(std::int32_t processors) : words_((processors + 63) / 64, ~0ull) {
    if (processors % 64) words_.back() = (1ull << processors % 64) - 1;
  }

  // Allocates `width` processors to the job and appends their spans. Requires that many to be free.
  void allocate(JobId job, std::int32_t width, Placement& out) {
    std::vector<ProcessorSpan>& spans = out.spans;
    const std::size_t begin = spans.size();
    while (words_[lowest_] == 0) ++lowest_;
    for (std::size_t i = lowest_; width > 0; ++i) {
      std::uint64_t word = words_[i];
      while (word != 0 && width > 0) {
        const int from = std::countr_zero(word);
        const int run = std::min(std::countr_one(word >> from), static_cast<int>(width));
        word &= ~(ones(run) << from);
        width -= run;
        const auto node = static_cast<std::int32_t>(i * 64 + from);
        if (spans.size() > begin && spans.back().first + spans.back().count == node)
          spans.back().count += run;
        else
          spans.push_back({node, run});
      }
      words_[i] = word;
    }
    out.first[job] = begin;
    out.count[job] = static_cast<std::uint32_t>(spans.size() - begin);
  }

  // Releases the processors of the job.
  void release(JobId job, const Placement& placement) {
    const ProcessorSpan* span = placement.spans.data() + placement.first[job];
    for (std::uint32_t k = 0; k < placement.count[job]; ++k, ++span) {
      std::size_t i = static_cast<std::size_t>(span->first) / 64;
      lowest_ = std::min(lowest_, i);
      int from = span->first % 64;
      for (int left = span->count; left > 0; ++i, from = 0) {
        const int here = std::min(left, 64 - from);
        words_[i] |= ones(here) << from;
        left -= here;
      }
    }
  }

 private:
  static std::uint64_t ones(int count) { return ~0ull >> (64 - count); }

  std::vector<std::uint64_t> words_;  // bitset of the free processors
  std::size_t lowest_ = 0;            // no earlier word has a free processor
};

}  // namespace slotkern::replay

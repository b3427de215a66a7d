// Branch-free stable merge sort for a few hundred items.
//
// Comparison results feed arithmetic and addresses, not branches: branch mispredictions dominate
// the cost of sorting. Runs of up to eight are sorted by rank, then neighbours are merged from both
// ends at once, two independent dependency chains. O(n log n) time, n items of scratch memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

namespace slotkern {

namespace detail {

inline constexpr std::size_t kRanked = 8;

// Sorts up to eight items by rank into `to`, which may equal `from`.
template <class Item, class Before>
void rank_run(const Item* from, std::size_t size, Item* to, Before before) {
  Item run[kRanked];
  std::copy(from, from + size, run);
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t rank = 0;
    for (std::size_t j = 0; j < i; ++j) rank += !before(run[i], run[j]);
    for (std::size_t j = i + 1; j < size; ++j) rank += before(run[j], run[i]);
    to[rank] = run[i];
  }
}

// Merges two adjacent runs whose lengths differ by at most one.
template <class Item, class Before>
void merge_runs(const Item* left, const Item* right, const Item* end, Item* to, Before before) {
  const std::ptrdiff_t sizes[] = {right - left, end - right};
  const Item *left_end = right - 1, *right_end = end - 1;
  Item* back = to + (end - left) - 1;
  for (std::ptrdiff_t steps = std::min(sizes[0], sizes[1]); steps > 0; --steps) {
    const bool second = before(*right, *left), first = before(*right_end, *left_end);
    *to++ = *(second ? right : left);
    *back-- = *(first ? left_end : right_end);
    right += second, left += !second;
    left_end -= first, right_end -= !first;
  }
  if (sizes[0] != sizes[1]) *to = *(left <= left_end ? left : right);
}

}  // namespace detail

// Sorts `items`; `scratch` must have space for `size` items.
template <class Item, class Before>
void merge_sort(Item* items, std::size_t size, Item* scratch, Before before) {
  std::size_t runs = 1;
  bool moves = false;  // true if the number of merge passes is odd
  for (; size > detail::kRanked * runs; runs *= 2) moves = !moves;
  Item *from = moves ? scratch : items, *to = moves ? items : scratch;
  const auto begin = [&](std::size_t run) { return run * size / runs; };
  for (std::size_t run = 0; run < runs; ++run)
    detail::rank_run(items + begin(run), begin(run + 1) - begin(run), from + begin(run), before);
  for (std::size_t step = 2; runs > 1 && step <= runs; step *= 2) {
    for (std::size_t run = 0; run < runs; run += step)
      detail::merge_runs(from + begin(run), from + begin(run + step / 2), from + begin(run + step),
                         to + begin(run), before);
    std::swap(from, to);
  }
}

}  // namespace slotkern

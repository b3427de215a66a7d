// Room in vectors before a change that must be whole: what may fail comes first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace slotkern {

// The next so many that are added need no memory. Grows as adding them one by one would.
template <class... Vectors>
void room_for(std::size_t more, Vectors&... vectors) {
  const auto one = [more](auto& vector) {
    if (vector.capacity() - vector.size() < more) [[unlikely]]
      vector.reserve(std::max(2 * vector.capacity(), vector.size() + more));
  };
  (one(vectors), ...);
}

// Room for so many, in large pages where they are many and the system has such: searches that
// look here and there wait for addresses of pages as long as for what stands there.
template <class T>
void reserve_far(std::vector<T>& vector, std::size_t size) {
  if (size <= vector.capacity()) return;
  vector.reserve(size);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t page = std::size_t{1} << 21;
  const auto begin = reinterpret_cast<std::uintptr_t>(vector.data());
  const std::uintptr_t first = (begin + page - 1) & ~(page - 1),
                       end = (begin + vector.capacity() * sizeof(T)) & ~(page - 1);
  if (first + page < end)  // advice: it may be refused
    madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

// It will be read soon: it is on its way from memory meanwhile.
inline void fetch([[maybe_unused]] const void* what) {
#if defined(__GNUC__)
  __builtin_prefetch(what);
#endif
}

}  // namespace slotkern

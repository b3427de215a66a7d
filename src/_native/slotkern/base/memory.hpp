// Memory: reservation before atomic changes, large pages, prefetch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace slotkern {

// Reserves memory for `more` further elements, so that adding them cannot fail; capacity grows
// geometrically.
template <class... Vectors>
void reserve_extra(std::size_t more, Vectors&... vectors) {
  const auto one = [more](auto& vector) {
    if (vector.capacity() - vector.size() < more) [[unlikely]]
      vector.reserve(std::max(2 * vector.capacity(), vector.size() + more));
  };
  (one(vectors), ...);
}

// Allocator for large arrays: uses 2 MB pages from 1 MB on, if the system has them. Mapping small
// pages costs more than filling them, and random access waits for TLB misses as long as for the
// data.
template <class T>
struct LargePages {
  using value_type = T;

  LargePages() = default;
  template <class U>
  LargePages(const LargePages<U>&) {}
  friend bool operator==(const LargePages&, const LargePages&) { return true; }

#if defined(__linux__) && defined(MADV_HUGEPAGE)
  T* allocate(std::size_t size) {
    const std::size_t large = in_large_pages(size);
    if (large == 0) return std::allocator<T>{}.allocate(size);
    void* const found = ::operator new(std::max(large, size * sizeof(T)), std::align_val_t{kPage});
    madvise(found, large, MADV_HUGEPAGE);  // advice: the system may ignore it
    return static_cast<T*>(found);
  }
  void deallocate(T* memory, std::size_t size) {
    if (in_large_pages(size) == 0) return std::allocator<T>{}.deallocate(memory, size);
    ::operator delete(memory, std::align_val_t{kPage});
  }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 21;
  static_assert(alignof(T) <= alignof(std::max_align_t));

  // Size in bytes, rounded to large pages; 0 if that would leave half of a page unused.
  static std::size_t in_large_pages(std::size_t size) {
    return (size * sizeof(T) + kPage / 2) / kPage * kPage;
  }
#else
  T* allocate(std::size_t size) { return std::allocator<T>{}.allocate(size); }
  void deallocate(T* memory, std::size_t size) { std::allocator<T>{}.deallocate(memory, size); }
#endif
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

// Prefetches the cache line at `what`.
inline void prefetch([[maybe_unused]] const void* what) {
#if defined(__GNUC__)
  __builtin_prefetch(what);
#endif
}

}  // namespace slotkern

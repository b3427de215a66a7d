// Room in vectors before a change that must be whole: what may fail comes first.
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

// The next so many that are added need no memory. Grows as adding them one by one would.
template <class... Vectors>
void reserve_extra(std::size_t more, Vectors&... vectors) {
  const auto one = [more](auto& vector) {
    if (vector.capacity() - vector.size() < more) [[unlikely]]
      vector.reserve(std::max(2 * vector.capacity(), vector.size() + more));
  };
  (one(vectors), ...);
}

// Memory of what may be large: from 1 MB on in large pages where the system has such. To be given
// the small ones costs more than to fill them, and searches that look here and there wait for
// addresses of pages as long as for what stands there.
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
    madvise(found, large, MADV_HUGEPAGE);  // advice: it may be refused
    return static_cast<T*>(found);
  }
  void deallocate(T* held, std::size_t size) {
    if (in_large_pages(size) == 0) return std::allocator<T>{}.deallocate(held, size);
    ::operator delete(held, std::align_val_t{kPage});
  }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 21;
  static_assert(alignof(T) <= alignof(std::max_align_t));

  // How many bytes of so many items: a page that would be half empty is not worth it.
  static std::size_t in_large_pages(std::size_t size) {
    return (size * sizeof(T) + kPage / 2) / kPage * kPage;
  }
#else
  T* allocate(std::size_t size) { return std::allocator<T>{}.allocate(size); }
  void deallocate(T* held, std::size_t size) { std::allocator<T>{}.deallocate(held, size); }
#endif
};

template <class T>
using LargeVector = std::vector<T, LargePages<T>>;

// It will be read soon: it is on its way from memory meanwhile.
inline void prefetch([[maybe_unused]] const void* what) {
#if defined(__GNUC__)
  __builtin_prefetch(what);
#endif
}

}  // namespace slotkern

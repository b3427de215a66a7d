// Memory that runs out when a test says so. Once a program: it replaces new and delete.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace unit {

thread_local long memory_left = -1;  // so many more requests for memory are met; -1: all

}  // namespace unit

// Not in line, where compilers take new and free for strangers.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (unit::memory_left == 0) throw std::bad_alloc{};
  if (unit::memory_left > 0) --unit::memory_left;
  if (void* found = std::malloc(size)) return found;
  throw std::bad_alloc{};
}
// What is asked for by this one must come from here too, or sanitizers see it freed by a stranger.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* held) noexcept { std::free(held); }
[[gnu::noinline]] void operator delete(void* held, std::size_t) noexcept { std::free(held); }
[[gnu::noinline]] void operator delete(void* held, const std::nothrow_t&) noexcept {
  std::free(held);
}

// Replaces new and delete by versions that fail on request. Include it in one unit of a program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace unit {

thread_local long memory_left = -1;  // allocations that still succeed; -1: all

}  // namespace unit

// Not inline: compilers warn about mismatched new and free in inlined code.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (unit::memory_left == 0) throw std::bad_alloc{};
  if (unit::memory_left > 0) --unit::memory_left;
  if (void* found = std::malloc(size)) return found;
  throw std::bad_alloc{};
}
// Memory from this one must come from malloc too, or sanitizers report a mismatch when it is freed.
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}

// Lazily built value with lock-free publication.
//
// Several threads may build concurrently; the results are equal, one is published and the others
// are discarded. drop() and assignment must not run concurrently with readers.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

template <class T>
class Lazy {
 public:
  Lazy() = default;
  Lazy(const Lazy& other) { *this = other; }
  Lazy(Lazy&& other) noexcept { *this = std::move(other); }
  ~Lazy() { drop(); }

  Lazy& operator=(const Lazy& other) {
    const T* const theirs = other.get_if_ready();
    if (!theirs)
      drop();
    else if (T* const mine = get_if_ready())
      *mine = *theirs;
    else
      value_ = new T(*theirs);
    return *this;
  }
  Lazy& operator=(Lazy&& other) noexcept {
    value_ = other.value_.exchange(get_if_ready());
    return *this;
  }

  T* get_if_ready() const { return value_.load(std::memory_order_acquire); }
  void drop() { delete value_.exchange(nullptr); }

  template <class Make>
  SLOTKERN_INLINE const T& get(Make make) const {
    if (const T* const found = get_if_ready()) [[likely]]
      return *found;
    return build(make);
  }

 private:
  template <class Make>
  SLOTKERN_NOINLINE const T& build(Make make) const {
    auto made = std::make_unique<T>(make());
    T* found = nullptr;
    const bool first = value_.compare_exchange_strong(found, made.get());
    return first ? *made.release() : *found;
  }

  mutable std::atomic<T*> value_{nullptr};
};

}  // namespace slotkern

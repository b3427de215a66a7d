// Lazily built value with lock-free publication.
//
// Several threads may build concurrently. Each build must give an equal result; the first to finish
// is published and the others are discarded. drop() and destruction free the value, and a copy may
// overwrite it in place, so no other thread may use the target meanwhile; the source of a copy may
// be in use. A move swaps two values, so no other thread may use either.
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

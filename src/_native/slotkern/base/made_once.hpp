// What the first who needs it makes, while others may only read.
//
// No lock is held meanwhile: several threads may make it at once, equal ones, and one is kept.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

template <class T>
class MadeOnce {
 public:
  MadeOnce() = default;
  MadeOnce(const MadeOnce& other) { *this = other; }
  MadeOnce(MadeOnce&& other) noexcept { *this = std::move(other); }
  ~MadeOnce() { drop(); }

  MadeOnce& operator=(const MadeOnce& other) {
    const T* const theirs = other.kept();
    if (!theirs)
      drop();
    else if (T* const mine = kept())
      *mine = *theirs;
    else
      kept_ = new T(*theirs);
    return *this;
  }
  MadeOnce& operator=(MadeOnce&& other) noexcept {
    kept_ = other.kept_.exchange(kept());
    return *this;
  }

  T* kept() const { return kept_.load(std::memory_order_acquire); }
  void drop() { delete kept_.exchange(nullptr); }

  template <class Make>
  SLOTKERN_INLINE const T& get(Make make) const {
    if (const T* const found = kept()) [[likely]]
      return *found;
    return keep(make);
  }

 private:
  template <class Make>
  SLOTKERN_APART const T& keep(Make make) const {
    auto made = std::make_unique<T>(make());
    T* found = nullptr;
    const bool first = kept_.compare_exchange_strong(found, made.get());
    return first ? *made.release() : *found;
  }

  mutable std::atomic<T*> kept_{nullptr};
};

}  // namespace slotkern

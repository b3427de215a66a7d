// The mutexes of all pools of the process, so that a fork leaves the child none that a thread
// holds which it does not have: before a fork all are taken (long calls step aside at their next
// poll and go on afterwards), after it they are let go, or in the child made anew.
//
// Holders of a pool's mutex never wait for the interpreter, so that they may be waited for with it.
// The system calls this at the fork itself: nothing of Python runs between, which might make,
// search or collect pools.
#pragma once

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define SLOTKERN_FORKS
#endif

#include <chrono>
#include <mutex>
#include <new>
#include <set>
#include <shared_mutex>
#include <thread>

#include "slotkern/base/interrupt.hpp"

namespace slotkern {

// Waits until it can be had, but no longer than a signal should: who answers signals looks for
// them between.
inline void wait_briefly(std::shared_mutex& mutex) {
  using std::chrono::microseconds;
  const microseconds enough(20000);
  microseconds waited(0);
  for (microseconds step(20); waited < enough; waited += step, step *= 2) {
    std::this_thread::sleep_for(step);
    if (!mutex.try_lock()) continue;
    mutex.unlock();
    return;
  }
}

class MutexRegistry {
 public:
  static MutexRegistry& all() {
    static MutexRegistry mutexes;
    return mutexes;
  }

  void add(std::shared_mutex& mutex) {
    const std::lock_guard lock(own_);
    known_.insert(&mutex);
  }
  void remove(std::shared_mutex& mutex) {
    const std::lock_guard lock(own_);
    known_.erase(&mutex);
  }

 private:
  MutexRegistry() {
#if defined(SLOTKERN_FORKS)
    pthread_atfork([] { all().before_fork(); }, [] { all().after_in_parent(); },
                   [] { all().after_in_child(); });
#endif
  }

  void before_fork() {
    own_.lock();
    detail::asked.fetch_or(detail::by_fork);
    for (std::shared_mutex* mutex : known_) mutex->lock();
    detail::asked.fetch_and(~unsigned{detail::by_fork});
  }
  void after_in_parent() {
    for (std::shared_mutex* mutex : known_) mutex->unlock();
    own_.unlock();
  }
  void after_in_child() {  // whoever waited for one is gone
    for (std::shared_mutex* mutex : known_) new (mutex) std::shared_mutex;
    new (&own_) std::mutex;
  }

  std::mutex own_;
  std::set<std::shared_mutex*> known_;
};

}  // namespace slotkern

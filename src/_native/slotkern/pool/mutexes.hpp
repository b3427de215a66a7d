// Registry of the mutexes of all pools of the process, for fork(). The child has only the thread
// that forked, so a mutex held by another thread would stay locked in it. Before a fork the handler
// locks all registered mutexes (long calls release theirs at the next poll and are repeated
// afterwards); after it they are unlocked in the parent, and constructed again in the child.
//
// Holders of a pool's mutex never wait for the interpreter, so the handler may wait for them while
// it holds the interpreter lock. pthread_atfork runs it at the fork itself: no Python code runs
// between that could create, search or collect pools.
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

// Waits up to 20 ms for the mutex, so that the caller can check for signals between attempts.
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
    detail::stop_flags.fetch_or(detail::by_fork);
    for (std::shared_mutex* mutex : known_) mutex->lock();
    detail::stop_flags.fetch_and(~unsigned{detail::by_fork});
  }
  void after_in_parent() {
    for (std::shared_mutex* mutex : known_) mutex->unlock();
    own_.unlock();
  }
  void after_in_child() {  // no thread of the child waits for them
    for (std::shared_mutex* mutex : known_) new (mutex) std::shared_mutex;
    new (&own_) std::mutex;
  }

  std::mutex own_;
  std::set<std::shared_mutex*> known_;
};

}  // namespace slotkern

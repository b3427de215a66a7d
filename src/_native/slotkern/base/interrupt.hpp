// Ctrl-C: how a long call stops at once, whoever holds which lock.
//
// A door arms a Watch; a kernel that turns out to be long calls expect_long(), which puts a
// handler of our own before the one that is there (in the thread that answers signals only);
// kernels poll() between pieces of counted work, one load of a flag each. When the flag stands
// they throw Interrupted, guarded() turns that into Status::interrupted, and the door, which has
// let go its locks by then, asks the interpreter what the signal means: an exception, or go on.
// Short calls never touch the handler. No interpreter is waited for while a lock is held.
//
// What is polled changes nothing but scratch and results that are thrown away.
#pragma once

#include <atomic>
#include <csignal>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct Interrupted {};

class Watch;

namespace detail {

enum Asked : unsigned { by_signal = 1, by_fork = 2 };  // who asks long calls to stop

inline std::atomic<unsigned> asked{0};
inline thread_local Watch* watch = nullptr;  // of the door that this thread is in

#if defined(_WIN32)
using Handling = void (*)(int);
inline Handling before = SIG_DFL;
inline void on_interrupt(int signal) {
  before(signal);
  asked.fetch_or(by_signal);
}
#else
using Handling = struct sigaction;
inline Handling before;
inline void on_interrupt(int signal, siginfo_t* info, void* context) {
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(signal, info, context);
  else
    before.sa_handler(signal);
  asked.fetch_or(by_signal);  // last: the interpreter knows of it by now
}
#endif

}  // namespace detail

// One call of a door. `hears`: signals are answered in this thread.
class Watch {
 public:
  Watch() = default;
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() {
    if (!armed_) return;
    detail::watch = outer_;
    if (installed_) restore();
  }

  void arm(bool hears) {
    armed_ = true;
    hears_ = hears;
    outer_ = detail::watch;
    detail::watch = this;
  }

  // Puts the handler in place; once a call.
  void install() {
    if (tried_ || !hears_ || (outer_ && outer_->installed_)) return;
    tried_ = true;
#if defined(_WIN32)
    const detail::Handling found = std::signal(SIGINT, detail::on_interrupt);
    if (found == SIG_DFL || found == SIG_IGN || found == SIG_ERR) {
      if (found != SIG_ERR) std::signal(SIGINT, found);
      return;
    }
    detail::before = found;
#else
    detail::Handling found;
    if (sigaction(SIGINT, nullptr, &found) != 0) return;
    const bool plain = !(found.sa_flags & SA_SIGINFO);
    if (plain && (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN)) return;
    detail::before = found;
    found.sa_sigaction = detail::on_interrupt;
    found.sa_flags |= SA_SIGINFO;
    if (sigaction(SIGINT, &found, nullptr) != 0) return;
#endif
    detail::asked.fetch_and(~unsigned{detail::by_signal});
    installed_ = true;
  }

  // Before the interpreter is asked: what comes from now on is another signal.
  void clear() {
    if (detail::asked.load(std::memory_order_relaxed) & detail::by_signal)
      detail::asked.fetch_and(~unsigned{detail::by_signal});
  }

  bool stops(unsigned asked) const { return hears_ ? asked != 0 : (asked & detail::by_fork) != 0; }

 private:
  // Whoever took our place meanwhile keeps it.
  void restore() {
#if defined(_WIN32)
    const detail::Handling found = std::signal(SIGINT, detail::before);
    if (found != detail::on_interrupt) std::signal(SIGINT, found);
#else
    detail::Handling found;
    if (sigaction(SIGINT, &detail::before, &found) == 0 &&
        !((found.sa_flags & SA_SIGINFO) && found.sa_sigaction == detail::on_interrupt))
      sigaction(SIGINT, &found, nullptr);
#endif
    clear();
  }

  bool armed_ = false, hears_ = false, tried_ = false, installed_ = false;
  Watch* outer_ = nullptr;
};

// For a kernel that knows that it may take more than a few milliseconds from here.
inline void expect_long() {
  if (detail::watch) detail::watch->install();
}

SLOTKERN_INLINE void poll() {
  const unsigned asked = detail::asked.load(std::memory_order_relaxed);
  if (asked != 0) [[unlikely]]
    if (detail::watch && detail::watch->stops(asked)) throw Interrupted{};
}

// While one stands, poll() is silent: for work that must not be left half done.
class Undisturbed {
 public:
  Undisturbed() : watch_(detail::watch) { detail::watch = nullptr; }
  ~Undisturbed() { detail::watch = watch_; }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

 private:
  Watch* watch_;
};

}  // namespace slotkern

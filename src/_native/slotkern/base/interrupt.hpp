// Signals: a long call stops within milliseconds when a signal arrives that Python handles.
//
// Each Python-facing function arms a InterruptScope. A kernel that may run long calls enable_interrupts(), which
// chains a handler of ours in front of every handler that the interpreter has installed (SIGINT,
// SIGTERM, SIGALRM ...), in the thread that runs Python's handlers only. Kernels call poll()
// between pieces of counted work: one load of a flag. If the flag is set, poll() throws
// Interrupted, guarded() turns it into Status::interrupted, and the caller, which has released its
// locks by then, lets the interpreter run its handlers: they raise an exception, or the call
// starts again. Short calls never touch a handler. No kernel waits for the interpreter while it
// holds a lock.
//
// A timer that fires again and again must not restart a call forever: a signal that has stopped
// this call before stops it again only after the current attempt has run as long as all earlier
// ones together, so that the call takes at most three times as long. SIGINT stops it every time.
//
// Code that polls changes only scratch memory and results that are discarded.
#pragma once

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

struct Interrupted {};

class InterruptScope;

namespace detail {

// Why long calls shall stop: SIGINT, a fork, another signal.
enum Asked : unsigned { by_signal = 1, by_fork = 2, by_other = 4 };

inline std::atomic<unsigned> asked{0};
inline std::atomic<std::uint64_t> arrived{0};  // signals, one bit each, SIGINT among them
inline thread_local InterruptScope* watch = nullptr;    // of the call that this thread is in

inline std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal & 63); }

inline void note(int signal) {
  arrived.fetch_or(bit_of(signal));
  asked.fetch_or(signal == SIGINT ? by_signal : by_other);
}

#if defined(_WIN32)
using Handling = void (*)(int);
inline Handling before = SIG_DFL;
inline void on_signal(int signal) {
  before(signal);
  note(signal);
}
#else
using Handling = struct sigaction;
inline constexpr int kSignals = 64;
inline Handling before[kSignals];
inline void on_signal(int signal, siginfo_t* info, void* context) {
  const Handling& handling = before[signal & 63];
  if (handling.sa_flags & SA_SIGINFO)
    handling.sa_sigaction(signal, info, context);
  else
    handling.sa_handler(signal);
  note(signal);  // last: the interpreter knows of it by now
}

// What programs send each other. Other signals count if the handler of SIGINT handles them too,
// which is the interpreter's: libraries use the rest for purposes of their own.
inline bool is_common(int signal) {
  return signal == SIGHUP || signal == SIGINT || signal == SIGQUIT || signal == SIGUSR1 ||
         signal == SIGUSR2 || signal == SIGALRM || signal == SIGTERM;
}
inline bool is_fault(int signal) {
  return signal == SIGILL || signal == SIGTRAP || signal == SIGABRT || signal == SIGBUS ||
         signal == SIGFPE || signal == SIGSEGV || signal == SIGSYS || signal == SIGKILL ||
         signal == SIGSTOP;
}
#endif

}  // namespace detail

// One call. `runs_python_handlers`: this thread runs Python's signal handlers.
class InterruptScope {
 public:
  InterruptScope() = default;
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope() {
    if (!armed_) return;
    detail::watch = outer_;
    if (installed_) restore();
  }

  void arm(bool runs_python_handlers) {
    armed_ = true;
    runs_handlers_ = runs_python_handlers;
    outer_ = detail::watch;
    detail::watch = this;
  }

  // Installs the handlers; once a call.
  void install() {
    if (tried_ || !runs_handlers_ || (outer_ && outer_->installed_)) return;
    tried_ = true;
#if defined(_WIN32)
    const detail::Handling found = std::signal(SIGINT, detail::on_signal);
    if (found == SIG_DFL || found == SIG_IGN || found == SIG_ERR) {
      if (found != SIG_ERR) std::signal(SIGINT, found);
      return;
    }
    detail::before = found;
    installed_ = detail::bit_of(SIGINT);
#else
    detail::Handling python;
    if (sigaction(SIGINT, nullptr, &python) != 0) return;
    for (int signal = 1; signal < detail::kSignals; ++signal) {
      detail::Handling found;
      if (detail::is_fault(signal) || sigaction(signal, nullptr, &found) != 0) continue;
      const bool plain = !(found.sa_flags & SA_SIGINFO);
      if (plain && (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN)) continue;
      if (!detail::is_common(signal) && !(plain && found.sa_handler == python.sa_handler)) continue;
      detail::before[signal] = found;
      found.sa_sigaction = detail::on_signal;
      found.sa_flags |= SA_SIGINFO;
      if (sigaction(signal, &found, nullptr) == 0) installed_ |= detail::bit_of(signal);
    }
    if (!installed_) return;
#endif
    forget();
    began_ = Clock::now();
  }

  // Before the interpreter runs its handlers: a signal that arrives from now on is another one.
  void clear() {
    if (detail::asked.load(std::memory_order_relaxed) & kSignaled) {
      stopped_ |= detail::arrived.load();
      forget();
    }
    if (!installed_) return;
    const Clock::time_point now = Clock::now();
    spent_ += now - began_;
    began_ = now;
  }

  bool stops(unsigned asked) const {
    if (!runs_handlers_ || asked == 0) return (asked & detail::by_fork) != 0;
    if (asked & (detail::by_signal | detail::by_fork)) return true;
    return (detail::arrived.load() & ~stopped_) != 0 || Clock::now() - began_ >= spent_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr unsigned kSignaled = detail::by_signal | detail::by_other;

  static void forget() {
    detail::arrived.store(0);
    detail::asked.fetch_and(~kSignaled);
  }

  // A handler that replaced ours in the meantime stays.
  void restore() {
#if defined(_WIN32)
    const detail::Handling found = std::signal(SIGINT, detail::before);
    if (found != detail::on_signal) std::signal(SIGINT, found);
#else
    for (int signal = 1; signal < detail::kSignals; ++signal) {
      if (!(installed_ & detail::bit_of(signal))) continue;
      detail::Handling found;
      if (sigaction(signal, &detail::before[signal], &found) == 0 &&
          !((found.sa_flags & SA_SIGINFO) && found.sa_sigaction == detail::on_signal))
        sigaction(signal, &found, nullptr);
    }
#endif
    forget();
  }

  bool armed_ = false, runs_handlers_ = false, tried_ = false;
  std::uint64_t installed_ = 0;  // signals, one bit each: handlers of ours
  std::uint64_t stopped_ = 0;    // signals that have stopped an attempt of this call
  Clock::time_point began_{};    // of the current attempt
  Clock::duration spent_{};      // by the attempts before it
  InterruptScope* outer_ = nullptr;
};

// For a kernel that may take more than a few milliseconds from here.
inline void enable_interrupts() {
  if (detail::watch) detail::watch->install();
}

SLOTKERN_INLINE void poll() {
  const unsigned asked = detail::asked.load(std::memory_order_relaxed);
  if (asked != 0) [[unlikely]]
    if (detail::watch && detail::watch->stops(asked)) throw Interrupted{};
}

// While one stands, poll() is silent: for work that must not be left half done.
class InterruptMask {
 public:
  InterruptMask() : watch_(detail::watch) { detail::watch = nullptr; }
  ~InterruptMask() { detail::watch = watch_; }
  InterruptMask(const InterruptMask&) = delete;
  InterruptMask& operator=(const InterruptMask&) = delete;

 private:
  InterruptScope* watch_;
};

}  // namespace slotkern

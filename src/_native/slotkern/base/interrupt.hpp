// Interrupts: a long call stops within milliseconds after a signal that Python handles.
//
// 1. The binding arms an InterruptScope per call. A kernel that may run long calls
// enable_interrupts(), which chains a handler before the interpreter's handler of each signal that
// people, programs and timers send (kSignals), in the thread that runs Python's handlers only.
// Short calls never change a handler. The cost is one system call for each signal, and two more
// for each that has a handler: about 2 microseconds.
// 2. Kernels call poll() between bounded pieces of work: one load of a flag. If it is set, poll()
// throws Interrupted and guarded() returns Status::interrupted. Code that polls modifies only
// scratch or results that are discarded.
// 3. The binding releases its locks, then runs the Python handlers: either they raise, or the call
// starts again. No kernel waits for the interpreter while it holds a lock.
//
// A periodic timer must not restart a call forever: a signal that has stopped this call before
// stops it again only after the current attempt has run as long as all earlier ones together, so a
// call takes at most three times as long. SIGINT always stops it.
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

// Reasons to stop long calls: SIGINT, a fork, another signal.
enum StopReason : unsigned { by_signal = 1, by_fork = 2, by_other = 4 };

inline std::atomic<unsigned> stop_flags{0};
inline std::atomic<std::uint64_t> arrived_signals{0};  // bit mask of signals, SIGINT included
inline thread_local InterruptScope* current_scope = nullptr;  // of this thread's current call

inline std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal & 63); }

inline void record_signal(int signal) {
  arrived_signals.fetch_or(bit_of(signal));
  stop_flags.fetch_or(signal == SIGINT ? by_signal : by_other);
}

#if defined(_WIN32)
using Handling = void (*)(int);
inline Handling previous_handlers = SIG_DFL;
inline void on_signal(int signal) {
  previous_handlers(signal);
  record_signal(signal);
}
#else
using Handling = struct sigaction;
// Signals that people, programs and timers send. Libraries use others for their own purposes, and
// profilers the timers of CPU time, which count only if they have the handler of SIGINT.
inline constexpr int kSignals[] = {SIGINT,  SIGTERM, SIGALRM,   SIGHUP,  SIGQUIT,
                                   SIGUSR1, SIGUSR2, SIGVTALRM, SIGPROF, SIGXCPU};
inline bool is_cpu_timer(int signal) {
  return signal == SIGVTALRM || signal == SIGPROF || signal == SIGXCPU;
}
inline Handling previous_handlers[64];  // by signal
inline void on_signal(int signal, siginfo_t* info, void* context) {
  const Handling& handling = previous_handlers[signal & 63];
  if (handling.sa_flags & SA_SIGINFO)
    handling.sa_sigaction(signal, info, context);
  else
    handling.sa_handler(signal);
  record_signal(signal);  // last: the interpreter's handler has run
}
#endif

}  // namespace detail

// Interrupt state of one call. `runs_python_handlers`: this thread runs Python's signal handlers.
class InterruptScope {
 public:
  InterruptScope() = default;
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
  ~InterruptScope() {
    if (!armed_) return;
    detail::current_scope = outer_;
    if (installed_) restore_handlers();
  }

  bool is_armed() const { return armed_; }

  void arm(bool runs_python_handlers) {
    armed_ = true;
    runs_handlers_ = runs_python_handlers;
    outer_ = detail::current_scope;
    detail::current_scope = this;
  }

  // Installs the handlers, at most once per call.
  void install() {
    if (tried_ || !runs_handlers_ || (outer_ && outer_->installed_)) return;
    tried_ = true;
#if defined(_WIN32)
    const detail::Handling found = std::signal(SIGINT, detail::on_signal);
    if (found == SIG_DFL || found == SIG_IGN || found == SIG_ERR) {
      if (found != SIG_ERR) std::signal(SIGINT, found);
      return;
    }
    detail::previous_handlers = found;
    installed_ = detail::bit_of(SIGINT);
#else
    void (*python)(int) = nullptr;  // the handler of SIGINT
    for (const int signal : detail::kSignals) {
      detail::Handling found;
      if (sigaction(signal, nullptr, &found) != 0) continue;
      const bool plain = !(found.sa_flags & SA_SIGINFO);
      if (signal == SIGINT && plain) python = found.sa_handler;
      if (plain && (found.sa_handler == SIG_DFL || found.sa_handler == SIG_IGN)) continue;
      if (detail::is_cpu_timer(signal) && !(plain && found.sa_handler == python)) continue;
      detail::previous_handlers[signal] = found;
      found.sa_sigaction = detail::on_signal;
      found.sa_flags |= SA_SIGINFO;
      if (sigaction(signal, &found, nullptr) == 0) installed_ |= detail::bit_of(signal);
    }
    if (!installed_) return;
#endif
    clear_signals();
    began_ = Clock::now();
  }

  // Call before the interpreter runs its handlers: a signal that arrives later counts as a new one.
  void clear() {
    if (detail::stop_flags.load(std::memory_order_relaxed) & kSignaled) {
      stopped_ |= detail::arrived_signals.load();
      clear_signals();
    }
    if (!installed_) return;
    const Clock::time_point now = Clock::now();
    spent_ += now - began_;
    began_ = now;
  }

  bool stops(unsigned flags) const {
    if (!runs_handlers_ || flags == 0) return (flags & detail::by_fork) != 0;
    if (flags & (detail::by_signal | detail::by_fork)) return true;
    return (detail::arrived_signals.load() & ~stopped_) != 0 || Clock::now() - began_ >= spent_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr unsigned kSignaled = detail::by_signal | detail::by_other;

  static void clear_signals() {
    detail::arrived_signals.store(0);
    detail::stop_flags.fetch_and(~kSignaled);
  }

  // Restores the previous handlers, except those that other code has replaced meanwhile.
  void restore_handlers() {
#if defined(_WIN32)
    const detail::Handling found = std::signal(SIGINT, detail::previous_handlers);
    if (found != detail::on_signal) std::signal(SIGINT, found);
#else
    for (const int signal : detail::kSignals) {
      if (!(installed_ & detail::bit_of(signal))) continue;
      detail::Handling found;
      if (sigaction(signal, &detail::previous_handlers[signal], &found) == 0 &&
          !((found.sa_flags & SA_SIGINFO) && found.sa_sigaction == detail::on_signal))
        sigaction(signal, &found, nullptr);
    }
#endif
    clear_signals();
  }

  bool armed_ = false, runs_handlers_ = false, tried_ = false;
  std::uint64_t installed_ = 0;  // bit mask of signals whose handlers are replaced
  std::uint64_t stopped_ = 0;  // bit mask of signals that have stopped an attempt of this call
  Clock::time_point began_{};  // start of the current attempt
  Clock::duration spent_{};  // duration of the earlier attempts
  InterruptScope* outer_ = nullptr;
};

// Call before work that may take more than a few milliseconds.
inline void enable_interrupts() {
  if (detail::current_scope) detail::current_scope->install();
}

SLOTKERN_INLINE void poll() {
  const unsigned flags = detail::stop_flags.load(std::memory_order_relaxed);
  if (flags != 0) [[unlikely]]
    if (detail::current_scope && detail::current_scope->stops(flags)) throw Interrupted{};
}

// Suppresses interrupts in scope, for updates that must complete.
class InterruptMask {
 public:
  InterruptMask() : suppressed_(detail::current_scope) { detail::current_scope = nullptr; }
  ~InterruptMask() { detail::current_scope = suppressed_; }
  InterruptMask(const InterruptMask&) = delete;
  InterruptMask& operator=(const InterruptMask&) = delete;

 private:
  InterruptScope* suppressed_;
};

}  // namespace slotkern

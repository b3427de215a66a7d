// The boundary between kernels and doors: plain functions that never throw.
//
// find() leaves the parts of the window in scratch memory of the calling thread, valid until
// its next call. Memory of a call without limits on sums: about 150 bytes a node, 400 a part of
// the window and 400 kB of scratch a thread.
#pragma once

#include <atomic>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "slotkern/window/search.hpp"

namespace slotkern {

inline Workspace& workspace() {
  static thread_local Workspace work;
  return work;
}

struct Answer {
  Status status = Status::none;
  Found found;
  const Part* parts = nullptr;
  bool proven = true;
  double bound = -kInfinity;            // no window has a lower value, where it is not proven
  std::size_t failed = Proof::kNone;  // the row that a user's function failed at

  // What a search in this workspace answered.
  void take(Status said, const Query& query, const Workspace& work) {
    status = said;
    parts = work.parts.data();
    if (!query.limits) return;
    proven = work.proof.proven;
    bound = work.proof.bound;
    failed = work.proof.failed;
  }
};

inline Fault prepare_slots(PreparedSlots& prepared, const SlotView& view, bool all, ShapeKind shape,
                        std::size_t n) noexcept {
  Fault fault;
  const Status status = guarded([&] {
    static thread_local CheckScratch scratch;
    fault = prepared.build(view, all, shape, n, scratch);
    return Status::ok;
  });
  if (status != Status::ok) fault.status = status;
  return fault;
}

inline Fault check(const SlotView& view) noexcept {
  Fault fault;
  const Status status = guarded([&] {
    static thread_local CheckScratch scratch;
    fault = check_slots(view, scratch);
    return Status::ok;
  });
  if (status != Status::ok) fault.status = status;
  return fault;
}

inline Answer find(const PreparedSlots& prepared, const Query& query, int criterion,
                   ShapeKind shape) noexcept {
  Answer answer;
  answer.status = guarded([&] {
    Workspace& work = workspace();
    const Status status = search(prepared, query, criterion, shape, work, answer.found);
    answer.take(status, query, work);
    return status;
  });
  return answer;
}

// Threads that are joined whatever happens (not every library has std::jthread).
struct Helpers {
  std::vector<std::thread> threads;

  void join() {
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
  ~Helpers() { join(); }
};

// Many requests: one row of `out` each, in order. Every request is independent, so the result does
// not depend on the number of threads; where the system gives no more of them, fewer do the work.
// Of those that are wrong the first is told, as `wrong`.
inline Status find_many(const PreparedSlots& prepared, const std::vector<Query>& queries,
                        int criterion, ShapeKind shape, unsigned threads, WindowTable& out,
                        std::size_t& wrong) noexcept {
  return guarded([&] {
    constexpr std::size_t chunk = 64;
    std::vector<WindowTable> chunks((queries.size() + chunk - 1) / chunk);
    std::atomic<std::size_t> next{0};
    std::mutex telling;
    Status failed = Status::ok;
    const auto tell = [&](Status status, std::size_t k) {
      const std::lock_guard lock(telling);
      if (failed == Status::ok || status == Status::interrupted ||
          (k < wrong && failed != Status::interrupted))
        failed = status, wrong = k;
    };
    const auto fill = [&](std::size_t c) {
      for (std::size_t k = c * chunk; k < std::min((c + 1) * chunk, queries.size()); ++k) {
        const Answer answer = find(prepared, queries[k], criterion, shape);
        if (answer.status == Status::ok) {
          chunks[c].add(answer.found, answer.parts, static_cast<std::size_t>(queries[k].n));
          if (!answer.proven) chunks[c].set_bound(answer.bound, false);
        } else if (answer.status == Status::none) {
          chunks[c].add_none();
        } else {
          return tell(answer.status, k), answer.status != Status::interrupted;
        }
      }
      return true;
    };
    if (queries.size() > chunk) expect_long();
    const auto work = [&, watch = detail::watch] {
      detail::watch = watch;
      std::size_t c = 0;
      const Status status = guarded([&] {
        while ((c = next.fetch_add(1)) < chunks.size() && fill(c)) {
        }
        return Status::ok;
      });
      if (status != Status::ok) tell(status, c * chunk);
    };
    if (threads > 1) prepared.share();
    Helpers helpers;
    try {
      for (unsigned k = 1; k < threads && k < chunks.size(); ++k) helpers.threads.emplace_back(work);
    } catch (const std::system_error&) {
    }
    work();
    helpers.join();
    if (failed != Status::ok) return failed;
    out.clear();
    std::size_t parts = 0;
    for (const WindowTable& some : chunks) parts += some.parts.size();
    out.reserve(queries.size(), parts);
    for (WindowTable& some : chunks) {
      out.add_all(some);
      some = {};
    }
    return Status::ok;
  });
}

}  // namespace slotkern

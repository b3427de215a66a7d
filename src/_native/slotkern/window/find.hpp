// The boundary between kernels and doors: plain functions that never throw.
//
// find() leaves the parts of the window in scratch memory of the calling thread, valid until
// its next call. Memory of a call: at most 16 bytes a slot and 72 a node of scratch a thread.
#pragma once

#include <atomic>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

#include "slotkern/window/best.hpp"

namespace slotkern {

inline Workspace& workspace() {
  static thread_local Workspace work;
  return work;
}

struct Answer {
  Status status = Status::none;
  Found found;
  const Part* parts = nullptr;
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
    answer.parts = work.parts.data();
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

// Many requests: answers in order, their parts in `parts` from `first[i]` on.
struct Answers {
  std::vector<Answer> answers;
  std::vector<std::vector<Part>> parts;
};

// Every request is independent, so the result does not depend on the number of threads; where
// the system gives no more of them, fewer do the work.
inline Status find_many(const PreparedSlots& prepared, const std::vector<Query>& queries,
                        int criterion, ShapeKind shape, unsigned threads, Answers& out) noexcept {
  return guarded([&] {
    out.answers.assign(queries.size(), Answer{});
    out.parts.assign(queries.size(), {});
    std::atomic<std::size_t> next{0};
    std::atomic<int> failed{0};
    constexpr std::size_t chunk = 64;
    if (queries.size() > chunk) expect_long();
    const auto work = [&, watch = detail::watch] {
      detail::watch = watch;
      const Status status = guarded([&] {
        for (std::size_t i = next.fetch_add(chunk); i < queries.size();
             i = next.fetch_add(chunk))
          for (std::size_t k = i; k < std::min(i + chunk, queries.size()); ++k) {
            Answer& answer = out.answers[k];
            answer = find(prepared, queries[k], criterion, shape);
            if (answer.status == Status::interrupted) return answer.status;
            if (answer.status == Status::ok) {
              out.parts[k].assign(answer.parts, answer.parts + queries[k].n);
              answer.parts = out.parts[k].data();
            }
          }
        return Status::ok;
      });
      if (status != Status::ok) failed = static_cast<int>(status);
    };
    Helpers helpers;
    try {
      for (unsigned k = 1; k < threads && k * chunk < queries.size(); ++k)
        helpers.threads.emplace_back(work);
    } catch (const std::system_error&) {
    }
    work();
    helpers.join();
    return static_cast<Status>(failed.load());
  });
}

}  // namespace slotkern

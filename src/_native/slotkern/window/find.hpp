// The boundary between kernels and bindings: plain functions that never throw.
//
// find_window() leaves the parts of the window in scratch memory of the calling thread, valid until
// its next call. Memory of one call without sum limits: about 150 bytes per node, 400 per part of
// the window and 400 kB of scratch per thread. find_windows() also stores the windows, twice if all
// other chunks wait for a slow one.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "slotkern/window/search.hpp"

namespace slotkern {

// Returns the scratch memory of the calling thread.
inline Workspace& workspace() {
  static thread_local Workspace work;
  return work;
}

// The answer to one query. `found` and `parts` (n of them, in scratch memory of the thread) are
// valid if the status is ok.
struct Answer {
  Status status = Status::none;
  Found found;
  const Part* parts = nullptr;
  bool proven = true;
  double bound = -kInfinity;  // lower bound on the value of any window if not proven
  std::int64_t work = 0;  // work units of a search under sum limits
  std::size_t failed = Proof::kNone;  // row at which a user's function failed, or kNone

  // Stores the result of a search in this workspace.
  void record(Status result, const Query& query, const Workspace& work) {
    status = result;
    parts = work.parts.data();
    if (!query.limits || status == Status::none) return;  // then no proof need have been made
    proven = work.proof.proven;
    bound = work.proof.bound;
    failed = work.proof.failed;
    this->work = work.proof.work;
  }
};

// Checks the slots and prepares them for searches: of both shapes if `all`, else of `shape` with n
// parts. Returns the first fault.
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

// Checks the slots; returns the first fault.
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

// Runs search(work, found) in the scratch memory of this thread and returns its answer.
template <class Search>
Answer run_search(const Query& query, Search search) noexcept {
  Answer answer;
  answer.status = guarded([&] {
    Workspace& work = workspace();
    answer.record(search(work, answer.found), query, work);
    return answer.status;
  });
  return answer;
}

// Finds the best window of a query by criterion number `criterion` (window/criteria.hpp).
inline Answer find_window(const PreparedSlots& prepared, const Query& query, int criterion,
                   ShapeKind shape) noexcept {
  return run_search(query, [&](Workspace& work, Found& found) {
    return search(prepared, query, criterion, shape, work, found);
  });
}

// Threads that are joined on every exit path (not every library has std::jthread).
struct JoiningThreads {
  std::vector<std::thread> threads;

  void join() {
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }
  ~JoiningThreads() { join(); }
};

// Merges per-chunk tables in chunk order as they complete. Merged tables are recycled for later
// chunks, because allocating one per chunk costs as much as a short search.
class OrderedMerger {
 public:
  using Chunk = std::unique_ptr<WindowTable>;

  OrderedMerger(std::size_t chunks, WindowTable& out) : waiting_(chunks), out_(out) {}

  std::size_t size() const { return waiting_.size(); }

  // Returns an empty table.
  Chunk acquire() {
    const std::lock_guard lock(mutex_);
    if (recycled_.empty()) return std::make_unique<WindowTable>();
    Chunk chunk = std::move(recycled_.back());
    recycled_.pop_back();
    chunk->clear();
    return chunk;
  }

  // Hands in the table of chunk c, and merges all tables that are complete up to a gap.
  void submit(std::size_t c, Chunk chunk) {
    const std::lock_guard lock(mutex_);
    waiting_[c] = std::move(chunk);
    for (; merged_ < size() && waiting_[merged_]; ++merged_) {
      out_.add_all(*waiting_[merged_]);
      if (recycled_.size() < kMaxRecycled) recycled_.push_back(std::move(waiting_[merged_]));
      waiting_[merged_].reset();
    }
  }

 private:
  static constexpr std::size_t kMaxRecycled = 16;

  std::mutex mutex_;
  std::vector<Chunk> waiting_, recycled_;
  std::size_t merged_ = 0;
  WindowTable& out_;
};

// Answers many requests: row k of `out` is the answer of queries[k]. Requests are independent, so
// the result does not depend on the number of threads; if the system provides fewer threads, those
// do the work. If requests are invalid, `failed_query` is the smallest index of one. make() is
// called once per thread and returns its function Answer(query).
template <class Make>
Status find_windows_with(const PreparedSlots& prepared, const std::vector<Query>& queries,
                         ShapeKind shape, unsigned threads, WindowTable& out,
                         std::size_t& failed_query, Make make) noexcept {
  return guarded([&] {
    constexpr std::size_t chunk = 64, most = 1 << 20;  // reserve memory for at most this many parts
    // Called first, because interrupts before it are only handled at the end.
    if (queries.size() > chunk) enable_interrupts();
    out.clear();
    std::size_t parts = 0;
    for (std::size_t k = 0; k < queries.size() && parts < most; ++k)
      parts += std::min(static_cast<std::size_t>(queries[k].n), prepared.nodes.size());
    out.reserve(queries.size(), std::min(parts, most));
    OrderedMerger chunks((queries.size() + chunk - 1) / chunk, out);
    std::atomic<std::size_t> next{0};
    std::mutex failure_mutex;
    Status failed = Status::ok;
    const auto report_failure = [&](Status status, std::size_t k) {
      const std::lock_guard lock(failure_mutex);
      if (failed == Status::ok || status == Status::interrupted ||
          (k < failed_query && failed != Status::interrupted))
        failed = status, failed_query = k;
      next.store(chunks.size());  // earlier chunks are handed out already and will report too
    };
    const auto fill = [&](std::size_t c, auto& find) {
      OrderedMerger::Chunk table = chunks.acquire();
      for (std::size_t k = c * chunk; k < std::min((c + 1) * chunk, queries.size()); ++k) {
        const Answer answer = find(queries[k]);
        if (answer.status == Status::ok) {
          table->add(answer.found, answer.parts, static_cast<std::size_t>(queries[k].n));
          if (!answer.proven) table->set_bound(answer.bound, false);
        } else if (answer.status == Status::none) {
          table->add_none();
        } else {
          return report_failure(answer.status, k);
        }
      }
      chunks.submit(c, std::move(table));
    };
    const auto work = [&, watch = detail::current_scope] {
      detail::current_scope = watch;
      std::size_t c = 0;
      const Status status = guarded([&] {
        auto find = make();
        while ((c = next.fetch_add(1)) < chunks.size()) fill(c, find);
        return Status::ok;
      });
      if (status != Status::ok) report_failure(status, c * chunk);
    };
    const auto num_workers = static_cast<unsigned>(std::min<std::size_t>(threads, chunks.size()));
    if (num_workers > 1) prepared.prepare_concurrent_reads(shape);
    JoiningThreads extra_threads;
    try {
      for (unsigned k = 1; k < num_workers; ++k) extra_threads.threads.emplace_back(work);
    } catch (const std::system_error&) {
    }
    work();
    extra_threads.join();
    if (4 * out.parts.capacity() > 5 * out.parts.size()) out.parts.shrink_to_fit();
    return failed;
  });
}

// Finds the best window of each query by one criterion, with up to `threads` threads.
inline Status find_windows(const PreparedSlots& prepared, const std::vector<Query>& queries,
                           int criterion, ShapeKind shape, unsigned threads, WindowTable& out,
                           std::size_t& failed_query) noexcept {
  return find_windows_with(prepared, queries, shape, threads, out, failed_query, [&] {
    return [&](const Query& query) { return find_window(prepared, query, criterion, shape); };
  });
}

}  // namespace slotkern

// Schedules a batch of jobs on one list of slots: finds alternatives for every job and chooses one
// for each.
//
// Batch-slicer (Toporkov et al. 2014, sections 3.1 and 3.2) takes the jobs in order of priority,
// cut into sub-batches (slices). For a slice it books alternatives in a copy of the free time, job
// by job and round after round, until no job finds another one; so no two alternatives overlap
// (CSS; with the criterion "first": AMP). The multiple-choice knapsack of
// choice/multiple_choice.hpp then chooses one alternative for each job, and the chosen windows are
// booked before the next slice. Backfilling gives each job, in order, its earliest window. BSF
// slices the first jobs and backfills the rest.
//
// The limit of the choice is either eq. 5 (the sum over the jobs of the mean expense of their
// alternatives, rounded up), which some choice always satisfies, or given for the whole batch. A
// given limit is divided among the slices by their numbers of jobs; a job whose cheapest
// alternative does not fit is left out, in order. Among alternatives of equal target value a job
// gets the earliest one that the limit allows.
// Time: one search and n bookings for each alternative. Memory: two copies of the pool, 84 bytes
// for each alternative and 32 for each of its parts.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/multiple_choice.hpp"
#include "slotkern/pool/schedule.hpp"

namespace slotkern {

// One job of a batch.
struct BatchJob {
  Query query;
  int criterion = 0;  // index of the criterion of its alternatives
};

// A quantity summed over the chosen windows: the target, or the expense that is limited.
struct Measure {
  enum Kind : int { start = 0, finish, runtime, cost, processor_time, column };
  int kind = processor_time;
  const double* values = nullptr;  // column: one value for each slot, summed over the parts

  // Returns the quantity of window i of the table.
  double evaluate(const WindowTable& table, std::size_t i) const {
    const Found& found = table.found[i];
    switch (kind) {
      case start: return found.start;
      case finish: return found.start + found.runtime;
      case runtime: return found.runtime;
      case cost: return found.cost;
      case processor_time: return found.processor_time;
      default: break;
    }
    double sum = 0;
    for (std::size_t k = 0; k < table.count(i); ++k) sum += values[table.parts_of(i)[k].row];
    return sum;
  }
};

// The scheduling policy of a batch. Jobs after the last slice are backfilled.
struct BatchRules {
  ShapeKind shape = ShapeKind::ragged;
  std::vector<std::size_t> slices{0};  // first job of each slice, then the end of the last one
  Measure target, expense{Measure::cost, nullptr};
  bool maximize = false;
  bool limited = false;  // false: the limit is eq. 5
  double limit = 0;
  double gap = 1e-9;
  std::int64_t work = 1 << 24;
  std::size_t max_alternatives = ~std::size_t{0};  // for each job
  std::size_t max_bytes = ~std::size_t{0};         // memory of all alternatives
};

// A call with more pairs of a job and a slot than this may take long and checks for signals.
inline constexpr std::size_t kLongCallPairs = 1 << 14;

// The choice of one slice: its limit, target value, bound of that value, and expense.
struct SliceAnswer {
  double limit, value, bound, expense;
  std::uint8_t proven;
};

// The schedule of a batch: all alternatives, and the choice for each job.
struct BatchAnswer {
  WindowTable alternatives;
  std::vector<std::int64_t> owner;     // job of each alternative
  std::vector<std::int64_t> chosen;    // alternative of each job; -1: none
  std::vector<std::uint8_t> reasons;   // for each job why it has no window; 0: it has one
  std::vector<SliceAnswer> slices;
  double offending_value = 0;          // value that is not finite or makes a sum overflow
  std::size_t offending_job = 0;       // job of that value

  void clear(std::size_t jobs) {
    alternatives.clear(), owner.clear(), slices.clear();
    chosen.assign(jobs, -1);
    reasons.assign(jobs, 0);
  }

  // Reserves memory for one window of each job, with at most `nodes` parts.
  void reserve(const std::vector<BatchJob>& jobs, std::size_t nodes) {
    std::size_t parts = 0;
    for (const BatchJob& job : jobs)
      parts += std::min(static_cast<std::size_t>(job.query.n), nodes);
    alternatives.reserve(jobs.size(), parts);
    owner.reserve(jobs.size());
  }
};

// Returns true if a slot has an infinite end; the number of alternatives may then be infinite.
inline bool has_unbounded_slot(const PreparedSlots& prepared) {
  return std::any_of(prepared.slots.begin(), prepared.slots.end(),
                     [](const Slot& slot) { return std::isinf(slot.end); });
}

// A copy of prepared slots, and a pool over them that a batch may change.
struct BatchPool {
  PreparedSlots slots;
  SlotPool pool;

  // `all` also indexes slots that are too short for every job; this is faster if bookings and
  // releases change the lengths of the slots.
  void open(const PreparedSlots& base, const std::vector<BatchJob>& jobs, bool all = false) {
    double least = jobs.empty() || all ? 0 : kInfinity;
    for (const BatchJob& job : jobs) least = std::min(least, job.query.volume);
    prices_.clear();
    for (const Slot& slot : base.slots) prices_.push_back(slot.price);
    slots.copy_without_zone_maps(base);  // the pool builds these itself
    pool.open(slots, prices_, nullptr, least);
  }
  void copy(const BatchPool& other) {
    slots = other.slots;
    pool.copy(other.pool, slots);
  }

 private:
  std::vector<double> prices_;
};

// Computes a schedule; reusable, so that its arrays keep their memory.
class Batch {
 public:
  BatchPool free;  // free time that the jobs scheduled so far leave

  // Schedules the slices, up to the first error.
  Status run(const PreparedSlots& base, const std::vector<BatchJob>& jobs, const BatchRules& rules,
             BatchAnswer& out) {
    jobs_ = &jobs, rules_ = &rules, out_ = &out;
    out.clear(jobs.size());
    out.reserve(jobs, base.nodes.size());
    if (base.slots.empty()) {
      out.reasons.assign(jobs.size(), static_cast<std::uint8_t>(Reason::nodes));
      return Status::ok;
    }
    if (jobs.size() * base.slots.size() > kLongCallPairs) enable_interrupts();
    free.open(base, jobs);
    spent_ = 0;
    for (std::size_t s = 0; s + 1 < rules.slices.size(); ++s)
      if (const Status status = schedule_slice(rules.slices[s], rules.slices[s + 1]);
          status != Status::ok)
        return status;
    return Status::ok;
  }

  // Gives each job from `first` on the earliest window that the jobs before it leave.
  Status backfill(std::size_t first, int earliest) {
    Workspace& work = workspace();
    for (std::size_t j = first; j < jobs_->size(); ++j) {
      poll();
      const BatchJob& job = (*jobs_)[j];
      Found found;
      const Status status = free.pool.find(job.query, earliest, rules_->shape, work, found);
      if (detail::found_nothing(status)) {
        record_failure(free, j, status, work);
        continue;
      }
      if (status != Status::ok) return status;
      out_->chosen[j] = static_cast<std::int64_t>(out_->alternatives.size());
      add_alternative(j, found, work.parts.data(), work.parts.size());
      if (j + 1 == jobs_->size()) break;  // no job follows: nothing to book
      if (const Status booked = book_chosen(j, true); booked != Status::ok) return booked;
    }
    return Status::ok;
  }

 private:
  // The last slice needs neither a copy nor bookings, because no job is scheduled after it.
  Status schedule_slice(std::size_t first, std::size_t last) {
    const std::size_t first_alternative = out_->alternatives.size();
    const bool ends = last == jobs_->size();
    if (!ends) scratch_.copy(free);
    const Status cut = cut_alternatives(ends ? free : scratch_, first, last);
    if (cut != Status::ok) return cut;
    if (const Status status = choose_alternatives(first, last, first_alternative);
        status != Status::ok)
      return status;
    for (std::size_t j = first; j < last && !ends; ++j)
      if (out_->chosen[j] >= 0)
        if (const Status booked = book_chosen(j); booked != Status::ok) return booked;
    return Status::ok;
  }

  void add_alternative(std::size_t job, const Found& found, const Part* parts, std::size_t n) {
    out_->alternatives.add(found, parts, n);
    out_->owner.push_back(static_cast<std::int64_t>(job));
  }

  // Records why the job has no window in the free time of `left`.
  void record_failure(BatchPool& left, std::size_t job, Status status, Workspace& work) {
    const Reason reason = detail::rejection_reason(status, left.pool, left.slots,
                                                   (*jobs_)[job].query, rules_->shape, work);
    out_->reasons[job] = static_cast<std::uint8_t>(reason);
  }

  // Books the chosen window of the job.
  Status book_chosen(std::size_t job, bool for_good = false) {
    const WindowTable& table = out_->alternatives;
    const auto i = static_cast<std::size_t>(out_->chosen[job]);
    std::size_t failed_part;
    const Status status = free.pool.book(table.found[i].start, table.parts_of(i), table.count(i),
                                         failed_part, for_good);
    return status == Status::ok ? Status::ok : Status::internal;
  }

  // Books alternatives of the jobs [first, last) in `left`, in rounds, until none finds another.
  Status cut_alternatives(BatchPool& left, std::size_t first, std::size_t last) {
    Workspace& work = workspace();
    active_.clear();
    last_found_.assign(last - first, {});
    for (std::size_t j = first; j < last; ++j) active_.push_back(j);
    for (std::size_t round = 0; !active_.empty() && round < rules_->max_alternatives; ++round) {
      std::size_t kept = 0;
      for (const std::size_t j : active_) {
        poll();
        const BatchJob& job = (*jobs_)[j];
        Found& found = last_found_[j - first];
        const Status status = round == 0 ? left.pool.find(job.query, job.criterion, rules_->shape,
                                                          work, found)
                                         : find_next_alternative(left.pool, job, work, found);
        if (detail::found_nothing(status)) {
          if (round == 0) record_failure(left, j, status, work);
          continue;
        }
        if (status != Status::ok) return status;
        if (84 * out_->alternatives.size() + sizeof(Part) * out_->alternatives.parts.size() >
            rules_->max_bytes)
          return Status::too_many;
        add_alternative(j, found, work.parts.data(), work.parts.size());
        std::size_t failed_part;
        if (left.pool.book(found.start, work.parts.data(), work.parts.size(), failed_part, true) !=
            Status::ok)
          return Status::internal;
        active_[kept++] = j;
      }
      active_.resize(kept);
    }
    return Status::ok;
  }

  // Finds the next alternative of the job, given the one before in `found`. Only free time has
  // been booked since, so the value cannot improve, and no window of equal value starts earlier.
  // A search by start therefore begins at the previous start. A search by runtime first tries
  // to find a window of equal runtime from there on, which reads few slots; ties are frequent.
  Status find_next_alternative(SlotPool& pool, const BatchJob& job, Workspace& work, Found& found) {
    static const int runtime = criterion_index(Runtime::name);
    const Found before = found;
    const auto find = [&](const Query& query) {
      return pool.find(query, job.criterion, rules_->shape, work, found, before.value);
    };
    // Under tariffs a later earliest start would be a turn of slots that start before it.
    if (job.query.limits || pool.has_tariffs()) return find(job.query);
    Query behind = job.query;
    behind.earliest = std::max(behind.earliest, before.start);
    if (finds_earliest(job.criterion)) return find(behind);
    if (job.criterion == runtime) {
      behind.max_runtime = std::min(behind.max_runtime, before.value);
      if (find(behind) == Status::ok) return Status::ok;
    }
    return find(job.query);
  }

  // Chooses one of the alternatives from index `first_alternative` on for each job that has any.
  Status choose_alternatives(std::size_t first, std::size_t last, std::size_t first_alternative) {
    const std::size_t made = out_->owner.size() - first_alternative;
    offsets_.assign(last - first + 1, 0);
    for (std::size_t a = 0; a < made; ++a)
      ++offsets_[static_cast<std::size_t>(out_->owner[first_alternative + a]) - first + 1];
    for (std::size_t j = 1; j < offsets_.size(); ++j) offsets_[j] += offsets_[j - 1];
    rows_.resize(made);
    next_.assign(offsets_.begin(), offsets_.end());
    for (std::size_t a = 0; a < made; ++a)
      rows_[next_[static_cast<std::size_t>(out_->owner[first_alternative + a]) - first]++] =
          first_alternative + a;

    const double jobs = static_cast<double>(last - first);
    const double share =
        rules_->limited ? share_of(rules_->limit - spent_,
                                   jobs / static_cast<double>(rules_->slices.back() - first))
                        : 0;
    value_.clear(), expense_.clear(), classes_.assign(1, 0), kept_jobs_.clear();
    ExactSum usual, least;
    compute_savings(share);
    for (std::size_t j = 0; j + 1 < offsets_.size(); ++j) {
      if (offsets_[j] == offsets_[j + 1]) continue;
      double sum = 0, lightest = kInfinity;
      for (std::size_t i = offsets_[j]; i < offsets_[j + 1]; ++i) {
        const double x = rules_->expense.evaluate(out_->alternatives, rows_[i]);
        expense_.push_back(x);
        value_.push_back(rules_->target.evaluate(out_->alternatives, rows_[i]));
        sum += x;
        lightest = std::min(lightest, x);
      }
      const std::size_t count = offsets_[j + 1] - offsets_[j];
      ExactSum with = least;
      with.add(lightest);
      ExactSum lowered = with;
      lowered.add(savings_[j + 1]);
      if (rules_->limited && !(lowered.value() <= relaxed_max(share))) {
        expense_.resize(expense_.size() - count), value_.resize(value_.size() - count);
        out_->reasons[first + j] = static_cast<std::uint8_t>(Reason::limit);
        continue;
      }
      least = with;
      usual.add(std::max(std::ceil(sum / static_cast<double>(count)), lightest));
      classes_.push_back(static_cast<std::int64_t>(value_.size()));
      kept_jobs_.push_back(j);
    }
    const double limit = rules_->limited ? share : usual.value();
    if (rules_->limited && !(least.value() <= relaxed_max(limit))) return reject_all(first);
    MultipleChoiceKnapsack& answer = multiple_choice_scratch();
    const Classes classes{value_.data(), expense_.data(), classes_.data(), classes_.size() - 1};
    const Fault fault = answer.run(classes, limit, rules_->maximize, rules_->gap, rules_->work);
    if (fault.status != Status::ok) return locate_fault(fault, first);
    if (!answer.feasible) return kept_jobs_.empty() ? Status::ok : Status::internal;
    const double spent = prefer_earlier_starts(answer, limit);
    out_->slices.push_back({limit, answer.value, answer.bound, spent,
                            static_cast<std::uint8_t>(answer.proven)});
    spent_ += spent;
    for (std::size_t c = 0; c < kept_jobs_.size(); ++c) {
      const auto row = static_cast<std::size_t>(answer.rows[c]);
      out_->chosen[first + kept_jobs_[c]] = static_cast<std::int64_t>(alternative(c, row));
    }
    return Status::ok;
  }

  // Returns a slice's share of the remaining limit. A negative remainder is not divided: the first
  // slice that can must meet it, because a later slice may fail and then exceed the limit.
  static double share_of(double left, double fraction) {
    return left < 0 ? left : left * fraction;
  }

  // Sets savings_[j] to a lower bound (<= 0) on the sum of the expenses of the jobs from j on. It
  // matters only for a negative share, which no job has to meet alone.
  void compute_savings(double share) {
    savings_.assign(offsets_.size(), 0);
    if (share >= 0) return;
    for (std::size_t k = offsets_.size() - 1; k-- > 0;) {
      double lightest = 0;
      for (std::size_t i = offsets_[k]; i < offsets_[k + 1]; ++i)
        lightest = std::min(lightest, rules_->expense.evaluate(out_->alternatives, rows_[i]));
      savings_[k] = savings_[k + 1] + lightest;
    }
  }

  // Rejects all jobs: the limit is exceeded, although rounded sums have admitted some of them.
  Status reject_all(std::size_t first) {
    for (const std::size_t j : kept_jobs_) out_->reasons[first + j] = static_cast<std::uint8_t>(Reason::limit);
    kept_jobs_.clear();
    return Status::ok;
  }

  // Reports the value at fault: a sum over the parts of a window, or over the jobs, may overflow.
  Status locate_fault(const Fault& fault, std::size_t first) {
    std::size_t row = fault.row;
    const std::vector<double>* of = fault.status == Status::value_not_finite ? &value_ : &expense_;
    if (fault.status == Status::sum_overflows)
      for (const std::vector<double>* each : {&value_, &expense_})
        for (std::size_t i = 0; i < each->size(); ++i)
          if (std::fabs((*each)[i]) > std::fabs((*of)[row])) of = each, row = i;
    const auto next =
        std::upper_bound(classes_.begin(), classes_.end(), static_cast<std::int64_t>(row));
    out_->offending_value = (*of)[row];
    out_->offending_job = first + kept_jobs_[static_cast<std::size_t>(next - classes_.begin()) - 1];
    return fault.status;
  }

  // Returns the alternative in row `row` of class c.
  std::size_t alternative(std::size_t c, std::size_t row) const {
    return rows_[offsets_[kept_jobs_[c]] + row - static_cast<std::size_t>(classes_[c])];
  }

  // Breaks ties: each job, in order, takes the earliest of its alternatives of equal value that the
  // limit allows, and of equal starts the first one found. Returns the resulting expense.
  double prefer_earlier_starts(MultipleChoiceKnapsack& answer, double limit) const {
    double spent = answer.weight;
    for (std::size_t c = 0; c < kept_jobs_.size(); ++c) {
      const auto first = static_cast<std::size_t>(classes_[c]);
      const auto last = static_cast<std::size_t>(classes_[c + 1]);
      const double value = value_[static_cast<std::size_t>(answer.rows[c])];
      for (std::size_t row = first; row < last; ++row) {
        const auto now = static_cast<std::size_t>(answer.rows[c]);
        const WindowTable& table = out_->alternatives;
        const double start = table.found[alternative(c, row)].start;
        const double before = table.found[alternative(c, now)].start;
        if (value_[row] != value || !(start < before || (start == before && row < now))) continue;
        answer.rows[c] = static_cast<std::int64_t>(row);
        const double sum = exact_sum(answer.rows.size(), [&](std::size_t i) {
          return expense_[static_cast<std::size_t>(answer.rows[i])];
        });
        if (sum <= relaxed_max(limit))
          spent = sum;
        else
          answer.rows[c] = static_cast<std::int64_t>(now);
      }
    }
    return spent;
  }

  const std::vector<BatchJob>* jobs_ = nullptr;
  const BatchRules* rules_ = nullptr;
  BatchAnswer* out_ = nullptr;
  double spent_ = 0;
  BatchPool scratch_;  // copy of `free` in which the alternatives of a slice are booked
  std::vector<std::size_t> active_, offsets_, next_, rows_, kept_jobs_;
  std::vector<Found> last_found_;  // latest alternative of each job
  std::vector<double> value_, expense_, savings_;
  std::vector<std::int64_t> classes_;
};

}  // namespace slotkern

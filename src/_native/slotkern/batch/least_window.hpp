// The least window of one job at prices of node-time: the pricing problem of a batch.
//
// A part on a slot from t costs an amount of its own plus the integral of its node's rate over the
// part. The total of a set of slots is continuous in t and, between turns, concave: its slope rises
// only if a part starts when the rate of its node falls, or ends when it rises. So the least total
// over all starts is at a turn, or at the first or last start of a slot; at each of them it is a
// choice of n of the free slots within the budget.
//
// Without a binding budget the choice is the n least amounts: for all turns at once, node by node,
// in columns of the n least so far (vector instructions). Ties: the earliest start, then the lower
// index of the node. If the choice at the least start exceeds the budget, a multiplier of the money
// raises the lower bounds of all starts, and those still below the best choice are solved exactly
// (choice/choose.hpp).
//
// If a total contains the length of the window, the lengths are enumerated: at a level only parts
// no longer than its length count. In square windows all parts are as long as the level. A set
// without a part of that length belongs to a lower level: its total here is not less than its own if
// totals do not fall with the length. So it counts for the bound, but is not returned.
//
// Cost: for each level O(turns x nodes x n) simple steps if amounts depend on the start, otherwise
// O(turns x nodes); and one sort of the turns. A binding budget adds a selection of n parts for each
// turn and multiplier, and knapsacks (batch/budget_choice.hpp).
// Memory: O(turns + parts + kMaxValues).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/base/status.hpp"
#include "slotkern/batch/batch.hpp"
#include "slotkern/batch/budget_choice.hpp"
#include "slotkern/batch/node_prices.hpp"

namespace slotkern {

// Free time of a slot; pieces of a slot are disjoint.
struct FreePiece {
  std::int64_t row;
  double start, end;
};

// A job: n slots of `usable` rows; `own`: the length of its part on each slot.
struct PricedJob {
  int nodes = 1;
  double budget = kInfinity, earliest = -kInfinity, latest = kInfinity, deadline = kInfinity;
  std::vector<std::uint8_t> usable;
  std::vector<double> own;
  std::vector<double> levels;  // the lengths, ascending
};

// The slots and the totals of all jobs of a batch. Targets count starts from `origin` on.
struct PricingRules {
  std::size_t nodes = 0;
  std::vector<std::int64_t> node;  // by row
  std::vector<double> price;
  bool square = false;
  Measure target, expense;
  double sign = 1, origin = 0;
};

// Prices at which a job is searched: the rates of nodes, multiplied by `scale`, and the price of a
// unit of the expense. Not `exact`: only first and last starts of slots are searched.
struct Pricing {
  const NodePrices* prices;
  double scale = 1, factor = 0;
  bool exact = true;
};

// A window: `total` at the prices of its search, signed target, expense, rows ascending.
struct PricedWindow {
  double total = 0, start = 0, cost = 0, expense = 0;
  std::vector<std::int64_t> rows;
  std::vector<double> ends;
};

// Amounts of a measure for each unit of start and of length.
inline double start_weight(const Measure& measure) {
  return measure.kind == Measure::start || measure.kind == Measure::finish;
}
inline double length_weight(const Measure& measure) {
  return measure.kind == Measure::finish || measure.kind == Measure::runtime;
}
// Amount of one part.
inline double part_amount(const Measure& measure, std::size_t row, double length, double price) {
  switch (measure.kind) {
    case Measure::cost: return length * price;
    case Measure::processor_time: return length;
    case Measure::column: return measure.values[row];
    default: return 0;
  }
}

// Merges values into columns of the least ones so far: best[j * stride + i] is the j-th least at i.
SLOTKERN_CLONES static inline void merge_least(double* __restrict values, double* __restrict best,
                                               std::size_t stride, std::size_t n,
                                               std::size_t count) {
  for (std::size_t j = 0; j < n; ++j) {
    double* __restrict row = best + j * stride;
    for (std::size_t i = 0; i < count; ++i) {
      const double a = row[i], b = values[i];
      row[i] = a < b ? a : b;
      values[i] = a < b ? b : a;
    }
  }
}

// Sorts finite times and drops equal ones: by buckets, since the times are often even.
class TimeSorter {
 public:
  void sort_unique(std::vector<double>& times) {
    if (times.size() < kFew) {
      std::sort(times.begin(), times.end());
    } else {
      const auto [least, most] = std::minmax_element(times.begin(), times.end());
      const double low = *least, scale = static_cast<double>(times.size() - 1) / (*most - low);
      if (*most > low && scale < kInfinity) by_buckets(times, low, scale);
      else std::sort(times.begin(), times.end());
    }
    times.erase(std::unique(times.begin(), times.end()), times.end());
  }

 private:
  static constexpr std::size_t kFew = 64, kInsertion = 16;

  void by_buckets(std::vector<double>& times, double low, double scale) {
    const auto bucket = [&](double t) {
      return std::min(static_cast<std::size_t>((t - low) * scale), times.size() - 1);
    };
    next_.assign(times.size() + 1, 0);
    for (const double t : times) ++next_[bucket(t) + 1];
    for (std::size_t k = 0; k < times.size(); ++k) next_[k + 1] += next_[k];
    sorted_.resize(times.size());
    for (const double t : times) sorted_[next_[bucket(t)]++] = t;
    std::size_t from = 0;  // afterwards next_[k] is the end of bucket k
    for (std::size_t k = 0; k < times.size(); ++k) {
      const std::size_t to = next_[k];
      if (to > from + 1) sort_few(from, to);
      from = to;
    }
    times.swap(sorted_);
  }
  void sort_few(std::size_t from, std::size_t to) {
    double* const t = sorted_.data();
    if (to - from > kInsertion) return std::sort(t + from, t + to);
    for (std::size_t i = from + 1; i < to; ++i) {
      const double one = t[i];
      std::size_t j = i;
      for (; j > from && one < t[j - 1]; --j) t[j] = t[j - 1];
      t[j] = one;
    }
  }

  std::vector<std::size_t> next_;
  std::vector<double> sorted_;
};

// Searches for least windows. An object is scratch memory of one thread.
class LeastWindow {
 public:
  LeastWindow(const PricingRules& rules) : rules_(rules) {}

  // Finds the least window in each of `spans` equal parts of the turns, of each level: sorted by
  // total, at most `spans`. Returns a lower bound on the totals of all windows in `bound`.
  Status find(const PricedJob& job, std::span<const FreePiece> free, const Pricing& pricing,
              std::size_t spans, double& bound, std::vector<PricedWindow>& found) {
    job_ = &job, pricing_ = pricing;
    steps_ = 0;
    bound = kInfinity;
    found.clear();
    const auto enumerated = [](const Measure& m) { return length_weight(m) > 0; };
    const bool levels = rules_.square || enumerated(rules_.target) || enumerated(rules_.expense);
    const double all = kInfinity;
    for (const double level : levels ? std::span(job.levels) : std::span(&all, 1)) {
      count_steps(free.size(), 1);
      list_parts(free, level);
      if (!parts_.empty()) list_turns();
      if (!parts_.empty())
        if (const Status status = at_level(level, spans, bound, found); status != Status::ok)
          return status;
    }
    if (found.size() > 1)
      std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
        return a.total < b.total;
      });
    if (found.size() > spans) found.resize(spans);
    return Status::ok;
  }

  // Completes a window of these rows: its target, expense and ends.
  void complete(const PricedJob& job, PricedWindow& window) const {
    std::sort(window.rows.begin(), window.rows.end());
    double longest = 0, target = 0, expense = 0;
    for (const std::int64_t row : window.rows)
      longest = std::max(longest, job.own[static_cast<std::size_t>(row)]);
    window.ends.clear();
    for (const std::int64_t each : window.rows) {
      const auto row = static_cast<std::size_t>(each);
      const double length = rules_.square ? longest : job.own[row];
      target += part_amount(rules_.target, row, length, rules_.price[row]);
      expense += part_amount(rules_.expense, row, length, rules_.price[row]);
      window.ends.push_back(window.start + length);
    }
    const double since = window.start - rules_.origin;
    window.cost = rules_.sign * (start_weight(rules_.target) * since +
                                 length_weight(rules_.target) * longest + target);
    window.expense = start_weight(rules_.expense) * window.start +
                     length_weight(rules_.expense) * longest + expense;
  }

 private:
  static constexpr std::size_t kMaxValues = std::size_t{1} << 20;  // held at once
  static constexpr double kLongSearch = 0x1p22;  // steps: some milliseconds

  // A part of the job on a piece of free time, without its start.
  struct PricedPart {
    std::size_t row, node;
    double length, first, last, amount;
    std::size_t from, to;  // its turns
  };

  // Counts steps before they are taken: a long search can be interrupted.
  void count_steps(std::size_t times, std::size_t each) {
    steps_ += static_cast<double>(times) * static_cast<double>(each);
    if (steps_ > kLongSearch) enable_interrupts();
    poll();
  }

  void list_parts(std::span<const FreePiece> free, double level) {
    const PricedJob& job = *job_;
    parts_.clear();
    seen_.assign(rules_.nodes, 0);
    std::size_t nodes = 0;
    bool longest = level == kInfinity;  // some part is as long as the level
    for (const FreePiece& piece : free) {
      const auto row = static_cast<std::size_t>(piece.row);
      if (!job.usable[row] || !(job.own[row] <= level)) continue;
      const double length = rules_.square ? level : job.own[row];
      const double end = std::min(piece.end, job.deadline);
      const double first = std::max(piece.start, job.earliest);
      double last = std::min(end - length, job.latest);
      if (last + length > end) last = std::nextafter(last, -kInfinity);
      if (!(first <= last)) continue;
      const auto node = static_cast<std::size_t>(rules_.node[row]);
      double amount = rules_.sign * part_amount(rules_.target, row, length, rules_.price[row]);
      if (pricing_.factor != 0)
        amount += pricing_.factor * part_amount(rules_.expense, row, length, rules_.price[row]);
      parts_.push_back({row, node, length, first, last, amount, 0, 0});
      nodes += !seen_[node];
      seen_[node] = 1;
      longest = longest || job.own[row] == level;
    }
    if (!longest || nodes < static_cast<std::size_t>(job.nodes)) parts_.clear();
    const auto by_node = [](const PricedPart& a, const PricedPart& b) { return a.node < b.node; };
    if (!std::is_sorted(parts_.begin(), parts_.end(), by_node))
      std::stable_sort(parts_.begin(), parts_.end(), by_node);
  }

  void list_turns() {
    turns_.clear();
    if (!has_prices()) {  // no total falls with the start: a set is best at its first start
      for (const PricedPart& part : parts_) turns_.push_back(part.first);
    } else {
      list_turns_at_prices();
    }
    sorter_.sort_unique(turns_);
    count_steps(turns_.size(), parts_.size() * static_cast<std::size_t>(job_->nodes));
    for (PricedPart& part : parts_) {
      poll();
      const auto from = std::lower_bound(turns_.begin(), turns_.end(), part.first);
      auto to = from;
      while (to != turns_.end() && *to <= part.last) ++to;
      part.from = static_cast<std::size_t>(from - turns_.begin());
      part.to = static_cast<std::size_t>(to - turns_.begin());
    }
  }

  bool has_prices() const { return pricing_.scale > 0 && pricing_.prices->max_pieces() > 2; }

  void list_turns_at_prices() {
    for (const PricedPart& part : parts_) {
      turns_.push_back(part.first), turns_.push_back(part.last);
      if (!pricing_.exact) continue;
      const auto falls = pricing_.prices->falls(part.node);
      for (auto at = std::lower_bound(falls.begin(), falls.end(), part.first);
           at != falls.end() && *at <= part.last; ++at)
        turns_.push_back(*at);
      const auto rises = pricing_.prices->rises(part.node);
      for (auto at = std::partition_point(
               rises.begin(), rises.end(),
               [&](double rise) { return rise - part.length < part.first; });
           at != rises.end() && *at - part.length <= part.last; ++at)
        turns_.push_back(*at - part.length);
    }
  }

  double amount_at(const PricedPart& part, double t) const {
    if (!has_prices() || !pricing_.prices->has_price(part.node)) return part.amount;
    return part.amount + pricing_.scale * pricing_.prices->integral(part.node, t, part.length);
  }

  static const IntegralPiece* last_until(std::span<const IntegralPiece> pieces, double t) {
    return std::partition_point(pieces.data(), pieces.data() + pieces.size(),
                                [t](const IntegralPiece& piece) { return piece.begin <= t; }) -
           1;
  }

  // Computes the amounts of a part at some of its turns: those of amount_at().
  void evaluate(const PricedPart& part, std::size_t from, std::size_t to, double* into) const {
    const auto pieces = pricing_.prices->pieces(part.node);
    if (pieces.size() <= 2 || !has_prices())
      return std::fill(into, into + (to - from), part.amount);
    const double first = turns_[from];
    const IntegralPiece* begin = last_until(pieces, first);
    const IntegralPiece* end = last_until(pieces, first + part.length);
    for (std::size_t i = from; i < to; ++i) {
      const double t = turns_[i], finish = t + part.length;
      while (begin[1].begin <= t) ++begin;
      while (end[1].begin <= finish) ++end;
      into[i - from] = part.amount + pricing_.scale * (end->at(finish) - begin->at(t));
    }
  }

  // The part of the total that does not depend on the slots.
  double whole_at(double t, double level) const {
    double whole = rules_.sign * start_weight(rules_.target) * (t - rules_.origin);
    double length = rules_.sign * length_weight(rules_.target);
    if (pricing_.factor != 0) {
      whole += pricing_.factor * start_weight(rules_.expense) * t;
      length += pricing_.factor * length_weight(rules_.expense);
    }
    return length != 0 ? whole + length * level : whole;
  }

  Status at_level(double level, std::size_t spans, double& bound,
                  std::vector<PricedWindow>& found) {
    const std::size_t count = turns_.size(), n = static_cast<std::size_t>(job_->nodes);
    if (has_prices()) sum_least(count, n);
    else sum_constant(count, n);
    double* const total = total_.data();
    for (std::size_t i = 0; i < count; ++i) total[i] += whole_at(turns_[i], level);
    const std::size_t size = (count + spans - 1) / spans;
    for (std::size_t from = 0; from < count; from += size) {
      const std::size_t to = std::min(count, from + size);
      const auto at =
          static_cast<std::size_t>(std::min_element(total + from, total + to) - total);
      if (!(total[at] < kInfinity)) continue;
      poll();
      list_live(turns_[at], level);
      double least = total[at];
      if (!least_is_affordable())
        if (const Status status = within_budget(from, to, level, least); status != Status::ok)
          return status;
      bound = std::min(bound, least);
      if (chosen_.rows.empty() || !is_as_long_as(level)) continue;
      complete(*job_, chosen_);
      found.push_back(chosen_);
    }
    return Status::ok;
  }

  // True if a part of `chosen_` is as long as the level: its total is that of the window then.
  bool is_as_long_as(double level) const {
    return level == kInfinity ||
           std::any_of(chosen_.rows.begin(), chosen_.rows.end(), [&](std::int64_t row) {
             return job_->own[static_cast<std::size_t>(row)] == level;
           });
  }

  // Sums the n least amounts at each turn, ascending, into total_; infinite with fewer parts. Blocks
  // of turns bound the memory.
  void sum_least(std::size_t count, std::size_t n) {
    const std::size_t block = std::max<std::size_t>(1, kMaxValues / n);
    total_.resize(count);
    values_.resize(std::min(block, count));
    for (std::size_t low = 0; low < count; low += block) {
      const std::size_t high = std::min(count, low + block), size = high - low;
      best_.assign(n * size, kInfinity);
      for (const PricedPart& part : parts_) {
        const std::size_t from = std::max(part.from, low), to = std::min(part.to, high);
        if (from >= to) continue;
        poll();
        evaluate(part, from, to, values_.data());
        merge_least(values_.data(), best_.data() + (from - low), size, n, to - from);
      }
      double* const total = total_.data() + low;
      std::copy(best_.data(), best_.data() + size, total);
      for (std::size_t j = 1; j < n; ++j)
        for (std::size_t i = 0; i < size; ++i) total[i] += best_[j * size + i];
    }
  }

  // The same for amounts that do not depend on the start: parts by rising amount.
  void sum_constant(std::size_t count, std::size_t n) {
    by_amount_.clear();
    for (std::size_t i = 0; i < parts_.size(); ++i) by_amount_.push_back({parts_[i].amount, i});
    std::sort(by_amount_.begin(), by_amount_.end());
    total_.assign(count, 0);
    missing_.assign(count, static_cast<double>(n));
    for (const auto& [amount, which] : by_amount_) {
      poll();
      add_constant(amount, total_.data(), missing_.data(), parts_[which].from, parts_[which].to);
    }
    for (std::size_t i = 0; i < count; ++i)
      if (missing_[i] > 0) total_[i] = kInfinity;
  }

  static void add_constant(double amount, double* __restrict total, double* __restrict missing,
                           std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      total[i] += missing[i] > 0 ? amount : 0;
      missing[i] -= missing[i] > 0 ? 1 : 0;
    }
  }

  // Lists the parts that may start at t, and t itself as the start of `chosen_`.
  void list_live(double t, double level) {
    live_.clear();
    for (const PricedPart& part : parts_)
      if (part.first <= t && t <= part.last)
        live_.push_back({amount_at(part, t), part.length * rules_.price[part.row],
                         static_cast<std::int64_t>(part.row)});
    whole_ = whole_at(t, level);
    chosen_.start = t;
  }

  // Chooses the least amounts of the live parts; true if they are within the budget.
  bool least_is_affordable() {
    const LiveChoice choice = choose_least(live_, job_->nodes, 0, order_);
    list_rows(live_, job_->nodes, order_, chosen_.rows);
    chosen_.total = choice.value + whole_;
    return choice.money <= relaxed_max(job_->budget);
  }

  // Finds the least affordable window among some turns, and a lower bound on all of them.
  Status within_budget(std::size_t from, std::size_t to, double level, double& bound) {
    count_steps((to - from) * BudgetChoice::kMultipliers, parts_.size());
    const std::size_t chunk =
        std::max<std::size_t>(1, kMaxValues / std::max<std::size_t>(1, rules_.nodes));
    PricedWindow best;
    best.total = kInfinity;
    bound = kInfinity;
    for (; from < to; from += chunk) {
      const std::size_t until = std::min(to, from + chunk);
      chooser_.clear(job_->nodes, job_->budget);
      for (std::size_t i = from; i < until; ++i) {
        poll();
        list_live(turns_[i], level);
        chooser_.add_start(live_, whole_);
      }
      if (const Status status = chooser_.solve(); status != Status::ok) return status;
      bound = std::min(bound, chooser_.bound);
      if (chooser_.best.value < best.total) {
        best.total = chooser_.best.value, best.rows = chooser_.best.rows;
        best.start = turns_[from + chooser_.at];
      }
    }
    chosen_ = best;
    return Status::ok;
  }

  const PricingRules& rules_;
  const PricedJob* job_ = nullptr;
  Pricing pricing_;
  std::vector<PricedPart> parts_;
  std::vector<std::uint8_t> seen_;
  std::vector<double> turns_, total_, missing_;  // total_ and missing_: by turn
  std::vector<double> values_, best_;            // of a block of turns
  std::vector<std::pair<double, std::size_t>> by_amount_;
  std::vector<LivePart> live_;
  std::vector<std::size_t> order_;
  double whole_ = 0, steps_ = 0;
  PricedWindow chosen_;
  TimeSorter sorter_;
  BudgetChoice chooser_;
};

}  // namespace slotkern

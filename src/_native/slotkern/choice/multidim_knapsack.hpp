// Chooses exactly n of m items: the most value, each of several sums within its amount.
//
// The stages, each only if the one before left the question open:
//   1. items that are in no set within the limits leave; a weight so small that it settles its
//      limit by itself is cut off at that, so that no huge number spoils a sum;
//   2. the relaxation's multipliers: the bound, or a proof that nothing fits;
//   3. a set within the limits, by exchanges that lower what is too much, and then raise value;
//   4. items whose exchange costs more than (bound - incumbent) are decided; the rest is the
//      core, searched depth first, for a short time;
//   5. the same search, longer and longer, with sums in whole multiples (choice/multiples.hpp),
//      without items that n others dominate, and with a table of the states that it has met.
// The caller's exact test decides whether a set is within its limits; sums that are kept here only
// rule out, beyond their rounding. Work is counted, never timed, in units of 5 to 10 ns; a call
// that exceeds `max_work` is not `complete`, and its bound is valid all the same.
#pragma once

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "slotkern/choice/multidim_search.hpp"
#include "slotkern/choice/multiples.hpp"
#include "slotkern/choice/problem.hpp"

namespace slotkern {

class MultidimKnapsack {
 public:
  double gap = 0;  // relative; 1e-12 at least
  ValueScale scale;
  std::int64_t max_work = std::numeric_limits<std::int64_t>::max();

  // What the last call left.
  double best = -kInfinity, bound = kInfinity;
  bool complete = true;
  std::vector<int> chosen;
  std::int64_t work = 0;  // grows over all calls

  // A set of `pick` items worth more than `incumbent`. `fits(ids)` is the exact test. False if
  // there is none (or none was found: see `complete`). Items forced in are the caller's: their
  // uses are `taken`, `base` is their value.
  template <class Fits>
  bool solve(const MultidimItems& items, int pick, const Amounts& most, const Amounts& taken,
             double base, double incumbent, Fits fits) {
    given_ = items, pick_ = pick, asked_ = amount_ = most, taken_ = taken, base_ = base;
    for (int k = 0; k < items.limits; ++k)
      if (taken[at(k)] != 0)
        amount_[at(k)] +=
            0x1p-50 * (std::fabs(most[at(k)]) + std::fabs(taken[at(k)])) - taken[at(k)];
    measured_ = false;
    best = incumbent, bound = -kInfinity, complete = true;
    chosen.clear();
    random_ = 0x9E3779B97F4A7C15u;
    tolerance_ = tolerance_of(pick);
    if (pick > items.count) return false;
    if (pick == 0 || pick == items.count) {
      set_.clear();
      for (int i = 0; i < pick; ++i) set_.push_back(i);
      return only_one(fits);
    }
    if (!keep_possible()) return false;
    if (items_.count == pick) {
      set_.clear();
      for (int i = 0; i < pick; ++i) set_.push_back(kept_[at(i)]);
      return only_one(fits);
    }
    return stages(fits);
  }

  // One a limit, of the last relaxation that was solved; any are a bound.
  const Amounts& multipliers() const { return multipliers_.lambda; }

  double rounding(int pick, double sum) const {
    if (integers(pick)) return 0;
    return 0x1p-52 * (pick + 2) *
           (scale.mixed() ? (pick + 2) * scale.largest() : std::fabs(sum));
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  // An incumbent that is no integer is one of other items.
  MultidimTolerance tolerance_of(int pick) const {
    const bool exact = integers(pick) && (best == -kInfinity || best == std::floor(best));
    return {exact ? gap : std::max(gap, 1e-12), exact ? 1.0 : 0.0, 0};
  }
  bool integers(int pick) const {
    return scale.integers && (pick + 2) * scale.largest() < kMaxExactSum;
  }

  template <class Fits>
  bool only_one(Fits& fits) {
    double value = base_;
    for (const int i : set_) value += given_.value[i];
    if (!fits(set_)) return false;
    bound = value + rounding(pick_, value);
    if (!(value > best)) return false;
    best = value;
    chosen = set_;
    return true;
  }

  // Leaves the items that a set within the limits may hold, their weights cut off from below.
  // False if there are too few.
  bool keep_possible() {
    kept_.resize(at(given_.count));
    for (int i = 0; i < given_.count; ++i) kept_[at(i)] = i;
    for (int round = 0; round < 3; ++round) {
      const std::size_t before = kept_.size();
      for (int k = 0; k < given_.limits; ++k) {
        const double* w = given_.weight[at(k)];
        const double others = least_others(w);
        const double most = amount_[at(k)] - others;
        const double room = most + 0x1p-48 * (pick_ + 8) *
                                       (std::fabs(amount_[at(k)]) + std::fabs(others));
        std::erase_if(kept_, [&](int i) { return w[i] > room; });
        if (static_cast<int>(kept_.size()) < pick_) return false;
      }
      if (kept_.size() == before) break;
    }
    const std::size_t count = kept_.size();
    columns_.resize(count * at(given_.limits + 1));
    double* into = columns_.data();
    items_ = {};
    items_.count = static_cast<int>(count);
    items_.limits = given_.limits;
    for (std::size_t i = 0; i < count; ++i) into[i] = given_.value[kept_[i]];
    items_.value = into;
    for (int k = 0; k < given_.limits; ++k) {
      into += count;
      const double* w = given_.weight[at(k)];
      double largest = -kInfinity;
      for (std::size_t i = 0; i < count; ++i) largest = std::max(largest, w[kept_[i]]);
      // At or below this an item keeps the limit with any others; twice that is surely enough.
      const double a = amount_[at(k)];
      const double enough = a - (pick_ - 1) * std::max(0.0, largest) -
                            (std::fabs(a) + pick_ * std::fabs(largest));
      double reach = 0;
      for (std::size_t i = 0; i < count; ++i) {
        into[i] = std::max(w[kept_[i]], enough);
        reach = std::max(reach, std::fabs(into[i]));
      }
      items_.weight[at(k)] = into;
      reach_[at(k)] = (pick_ + 4) * reach + std::fabs(a);
      slack_[at(k)] = 0x1p-49 * (pick_ + 8) * reach_[at(k)];
    }
    return true;
  }

  // The pick - 1 smallest weights together; a bound, whatever the order of the sum.
  double least_others(const double* w) {
    sorted_.clear();
    for (const int i : kept_) sorted_.push_back(w[i]);
    const auto middle = sorted_.begin() + (pick_ - 1);
    if (pick_ - 1 < static_cast<int>(sorted_.size()))
      std::nth_element(sorted_.begin(), middle, sorted_.end());
    double sum = 0, size = 0;
    for (auto it = sorted_.begin(); it != middle; ++it) sum += *it, size += std::fabs(*it);
    return sum - 0x1p-50 * (pick_ + 4) * size;
  }

  template <class Fits>
  bool stages(Fits& fits) {
    const auto feasible = [&](const std::vector<int>& ids) {
      set_.clear();
      for (const int i : ids) set_.push_back(kept_[at(i)]);
      return fits(set_);
    };
    const bool solved = multipliers_.solve(items_, pick_, amount_);
    work += 1 + static_cast<std::int64_t>(items_.count) * (items_.limits + 1) *
                    (multipliers_.pivots + 8) / 8;
    if (!solved && surely_empty()) return false;
    weigh();
    const double before = best;
    if (open()) look_for_one(feasible);
    const auto accept = [&](const std::vector<int>& positions) {
      found_ = fixed_;
      for (const int j : positions) found_.push_back(core_.id[at(j)]);
      if (!feasible(found_)) return false;
      keep(found_);
      return true;
    };
    std::int64_t share = kFirstWork;
    for (; open(); share *= 8) {
      if (share > kLongWork) expect_long();
      if (share > kFirstWork && !measured_) measure();
      reduce();
      if (measured_) thin_out();
      const std::int64_t left = std::max<std::int64_t>(0, max_work - work);
      const bool finished = search(std::min(left, share), accept);
      if (finished) break;
      if (left <= share) {
        complete = false;
        break;
      }
      if (best == -kInfinity)
        seek(share, feasible);
      else if (!chosen.empty())
        climb(share, feasible);
    }
    conclude();
    return best > before;
  }

  // Searches the core for a set better than the incumbent. Returns true if it finished within
  // `most` units of work.
  template <class Accept>
  bool search(std::int64_t most, Accept& accept) {
    const bool by_unit = measured_ && value_.unit > 0;
    const double unit = by_unit ? value_.unit : 1;
    const MultidimTolerance tolerance{tolerance_.relative, by_unit ? 1 : tolerance_.step,
                                   tolerance_.noise / unit};
    double reached = best / unit;
    const bool finished = search_.run(core_, tolerance, reached, most / (items_.limits + 1), accept);
    work += search_.nodes * (items_.limits + 1) +
            static_cast<std::int64_t>(core_.size()) * std::min(core_.pick, 64) * items_.limits / 4;
    if (reached > best / unit) {
      double value = base_;
      for (const int i : chosen) value += given_.value[i];
      best = std::max(best, value);
    }
    return finished;
  }

  // The columns as whole multiples, if they are any.
  void measure() {
    measured_ = true;
    const auto count = at(items_.count);
    for (int k = 0; k < items_.limits; ++k) {
      sorted_.resize(count + 1);
      for (std::size_t i = 0; i < count; ++i) sorted_[i] = given_.weight[at(k)][kept_[i]];
      sorted_[count] = taken_[at(k)];
      multiple_[at(k)].measure(sorted_, asked_[at(k)]);
    }
    sorted_.resize(count + 1);
    for (std::size_t i = 0; i < count; ++i) sorted_[i] = items_.value[i];
    sorted_[count] = base_;
    if (value_.measure(sorted_)) tolerance_.step = std::max(tolerance_.step, value_.unit);
    work += static_cast<std::int64_t>(count) * (items_.limits + 1) * 2;
  }

  // Drops dominated items of the core: items for which enough others are no worse in every respect
  // that an optimal set without them exists.
  void thin_out() {
    const std::size_t size = core_.size(), need = at(core_.pick);
    if (size <= need || size > kMostThinned) return;
    std::vector<char>& keep = marked_;
    keep.assign(size, 1);
    bool drops = false;
    for (std::size_t j = need; j < size; ++j) {
      std::size_t better = 0;
      for (std::size_t i = 0; i < j && better < need; ++i) {
        bool no_worse = core_.value[i] >= core_.value[j];
        for (int k = 0; no_worse && k < items_.limits; ++k)
          no_worse = core_.use[at(k)][i] <= core_.use[at(k)][j];
        better += no_worse;
      }
      if (better >= need) keep[j] = 0, drops = true;
    }
    work += static_cast<std::int64_t>(size * size) / 4;
    if (!drops) return;
    std::size_t kept = 0;
    for (std::size_t j = 0; j < size; ++j)
      if (keep[j]) core_.move(j, kept++);
    core_.resize(kept);
  }

  // No set's value, summed in any order, is above the bound.
  void conclude() {
    const double size = best > -kInfinity ? std::fabs(best) : 0;
    const double error = rounding(pick_, std::max(size, std::fabs(bound)));
    bound += tolerance_.noise + error;
    if (complete && best > -kInfinity)
      bound = std::min(bound, best + std::max(tolerance_.relative * std::fabs(best), error));
    bound = std::max(bound, best);
  }

  bool open() const { return bound > tolerance_.beat(best); }

  void keep(const std::vector<int>& ids) {
    best_in_ = ids;
    chosen.clear();
    for (const int i : ids) chosen.push_back(kept_[at(i)]);
  }

  // Whether the ray proves that no n items keep all limits.
  bool surely_empty() {
    const Amounts& y = multipliers_.ray;
    weight_.resize(at(items_.count));
    double size = 0, least = 0, most = 0;
    for (int i = 0; i < items_.count; ++i) weight_[at(i)] = -items_.weigh(i, y, 0);
    for (int k = 0; k < items_.limits; ++k) {
      most += y[at(k)] * amount_[at(k)];
      size += y[at(k)] * reach_[at(k)];
    }
    std::nth_element(weight_.begin(), weight_.begin() + (pick_ - 1), weight_.end());
    for (int i = 0; i < pick_; ++i) least += weight_[at(i)];
    return least > most + 0x1p-48 * (pick_ + 16) * size && std::isfinite(size);
  }

  // The bound by the multipliers, and the items' weights under them.
  void weigh() {
    if (!charge()) {  // they overflow; without any the sums of values are a bound
      multipliers_.lambda = {};
      charge();
    }
    order_.resize(at(items_.count));
    for (int i = 0; i < items_.count; ++i) order_[at(i)] = i;
    std::sort(order_.begin(), order_.end(), [this](int a, int b) {
      return weight_[at(a)] > weight_[at(b)] || (weight_[at(a)] == weight_[at(b)] && a < b);
    });
    for (int i = 0; i < pick_; ++i) bound += weight_[at(order_[at(i)])];
  }

  // Into weight_, and into the bound what the limits have. False where sums overflow.
  bool charge() {
    const Amounts& lambda = multipliers_.lambda;
    double size = 0;
    bound = base_;
    weight_.resize(at(items_.count));
    for (int i = 0; i < items_.count; ++i) weight_[at(i)] = items_.weigh(i, lambda);
    for (int k = 0; k < items_.limits; ++k) {
      bound += lambda[at(k)] * amount_[at(k)];
      size += lambda[at(k)] * reach_[at(k)];  // n items' charges
    }
    tolerance_.noise = 0x1p-50 * (pick_ + 64) * ((pick_ + 2) * scale.largest() + size);
    return size < kMostCharge;
  }

  // --- sets within the limits, by exchanges

  struct Sums {
    Amounts use{};
    double value = 0;
  };

  double too_much(const Amounts& use) const {
    double sum = 0;
    for (int k = 0; k < items_.limits; ++k)
      sum += std::max(0.0, use[at(k)] - amount_[at(k)] - slack_[at(k)]) / reach_[at(k)];
    return sum;
  }

  void stand_on_top() {
    in_.assign(order_.begin(), order_.begin() + pick_);
    out_.assign(order_.begin() + pick_, order_.end());
    std::size_t near = at(std::min(items_.count - pick_, kNear));
    out_.resize(near);
    add_up();
  }

  void add_up() {
    use_ = {};
    for (const int i : in_)
      for (int k = 0; k < items_.limits; ++k) use_[at(k)] += items_.weight[at(k)][i];
  }

  // The exchange of one for one that leaves least too much and then is worth most; whether one
  // is better than what stands.
  bool exchange() {
    const double now = too_much(use_);
    double least = now, gain = now > 0 ? -kInfinity : 0;
    std::size_t from = 0, to = out_.size();
    for (std::size_t a = 0; a < in_.size(); ++a) {
      poll();
      for (std::size_t b = 0; b < out_.size(); ++b) {
        Amounts use = use_;
        for (int k = 0; k < items_.limits; ++k)
          use[at(k)] += items_.weight[at(k)][out_[b]] - items_.weight[at(k)][in_[a]];
        const double over = too_much(use), more = items_.value[out_[b]] - items_.value[in_[a]];
        if (over < least || (over == least && (to < out_.size() || now == 0) && more > gain))
          least = over, gain = more, from = a, to = b;
      }
    }
    work += static_cast<std::int64_t>(in_.size() * out_.size()) * items_.limits / 2 + 1;
    if (to == out_.size()) return false;
    std::swap(in_[from], out_[to]);
    add_up();
    return true;
  }

  template <class Feasible>
  void look_for_one(Feasible feasible) {
    stand_on_top();
    for (int round = 0; round < kExchanges; ++round)
      if (!exchange()) break;
    take(feasible);
  }

  // Any set within the limits: from the top set with a few random exchanges (always the same
  // ones), by exchanges with a random part of the others.
  template <class Feasible>
  void seek(std::int64_t most, Feasible feasible) {
    const std::int64_t until = work + most;
    const std::size_t pick = at(pick_), rest = at(items_.count) - pick;
    while (work < until && best == -kInfinity) {
      poll();
      std::vector<int>& places = found_;
      places = order_;
      for (std::size_t k = 0; k < kShaken; ++k)
        std::swap(places[draw(pick)], places[pick + draw(rest)]);
      const std::size_t near = std::min(rest, at(kNear));
      for (std::size_t k = 0; k < near; ++k)
        std::swap(places[pick + k], places[pick + k + draw(rest - k)]);
      const auto middle = places.begin() + pick_;
      in_.assign(places.begin(), middle);
      out_.assign(middle, middle + static_cast<std::ptrdiff_t>(near));
      add_up();
      work += items_.count / 4;
      for (int round = 0; round < kExchanges && too_much(use_) > 0; ++round)
        if (!exchange()) break;
      if (too_much(use_) <= 0) take(feasible);
    }
  }

  template <class Feasible>
  void take(Feasible feasible) {
    double value = base_;
    for (const int i : in_) value += items_.value[i];
    if (value > best && feasible(in_)) {
      best = value;
      keep(in_);
    }
  }

  // From the best set, and then from sets a few random exchanges away from it (always the same
  // ones): for values that follow weights closely, where any good sums will do.
  template <class Feasible>
  void climb(std::int64_t most, Feasible feasible) {
    const std::int64_t until = work + most;
    stand_on(best_in_);
    while (work < until && open()) {
      poll();
      while (open() && work < until && (exchange() || exchange_two())) take(feasible);
      if (!open()) return;
      stand_on(best_in_);
      kick();
    }
  }

  void stand_on(const std::vector<int>& set) {
    in_ = set;
    marked_.assign(at(items_.count), 0);
    for (const int i : in_) marked_[at(i)] = 1;
    out_.clear();
    for (const int i : order_)
      if (!marked_[at(i)] && static_cast<int>(out_.size()) < kNear) out_.push_back(i);
    add_up();
  }

  bool within(const Amounts& use) const {
    for (int k = 0; k < items_.limits; ++k)
      if (use[at(k)] > amount_[at(k)] + slack_[at(k)]) return false;
    return true;
  }

  // The best exchange of two for two: pairs of single ones by falling value.
  bool exchange_two() {
    swaps_.clear();
    for (std::size_t a = 0; a < in_.size(); ++a)
      for (std::size_t b = 0; b < out_.size(); ++b) {
        Swap swap{items_.value[out_[b]] - items_.value[in_[a]], {}, a, b};
        for (int k = 0; k < items_.limits; ++k)
          swap.use[at(k)] = items_.weight[at(k)][out_[b]] - items_.weight[at(k)][in_[a]];
        swaps_.push_back(swap);
      }
    std::sort(swaps_.begin(), swaps_.end(), [](const Swap& x, const Swap& y) {
      if (x.value != y.value) return x.value > y.value;
      return x.from != y.from ? x.from < y.from : x.to < y.to;
    });
    work += static_cast<std::int64_t>(swaps_.size());
    double gain = 0;
    const Swap *one = nullptr, *two = nullptr;
    std::int64_t looked = 0;
    for (std::size_t p = 0; p < swaps_.size() && looked < kMostPairs; ++p) {
      const Swap& x = swaps_[p];
      if (!(x.value + x.value > gain)) break;
      for (std::size_t q = p + 1; q < swaps_.size(); ++q) {
        const Swap& y = swaps_[q];
        if (!(x.value + y.value > gain)) break;
        ++looked;
        if (x.from == y.from || x.to == y.to) continue;
        Amounts use = use_;
        for (int k = 0; k < items_.limits; ++k) use[at(k)] += x.use[at(k)] + y.use[at(k)];
        if (!within(use)) continue;
        gain = x.value + y.value;
        one = &x, two = &y;
        break;
      }
    }
    work += looked / 4;
    if (!one) return false;
    std::swap(in_[one->from], out_[one->to]);
    std::swap(in_[two->from], out_[two->to]);
    add_up();
    return true;
  }

  // A few random exchanges, each only if the set fits after it.
  void kick() {
    for (int k = 0; k < kKicks; ++k) {
      const std::size_t from = draw(in_.size()), to = draw(out_.size());
      std::swap(in_[from], out_[to]);
      add_up();
      if (within(use_)) continue;
      std::swap(in_[from], out_[to]);
      add_up();
    }
  }

  std::size_t draw(std::size_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return (random_ >> 33) % below;
  }

  // Decides all items that no better set can exchange; the others become the core, in units of
  // the columns that are measured.
  void reduce() {
    const double last = weight_[at(order_[at(pick_ - 1)])], next = weight_[at(order_[at(pick_)])];
    const double give = bound - tolerance_.beat(best);
    const double unit = measured_ && value_.unit > 0 ? value_.unit : 1;
    const auto value_of = [&](int i) {
      return measured_ && value_.unit > 0 ? value_.count[at(i)] : items_.value[i];
    };
    const auto use_of = [&](int k, int i) {
      const Multiples& multiple = multiple_[at(k)];
      return measured_ && multiple.unit > 0 ? multiple.count[at(i)] : items_.weight[at(k)][i];
    };
    core_.clear();
    fixed_.clear();
    core_.base_value = measured_ && value_.unit > 0 ? value_.count.back() : base_;
    core_.limits = items_.limits;
    for (int k = 0; k < items_.limits; ++k) {
      const Multiples& multiple = multiple_[at(k)];
      const bool whole = measured_ && multiple.unit > 0;
      core_.whole[at(k)] = whole;
      core_.room[at(k)] = whole ? multiple.most - multiple.count.back() : amount_[at(k)];
      core_.slack[at(k)] = whole ? 0.5 : slack_[at(k)];
      core_.lambda[at(k)] = multipliers_.lambda[at(k)] * (whole ? multiple.unit : 1) / unit;
    }
    const double middle = 0.5 * (last + next) / unit;
    for (int place = 0; place < items_.count; ++place) {
      const int i = order_[at(place)];
      const double w = weight_[at(i)];
      if (place < pick_ && w - next >= give) {
        fixed_.push_back(i);
        core_.base_value += value_of(i);
        for (int k = 0; k < items_.limits; ++k) core_.room[at(k)] -= use_of(k, i);
      } else if (place < pick_ || last - w < give) {
        double weight = value_of(i);
        for (int k = 0; k < items_.limits; ++k) {
          core_.use[at(k)].push_back(use_of(k, i));
          weight -= core_.lambda[at(k)] * core_.use[at(k)].back();
        }
        core_.id.push_back(i);
        core_.weight.push_back(weight - middle);
        core_.value.push_back(value_of(i));
      }
    }
    core_.pick = pick_ - static_cast<int>(fixed_.size());
    double constant = 0;
    for (int k = 0; k < items_.limits; ++k)
      constant += core_.lambda[at(k)] * core_.room[at(k)];
    core_.offset = core_.base_value + constant + core_.pick * middle;
    core_.remembers = measured_;
    core_.any = tolerance_.relative > 1 && best == -kInfinity;
    core_.whole_values = measured_ ? value_.unit > 0 : tolerance_.step > 0;
    core_.sort();
  }

  static constexpr std::size_t kShaken = 3;
  static constexpr std::int64_t kFirstWork = 6000, kLongWork = 300000;
  static constexpr std::size_t kMostThinned = 4096;
  static constexpr double kMostCharge = 1e307;
  static constexpr int kExchanges = 60, kNear = 64, kKicks = 4;
  static constexpr std::int64_t kMostPairs = 20000;

  struct Swap {
    double value;
    Amounts use;
    std::size_t from, to;  // places in in_ and out_
  };

  MultidimItems given_, items_;
  int pick_ = 0;
  Amounts asked_{}, taken_{};  // by all and by those forced in
  Amounts amount_{}, reach_{}, slack_{}, use_{};
  double base_ = 0;
  bool measured_ = false;
  std::array<Multiples, kMaxSumLimits> multiple_;  // the last one of each is of those forced in
  Multiples value_;
  MultidimTolerance tolerance_;
  DualSimplex multipliers_;
  MultidimCore core_;
  MultidimSearch search_;
  std::vector<int> kept_, set_, order_, fixed_, found_, in_, out_;
  std::vector<double> columns_, sorted_, weight_;
  std::vector<int> best_in_;
  std::vector<char> marked_;
  std::vector<Swap> swaps_;
  std::uint64_t random_ = 0;
};

}  // namespace slotkern

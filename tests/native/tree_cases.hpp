// Random bookings and searches of groups of trees of shared hosts, some under capacities, and their
// comparison with the plain definition, for the unit test and the fuzzer: all numbers of parts of all
// hosts at all starts, or for many hosts the definition of the tie rule at all starts.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "random_draws.hpp"
#include "share_oracle.hpp"
#include "slotkern/shares/schedule.hpp"

namespace trees {

using namespace slotkern;
using shares::Amounts;
using shares::PlainHosts;

struct Tally {
  std::uint64_t searches = 0, found = 0;
};

// Level of each group of hosts, and the groups in the order of the tree.
struct Levels {
  HostTree tree;
  std::vector<std::vector<int>> group_of;  // [level][place in tree.hosts]
};

inline Levels draw_levels(Random& random, int hosts) {
  Levels out;
  const int levels = random.in(1, 3);
  for (int h = 0; h < hosts; ++h) out.tree.hosts.push_back(static_cast<std::uint32_t>(h));
  if (random.one_in(2))
    for (int i = hosts - 1; i > 0; --i)
      std::swap(out.tree.hosts[static_cast<std::size_t>(i)],
                out.tree.hosts[static_cast<std::size_t>(random.in(0, i))]);
  // A border of a level is one of all finer levels.
  std::vector<int> border(static_cast<std::size_t>(hosts), levels);
  for (int& b : border) b = random.in(0, levels);
  border[0] = 0;
  out.tree.first.assign(static_cast<std::size_t>(levels), {});
  for (int level = 0; level < levels; ++level) {
    auto& group_of = out.group_of.emplace_back();
    auto& first = out.tree.first[static_cast<std::size_t>(level)];
    int inner = -1, group = -1;
    for (const int b : border) {
      inner += b <= level + 1 && level + 1 < levels;
      if (b <= level) {
        ++group;
        const bool is_finest = level + 1 == levels;
        first.push_back(static_cast<std::uint32_t>(
            is_finest ? static_cast<int>(group_of.size()) : inner));
      }
      group_of.push_back(group);
    }
    first.push_back(static_cast<std::uint32_t>(
        level + 1 == levels ? hosts : inner + 1));
  }
  return out;
}

struct Case {
  Query query;
  std::vector<Amount> demand;  // [host * resources + d]
  std::size_t stride = 0;
  int stack = 1, parts = 1;
  std::vector<Amount> counts;
  std::vector<double> prices;
  std::array<int, 2> uses{};  // of the capacities
};

struct Best {
  bool exists = false;
  double start = 0, cost = 0;
  std::vector<int> counts;  // [place]
};

class Sequence {
 public:
  Sequence(Random& random, Tally& tally) : random_(random), tally_(tally) {
    hosts_ = random.one_in(10) ? random.in(33, 36) : random.in(1, 6);
    resources_ = static_cast<std::size_t>(random.in(1, 2));
    std::vector<std::int32_t> ids;
    for (int h = 0; h < hosts_; ++h) {
      ids.push_back(h);
      for (std::size_t d = 0; d < resources_; ++d)
        capacity_.push_back(random.one_in(4) ? random.in(1, 3) : 2);
      plain_.hosts.push_back({1, std::vector<Amounts>(PlainHosts::kUnits, Amounts(resources_)),
                              std::vector<int>(PlainHosts::kUnits, 1)});
    }
    pool_.open(ids, std::vector<double>(static_cast<std::size_t>(hosts_), 1.0), resources_, 0, kEnd);
    for (int h = 0; h < hosts_; ++h) {
      const auto host = static_cast<std::size_t>(h);
      const double start = 0.5 * random.in(0, 4);
      const Amounts all(capacity_.begin() + static_cast<std::ptrdiff_t>(host * resources_),
                        capacity_.begin() + static_cast<std::ptrdiff_t>((host + 1) * resources_));
      is_right_ &= pool_.add_free({host, start, kEnd}, all.data()) == Status::ok;
      plain_.add(host, start, kEnd, all, 1), plain_.set_off(host, start, kEnd, -1);
    }
    for (int k = 0; k < 2; ++k) {
      levels_.push_back(draw_levels(random, hosts_));
      is_right_ &= pool_.add_tree(levels_.back().tree) == static_cast<std::size_t>(k);
    }
  }

  // Runs the sequence; returns false at the first difference.
  bool run(int steps) {
    if (!is_right_) return false;
    for (int step = 0; step < steps && !random_.is_empty(); ++step) {
      if (random_.one_in(8)) change_capacity();
      if (!(random_.one_in(4) ? release() : search())) return false;
    }
    return true;
  }

 private:
  static constexpr double kEnd = 0.5 * PlainHosts::kUnits;
  struct Booked {
    double start;
    std::vector<Part> parts;
    Amounts demand;
    std::size_t stride;
    std::array<int, 2> uses;
    double finish;
  };
  // A capacity over time.
  struct PlainCapacity {
    StepFunction steps{3};
    std::array<int, PlainHosts::kUnits> free;  // [half unit]

    PlainCapacity() { free.fill(3); }
    void add(double first, double last, int amount) {
      steps.add(first, last, amount);
      for (int unit = 0; unit < PlainHosts::kUnits; ++unit)
        if (first <= 0.5 * unit && 0.5 * unit < last) free[static_cast<std::size_t>(unit)] += amount;
    }
  };

  void change_capacity() {
    const double first = 0.5 * random_.in(0, 20);
    capacities_[static_cast<std::size_t>(random_.in(0, 1))].add(
        first, first + 0.5 * random_.in(1, 12), random_.one_in(2) ? 1 : -1);
  }
  void add_uses(const std::array<int, 2>& uses, double first, double last, int sign) {
    for (std::size_t k = 0; k < 2; ++k) capacities_[k].add(first, last, sign * uses[k]);
  }
  // True if the capacities have enough for a window that starts in this half unit.
  bool have_enough(const Case& each, int unit) const {
    for (std::size_t k = 0; k < 2; ++k)
      for (int at = unit; at < PlainHosts::kUnits && 0.5 * (at - unit) < each.query.volume; ++at)
        if (capacities_[k].free[static_cast<std::size_t>(at)] < each.uses[k] && each.uses[k] > 0)
          return false;
    return true;
  }

  Amounts demand_of(const Amounts& demand, std::size_t stride, std::size_t host) const {
    const auto from = demand.begin() + static_cast<std::ptrdiff_t>(host * stride);
    return {from, from + static_cast<std::ptrdiff_t>(resources_)};
  }

  Case draw(std::size_t tree) {
    Case each;
    Query& query = each.query;
    query.volume = 0.5 * random_.in(1, 12);
    if (random_.one_in(4)) query.earliest = 0.5 * random_.in(0, 20);
    if (random_.one_in(5)) query.latest = std::max(query.earliest, 0.5 * random_.in(0, 30));
    if (random_.one_in(5)) query.deadline = std::max(query.earliest, 0.5 * random_.in(4, 64));
    if (random_.one_in(5)) query.budget = random_.in(1, 40);
    if (random_.one_in(8)) query.max_price = 2;
    if (random_.one_in(5)) {
      mask_.clear();
      for (int h = 0; h < hosts_; ++h) mask_.push_back(!random_.one_in(4));
      query.mask = mask_.data(), query.masked = mask_.size();
    }
    for (std::size_t l = 0; l < levels_[tree].group_of.size(); ++l)
      each.counts.push_back(random_.one_in(3) ? random_.in(1, 3) : 1);
    each.parts = random_.in(0, 3);
    if (each.parts == 0 || random_.one_in(3)) {
      each.stride = resources_, each.demand = capacity_;
    } else {
      each.stack = random_.one_in(2) ? 1 : random_.in(1, 3);
      for (std::size_t d = 0; d < resources_; ++d) each.demand.push_back(random_.in(d == 0, 2));
    }
    const bool alike = random_.one_in(2);
    for (int h = 0; h < hosts_; ++h) each.prices.push_back(alike ? 1 : random_.in(1, 3));
    if (random_.one_in(2)) each.uses = {random_.in(0, 2), random_.in(0, 2)};
    return each;
  }

  bool search() {
    const std::size_t tree = static_cast<std::size_t>(random_.in(0, 1));
    const Case each = draw(tree);
    TreeRequest request{&each.query, {each.demand.data(), each.stride}, each.stack,
                        each.prices.data(), tree, each.counts.data(), each.parts};
    std::vector<CapacityUse> uses;
    for (std::size_t k = 0; k < 2; ++k) {
      StepFunction& free = capacities_[k].steps;
      if (free.epoch() == 0 && !random_.one_in(8)) free.set_epoch(++epochs_);
      if (each.uses[k] > 0) uses.push_back({&free, each.uses[k]});
    }
    if (!uses.empty()) request.uses = &uses;
    std::size_t n = 0;
    const Answer answer = find_tree(pool_, request, n);
    ++tally_.searches;
    const bool is_small = hosts_ <= 6;
    const Best best = is_small ? plain_best(each, levels_[tree]) : greedy_best(each, levels_[tree]);
    if ((answer.status == Status::ok) != best.exists) return false;
    if (!best.exists) return answer.status == Status::none;
    ++tally_.found;
    std::vector<int> counts(static_cast<std::size_t>(hosts_));
    for (std::size_t i = 0; i < n; ++i) ++counts[answer.parts[i].row];
    std::vector<int> by_place;
    for (const std::uint32_t host : levels_[tree].tree.hosts) by_place.push_back(counts[host]);
    if (answer.found.start != best.start || answer.found.cost != best.cost ||
        by_place != best.counts)
      return false;
    if (random_.one_in(3)) return true;
    std::size_t failed = 0;
    const std::vector<Part> parts(answer.parts, answer.parts + n);
    if (book_shares(pool_, answer.found.start, parts.data(), n, request.demand, failed) !=
        Status::ok)
      return false;
    for (const Part& part : parts)
      plain_.add(part.row, best.start, best.start + part.length,
                 demand_of(each.demand, each.stride, part.row), -1);
    const double finish = best.start + each.query.volume;
    booked_.push_back({best.start, parts, each.demand, each.stride, each.uses, finish});
    add_uses(each.uses, best.start, finish, -1);
    return true;
  }

  bool release() {
    if (booked_.empty()) return true;
    const auto at = static_cast<std::size_t>(random_.in(0, static_cast<int>(booked_.size()) - 1));
    const Booked booked = booked_[at];
    booked_.erase(booked_.begin() + static_cast<std::ptrdiff_t>(at));
    std::size_t failed = 0;
    add_uses(booked.uses, booked.start, booked.finish, 1);
    for (const Part& part : booked.parts) {
      const Amounts amounts = demand_of(booked.demand, booked.stride, part.row);
      if (release_shares(pool_, booked.start, &part, 1, amounts.data(), failed) != Status::ok)
        return false;
      plain_.add(part.row, booked.start, booked.start + part.length, amounts, 1);
    }
    return true;
  }

  // True if the numbers of parts have the form that is asked for.
  bool has_form(const Case& each, const Levels& levels, const std::vector<int>& counts) const {
    const std::size_t size = levels.group_of.size();
    for (std::size_t level = 0; level < size; ++level) {
      const auto& group_of = levels.group_of[level];
      std::vector<int> touched(counts.size(), 0);  // [group of the level above]
      int last = -1;
      for (std::size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] == 0 || group_of[i] == last) continue;
        last = group_of[i];
        ++touched[level ? static_cast<std::size_t>(levels.group_of[level - 1][i]) : 0];
      }
      for (const int x : touched)
        if (x != 0 && x != each.counts[level]) return false;
    }
    std::vector<int> parts(counts.size(), 0), width(counts.size(), 0);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const auto group = static_cast<std::size_t>(levels.group_of[size - 1][i]);
      parts[group] += counts[i], ++width[group];
    }
    bool any = false;
    for (std::size_t g = 0; g < parts.size(); ++g) {
      any |= parts[g] > 0;
      if (parts[g] > 0 && parts[g] != (each.parts ? each.parts : width[g])) return false;
    }
    return any;
  }

  // The most parts of each place that can start at t.
  std::vector<int> most_parts(const Case& each, const Levels& levels, double t) const {
    std::vector<int> most;
    for (const std::uint32_t host : levels.tree.hosts) {
      int m = 0;
      const bool allowed = each.query.passes(host) && each.prices[host] <= each.query.max_price;
      while (allowed && m < each.stack &&
             plain_.holds(host, t, t + each.query.volume,
                          demand_of(each.demand, each.stride, host), m + 1))
        ++m;
      most.push_back(m);
    }
    return most;
  }
  double cost_of(const Case& each, const Levels& levels, const std::vector<int>& counts) const {
    double cost = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
      cost += each.query.volume * each.prices[levels.tree.hosts[i]] * counts[i];
    return cost;
  }
  template <class Choose>
  Best first_start(const Case& each, const Levels& levels, Choose choose) const {
    Best best;
    for (int unit = 0; unit < PlainHosts::kUnits && !best.exists; ++unit) {
      const double t = 0.5 * unit;
      if (t < each.query.earliest || t > each.query.latest ||
          t + each.query.volume > each.query.deadline || !have_enough(each, unit))
        continue;
      choose(most_parts(each, levels, t), best);
      best.start = t;
    }
    return best;
  }

  // The cheapest of all numbers of parts, and of these the first in the order of the tree.
  Best plain_best(const Case& each, const Levels& levels) const {
    return first_start(each, levels, [&](const std::vector<int>& most, Best& best) {
      std::vector<int> counts(most.size(), 0);
      for (;;) {
        std::size_t i = 0;
        while (i < counts.size() && counts[i] == most[i]) counts[i++] = 0;
        if (i == counts.size()) return;
        ++counts[i];
        if (!has_form(each, levels, counts)) continue;
        const double cost = cost_of(each, levels, counts);
        if (cost > each.query.budget) continue;
        if (!best.exists || cost < best.cost || (cost == best.cost && counts > best.counts))
          best.exists = true, best.cost = cost, best.counts = counts;
      }
    });
  }

  // The same for many hosts, by the definition of the tie rule.
  Best greedy_best(const Case& each, const Levels& levels) const {
    return first_start(each, levels, [&](const std::vector<int>& most, Best& best) {
      std::vector<int> counts(most.size(), 0);
      if (!take(each, levels, most, 0, 0, levels.tree.first[0].size() - 1, counts)) return;
      const double cost = cost_of(each, levels, counts);
      if (cost > each.query.budget) return;
      best.exists = true, best.cost = cost, best.counts = counts;
    });
  }
  bool take(const Case& each, const Levels& levels, const std::vector<int>& most,
            std::size_t level, std::size_t begin, std::size_t end,
            std::vector<int>& counts) const {
    std::vector<std::pair<double, std::vector<int>>> found;
    for (std::size_t g = begin; g < end; ++g) {
      std::vector<int> inside(most.size(), 0);
      const std::size_t first = levels.tree.first[level][g], last = levels.tree.first[level][g + 1];
      const bool fits = level + 1 < levels.group_of.size()
                            ? take(each, levels, most, level + 1, first, last, inside)
                            : take_hosts(each, levels, most, first, last, inside);
      if (fits) found.emplace_back(cost_of(each, levels, inside), inside);
    }
    const auto k = static_cast<std::size_t>(each.counts[level]);
    if (found.size() < k) return false;
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t g = 0; g < k; ++g)
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += found[g].second[i];
    return true;
  }
  bool take_hosts(const Case& each, const Levels& levels, const std::vector<int>& most,
                  std::size_t first, std::size_t last, std::vector<int>& counts) const {
    int left = each.parts ? each.parts : static_cast<int>(last - first);
    for (int price = 1; price <= 3; ++price)
      for (std::size_t i = first; i < last; ++i) {
        if (each.prices[levels.tree.hosts[i]] != price) continue;
        counts[i] = std::min(left, most[i]);
        left -= counts[i];
      }
    return left == 0;
  }

  Random& random_;
  Tally& tally_;
  bool is_right_ = true;  // the pool was made
  std::array<PlainCapacity, 2> capacities_;
  std::uint64_t epochs_ = 0;
  int hosts_ = 0;
  std::size_t resources_ = 1;
  std::vector<Amount> capacity_;
  PlainHosts plain_;
  SharePool pool_;
  std::vector<Levels> levels_;
  std::vector<std::uint8_t> mask_;
  std::vector<Booked> booked_;
};

}  // namespace trees

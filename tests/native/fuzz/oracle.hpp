// Finds the best window by enumerating all windows: the rules of tests/support/oracle.py in C++,
// written without the kernels' searches.
#pragma once

#include <array>
#include <tuple>

#include "limits.hpp"

namespace fuzz {

// The n parts of a window in a fixed array; compares as a vector does.
template <class T>
class Few {
 public:
  void push_back(T x) { values_.at(size_++) = x; }
  void clear() { size_ = 0; }
  std::size_t size() const { return size_; }
  T* begin() { return values_.data(); }
  T* end() { return values_.data() + size_; }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  const T& operator[](std::size_t i) const { return values_[i]; }
  friend bool operator==(const Few& a, const Few& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator<(const Few& a, const Few& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<T, 32> values_;
  std::size_t size_ = 0;
};

using Rows = Few<std::uint32_t>;

struct Seen {
  double start = 0, runtime = 0, cost = 0, processor_time = 0;
  // Price (square) or part cost, and node id: in cost order.
  Few<std::pair<double, std::int32_t>> keys;
  Few<std::int32_t> nodes;
  Rows rows;  // in the order of the nodes
};

// Times and costs of a window at `start`, its rows in cost order.
struct Totals {
  double start, runtime, cost;
  const Rows& rows;
};

// A part that runs `length` from t in a slot.
inline bool fits(const Row& row, double t, double length, double deadline) {
  return row.start <= t && t + length <= std::min(row.end, deadline);
}

inline bool proper(const Row& row, std::size_t i, const FilteredQuery& request) {
  const Query& query = request.query;
  return row.performance >= query.min_performance && row.price <= query.max_price &&
         std::max(row.start, query.earliest) <= query.latest &&
         length_on(query, row.performance) <= query.max_runtime &&
         (request.mask.empty() || request.mask[i]);
}

// Checks that some part is indeed so short that t + length may equal t: at the start of a slot, or
// later in slots that never end.
inline void check_refusal(const std::vector<Row>& rows, const FilteredQuery& request,
                          double later = 0) {
  double latest = 0, fastest = 0;
  for (const Row& row : rows) {
    latest = std::max({latest, std::fabs(std::max(row.start, request.query.earliest)),
                       std::isinf(row.end) ? 0 : std::fabs(row.end)});
    fastest = std::max(fastest, row.performance);
  }
  const auto endless = [](const Row& row) { return std::isinf(row.end); };
  if (std::any_of(rows.begin(), rows.end(), endless)) latest += later;
  if (request.query.volume / fastest > next_up(latest) - latest)
    fail("a volume is refused that is large enough", rows, request);
}

class Oracle {
 public:
  // `limited`: the sum limits that windows must satisfy, or none.
  Oracle(const std::vector<Row>& rows, const FilteredQuery& request, ShapeKind shape,
         const Limited* limited = nullptr)
      : rows_(rows), asked_(request), limited_(limited), square_(shape == ShapeKind::square),
        n_(static_cast<std::size_t>(request.query.n)),
        budget_(relaxed_max(request.query.budget)) {
    for (std::uint32_t i = 0; i < rows.size(); ++i) {
      starts_.push_back(std::max(rows[i].start, request.query.earliest));
      lengths_.push_back(length_on(request.query, rows[i].performance));
      keys_.push_back(key_of(request.query, rows[i], square_));
      if (proper(rows[i], i, request)) in_cost_order_.push_back(i);
    }
    std::sort(in_cost_order_.begin(), in_cost_order_.end(), [&](auto a, auto b) {
      return std::tie(keys_[a], rows[a].node) < std::tie(keys_[b], rows[b].node);
    });
    std::sort(starts_.begin(), starts_.end());
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
  }

  double length(std::size_t i) const { return lengths_[i]; }
  const std::vector<double>& starts() const { return starts_; }

  Totals totals(double t, const Rows& rows) const {
    double runtime = 0;
    for (const auto i : rows) runtime = std::max(runtime, lengths_[i]);
    const double sum = rounded_sum(rows, [this](auto i) { return keys_[i]; });
    return {t, runtime, square_ ? runtime * sum : sum, rows};
  }

  Seen window(const Totals& totals) const {
    Seen seen;
    seen.start = totals.start, seen.runtime = totals.runtime, seen.cost = totals.cost;
    double time = 0;
    seen.rows = totals.rows;
    for (const auto i : totals.rows) {
      seen.keys.push_back({keys_[i], rows_[i].node});
      time += lengths_[i];
    }
    seen.processor_time = square_ ? static_cast<double>(n_) * seen.runtime : time;
    std::sort(seen.rows.begin(), seen.rows.end(),
              [this](auto a, auto b) { return rows_[a].node < rows_[b].node; });
    for (const auto i : seen.rows) seen.nodes.push_back(rows_[i].node);
    return seen;
  }

  // Returns true if a window, given by its rows and its runtime, satisfies the limits.
  bool meets_limits(const auto& window) const {
    std::vector<double> uses;
    for (const SumConstraint& limit : limited_->limits.all) {
      uses.clear();
      for (const auto i : window.rows)
        uses.push_back(Limited::use(limit, rows_[i], i, square_ ? window.runtime : lengths_[i]));
      if (!Limited::is_met(limit, uses)) return false;
    }
    return true;
  }

  // Calls visit(totals) for every window within budget that starts at t. At most 16 slots are live
  // at once.
  template <class Visit>
  void windows_at(double t, Visit visit) const {
    std::vector<std::uint32_t>& known = live(t);
    if (known.size() < n_) return;
    if (known.size() > 16) std::abort();
    Rows rows;
    for (std::uint32_t set = 0; set < (1u << known.size()); ++set) {
      if (static_cast<std::size_t>(std::popcount(set)) != n_) continue;
      rows.clear();
      for (std::size_t k = 0; k < known.size(); ++k)
        if (set >> k & 1) rows.push_back(known[k]);
      visit_if(t, rows, visit);
    }
  }

  // As above, but only with the n cheapest slots for each maximum part length: replacing a slot by
  // a cheaper, no slower one never makes a window worse. Not valid under sum limits.
  template <class Visit>
  void cheapest_at(double t, Visit visit) const {
    const std::vector<std::uint32_t>& known = live(t);
    if (known.size() < n_) return;
    Few<double> lengths;
    for (const auto i : known)
      if (std::find(lengths.begin(), lengths.end(), lengths_[i]) == lengths.end())
        lengths.push_back(lengths_[i]);
    Rows rows;
    for (const double most : lengths) {
      double longest = 0;
      rows.clear();
      for (const auto i : known)
        if (lengths_[i] <= most && rows.size() < n_ &&
            (!square_ || fits(rows_[i], t, most, asked_.query.deadline))) {
          rows.push_back(i);
          longest = std::max(longest, lengths_[i]);
        }
      // At a shorter length cheaper slots may be live: if rounding makes costs equal, only these
      // count.
      if (rows.size() == n_ && longest == most) visit_if(t, rows, visit);
    }
  }

  // The best by start, finish, runtime and cost; by value, start, cost and nodes. Among windows of
  // one value and start (square: and runtime) the n cheapest in cost order win, also if rounding
  // makes costs equal.
  class Best {
   public:
    void offer(const Oracle& oracle, double value, const Totals& totals) {
      if (!held_.empty() && value > value_) return;
      if (!held_.empty() && value < value_) held_.clear();
      value_ = value;
      const Seen seen = oracle.window(totals);
      for (Seen& other : held_)
        if (other.start == seen.start && (!oracle.square_ || other.runtime == seen.runtime)) {
          if (std::tie(seen.cost, seen.keys) < std::tie(other.cost, other.keys))
            other = seen;
          return;
        }
      held_.push_back(seen);
    }
    bool any() const { return !held_.empty(); }
    const Seen& window() const {
      return *std::min_element(held_.begin(), held_.end(), [](const Seen& a, const Seen& b) {
        return std::tie(a.start, a.cost, a.nodes) < std::tie(b.start, b.cost, b.nodes);
      });
    }

   private:
    double value_ = 0;
    std::vector<Seen> held_;
  };

  std::array<Best, 4> best(bool every) const {
    std::array<Best, 4> best;
    const auto visit = [&](const Totals& w) {
      const double values[] = {w.start, w.start + w.runtime, w.runtime, w.cost};
      for (std::size_t k = 0; k < 4; ++k) best[k].offer(*this, values[k], w);
    };
    for (const double t : starts_) every ? windows_at(t, visit) : cheapest_at(t, visit);
    return best;
  }

  // As above by full enumeration: of the first start the fastest windows (square), of those the
  // first step's, of those the cheapest.
  bool first_of_all(Seen& out) const {
    bool any = false;
    std::tuple<double, std::uint32_t> least;
    for (const double t : starts_) {
      windows_at(t, [&](const Totals& w) {
        const std::tuple now{square_ ? w.runtime : 0,
                             *std::max_element(w.rows.begin(), w.rows.end())};
        if (any && least < now) return;
        const Seen seen = window(w);
        if (any && now == least && std::tie(out.cost, out.keys) <= std::tie(seen.cost, seen.keys))
          return;
        any = true, least = now, out = seen;
      });
      if (any) break;
    }
    return any;
  }

  // AMP and FirstFit: every start in turn, its groups fastest first, its steps.
  bool first(Seen& out) const {
    std::vector<double> groups;  // by length
    for (const auto i : in_cost_order_) groups.push_back(lengths_[i]);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    if (!square_) groups.assign(1, kInfinity);
    Rows rows;
    for (const double t : starts_)
      for (const double group : groups) {
        live_.clear();
        for (const auto i : in_cost_order_)
          if (lengths_[i] <= group &&
              fits(rows_[i], t, square_ ? group : lengths_[i], asked_.query.deadline))
            live_.push_back(i);
        for (std::size_t last = 0; last < rows_.size() && live_.size() >= n_; ++last) {
          if (std::max(rows_[last].start, asked_.query.earliest) != t) continue;
          rows.clear();
          for (const auto i : live_)
            if (i <= last && rows.size() < n_) rows.push_back(i);
          if (rows.size() < n_) continue;
          const Totals totals = this->totals(t, rows);
          if (!(totals.cost <= budget_)) continue;
          out = window(totals);
          return true;
        }
      }
    return false;
  }

 private:
  // Returns the slots that can hold their own part from t, in cost order.
  std::vector<std::uint32_t>& live(double t) const {
    live_.clear();
    for (const auto i : in_cost_order_)
      if (fits(rows_[i], t, lengths_[i], asked_.query.deadline)) live_.push_back(i);
    return live_;
  }

  template <class Visit>
  void visit_if(double t, const Rows& rows, Visit visit) const {
    const Totals totals = this->totals(t, rows);
    if (!(totals.cost <= budget_)) return;
    for (const auto i : rows) {
      if (!fits(rows_[i], t, square_ ? totals.runtime : lengths_[i], asked_.query.deadline))
        return;
      for (const auto other : rows)  // a slot may end when another one starts
        if (other != i && rows_[other].node == rows_[i].node) return;
    }
    if (limited_ && !meets_limits(totals)) return;
    visit(totals);
  }

  const std::vector<Row>& rows_;
  const FilteredQuery& asked_;
  const Limited* limited_;
  bool square_;
  std::size_t n_;
  double budget_;
  std::vector<double> starts_, lengths_, keys_;
  std::vector<std::uint32_t> in_cost_order_;  // the rows that pass the filters
  mutable std::vector<std::uint32_t> live_;
};

// Checks what each criterion finds under limits. If the best window without limits satisfies them,
// it is the answer: if costs are too small to differ (5e-324 * 0.5 is 0), the enumeration may take
// another one for as cheap.
class BestWithin {
 public:
  BestWithin(const std::vector<Row>& rows, const FilteredQuery& request, ShapeKind shape,
             const Limited& limited, bool enough)
      : oracle_(rows, request, shape, &limited), any_(enough && oracle_.first_of_all(first_)) {
    if (any_) best_ = oracle_.best(true), unlimited_ = Oracle(rows, request, shape).best(false);
  }

  bool any() const { return any_; }
  const Seen& window(int criterion) const {
    if (!any_ || criterion == 0) return first_;
    const auto k = static_cast<std::size_t>(criterion) - 1;
    const Seen& seen = unlimited_[k].window();
    return oracle_.meets_limits(seen) ? seen : best_[k].window();
  }

 private:
  Oracle oracle_;
  Seen first_;
  bool any_;
  std::array<Oracle::Best, 4> best_, unlimited_;
};

inline void print(const Seen& seen) {
  std::fprintf(stderr, "window: start %.17g, runtime %.17g, cost %.17g, rows", seen.start,
               seen.runtime, seen.cost);
  for (const auto row : seen.rows) std::fprintf(stderr, " %u", row);
  std::fprintf(stderr, "\n");
}

inline Seen seen_of(const Found& found, const Part* parts, std::int64_t n) {
  Seen seen;
  seen.start = found.start, seen.runtime = found.runtime;
  seen.cost = found.cost, seen.processor_time = found.processor_time;
  for (std::int64_t i = 0; i < n; ++i) {
    seen.nodes.push_back(parts[i].node);
    seen.rows.push_back(static_cast<std::uint32_t>(parts[i].row));
  }
  return seen;
}

inline bool same(const Seen& a, const Seen& b) {
  return a.start == b.start && a.runtime == b.runtime && a.cost == b.cost &&
         a.processor_time == b.processor_time && a.rows == b.rows && a.nodes == b.nodes;
}

}  // namespace fuzz

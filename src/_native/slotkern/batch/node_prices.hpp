// Price rates of the time of nodes: piecewise constant, 0 before the first and after the last
// breakpoint.
//
// The rate of a node is the sum of the rates of spans. The integral of a rate is piecewise linear;
// each piece is evaluated from its own breakpoint, so that no sum grows with the length of time.
// Sums of rates are added in the order of the spans, so the result is the same on all machines.
// Cost: O(log breakpoints) for integral(). Construction: O(m log m) for m spans if the spans of each
// node are disjoint and ascending, otherwise O(m^2) for each node.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "slotkern/base/numbers.hpp"

namespace slotkern {

// A piece of an integral: from `begin` on it is sum + rate * (t - base).
struct IntegralPiece {
  double begin, base, rate, sum;

  double at(double t) const { return sum + rate * (t - base); }
};

class NodePrices {
 public:
  // Spans of nodes below `nodes`, start < end, and their rates.
  void build(std::size_t nodes, std::size_t count, const std::int64_t* node, const double* start,
             const double* end, const double* rate) {
    pieces_.clear(), falls_.clear(), rises_.clear();
    first_piece_.assign(nodes + 1, 0), first_fall_.assign(nodes + 1, 0);
    first_rise_.assign(nodes + 1, 0);
    max_rate_ = 0, max_pieces_ = 0;
    first_span_.assign(nodes + 1, 0);
    for (std::size_t i = 0; i < count; ++i) ++first_span_[static_cast<std::size_t>(node[i]) + 1];
    for (std::size_t k = 0; k < nodes; ++k) first_span_[k + 1] += first_span_[k];
    spans_.resize(count);
    next_.assign(first_span_.begin(), first_span_.end());
    for (std::size_t i = 0; i < count; ++i)
      spans_[next_[static_cast<std::size_t>(node[i])]++] = {start[i], end[i], rate[i]};
    for (std::size_t k = 0; k < nodes; ++k) {
      const std::size_t before = pieces_.size();
      add_node(std::span(spans_).subspan(first_span_[k], first_span_[k + 1] - first_span_[k]));
      max_pieces_ = std::max(max_pieces_, pieces_.size() - before);
      first_piece_[k + 1] = pieces_.size();
      first_fall_[k + 1] = falls_.size(), first_rise_[k + 1] = rises_.size();
    }
  }

  bool has_price(std::size_t node) const { return pieces(node).size() > 2; }
  double max_rate() const { return max_rate_; }
  std::size_t max_pieces() const { return max_pieces_; }  // of one node

  // The pieces of a node, the first from -infinity on; then one that begins at infinity.
  std::span<const IntegralPiece> pieces(std::size_t node) const {
    return std::span(pieces_).subspan(first_piece_[node],
                                      first_piece_[node + 1] - first_piece_[node]);
  }
  // The breakpoints at which the rate of a node falls, and at which it rises, ascending.
  std::span<const double> falls(std::size_t node) const {
    return std::span(falls_).subspan(first_fall_[node], first_fall_[node + 1] - first_fall_[node]);
  }
  std::span<const double> rises(std::size_t node) const {
    return std::span(rises_).subspan(first_rise_[node], first_rise_[node + 1] - first_rise_[node]);
  }

  // The integral of the rate of a node over [t, t + length).
  double integral(std::size_t node, double t, double length) const {
    return piece_at(node, t + length).at(t + length) - piece_at(node, t).at(t);
  }

 private:
  struct RateSpan {
    double start, end, rate;
  };

  const IntegralPiece& piece_at(std::size_t node, double t) const {
    const auto all = pieces(node);
    const auto later = std::upper_bound(
        all.begin(), all.end(), t,
        [](double time, const IntegralPiece& piece) { return time < piece.begin; });
    return *(later - 1);
  }

  void add_node(std::span<const RateSpan> spans) {
    times_.clear(), rates_.clear();
    bool disjoint = true;
    for (std::size_t i = 1; i < spans.size() && disjoint; ++i)
      disjoint = spans[i - 1].end <= spans[i].start;
    if (disjoint) {
      for (const RateSpan& span : spans) {
        if (times_.empty() || times_.back() != span.start) {
          if (!times_.empty()) rates_.push_back(0);
          times_.push_back(span.start);
        }
        rates_.push_back(span.rate), times_.push_back(span.end);
      }
    } else {
      add_sums(spans);
    }
    double sum = 0, before = 0;
    pieces_.push_back({-kInfinity, 0, 0, 0});
    for (std::size_t i = 0; i < times_.size(); ++i) {
      const double rate = i < rates_.size() ? rates_[i] : 0;
      pieces_.push_back({times_[i], times_[i], rate, sum});
      if (rate < before) falls_.push_back(times_[i]);
      if (rate > before) rises_.push_back(times_[i]);
      if (i < rates_.size()) sum += rate * (times_[i + 1] - times_[i]);
      max_rate_ = std::max(max_rate_, rate);
      before = rate;
    }
    pieces_.push_back({kInfinity, 0, 0, 0});
  }

  void add_sums(std::span<const RateSpan> spans) {
    for (const RateSpan& span : spans) times_.push_back(span.start), times_.push_back(span.end);
    std::sort(times_.begin(), times_.end());
    times_.erase(std::unique(times_.begin(), times_.end()), times_.end());
    rates_.assign(times_.size() - 1, 0);
    for (const RateSpan& span : spans) {
      const auto from = std::lower_bound(times_.begin(), times_.end(), span.start);
      for (auto at = from; *at < span.end; ++at)
        rates_[static_cast<std::size_t>(at - times_.begin())] += span.rate;
    }
  }

  std::vector<IntegralPiece> pieces_;
  std::vector<double> falls_, rises_;
  std::vector<std::size_t> first_piece_, first_fall_, first_rise_;  // by node
  double max_rate_ = 0;
  std::size_t max_pieces_ = 0;
  std::vector<RateSpan> spans_;  // scratch: spans by node
  std::vector<std::size_t> first_span_, next_;
  std::vector<double> times_, rates_;
};

}  // namespace slotkern

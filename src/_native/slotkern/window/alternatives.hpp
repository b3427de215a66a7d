// All disjoint alternatives of one request in one sweep: CSA with AMP (ragged; Toporkov et
// al. 2013, section 3.1) and MultipleBest with FirstFit (square; 2018, section 3.1).
//
// The papers search from the start again after every window that they cut. One sweep gives
// the same windows, because cutting only takes time away: a step that found nothing finds
// nothing later, the left remnant of a slot ends when its window starts and serves no other
// one, and the right remnant comes as a new slot later on. So after a success the window's
// parts leave, their right remnants queue up as coming slots, and the sweep goes on.
//
// Square: all slots of equal t are collected, then offered group by group, fastest first.
// A group that found nothing at t finds nothing after a cut, so no group is looked at twice.
//
// Ragged O((m + k n) log m) expected for k alternatives of n parts, square that times the
// groups that can fit the budget. Memory: 48 bytes for each slot and part taken, kept for the
// next search of the thread, and at most 32 bytes for each slot of each group that is live at once,
// in all those of kMostLive; no more than kMostParts parts are given, for a long slot holds any
// number of short ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "slotkern/window/find.hpp"

namespace slotkern {

// The most parts that one search gives: 320 MB of them and of scratch.
inline constexpr std::size_t kMostParts = 4'000'000;

// The most live slots that all groups together have room for: 256 MB.
inline constexpr std::size_t kMostLive = std::size_t{1} << 24;

namespace detail {

// What is left of a slot: from `start` to the end of the slot.
struct Piece {
  double start, limit;  // of a part on it: the earliest start, the latest finish
  double own;           // ragged: how long the part runs
  std::size_t row;
  std::int32_t node;
  bool taken;
};

// A right remnant that has not come yet, in the order of slots. Small, for the heap.
struct Coming {
  double start;
  std::int32_t node;
  std::uint32_t piece;
  bool operator<(const Coming& other) const {  // the heap gives the largest
    return start != other.start ? start > other.start : node > other.node;
  }
};

// Scratch of one thread; it only grows.
struct AlternativesScratch {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> step;  // pieces that start at this t
  std::vector<Coming> coming;       // a heap
  std::vector<Entry> chosen;
  std::vector<Part> parts;

  AlternativesScratch& cleared() {
    pieces.clear(), step.clear(), coming.clear();
    return *this;
  }
};

inline AlternativesScratch& alternatives_scratch() {
  static thread_local AlternativesScratch scratch;
  return scratch.cleared();
}

template <class Shape>
class AlternativesSweep {
 public:
  AlternativesSweep(const PreparedSlots& prepared, const Query& query, std::size_t limit,
                    WindowTable& out)
      : prepared_(prepared),
        query_(query),
        n_(static_cast<std::size_t>(query.n)),
        limit_(limit),
        out_(out),
        work_(alternatives_scratch()),
        pieces_(work_.pieces),
        step_(work_.step),
        coming_(work_.coming) {}

  // A group to search, fastest first. `least_others` as in sweep(). False when there are too many.
  bool add_group(const Shape& shape, double least_others) {
    poll();
    const float ceiling = key_ceiling(shape.screened(query_.budget), least_others);
    if (groups_.empty()) {
      thresholds_ = first_thresholds(prepared_, query_, shape);
      thresholds_.key = ceiling;
      shortest_ = shape.shortest(prepared_);
    }
    thresholds_.key = std::max(thresholds_.key, ceiling);
    thresholds_.performance =
        std::min(thresholds_.performance, first_thresholds(prepared_, query_, shape).performance);
    groups_.push_back({shape, ceiling, SmallestOf<ByNode>(ByNode{this})});
    groups_.back().top.reset(n_, kFewLive);
    live_ += groups_.back().top.room();
    return live_ <= kMostLive;
  }

  Status run() {
    if (groups_.empty() || limit_ == 0) return Status::ok;
    if (live_ > kMostLive) return Status::too_many_live;
    const bool endless = limit_ == ~std::size_t{0} &&
                         query_.deadline == std::numeric_limits<double>::max() &&
                         query_.latest == kInfinity;
    Shape::screen(prepared_).each(
        prepared_.order, thresholds_, prepared_.last_position(), [&](std::size_t row) {
          const Slot& s = prepared_.slots[row];
          if (!query_.admits(s, row)) return true;
          if (endless && std::isinf(s.end)) {
            status_ = Status::endless;
            return going_ = false;
          }
          const Piece slot{s.start, query_.limit(s), groups_.front().shape.length(s),
                           row,     s.node,          false};
          return take_until(&slot);
        });
    if (going_) take_until(nullptr);
    return status_;
  }

 private:
  // Key, then node: the tie rule.
  struct ByNode {
    const AlternativesSweep* sweep = nullptr;
    bool operator()(const Entry& a, const Entry& b) const {
      if (a.key != b.key) return a.key < b.key;
      return sweep->pieces_[a.row].node < sweep->pieces_[b.row].node;
    }
  };

  struct Group {
    Shape shape;
    float ceiling;  // of the screen keys of its parts
    SmallestOf<ByNode> top;
  };

  // live(), without a division.
  bool lives(const Shape& shape, const Piece& piece, double t) const {
    double length = piece.own;
    if constexpr (std::is_same_v<Shape, Square>) length = shape.span;
    return t + length <= piece.limit;
  }

  const Slot& slot_of(std::size_t piece) const { return prepared_.slots[pieces_[piece].row]; }

  // Takes in all remnants that come before `slot`, then the slot (or all that are left).
  bool take_until(const Piece* slot) {
    for (;;) {
      const bool remnant =
          !coming_.empty() && (!slot || Coming{slot->start, slot->node, 0} < coming_.front());
      const bool none = !remnant && !slot;
      if (none && step_.empty()) return true;
      const double start = none ? kInfinity : remnant ? coming_.front().start : slot->start;
      const double t = std::max(start, query_.earliest);
      if (t != t_ && !step_.empty()) {
        if (!search_step()) return false;
        continue;  // the step may have queued what comes before
      }
      t_ = t;
      poll();
      if (t + shortest_ > query_.deadline || t > query_.latest) return going_ = false;
      if (!remnant) {
        step_.push_back(static_cast<std::uint32_t>(pieces_.size()));
        pieces_.push_back(*slot);
        return true;
      }
      step_.push_back(coming_.front().piece);
      std::pop_heap(coming_.begin(), coming_.end());
      coming_.pop_back();
    }
  }

  // Offers the pieces of this t to each group, and takes every window that fits.
  bool search_step() {
    for (Group& group : groups_) {
      const Shape& shape = group.shape;
      for (const std::uint32_t id : step_) {
        if (pieces_[id].taken) continue;
        const Slot& slot = prepared_.slots[pieces_[id].row];
        if (slot.performance < shape.performance() || !lives(shape, pieces_[id], t_) ||
            shape.screen_key(slot) > static_cast<double>(group.ceiling))
          continue;
        const auto usable = [&](std::size_t other) {
          return !pieces_[other].taken && lives(shape, pieces_[other], t_);
        };
        if (group.top.crowded()) {
          live_ -= group.top.room();
          group.top.make_room(usable);
          live_ += group.top.room();
          if (live_ > kMostLive) {
            status_ = Status::too_many_live;
            return going_ = false;
          }
        }
        if (!group.top.offer(shape.key(slot), id)) continue;
        while (group.top.full() && !(shape.total(group.top.lower()) > query_.budget)) {
          if (group.top.purge(usable)) continue;
          if (!(shape.total(group.top.sum()) <= query_.budget)) break;
          if (!take(group)) return going_ = false;
          group.top.drop_front(usable);
        }
      }
    }
    step_.clear();
    return true;
  }

  // Moves the n cheapest of a group into the result and queues their right remnants.
  bool take(Group& group) {
    work_.chosen.clear();
    for (std::size_t i = 0; i < n_; ++i) {
      Piece& piece = pieces_[group.top[i].row];
      piece.taken = true;
      work_.chosen.push_back({group.top[i].key, piece.row});
    }
    Found found;
    settle(prepared_, group.shape, work_.chosen, n_, t_, found, work_.parts);
    if constexpr (std::is_same_v<Shape, Square>)
      found.processor_time = static_cast<double>(n_) * found.runtime;
    found.value = found.start;
    for (std::size_t i = 0; i < n_; ++i) {
      Piece rest = pieces_[group.top[i].row];
      const double end = prepared_.slots[rest.row].end;
      double length = rest.own;
      if constexpr (std::is_same_v<Shape, Square>) length = group.shape.span;
      rest.start = cut_finish(t_ + length, end);
      if (!(rest.start > t_)) {
        status_ = Status::volume_too_small;
        return false;
      }
      if (!(rest.start < end) || !lives(groups_.front().shape, rest, rest.start)) continue;
      rest.taken = false;
      coming_.push_back({rest.start, rest.node, static_cast<std::uint32_t>(pieces_.size())});
      std::push_heap(coming_.begin(), coming_.end());
      pieces_.push_back(rest);
    }
    if (out_.found.size() == kLong) expect_long();
    if (out_.parts.size() + n_ > kMostParts) {
      status_ = Status::too_many;
      pieces_ = {}, coming_ = {};  // nobody needs so much again
      return false;
    }
    out_.add(found, work_.parts.data(), n_);
    return out_.size() < limit_;
  }

  static constexpr std::size_t kLong = 64;  // windows that take a while
  static constexpr std::size_t kFewLive = 64;  // a group's first room beside the n cheapest

  const PreparedSlots& prepared_;
  const Query& query_;
  const std::size_t n_, limit_;
  WindowTable& out_;
  Status status_ = Status::ok;
  bool going_ = true;
  double t_ = -kInfinity, shortest_ = 0;
  Thresholds thresholds_;
  std::vector<Group> groups_;
  std::size_t live_ = 0;  // the room of all groups
  AlternativesScratch& work_;
  std::vector<Piece>& pieces_;
  std::vector<std::uint32_t>& step_;
  std::vector<Coming>& coming_;
};

}  // namespace detail

// At most `limit` windows, in the order in which repeated search by "first" and cutting finds
// them. Limits on sums are for repeated search: they want other sets than the cheapest.
inline Status find_alternatives(const PreparedSlots& prepared, const Query& asked, ShapeKind shape,
                                std::size_t limit, WindowTable& out) noexcept {
  return guarded([&] {
    out = {};
    Query query = prepared.as_searched(asked);
    query.budget = detail::most_money(asked);
    const Status status = prepared.check(query, true);
    if (status != Status::ok) return status;
    if (query.limits) return Status::request_not_valid;
    if (query.n > static_cast<std::int64_t>(prepared.nodes.size())) return Status::ok;
    if (prepared.heavy(query, shape)) expect_long();
    if (shape == ShapeKind::ragged) {
      const auto run = [&](const auto& parts) {
        detail::AlternativesSweep<std::remove_cvref_t<decltype(parts)>> sweep(prepared, query,
                                                                              limit, out);
        sweep.add_group(parts, prepared.rates_of(static_cast<std::size_t>(query.n) - 1));
        return sweep.run();
      };
      return query.charged() ? run(Charged(query)) : run(Ragged(query));
    }
    Workspace& work = workspace();
    detail::bound_groups(prepared, query, work);
    detail::AlternativesSweep<Square> sweep(prepared, query, limit, out);
    for (const Workspace::Bound& bound : work.bounds)
      if (!(bound.total > query.budget) &&
          !sweep.add_group(Square{bound.span, prepared.groups[bound.group].performance},
                           bound.least_others))
        break;
    return sweep.run();
  });
}

}  // namespace slotkern

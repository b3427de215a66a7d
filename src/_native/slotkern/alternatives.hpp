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
// groups that can fit the budget. Memory: 32 bytes for each slot and part taken, 32 bytes
// for each node of each group.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "capi.hpp"

namespace slotkern {

// Windows of one request, in order of discovery: n parts each, ascending by node.
struct Windows {
  std::vector<Found> found;
  std::vector<Part> parts;
};

namespace detail {

// What is left of a slot: from `start` to the end of the slot.
struct Piece {
  double start;
  double own;  // ragged: how long a part on it runs
  std::size_t row;
  bool taken;
};

template <class Shape>
class AlternativesSweep {
 public:
  AlternativesSweep(const Pool& pool, const Query& query, std::size_t limit, Windows& out)
      : pool_(pool), query_(query), n_(static_cast<std::size_t>(query.n)), limit_(limit),
        out_(out) {}

  // A group to search, fastest first. `others` as in sweep().
  void add_group(const Shape& shape, double others) {
    const float ceiling = key_ceiling(shape.screened(query_.budget), others);
    if (groups_.empty()) {
      sieve_ = first_sieve(query_, shape);
      sieve_.key = ceiling;
      shortest_ = shape.shortest(pool_);
    }
    sieve_.key = std::max(sieve_.key, ceiling);
    sieve_.performance = std::min(sieve_.performance, first_sieve(query_, shape).performance);
    groups_.push_back({shape, ceiling, SmallestOf<ByNode>(ByNode{this})});
    groups_.back().top.reset(n_, capacity());
  }

  Status run() {
    if (groups_.empty() || limit_ == 0) return Status::ok;
    const bool endless = limit_ == ~std::size_t{0} &&
                         query_.deadline == std::numeric_limits<double>::max();
    Shape::screen(pool_).each(pool_.order, sieve_, pool_.last_position(), [&](std::size_t row) {
      const Slot& s = pool_.slots[row];
      if (!query_.admits(s, row)) return true;
      if (endless && std::isinf(s.end)) {
        status_ = Status::endless;
        return going_ = false;
      }
      const Piece slot{s.start, groups_.front().shape.length(s), row, false};
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
      return sweep->slot_of(a.row).node < sweep->slot_of(b.row).node;
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
    return t + length <= query_.limit(pool_.slots[piece.row]);
  }

  const Slot& slot_of(std::size_t piece) const { return pool_.slots[pieces_[piece].row]; }

  bool earlier(const Piece& a, const Piece& b) const {
    if (a.start != b.start) return a.start < b.start;
    return pool_.slots[a.row].node < pool_.slots[b.row].node;
  }
  auto later() const {
    return [this](const Piece& a, const Piece& b) { return earlier(b, a); };
  }

  // Takes in all remnants that come before `slot`, then the slot (or all that are left).
  bool take_until(const Piece* slot) {
    for (;;) {
      const bool remnant = !coming_.empty() && (!slot || earlier(coming_.front(), *slot));
      if (!remnant && !slot && step_begin_ == pieces_.size()) return true;
      if (!remnant && !slot) {
        if (!search_step()) return false;
        continue;  // the step may have queued more
      }
      const Piece next = remnant ? coming_.front() : *slot;
      const double t = std::max(next.start, query_.earliest);
      if (t != t_ && step_begin_ < pieces_.size()) {
        if (!search_step()) return false;
        continue;  // the step may have queued what comes before
      }
      t_ = t;
      if (t + shortest_ > query_.deadline) return going_ = false;
      pieces_.push_back(next);
      if (!remnant) return true;
      std::pop_heap(coming_.begin(), coming_.end(), later());
      coming_.pop_back();
    }
  }

  // Offers the pieces of this t to each group, and takes every window that fits.
  bool search_step() {
    const std::size_t begin = step_begin_, end = pieces_.size();
    step_begin_ = end;
    for (Group& group : groups_) {
      const Shape& shape = group.shape;
      for (std::size_t id = begin; id < end; ++id) {
        if (pieces_[id].taken) continue;
        const Slot& slot = slot_of(id);
        if (slot.performance < shape.performance() || !lives(shape, pieces_[id], t_) ||
            shape.screen_key(slot) > static_cast<double>(group.ceiling))
          continue;
        const auto usable = [&](std::size_t other) {
          return !pieces_[other].taken && lives(shape, pieces_[other], t_);
        };
        if (group.top.members() == capacity()) group.top.compact(usable);
        if (!group.top.offer(shape.key(slot), id)) continue;
        while (group.top.full() && !(shape.total(group.top.lower()) > query_.budget)) {
          if (group.top.purge(usable)) continue;
          if (!(shape.total(group.top.sum()) <= query_.budget)) break;
          if (!take(group)) return going_ = false;
          group.top.drop_front(usable);
        }
      }
    }
    return true;
  }

  // Live slots lie on distinct nodes, so that half of this is left when it is compacted.
  std::size_t capacity() const { return 2 * pool_.nodes.size() + 64; }

  // Moves the n cheapest of a group into the result and queues their right remnants.
  bool take(Group& group) {
    chosen_.clear();
    for (std::size_t i = 0; i < n_; ++i) {
      Piece& piece = pieces_[group.top[i].row];
      piece.taken = true;
      chosen_.push_back({group.top[i].key, piece.row});
    }
    Found found;
    settle(pool_, group.shape, chosen_, n_, t_, found, parts_);
    if constexpr (std::is_same_v<Shape, Square>)
      found.processor_time = static_cast<double>(n_) * found.runtime;
    found.value = found.start;
    for (std::size_t i = 0; i < n_; ++i) {
      Piece rest = pieces_[group.top[i].row];
      const Slot& slot = pool_.slots[rest.row];
      double length = rest.own;
      if constexpr (std::is_same_v<Shape, Square>) length = group.shape.span;
      rest.start = cut_finish(t_ + length, slot.end);
      if (!(rest.start > t_)) {
        status_ = Status::volume_too_small;
        return false;
      }
      if (!(rest.start < slot.end) || !lives(groups_.front().shape, rest, rest.start)) continue;
      rest.taken = false;
      coming_.push_back(rest);
      std::push_heap(coming_.begin(), coming_.end(), later());
    }
    out_.found.push_back(found);
    out_.parts.insert(out_.parts.end(), parts_.begin(), parts_.end());
    return out_.found.size() < limit_;
  }

  const Pool& pool_;
  const Query& query_;
  const std::size_t n_, limit_;
  Windows& out_;
  Status status_ = Status::ok;
  bool going_ = true;
  double t_ = -kInfinity, shortest_ = 0;
  Sieve sieve_;
  std::vector<Group> groups_;
  std::vector<Piece> pieces_;       // all that came so far; those of this t from step_begin_
  std::vector<Piece> coming_;       // right remnants, a heap by (start, node)
  std::size_t step_begin_ = 0;
  std::vector<Entry> chosen_;
  std::vector<Part> parts_;
};

}  // namespace detail

// Appends at most `limit` windows, in the order in which repeated search by "first" and
// cutting finds them.
inline Status find_alternatives(const Pool& pool, const Query& query, Shape shape,
                                std::size_t limit, Windows& out) noexcept {
  return guarded([&] {
    if (query.n > static_cast<std::int64_t>(pool.nodes.size())) return Status::ok;
    const Status status = pool.check(query, true);
    if (status != Status::ok) return status;
    if (shape == Shape::ragged) {
      detail::AlternativesSweep<Ragged> sweep(pool, query, limit, out);
      sweep.add_group(Ragged{query.volume}, pool.rates_of(static_cast<std::size_t>(query.n) - 1));
      return sweep.run();
    }
    Workspace& work = workspace();
    detail::bound_groups(pool, query, work);
    detail::AlternativesSweep<Square> sweep(pool, query, limit, out);
    for (const Workspace::Bound& bound : work.bounds)
      if (!(bound.total > query.budget))
        sweep.add_group(Square{bound.span, pool.groups[bound.group].performance}, bound.others);
    return sweep.run();
  });
}

}  // namespace slotkern

// The earliest common start of several requests (roles), by leapfrog over their searches.
//
// Input: a query for each role, whose candidate slots lie on different nodes, and a search: a
// function Answer(query) that returns the window of a role with the earliest start, and of these the
// cheapest. Output: one window for each role, all at the earliest common start.
//
// All roles are searched from one time on; the latest of their starts is the next time, until all
// begin at it. No common start is skipped: a role has none between the time and its own start. The
// `earliest` of the queries holds the time reached, so an interrupted call continues from there.
// Cost: at most one search of each role for each start at which some role begins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "slotkern/window/find.hpp"

namespace slotkern {

namespace detail {

inline constexpr std::size_t kManySearches = 64;  // from here on a call can be interrupted

template <class Search>
Status leapfrog(std::vector<Query>& roles, Search search, WindowTable& out) {
  struct RoleWindow {
    Found found;
    std::vector<Part> parts;
    bool proven = true;  // false: the limits on sums of some search of the role were undecided
  };
  std::vector<RoleWindow> windows(roles.size());
  double at = -kInfinity;
  for (const Query& role : roles) at = std::max(at, role.earliest);
  // `agreeing`: the number of roles, up to the last one searched, whose windows start at `at`.
  std::size_t agreeing = 0, searches = 0;
  for (std::size_t k = 0; agreeing < roles.size(); k = k + 1 < roles.size() ? k + 1 : 0) {
    if (++searches == kManySearches) enable_interrupts();
    poll();
    roles[k].earliest = at;
    const Answer answer = search(roles[k]);
    if (answer.status != Status::ok) return answer.status;
    agreeing = answer.found.start > at ? 1 : agreeing + 1;
    at = answer.found.start;
    windows[k].found = answer.found;
    windows[k].proven = windows[k].proven && answer.proven;
    windows[k].parts.assign(answer.parts, answer.parts + roles[k].n);
  }
  out.clear();
  for (const RoleWindow& window : windows) {
    out.add(window.found, window.parts.data(), window.parts.size());
    if (!window.proven) out.set_bound(-kInfinity, false);
  }
  return Status::ok;
}

}  // namespace detail

// Finds the windows of all roles at their earliest common start; none if there is no such start.
template <class Search>
Status find_together(std::vector<Query>& roles, Search search, WindowTable& out) noexcept {
  return guarded([&] { return detail::leapfrog(roles, search, out); });
}

// Finds the windows of all roles at their earliest common start, in prepared slots.
inline Status find_together(const PreparedSlots& prepared, std::vector<Query>& roles,
                            ShapeKind shape, WindowTable& out) noexcept {
  constexpr int start = 1;  // index of the criterion
  return find_together(
      roles, [&](const Query& role) { return find_window(prepared, role, start, shape); }, out);
}

}  // namespace slotkern

// Unit tests of windows with one start (window/together.hpp), against a scan of all starts: in
// prepared slots, and in a pool that books what it finds.
#include <algorithm>
#include <limits>
#include <vector>

#include "pools.hpp"
#include "slotkern/window/together.hpp"

using namespace slotkern;
using namespace unit;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kStart = 1;  // index of the criterion

// Rows of nodes 0 to 5, sorted by start and node, with gaps between slots of a node.
std::vector<Row> random_rows() {
  std::vector<Row> rows;
  for (std::int32_t node = 0; node < 6; ++node) {
    const double speed = 1.0 + static_cast<double>(below(2)), price = 1.0 + below(4);
    for (double time = below(4); time < 20;) {
      const double end = time + 1.0 + below(8);
      rows.push_back({node, time, end, speed, price});
      time = end + 1.0 + below(3);
    }
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.start != b.start ? a.start < b.start : a.node < b.node;
  });
  return rows;
}

// Returns the first start at which each role has a window by itself, by trying all quarters: all
// times of the cases are multiples of a half.
template <class Search>
double first_common_start(const std::vector<Query>& roles, Search search) {
  for (double start = 0; start < 32; start += 0.25) {
    const bool all = std::all_of(roles.begin(), roles.end(), [&](Query role) {
      if (start < role.earliest || start > role.latest) return false;
      role.earliest = role.latest = start;
      return search(role).status == Status::ok;
    });
    if (all) return start;
  }
  return kNever;
}

void roles_start_at_the_first_common_start() {
  for (int round = 0; round < 400; ++round) {
    Pool world(random_rows());
    // Role k may use the nodes with remainder k.
    const std::size_t count = 1 + below(3);
    std::vector<std::vector<std::uint8_t>> masks(count);
    std::vector<Query> roles(count);
    for (std::size_t k = 0; k < count; ++k) {
      for (const Row& row : world.rows)
        masks[k].push_back(static_cast<std::size_t>(row.node) % count == k);
      roles[k].n = 1 + static_cast<std::int64_t>(below(2));
      roles[k].volume = 1.0 + static_cast<double>(below(5));
      roles[k].mask = masks[k].data(), roles[k].masked = masks[k].size();
      roles[k].earliest = static_cast<double>(below(3));
      if (below(4) == 0) roles[k].latest = roles[k].earliest + 6.0;
    }
    const ShapeKind shape = below(2) ? ShapeKind::square : ShapeKind::ragged;
    WindowTable found;
    for (int booked = 0; booked < 4; ++booked) {
      const auto search = [&](const Query& role) {
        return find_window(world.pool, role, kStart, shape);
      };
      std::vector<Query> given = roles;
      const double expected = first_common_start(roles, search);
      const Status status = find_together(world.pool, given, shape, found);
      CHECK(status == (expected < kNever ? Status::ok : Status::none));
      if (status != Status::ok) break;
      CHECK(found.size() == count);
      std::vector<std::int32_t> nodes;
      for (std::size_t k = 0; k < count; ++k) {
        CHECK(found.found[k].start == expected);
        Query alone = roles[k];
        alone.earliest = alone.latest = expected;
        const Answer answer = search(alone);
        CHECK(answer.found.cost == found.found[k].cost);
        for (std::size_t i = 0; i < found.count(k); ++i)
          nodes.push_back(found.parts_of(k)[i].node);
      }
      std::sort(nodes.begin(), nodes.end());
      CHECK(std::adjacent_find(nodes.begin(), nodes.end()) == nodes.end());
      if (booked == 0) {  // the slots that nothing has changed yet
        given = roles;
        WindowTable same;
        CHECK(find_together(world.prepared, given, shape, same) == Status::ok);
        CHECK(same.found[0].start == expected);
      }
      for (std::size_t k = 0; k < count; ++k) {
        std::size_t failed = 0;
        CHECK(book(world.pool, expected, found.parts_of(k), found.count(k), failed) ==
              Status::ok);
      }
    }
  }
}

}  // namespace

int main(int argc, char**) {
  use_default_options(argc);
  roles_start_at_the_first_common_start();
  return report();
}

// A pool of some rows, for units that book and search.
#pragma once

#include <utility>
#include <vector>

#include "slotkern/pool/schedule.hpp"
#include "support.hpp"

namespace unit {

struct Pool {
  std::vector<Row> rows;
  std::vector<double> prices;
  slotkern::PreparedSlots prepared{options};
  slotkern::SlotPool pool;

  explicit Pool(std::vector<Row> given) : rows(std::move(given)) {
    using namespace slotkern;
    for (const Row& row : rows) prices.push_back(row.price);
    CHECK(prepare_slots(prepared, view_of(rows), true, ShapeKind::square, 0).status == Status::ok);
    CHECK(open_pool(pool, prepared, prices, nullptr) == Status::ok);
  }
};

}  // namespace unit

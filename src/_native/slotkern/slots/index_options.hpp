// Thresholds and switches of the structures that make searches faster without changing an answer.
//
// PreparedSlots has the options, and everything built on it reads them there. The defaults are
// measured (benchmarks/layers.py). Tests use for_small_pools(), so that pools of a few slots
// exercise all structures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace slotkern {

struct IndexOptions {
  static constexpr std::size_t kNever = ~std::size_t{0};

  // Zone map (slots/zone_map.hpp): up to this many blocks, rows are scanned without bounds.
  std::size_t max_unindexed_blocks = 2;
  // Key dictionary (slots/key_dictionary.hpp): nodes that share a key on average. kNever: no codes.
  std::size_t min_nodes_per_key = 8;
  // Alternatives by ranks of nodes (window/ranked_alternatives.hpp): most parts.
  std::size_t max_ranked_parts = 12;
  // Usable slots (pool/usable_slots.hpp): false: spans of any length have rows.
  bool omit_short_spans = true;
  // Start bounds (pool/start_bounds.hpp): false: none. Up to this many rows, only failures are
  // cached, because a search costs no more than a lookup.
  bool start_bounds = true;
  std::size_t max_rows_without_start_bounds = 128;
  // Cost bounds (pool/cost_bounds.hpp): fewest rows. kNever: none.
  std::size_t min_cost_bound_rows = 1024;
  // Rows per cell of the max-work matrix, and the buckets by which cells are found.
  std::size_t rows_per_cell = 16;
  std::size_t cell_buckets = 1024;
  // Rows of cost bounds in all tables.
  std::size_t max_bound_rows = 153;
  // Effort that good cost bounds would have saved, in units of the effort of a build, before they
  // are built. 1 would also build for searches that are cheap anyway.
  std::size_t effort_before_build = 2;
  // Effort that cell searches may lose before they have gained (pool/adaptive_budget.hpp).
  std::int64_t cell_search_credit = 0;

  // Every structure is used from the first slot on, and fills up soon.
  static constexpr IndexOptions for_small_pools() {
    IndexOptions options;
    options.max_unindexed_blocks = 0;
    options.min_nodes_per_key = 1;
    options.max_rows_without_start_bounds = 0;
    options.min_cost_bound_rows = 0;
    options.rows_per_cell = 2;
    options.cell_buckets = 8;
    options.max_bound_rows = 19;
    options.effort_before_build = 0;
    options.cell_search_credit = 1 << 20;
    return options;
  }
};

}  // namespace slotkern

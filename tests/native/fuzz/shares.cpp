// Fuzzes changes and searches of shared hosts against the plain definition.
#include "../share_cases.hpp"

#include "instance.hpp"

namespace {

fuzz::Tally tally{"shares"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Random random(data, size);
  shares::Tally counts;
  shares::Sequence sequence(random, counts, slotkern::IndexOptions::for_small_pools());
  ++tally.runs;
  if (!sequence.run(100)) std::abort();
  tally.searches += counts.searches;
  tally.found += counts.found;
  return 0;
}

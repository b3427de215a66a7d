// Fuzzes searches for groups of trees of shared hosts against the plain definition.
#include "../tree_cases.hpp"

#include "instance.hpp"

namespace {

fuzz::Tally tally{"trees"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Random random(data, size);
  trees::Tally counts;
  trees::Sequence sequence(random, counts);
  ++tally.runs;
  if (!sequence.run(100)) std::abort();
  tally.searches += counts.searches;
  tally.found += counts.found;
  return 0;
}

// Fuzzes searches under tariffs, of all criteria and both shapes, against the plain definition.
#include "../tariff_cases.hpp"

#include "instance.hpp"

namespace {

fuzz::Tally tally{"tariffs"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Random random(data, size);
  const bool dyadic = !random.one_in(4);
  const tariffs::Case c = tariffs::make_case(random, dyadic, 5, 3, 8);
  tariffs::Counts counts;
  ++tally.runs;
  if (!tariffs::run_case(random, c, counts, 1 + random.below(40))) std::abort();
  tally.searches += counts.searches;
  tally.found += counts.found;
  return 0;
}

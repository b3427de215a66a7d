// Groups of trees of shared hosts: random sequences of bookings and searches, compared with the plain
// definition. With arguments SEED RUNS it compares that many sequences instead.
#include <cstdlib>

#include "../check.hpp"
#include "../tree_cases.hpp"

namespace {

using trees::Sequence;
using trees::Tally;

void check_sequences(std::uint64_t seed, long runs, Tally& tally) {
  for (long run = 0; run < runs; ++run) {
    Random random(seed + static_cast<std::uint64_t>(run));
    Sequence sequence(random, tally);
    const bool right = sequence.run(30);
    CHECK(right);
    if (!right) std::printf("seed %llu\n", static_cast<unsigned long long>(seed) + run);
    if (unit::failures > 5) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Tally tally;
  if (argc == 3) {
    check_sequences(std::strtoull(argv[1], nullptr, 10), std::atol(argv[2]), tally);
    std::printf("%llu searches, %llu found\n", static_cast<unsigned long long>(tally.searches),
                static_cast<unsigned long long>(tally.found));
    return unit::report();
  }
  check_sequences(1, 200, tally);
  CHECK(tally.found > 500 && tally.searches > 2000);
  return unit::report();
}

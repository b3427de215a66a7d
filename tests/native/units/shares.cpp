// Shared hosts: random sequences of every change, compared with the plain definition. With
// arguments SEED RUNS it compares that many sequences instead, and prints what it has compared.
#include <cstdlib>

#include "../check.hpp"
#include "../share_cases.hpp"

namespace {

void check_sequences(std::uint64_t seed, long runs, shares::Tally& tally) {
  for (long run = 0; run < runs; ++run) {
    Random random(seed + static_cast<std::uint64_t>(run));
    const auto options = run % 4 ? slotkern::IndexOptions::for_small_pools()
                                 : slotkern::IndexOptions{};
    shares::Sequence sequence(random, tally, options);
    const bool right = sequence.run(40);
    CHECK(right);
    if (!right) std::printf("seed %llu\n", static_cast<unsigned long long>(seed) + run);
    if (unit::failures > 5) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  shares::Tally tally;
  if (argc == 3) {
    check_sequences(std::strtoull(argv[1], nullptr, 10), std::atol(argv[2]), tally);
    std::printf("%llu changes, %llu searches, %llu found, %llu compared with all sets\n",
                static_cast<unsigned long long>(tally.changes),
                static_cast<unsigned long long>(tally.searches),
                static_cast<unsigned long long>(tally.found),
                static_cast<unsigned long long>(tally.compared));
    return unit::report();
  }
  check_sequences(1, 300, tally);
  CHECK(tally.found > 500 && tally.compared > 1000);
  return unit::report();
}

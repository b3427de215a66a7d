// Prints one line a criterion and shape: a digest of every bit of some thousand searches.
// Built for several instruction sets, the lines must be the same.
#include <cstdio>
#include <random>
#include <vector>

#include "slotkern/window/find.hpp"

using namespace slotkern;

namespace {

struct Record40 {
  std::int32_t node, unused;
  double start, end, performance, price;
};

std::vector<Record40> environment(std::mt19937_64& random, int nodes, bool integer) {
  std::vector<Record40> records;
  const auto uniform = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  for (int k = 0; k < nodes; ++k) {
    const double performance = integer ? 2.0 + static_cast<double>(random() % 9) : 2 + 8 * uniform();
    const double price = performance * (0.7 + 0.8 * uniform());
    double t = 0;
    while (t < 600) {
      const double start = t + (integer ? static_cast<double>(random() % 40) : 40 * uniform());
      const double end = start + 5 + 150 * uniform();
      records.push_back({k, 0, start, end, performance, price});
      t = end;
    }
  }
  std::sort(records.begin(), records.end(), [](const Record40& a, const Record40& b) {
    return a.start < b.start || (a.start == b.start && a.node < b.node);
  });
  return records;
}

void mix(std::uint64_t& digest, double x) {
  digest = (digest ^ std::bit_cast<std::uint64_t>(x)) * 0x100000001B3u;
}

}  // namespace

int main() {
  std::uint64_t digest[2][kBuiltins] = {};
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto records = environment(random, 20 + 3 * round, round % 2 == 0);
    SlotView view;
    view.base = reinterpret_cast<const char*>(records.data());
    view.stride = sizeof(Record40);
    view.start = 8, view.end = 16, view.performance = 24, view.price = 32;
    view.size = records.size();
    Pool pool;
    if (build_pool(pool, view, true, Shape::square, 0).status != Status::ok) return 1;
    for (int job = 0; job < 20; ++job) {
      Query query;
      query.n = 1 + static_cast<std::int64_t>(random() % 9);
      query.volume = 50 + static_cast<double>(random() % 200);
      query.budget = static_cast<double>(query.n) * query.volume * (0.6 + 0.05 * (job % 10));
      if (job % 3 == 0) query.deadline = 300;
      if (job % 4 == 0) query.earliest = 100;
      for (int shape = 0; shape < 2; ++shape)
        for (int c = 0; c < kBuiltins; ++c) {
          const Answer answer = find(pool, query, c, static_cast<Shape>(shape));
          std::uint64_t& d = digest[shape][c];
          mix(d, static_cast<double>(answer.status));
          if (answer.status != Status::ok) continue;
          mix(d, answer.found.start);
          mix(d, answer.found.cost);
          mix(d, answer.found.value);
          for (std::int64_t i = 0; i < query.n; ++i) mix(d, answer.parts[i].node);
        }
    }
  }
  for (int shape = 0; shape < 2; ++shape)
    for (int c = 0; c < kBuiltins; ++c)
      std::printf("%d %s %016llx\n", shape, std::string(criterion_name(c)).c_str(),
                  static_cast<unsigned long long>(digest[shape][c]));
}

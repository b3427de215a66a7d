// Prints a digest of all result bits of thousands of searches: one line per criterion and shape,
// per kind of value and shape, per method of choose, and one for the multiple-choice knapsack.
// Every compiler, instruction set and operating system must print the same lines.
#include <cstdio>
#include <random>
#include <vector>

#include "slotkern/choice/choose.hpp"
#include "slotkern/choice/multiple_choice.hpp"
#include "slotkern/value/find.hpp"
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
    const double performance =
        integer ? 2.0 + static_cast<double>(random() % 9) : 2 + 8 * uniform();
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

SlotView view_of(const std::vector<Record40>& records) {
  SlotView view;
  view.base = reinterpret_cast<const char*>(records.data());
  view.stride = sizeof(Record40);
  view.start = 8, view.end = 16, view.performance = 24, view.price = 32;
  view.size = records.size();
  return view;
}

int static_value(const void* slot, double length, double* value) {
  const Record40& s = *static_cast<const Record40*>(slot);
  *value = s.price - 0.1 * length * s.performance;
  return 0;
}

int moving_value(const void* slot, double start, double length, double* value) {
  const Record40& s = *static_cast<const Record40*>(slot);
  *value = (start - s.start) * s.performance - length;
  return 0;
}

// Searches by one kind of value: exact, Lite, with any start, and with the group's span.
std::uint64_t digest_of(ValueKind kind, ShapeKind shape) {
  std::uint64_t digest = 0;
  std::mt19937_64 random(11);
  for (int round = 0; round < 12; ++round) {
    const auto records = environment(random, 8 + 2 * round, round % 2 == 0);
    const SlotView view = view_of(records);
    PreparedSlots prepared(IndexOptions::for_small_pools());
    if (prepare_slots(prepared, view, true, ShapeKind::square, 0).status != Status::ok) return 0;
    std::vector<double> column;
    for (std::size_t i = 0; i < records.size(); ++i)
      column.push_back(static_cast<double>(random() % 50) - 10);
    for (int job = 0; job < 8; ++job) {
      Query query;
      query.n = 1 + static_cast<std::int64_t>(random() % 5);
      query.volume = 50 + static_cast<double>(random() % 200);
      query.budget = static_cast<double>(query.n) * query.volume * (0.7 + 0.05 * (job % 10));
      query.deadline = job % 3 == 0 ? 150 : 300;
      Valuation v;
      v.kind = kind;
      v.sign = job % 2 == 0 ? 1 : -1;
      v.column = column.data();
      v.function = kind == ValueKind::moving_function ? reinterpret_cast<void*>(moving_value)
                                                      : reinterpret_cast<void*>(static_value);
      v.records = view.base, v.stride = view.stride;
      ValueOptions options;
      options.lite = job == 5;
      options.any_start = job % 4 == 2;
      options.group_span = job % 4 == 3;
      const ValueAnswer answer = find_by_value(prepared, query, v, shape, options, job == 7);
      mix(digest, static_cast<double>(answer.status));
      mix(digest, static_cast<double>(answer.effort.subsets + 1000 * answer.effort.work));
      for (const StepValue& step : recorded_steps()) mix(digest, step.value);
      if (answer.status != Status::ok || job == 7) continue;
      mix(digest, answer.found.start);
      mix(digest, answer.found.value);
      mix(digest, answer.bound);
      for (std::int64_t i = 0; i < query.n; ++i) mix(digest, answer.parts[i].node);
    }
  }
  return digest;
}

std::uint64_t digest_of_one_each() {
  std::uint64_t digest = 0;
  std::mt19937_64 random(13);
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = 1 + random() % 14;
    std::vector<std::int64_t> first{0};
    std::vector<double> value, weight;
    for (std::size_t k = 0; k < count; ++k) {
      const std::uint64_t size = 1 + random() % 9;
      for (std::uint64_t i = 0; i < size; ++i) {
        const double w = static_cast<double>(random() % 100);
        weight.push_back(round % 2 == 0 ? w : w / 7);
        value.push_back(round % 3 == 0 ? static_cast<double>(random() % 60)
                                       : static_cast<double>(random() >> 11) * 0x1p-53);
      }
      first.push_back(first.back() + static_cast<std::int64_t>(size));
    }
    const double limit = static_cast<double>(count) * (6 + 5 * (round % 7)) / (1 + 6 * (round % 2));
    MultipleChoiceKnapsack* answer = nullptr;
    const Fault fault = choose_one_each({value.data(), weight.data(), first.data(), count}, limit,
                                        round % 4 == 1, 0, 1 << 20, answer);
    mix(digest, static_cast<double>(fault.status));
    mix(digest, answer->value);
    mix(digest, answer->bound);
    for (const std::int64_t row : answer->rows) mix(digest, static_cast<double>(row));
  }
  return digest;
}

// choose by one method, for integer costs and for real ones.
std::uint64_t digest_of(Method method) {
  std::uint64_t digest = 0;
  std::mt19937_64 random(5);
  for (int round = 0; round < 400; ++round) {
    const int m = 2 + static_cast<int>(random() % 90);
    const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(std::min(m, 12)));
    const bool integer = method == Method::table || round % 3 != 0;
    std::vector<double> cost, value;
    double total = 0;
    for (int i = 0; i < m; ++i) {
      const double c = 1 + static_cast<double>(random() % 99);
      cost.push_back(integer ? c : c / 7);
      value.push_back(static_cast<double>(random() >> 11) * 0x1p-53);
      total += cost.back();
    }
    const double budget = std::floor(total * 0.1 * (1 + round % 9));
    std::vector<Choice>* choices = nullptr;
    const Fault fault = choose(cost.data(), value.data(), m, n, n, budget, 0, 50'000'000, 256e6,
                               method, choices);
    mix(digest, static_cast<double>(fault.status));
    if (fault.status != Status::ok) continue;
    for (const Choice& choice : *choices) {
      mix(digest, choice.any);
      mix(digest, choice.value);
      mix(digest, choice.cost);
      mix(digest, choice.bound);
      for (const int row : choice.rows) mix(digest, row);
    }
  }
  return digest;
}

}  // namespace

int main() {
  std::uint64_t digest[2][kBuiltins] = {};
  std::mt19937_64 random(7);
  for (int round = 0; round < 60; ++round) {
    const auto records = environment(random, 20 + 3 * round, round % 2 == 0);
    const SlotView view = view_of(records);
    PreparedSlots prepared(IndexOptions::for_small_pools());
    if (prepare_slots(prepared, view, true, ShapeKind::square, 0).status != Status::ok) return 1;
    for (int job = 0; job < 20; ++job) {
      Query query;
      query.n = 1 + static_cast<std::int64_t>(random() % 9);
      query.volume = 50 + static_cast<double>(random() % 200);
      query.budget = static_cast<double>(query.n) * query.volume * (0.6 + 0.05 * (job % 10));
      if (job % 3 == 0) query.deadline = 300;
      if (job % 4 == 0) query.earliest = 100;
      for (int shape = 0; shape < 2; ++shape)
        for (int c = 0; c < kBuiltins; ++c) {
          const Answer answer = find_window(prepared, query, c, static_cast<ShapeKind>(shape));
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
  for (const ShapeKind shape : {ShapeKind::ragged, ShapeKind::square})
    for (int kind = 0; kind < kSources; ++kind)
      std::printf("%d value %d %016llx\n", static_cast<int>(shape), kind,
                  static_cast<unsigned long long>(digest_of(static_cast<ValueKind>(kind), shape)));
  for (const Method method : {Method::fastest, Method::table, Method::search})
    std::printf("choose %d %016llx\n", static_cast<int>(method),
                static_cast<unsigned long long>(digest_of(method)));
  std::printf("one each %016llx\n", static_cast<unsigned long long>(digest_of_one_each()));
}

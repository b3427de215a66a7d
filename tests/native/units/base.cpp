// Unit tests of base/: floating point, sums, sorting, interrupts and memory against plain
// reference implementations.
#include <algorithm>
#include <cmath>
#include <compare>
#include <csignal>
#include <thread>
#include <vector>

#include "slotkern/base/bitmap_sort.hpp"
#include "slotkern/base/exact_sum.hpp"
#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/lazy.hpp"
#include "slotkern/base/memory.hpp"
#include "slotkern/base/merge_sort.hpp"
#include "slotkern/base/numbers.hpp"
#include "slotkern/base/sort_by_key.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

void rounding_is_directed() {
  for (int round = 0; round < 2000; ++round) {
    const double x = std::ldexp(real() - 0.5, static_cast<int>(below(320)) - 160);
    const float down = round_down(x), up = round_up(x);
    CHECK(down <= x && x <= up);
    CHECK(std::nextafter(down, INFINITY) > x || down == x);
    CHECK(std::nextafter(up, -INFINITY) < x || up == x);
    CHECK(round_down(static_cast<double>(down)) == down);
  }
  CHECK(round_down(-1e-60) < 0 && round_up(1e-60) > 0 && round_down(1e-60) == 0);
}

// PairSum and ExactSum agree, including sums halfway between two doubles.
void sums_are_exact() {
  const double tenths[] = {0.1, 0.2, 0.3, 0.7, 4.35, 0.57, 1.15, 5e-324, 0x1p-53, 1, 0x1p60};
  std::size_t hard = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<double> terms(1 + below(40));
    const int kind = static_cast<int>(below(4));
    for (double& x : terms) {
      x = kind == 0 ? tenths[below(11)] : kind == 1 ? tenths[below(7)] : real();
      if (kind == 3) x = std::ldexp(x - 0.5, static_cast<int>(below(300)) - 150);
    }
    ExactSum all;
    PairSum pair;
    for (const double x : terms) all.add(x), pair.add(x);
    const auto term = [&](std::size_t i) { return terms[i]; };
    CHECK(exact_sum(terms.size(), term) == all.value());
    if (pair.exact()) CHECK(pair.value() == all.value());
    if (kind < 3) CHECK(pair.lower() <= all.value());
    hard += !pair.exact();
  }
  CHECK(hard > 100);
  CHECK(exact_sum(2, [](std::size_t) { return 1.7e308; }) == kInfinity);
}

// 100 * 4.35 meets 435, and a difference of one cent is not tolerated.
void limits_tolerate_decimal_rounding() {
  for (int round = 0; round < 20000; ++round) {
    const std::size_t n = 1 + below(500);
    const auto digits = static_cast<int>(2 + below(3));
    const double unit = std::pow(10, digits);
    std::vector<double> prices(n);
    double units = 0;
    for (double& price : prices) {
      const auto count = static_cast<double>(below(100000));
      price = count / unit;
      units += count;
    }
    const double sum = exact_sum(n, [&](std::size_t i) { return prices[i]; });
    CHECK(sum <= relaxed_max(units / unit) && sum >= relaxed_min(units / unit));
    CHECK(!(sum <= relaxed_max((units - 1) / unit)) && !(sum >= relaxed_min((units + 1) / unit)));
  }
  CHECK(relaxed_max(kInfinity) < kInfinity && relaxed_max(-kInfinity) == -kInfinity);
  CHECK(relaxed_max(0) == 0 && relaxed_max(5e-324) == 5e-324 && relaxed_max(-1) > -1);
}

// A thread that does not run Python signal handlers stops only for a fork.
void interrupts_stop_the_right_calls() {
  using namespace slotkern::detail;
  for (const bool on_main_thread : {false, true}) {
    InterruptScope watch;
    watch.arm(on_main_thread);
    CHECK(!watch.stops(0));
    CHECK(watch.stops(by_signal) == on_main_thread);
    CHECK(watch.stops(by_fork) && watch.stops(by_signal | by_fork));
  }
}

std::sig_atomic_t handled = 0;

// The previous handler is called first, and is restored after the call.
void handled_signals_stop_a_call() {
  using namespace slotkern::detail;
  for (const int signal : {SIGINT, SIGTERM}) {
    handled = 0;
    std::signal(signal, [](int number) { handled = number; });
    {
      InterruptScope watch;
      watch.arm(true);
      std::raise(signal);
      CHECK(handled == signal && stop_flags == 0);
      watch.install();
      watch.clear();
      CHECK(!watch.stops(stop_flags));
      handled = 0;
      std::raise(signal);
      CHECK(handled == signal && watch.stops(stop_flags));
      watch.clear();
      CHECK(!watch.stops(stop_flags));
    }
    CHECK(std::signal(signal, SIG_DFL) != SIG_DFL && stop_flags == 0);
  }
}

void radix_sort_equals_std_sort() {
  struct Item {
    std::uint64_t key;
    std::int32_t number;
    auto operator<=>(const Item&) const = default;
  };
  for (const std::size_t count : {0, 1, 2, 255, 256, 257, 3000}) {
    for (int shift = 0; shift < 64; shift += 9) {
      std::vector<Item> items;
      for (std::size_t i = 0; i < count; ++i)
        items.push_back({shift ? source() >> shift : below(7), static_cast<std::int32_t>(i)});
      std::vector<Item> expected = items;
      std::sort(expected.begin(), expected.end());
      sort_by_key(items);
      CHECK(items == expected);
    }
  }
  CHECK(key_of(-0.0) == key_of(0.0) && key_of(0) < key_of(5e-324));
  CHECK(key_of(1) < key_of(1.5) && key_of(1e300) < key_of(kInfinity));
}

// Stability, for all lengths, with few and with many distinct keys.
void merge_sort_equals_stable_sort() {
  struct Item {
    double key;
    std::size_t place;
    bool operator==(const Item&) const = default;
  };
  const auto before = [](const Item& a, const Item& b) { return a.key < b.key; };
  for (std::size_t size = 0; size < 300; ++size)
    for (const std::size_t keys : {1, 3, 40, 100000}) {
      std::vector<Item> items(size), scratch(size);
      for (std::size_t k = 0; k < size; ++k) items[k] = {static_cast<double>(below(keys)), k};
      std::vector<Item> sorted = items;
      std::stable_sort(sorted.begin(), sorted.end(), before);
      merge_sort(items.data(), size, scratch.data(), before);
      CHECK(items == sorted);
    }
}

void lazy_publishes_one_value() {
  using LazyVector = Lazy<std::vector<int>>;
  LazyVector kept;
  CHECK(!kept.get_if_ready());
  const std::vector<int>* seen[4];
  std::vector<std::thread> threads;
  for (auto& found : seen)
    threads.emplace_back([&] { found = &kept.get([] { return std::vector<int>(1000, 7); }); });
  for (std::thread& thread : threads) thread.join();
  for (const auto* found : seen) CHECK(found == kept.get_if_ready() && found->size() == 1000);

  LazyVector copy(kept);
  CHECK(copy.get_if_ready() != kept.get_if_ready() && *copy.get_if_ready() == *kept.get_if_ready());
  copy.get_if_ready()->push_back(1);
  kept = copy;
  CHECK(kept.get_if_ready()->back() == 1);
  LazyVector moved(std::move(copy));
  CHECK(moved.get_if_ready()->size() == 1001);
  moved = LazyVector{};
  kept.drop();
  copy = kept;
  CHECK(!kept.get_if_ready() && !copy.get_if_ready());
}

void bitmap_sort_orders_numbers() {
  BitmapSort by_number;
  int ordered = 0, apart = 0, twice = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::size_t size = below(60), largest = 1 + below(below(3) ? 200 : 40'000);
    std::vector<std::size_t> numbers(size), seen;
    for (std::size_t& number : numbers) number = below(largest);
    std::vector<std::size_t> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    if (below(3)) {
      sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
      numbers = sorted;
      for (std::size_t i = numbers.size(); i > 1; --i) std::swap(numbers[i - 1], numbers[below(i)]);
    }
    const bool different = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    const bool done = by_number.each(
        numbers.size(), [&](std::size_t i) { return numbers[i]; },
        [&](std::size_t i) { seen.push_back(numbers[i]); });
    CHECK(done ? seen == sorted && different : seen.empty());
    if (different && !sorted.empty() && sorted.back() < 256 * sorted.size()) CHECK(done);
    done ? ++ordered : different ? ++apart : ++twice;
  }
  CHECK(ordered > 200 && apart > 50 && twice > 100);
}

void large_vectors_equal_plain_vectors() {
  LargeVector<int> numbers;
  for (int i = 0; i < 3'000'000; ++i) numbers.push_back(i);
  const LargeVector<int> copy = numbers;
  numbers.clear(), numbers.shrink_to_fit();
  CHECK(copy.size() == 3'000'000 && copy.front() == 0 && copy[2'999'999] == 2'999'999);
}

}  // namespace

int main() {
  rounding_is_directed();
  sums_are_exact();
  limits_tolerate_decimal_rounding();
  interrupts_stop_the_right_calls();
  handled_signals_stop_a_call();
  radix_sort_equals_std_sort();
  merge_sort_equals_stable_sort();
  bitmap_sort_orders_numbers();
  lazy_publishes_one_value();
  large_vectors_equal_plain_vectors();
  return report();
}

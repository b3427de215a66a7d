// Fuzz test of choose, for every number of items, against exhaustive search.
#include "items.hpp"
#include "slotkern/choice/choose.hpp"

namespace {

fuzz::Tally tally{"choose"};

void print(const slotkern::Choice& choice) {
  std::fprintf(stderr, "choice: value %.17g, cost %.17g, bound %.17g, proven %d, rows",
               choice.value, choice.cost, choice.bound, choice.proven);
  for (const int row : choice.rows) std::fprintf(stderr, " %d", row);
  std::fprintf(stderr, "\n");
}

template <class... Shown>
[[noreturn]] void wrong(const char* what, const slotkern::Choice& choice, double best,
                        const Shown&... shown) {
  print(choice);
  std::fprintf(stderr, "best value of all sets: %.17g\n", best);
  fuzz::fail(what, shown...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Bytes bytes(data, size);
  const Basket basket = make_items(bytes, 11);
  const auto m = static_cast<int>(basket.cost.size());
  const double gap = bytes.one_in(6) ? 0.1 : 0;
  const std::int64_t work = bytes.one_in(6) ? bytes.below(40) : 50'000'000;
  const int n = basket.n, from = bytes.below(2) ? 1 : n;
  const Method method = bytes.pick({Method::fastest, Method::table, Method::search});
  ++tally.runs;

  std::vector<double> best(static_cast<std::size_t>(n) + 1, -kInfinity);
  double largest = 0;  // largest absolute value of an item that can be chosen
  for (int i = 0; i < m; ++i)
    if (basket.cost[static_cast<std::size_t>(i)] <= relaxed_max(basket.budget))
      largest = std::max(largest, std::fabs(basket.value[static_cast<std::size_t>(i)]));
  each_set(basket, [&](std::size_t k, double cost, double value) {
    if (k < best.size() && cost <= relaxed_max(basket.budget)) best[k] = std::max(best[k], value);
  });

  std::vector<Choice>* choices = nullptr;
  const Fault fault = choose(basket.cost.data(), basket.value.data(), m, from, n, basket.budget,
                             gap, work, 1e6, method, choices);
  if (fault.status == Status::sum_overflows) return 0;
  if (method == Method::table && (fault.status == Status::cost_not_integer ||
                                  fault.status == Status::table_too_large))
    return 0;
  if (fault.status != Status::ok) fail("an unexpected status", basket);
  for (int k = from; k <= n; ++k) {
    const Choice& choice = (*choices)[static_cast<std::size_t>(k - from)];
    const double optimum = best[static_cast<std::size_t>(k)];
    const double tolerance = 1e-11 * k * largest;
    ++tally.searches;
    if (!choice.any) {
      if (optimum > -kInfinity && choice.proven)
        wrong("a choice is missed", choice, optimum, basket);
      continue;
    }
    ++tally.found;
    if (optimum == -kInfinity) wrong("a choice is invented", choice, optimum, basket);
    std::uint32_t set = 0;
    for (const int row : choice.rows) set |= 1u << row;
    double value;
    const double cost = cost_in_order(basket, set, &value);
    if (std::popcount(set) != k || choice.rows.size() != static_cast<std::size_t>(k))
      wrong("a wrong number of items", choice, optimum, basket);
    if (cost != choice.cost || value != choice.value)
      wrong("sums that are not those of the items", choice, optimum, basket);
    if (!(cost <= relaxed_max(basket.budget))) wrong("over the budget", choice, optimum, basket);
    const double slack = gap * std::fabs(value) + tolerance;
    if (choice.proven && !(value >= optimum - slack))
      wrong("proven, but not the best", choice, optimum, basket);
    if (!(choice.bound >= optimum - tolerance))
      wrong("a bound below the best", choice, optimum, basket);
  }
  return 0;
}

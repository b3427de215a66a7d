// The rules of floating point, each against its plain definition.
#include <cmath>

#include "slotkern/base/numbers.hpp"
#include "support.hpp"

using namespace slotkern;
using namespace unit;

namespace {

void rounds_to_the_safe_side() {
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

}  // namespace

int main() {
  rounds_to_the_safe_side();
  return report();
}

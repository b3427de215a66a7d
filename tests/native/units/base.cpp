// The rules of floating point and of signals, each against its plain definition.
#include <cmath>

#include "slotkern/base/interrupt.hpp"
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

// A thread that answers no signals stops for a fork alone.
void each_call_stops_for_what_it_hears() {
  using namespace slotkern::detail;
  for (const bool hears : {false, true}) {
    Watch watch;
    watch.arm(hears);
    CHECK(!watch.stops(0));
    CHECK(watch.stops(by_signal) == hears);
    CHECK(watch.stops(by_fork) && watch.stops(by_signal | by_fork));
  }
}

}  // namespace

int main() {
  rounds_to_the_safe_side();
  each_call_stops_for_what_it_hears();
  return report();
}

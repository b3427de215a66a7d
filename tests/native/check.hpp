// CHECK for kernel tests: prints the failed condition with file and line, counts it, and continues.
#pragma once

#include <cstdio>

namespace unit {

inline int checks = 0, failures = 0;

inline void check(bool holds, const char* what, const char* file, int line) {
  ++checks;
  if (holds) return;
  if (++failures <= 20) std::fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

inline int report() {
  std::printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}

}  // namespace unit

#define CHECK(...) unit::check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)

// Mutation switches that ci/mutants.py weaves into a copy of the kernels. Each switch changes its
// place if the environment variable MUTANT has its number. At exit the numbers of the switches that
// were executed are appended to the file named by the environment variable REACHED.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace mutate {

inline const int chosen = std::getenv("MUTANT") ? std::atoi(std::getenv("MUTANT")) : -1;

inline struct Reached {
  bool places[10000] = {};
  ~Reached() {
    const char* path = std::getenv("REACHED");
    std::FILE* file = path ? std::fopen(path, "a") : nullptr;
    for (int k = 0; file && k < 10000; ++k)
      if (places[k]) std::fprintf(file, "%d\n", k);
    if (file) std::fclose(file);
  }
} reached;

inline bool on(int k) {
  reached.places[k] = true;
  return k == chosen;
}

template <int k>
bool yes(bool x) { return on(k) || x; }
template <int k>
bool no(bool x) { return !on(k) && x; }
template <int k, class F>
bool And(bool a, F b) { return on(k) ? a || b() : a && b(); }
template <int k, class F>
bool Or(bool a, F b) { return on(k) ? a && b() : a || b(); }
template <int k, class A>
A least(const A& a, const A& b) { return on(k) ? std::max(a, b) : std::min(a, b); }
template <int k, class A>
A most(const A& a, const A& b) { return on(k) ? std::min(a, b) : std::max(a, b); }

// `a OP Word<k>{} OP b` evaluates to `a OP b`, or to `a OTHER b` in mutant k.
#define MUTATE_BINARY(Word, OP, OTHER)                                                       \
  template <int k>                                                                           \
  struct Word {};                                                                            \
  template <class A, int k>                                                                  \
  struct Word##Left {                                                                        \
    const A& a;                                                                              \
  };                                                                                         \
  template <class A, int k>                                                                  \
  Word##Left<A, k> operator OP(const A& a, Word<k>) {                                        \
    return {a};                                                                              \
  }                                                                                          \
  template <class A, int k, class B>                                                         \
  auto operator OP(Word##Left<A, k> left, const B& b)->decltype(left.a OP b) {               \
    return on(k) ? left.a OTHER b : left.a OP b;                                             \
  }
MUTATE_BINARY(Less, <, <=)
MUTATE_BINARY(LessEqual, <=, <)
MUTATE_BINARY(Greater, >, >=)
MUTATE_BINARY(GreaterEqual, >=, >)
MUTATE_BINARY(Equal, ==, !=)
MUTATE_BINARY(Unequal, !=, ==)
MUTATE_BINARY(Plus, +, -)
MUTATE_BINARY(Minus, -, +)
MUTATE_BINARY(Times, *, /)
MUTATE_BINARY(Over, /, *)

// `a OP Word<k>{} OP b` does `a OP b`, or `a OP -b` in mutant k; assignment is right-associative.
#define MUTATE_ASSIGNMENT(Word, OP)                \
  template <int k>                                 \
  struct Word {};                                  \
  template <int k, class B>                        \
  B operator OP(Word<k>, const B& b) {             \
    return on(k) ? static_cast<B>(-b) : b;         \
  }
MUTATE_ASSIGNMENT(Add, +=)
MUTATE_ASSIGNMENT(Subtract, -=)

}  // namespace mutate

// Status codes of kernels, with their texts. No exception passes guarded(): it returns a status, which
// the binding turns into an exception in one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "slotkern/base/interrupt.hpp"
#include "slotkern/base/status_list.hpp"

namespace slotkern {

enum class Status : int {
#define SLOTKERN_CODE(code, error, words, message) code,
  SLOTKERN_STATUSES(SLOTKERN_CODE)
#undef SLOTKERN_CODE
};

// The reason why a request has no window.
enum class Reason : std::uint8_t {
#define SLOTKERN_CODE(code, meaning) code,
  SLOTKERN_REASONS(SLOTKERN_CODE)
#undef SLOTKERN_CODE
};

// The texts of a status; see status_list.hpp.
struct StatusText {
  const char *code, *error, *words, *message;
};
inline constexpr StatusText kStatusTexts[] = {
#define SLOTKERN_CODE(code, error, words, message) {#code, #error, words, message},
    SLOTKERN_STATUSES(SLOTKERN_CODE)
#undef SLOTKERN_CODE
};
inline constexpr int kStatuses = sizeof kStatusTexts / sizeof *kStatusTexts;

// The codes of all reasons.
inline constexpr const char* kReasonTexts[] = {
#define SLOTKERN_CODE(code, meaning) #code,
    SLOTKERN_REASONS(SLOTKERN_CODE)
#undef SLOTKERN_CODE
};
inline constexpr int kReasons = sizeof kReasonTexts / sizeof *kReasonTexts;

// The first violation in a slot array: its row, and, if performances differ or slots overlap, the
// earlier row of the same node in `other`.
struct Fault {
  Status status = Status::ok;
  std::size_t row = 0;
  std::size_t other = 0;
};

// Calls f at the API boundary and turns exceptions into status codes.
template <class F>
Status guarded(F f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Status::no_memory;
  } catch (const Interrupted&) {
    return Status::interrupted;
  } catch (...) {
    return Status::internal;
  }
}

}  // namespace slotkern

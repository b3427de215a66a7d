// Room in vectors before a change that must be whole: what may fail comes first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace slotkern {

// The next so many that are added need no memory. Grows as adding them one by one would.
template <class... Vectors>
void room_for(std::size_t more, Vectors&... vectors) {
  const auto one = [more](auto& vector) {
    if (vector.capacity() - vector.size() < more) [[unlikely]]
      vector.reserve(std::max(2 * vector.capacity(), vector.size() + more));
  };
  (one(vectors), ...);
}

}  // namespace slotkern

// A table of entries named by generational handles (a slot map): a handle stays invalid after its
// entry is released, even if another entry reuses the index.
//
// Cost: O(1) for each operation, without allocation once the table has reached its final size;
// reused entries keep their allocated memory. An index can be reused 2^32 times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slotkern::community {

// A reference to an entry; valid while the generation is that of the entry.
struct Handle {
  std::uint32_t index = 0xffffffffu;
  std::uint32_t generation = 0;
  friend bool operator==(const Handle&, const Handle&) = default;
};

// A table of entries that are accessed by handles.
template <class Entry>
class HandleTable {
 public:
  // A table that replaces an earlier one needs generations greater than all those of the earlier.
  explicit HandleTable(std::uint32_t first_generation) : first_generation_(first_generation) {}

  // Allocates an entry. It still has the value of the entry that used the index before.
  Handle allocate() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(elements_.size()));
      elements_.push_back({Entry(), first_generation_, false});
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    elements_[index].used = true;
    return {index, ++elements_[index].generation};
  }

  // Returns the handle of the allocated entry at this index.
  Handle handle(std::uint32_t index) const { return {index, elements_[index].generation}; }

  Entry& operator[](Handle handle) { return elements_[handle.index].entry; }

  Entry* find(Handle handle) {
    if (handle.index >= elements_.size()) return nullptr;
    Element& element = elements_[handle.index];
    return element.used && element.generation == handle.generation ? &element.entry : nullptr;
  }

  void release(Handle handle) {
    elements_[handle.index].used = false;
    free_.push_back(handle.index);
  }

  std::size_t size() const { return elements_.size() - free_.size(); }

 private:
  struct Element {
    Entry entry;
    std::uint32_t generation;
    bool used;
  };

  std::uint32_t first_generation_;
  std::vector<Element> elements_;
  std::vector<std::uint32_t> free_;
};

}  // namespace slotkern::community

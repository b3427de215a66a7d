// A table whose entries are named by tickets, each once and for ever: a handle of an entry that
// is no longer there finds nothing, also when its place has been taken by another.
//
// O(1) each, no allocation once the table has had its size; entries keep what they have
// allocated. Exact for 2^32 uses of one place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slotkern::community {

struct Handle {
  std::uint32_t index = 0xffffffffu;
  std::uint32_t generation = 0;
  friend bool operator==(const Handle&, const Handle&) = default;
};

template <class Entry>
class HandleTable {
 public:
  // Serials of a table that comes after another one must not be those of the earlier.
  explicit HandleTable(std::uint32_t first_generation) : first_generation_(first_generation) {}

  // What the entry of an earlier handle has left is still in it.
  Handle allocate() {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(records_.size()));
      records_.push_back({Entry(), first_generation_, false});
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    records_[index].used = true;
    return {index, ++records_[index].generation};
  }

  // Of an entry that is there.
  Handle handle(std::uint32_t index) const { return {index, records_[index].generation}; }

  Entry& operator[](Handle handle) { return records_[handle.index].entry; }

  Entry* find(Handle handle) {
    if (handle.index >= records_.size()) return nullptr;
    Record& place = records_[handle.index];
    return place.used && place.generation == handle.generation ? &place.entry : nullptr;
  }

  void release(Handle handle) {
    records_[handle.index].used = false;
    free_.push_back(handle.index);
  }

  std::size_t size() const { return records_.size() - free_.size(); }

 private:
  struct Record {
    Entry entry;
    std::uint32_t generation;
    bool used;
  };

  std::uint32_t first_generation_;
  std::vector<Record> records_;
  std::vector<std::uint32_t> free_;
};

}  // namespace slotkern::community

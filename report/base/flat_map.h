// 64-bit keys to ids, in one array: a look-up is one cache miss. std::unordered_map's two or three
// were half of the time of a report on a million samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace xpu {

// `Value` is an Id; none marks a free place, so a value once asked for has to be set.
template <typename Value>
class FlatMap {
 public:
  // The value of `key`, none when it is new: the caller sets it before the next call.
  Value& operator[](uint64_t key) {
    if (2 * (size_ + 1) > slots_.size()) Grow();
    Slot& slot = slots_[Find(key)];
    if (!slot.value) {
      slot.key = key;
      ++size_;
    }
    return slot.value;
  }
  // Looks a key up without making a place for it.
  Value Get(uint64_t key) const { return slots_.empty() ? Value{} : slots_[Find(key)].value; }
  size_t size() const { return size_; }

 private:
  struct Slot {
    uint64_t key = 0;
    Value value{};
  };

  size_t Find(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    uint64_t hash = key * 0x9e3779b97f4a7c15ull;
    hash ^= hash >> 32;
    size_t at = hash & mask;
    while (slots_[at].value && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void Grow() {
    std::vector<Slot> old = std::exchange(slots_, {});
    slots_.resize(old.empty() ? 16 : old.size() * 2);
    for (const Slot& slot : old) {
      if (slot.value) slots_[Find(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t size_ = 0;
};

// Look-ups in a map that mostly ask for the key that was asked for before: events of one process
// come one after the other.
//
// `Map`: a std::map or std::unordered_map, whose values stay where they are. Nothing may be taken
// out of it meanwhile.
template <typename Map>
class Recent {
 public:
  explicit Recent(Map& map) : map_(map) {}

  // Does the same as map[key].
  typename Map::mapped_type& operator[](const typename Map::key_type& key) {
    if (last_ == nullptr || last_->first != key) last_ = &*map_.try_emplace(key).first;
    return last_->second;
  }

 private:
  Map& map_;
  typename Map::value_type* last_ = nullptr;
};

}  // namespace xpu

// How much of a damaged file is read over and over.
#pragma once

#include <algorithm>
#include <cstdint>

namespace xpu::dwarf {

// In a sound file no byte of a table belongs to two owners, so reading it all costs its size once.
// A damaged one can point to the same bytes from everywhere: its reader stops when this is spent.
class Budget {
 public:
  Budget() = default;
  explicit Budget(uint64_t section_bytes) : left_(4 * section_bytes + 65536) {}

  bool spent() const { return left_ == 0; }
  void Spend(uint64_t amount) { left_ -= std::min(left_, amount); }
  void Add(const Budget& more) { left_ += more.left_; }

 private:
  uint64_t left_ = 0;
};

}  // namespace xpu::dwarf

#include "symbolize/dwarf/entry_walk.h"

namespace xpu::dwarf {

bool EntryWalk::Next() {
  if (!started_) {
    started_ = true;
    return true;
  }
  Dwarf_Die next{};
  const int child = descend_ ? dwarf_child(&entry_, &next) : 1;
  descend_ = true;
  if (child < 0) return false;
  if (child == 0) {
    entry_ = next;
    ++depth_;
    return true;
  }
  if (depth_ == 0) return false;
  next = {};
  const int sibling = dwarf_siblingof(&entry_, &next);
  if (sibling < 0) return false;
  if (sibling > 0) return LeaveList(next.addr);
  if (next.addr <= entry_.addr) return false;
  entry_ = next;
  return true;
}

// `end`: the zero after the last entry of a list, which dwarf_siblingof leaves there; nullptr: the
// unit ends without one.
bool EntryWalk::LeaveList(void* end) {
  if (end == nullptr) return false;
  Dwarf* dwarf = dwarf_cu_getdwarf(entry_.cu);
  Dwarf_Off offset =
      dwarf_dieoffset(&entry_) +
      static_cast<Dwarf_Off>(static_cast<char*>(end) - static_cast<char*>(entry_.addr));
  while (--depth_ > 0) {
    Dwarf_Die next{};
    // After the end of the unit there is another one, or nothing.
    if (dwarf_offdie(dwarf, ++offset, &next) == nullptr || next.cu != entry_.cu) return false;
    if (*static_cast<char*>(next.addr) == 0) continue;
    entry_ = next;
    return true;
  }
  return false;
}

}  // namespace xpu::dwarf

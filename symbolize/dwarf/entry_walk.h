// Steps through an entry and all that is below it, in the order of the file.
//
// Each step moves forward in the file, whatever the file says, so a walk takes time by the size of
// its unit: dwarf_siblingof of an entry whose children were walked would read them once more where
// the compiler wrote no DW_AT_sibling (clang), and a damaged one leads into them again.
#pragma once

#include <cstdint>

#include <elfutils/libdw.h>

namespace xpu::dwarf {

class EntryWalk {
 public:
  explicit EntryWalk(Dwarf_Die top) : entry_(top) {}

  // The next entry, the first time the top itself; false: the end, or damage.
  bool Next();
  // Next goes on after all that is below the present entry.
  void SkipChildren() { descend_ = false; }

  Dwarf_Die& entry() { return entry_; }
  int tag() { return dwarf_tag(&entry_); }
  uint32_t depth() const { return depth_; }  // of the entry; 0: the top

 private:
  bool LeaveList(void* end);

  Dwarf_Die entry_;
  uint32_t depth_ = 0;
  bool started_ = false;
  bool descend_ = true;
};

// Calls `visit(const Dwarf_Attribute&)` for each attribute of an entry: a sweep, since each search
// of libdw's for one attribute is one.
template <typename Visit>
void ForEachAttribute(Dwarf_Die& entry, Visit visit) {
  dwarf_getattrs(
      &entry,
      [](Dwarf_Attribute* attribute, void* context) -> int {
        (*static_cast<Visit*>(context))(*attribute);
        return DWARF_CB_OK;
      },
      &visit, 0);
}

}  // namespace xpu::dwarf

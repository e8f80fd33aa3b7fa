// The DWARF expressions that call frame information of x86-64 uses, recognized by their form: a
// table has no room for an interpreter, and the forms are few.
#pragma once

#include <cstdint>

#include "symbolize/unwind/cfi_cursor.h"
#include "symbolize/unwind/unwind_table.h"

namespace xpu {

// Registers as DWARF numbers them on x86-64.
inline constexpr uint64_t kDwarfRbp = 6;
inline constexpr uint64_t kDwarfRsp = 7;
inline constexpr uint64_t kDwarfRip = 16;

// Of DW_CFA_def_cfa_expression: `cfa` and `cfa_offset` of a rule; kUnsupported for other forms.
//   breg7|breg6 A                             kRsp, kRbp
//   breg7|breg6 A; deref [; plus_uconst B]    kAtRsp, kAtRbp (stack realignment, OpenSSL)
//   breg7 8; breg16 0; lit15; and; litN; ge; lit3; shl; plus    kPlt (the linker's PLT)
UnwindRule CfaOfExpression(CfiCursor expression);

// Of DW_CFA_expression: the register lies at `base` + `offset`. False: another form.
struct SavedPlace {
  uint64_t base = 0;  // kDwarfRbp or kDwarfRsp
  int64_t offset = 0;
};
bool PlaceOfExpression(CfiCursor expression, SavedPlace& place);

}  // namespace xpu

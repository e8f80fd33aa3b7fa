// Runs the instructions of call frame information: each gives the rule of a range of addresses.
//
// Our own and not libdw's: this runs at the start of a recording for all that is mapped, and
// libdw's (dwarf_cfi_addrframe, one address at a time) took 4.4 to 6.8 times as long for the same
// rows.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "symbolize/unwind/cfi_section.h"
#include "symbolize/unwind/unwind_table.h"

namespace xpu {

// Where a register of the caller is.
struct CfiRegister {
  enum class Rule : uint8_t {
    kUnspecified,
    kSame,
    kUndefined,
    kAtCfa,     // *(CFA + offset)
    kAtRsp,     // *(rsp + offset)
    kAtRbp,     // *(rbp + offset)
    kCfaValue,  // CFA + offset
    kRegister,  // in register number offset
    kOther,
  };
  Rule rule = Rule::kUnspecified;
  int64_t offset = 0;
};

// The rules at an address, of the registers that a table follows.
struct CfiState {
  bool cfa_by_expression = false;
  UnwindRule cfa_expression;  // `cfa` and `cfa_offset` of it
  uint64_t cfa_register = ~uint64_t{0};
  int64_t cfa_offset = 0;
  CfiRegister rbp;
  CfiRegister rsp;
  CfiRegister return_address;

  UnwindRule ToRule(const Cie& cie) const;
};

// The rule from `address` on.
struct CfiRow {
  uint64_t address;
  UnwindRule rule;
};

class CfiInterpreter {
 public:
  // `initial`: the state after the instructions of the CIE. False: they are damaged.
  static bool RunCie(const Cie& cie, CfiState& initial);

  // `rows`: of [fde.begin, fde.end), ascending, neighbors differ. False: damaged.
  bool Run(const Cie& cie, const CfiState& initial, const Fde& fde, std::vector<CfiRow>& rows);

 private:
  // Compilers nest one or two; a damaged file would nest without end.
  static constexpr size_t kMaxRemembered = 16;
  static constexpr size_t kMaxRows = size_t{1} << 20;

  bool RunAll();
  bool RunPacked(uint8_t opcode);  // with an operand in the opcode
  bool RunAdvance(uint8_t opcode);
  bool RunCfa(uint8_t opcode);
  bool RunRegister(uint8_t opcode);
  bool RunOther(uint8_t opcode);
  bool AdvanceTo(uint64_t address);
  bool AdvanceBy(uint64_t delta);
  void SetRegister(uint64_t number, CfiRegister::Rule rule, int64_t offset);
  void SetFactored(uint64_t number, CfiRegister::Rule rule, int64_t factored);
  void SetByExpression(uint64_t number);
  void SetInRegister(uint64_t number, uint64_t other);
  void Restore(uint64_t number);
  CfiRegister* Followed(uint64_t number) { return Followed(state_, number); }
  CfiRegister* Followed(CfiState& state, uint64_t number) const;
  bool EmitRow();

  const Cie* cie_ = nullptr;
  const CfiState* initial_ = nullptr;
  CfiCursor cursor_;
  CfiState state_;
  uint64_t address_ = 0;
  uint64_t end_ = 0;
  bool ended_ = false;                   // the rest is about addresses after the range
  std::vector<CfiRow>* rows_ = nullptr;  // null: a CIE
  std::array<CfiState, kMaxRemembered> remembered_;
  size_t remembered_count_ = 0;
};

}  // namespace xpu

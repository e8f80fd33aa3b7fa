#include "symbolize/unwind/cfi_interpreter.h"

#include "symbolize/unwind/cfi_expression.h"

namespace xpu {
namespace {

// DW_CFA_. The first three have an operand in their low six bits.
enum Opcode : uint8_t {
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kMipsAdvanceLoc8 = 0x1d,
  kGnuWindowSave = 0x2d,
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};
constexpr uint8_t kPackedMask = 0xc0;

using Rule = CfiRegister::Rule;

// Products and sums of what a file says wrap around.
int64_t Multiply(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

bool CfiInterpreter::RunCie(const Cie& cie, CfiState& initial) {
  const CfiState nothing;
  CfiInterpreter interpreter;
  interpreter.cie_ = &cie;
  interpreter.initial_ = &nothing;
  interpreter.cursor_ = cie.instructions;
  if (!interpreter.RunAll()) return false;
  initial = interpreter.state_;
  return true;
}

bool CfiInterpreter::Run(const Cie& cie, const CfiState& initial, const Fde& fde,
                         std::vector<CfiRow>& rows) {
  rows.clear();
  cie_ = &cie;
  initial_ = &initial;
  cursor_ = fde.instructions;
  state_ = initial;
  address_ = fde.begin;
  end_ = fde.end;
  ended_ = false;
  rows_ = &rows;
  remembered_count_ = 0;
  return RunAll() && (ended_ || EmitRow());
}

bool CfiInterpreter::RunAll() {
  while (!cursor_.empty() && !ended_) {
    const auto opcode = cursor_.Read<uint8_t>();
    if ((opcode & kPackedMask) != 0 ? !RunPacked(opcode) : !RunOther(opcode)) return false;
  }
  return !cursor_.failed();
}

bool CfiInterpreter::RunPacked(uint8_t opcode) {
  const uint8_t operand = opcode & static_cast<uint8_t>(~kPackedMask);
  switch (opcode & kPackedMask) {
    case kAdvanceLoc:
      return AdvanceBy(operand);
    case kOffset:
      SetFactored(operand, Rule::kAtCfa, static_cast<int64_t>(cursor_.Uleb128()));
      return true;
    default:
      Restore(operand);
      return true;
  }
}

bool CfiInterpreter::RunOther(uint8_t opcode) {
  switch (opcode) {
    case kNop:
    case kGnuWindowSave:  // SPARC's; no operand
      return true;
    case kGnuArgsSize:
      cursor_.Uleb128();
      return true;
    case kSetLoc:
    case kAdvanceLoc1:
    case kAdvanceLoc2:
    case kAdvanceLoc4:
    case kMipsAdvanceLoc8:
      return RunAdvance(opcode);
    case kDefCfa:
    case kDefCfaSf:
    case kDefCfaRegister:
    case kDefCfaOffset:
    case kDefCfaOffsetSf:
    case kDefCfaExpression:
      return RunCfa(opcode);
    case kRememberState:
      if (remembered_count_ == kMaxRemembered) return false;
      remembered_[remembered_count_++] = state_;
      return true;
    case kRestoreState:
      if (remembered_count_ == 0) return false;
      state_ = remembered_[--remembered_count_];
      return true;
    default:
      return RunRegister(opcode);
  }
}

bool CfiInterpreter::RunAdvance(uint8_t opcode) {
  switch (opcode) {
    case kAdvanceLoc1:
      return AdvanceBy(cursor_.Read<uint8_t>());
    case kAdvanceLoc2:
      return AdvanceBy(cursor_.Read<uint16_t>());
    case kAdvanceLoc4:
      return AdvanceBy(cursor_.Read<uint32_t>());
    case kMipsAdvanceLoc8:
      return AdvanceBy(cursor_.Read<uint64_t>());
    default:
      return AdvanceTo(cursor_.Pointer(cie_->pointer_encoding));
  }
}

bool CfiInterpreter::RunCfa(uint8_t opcode) {
  if (opcode == kDefCfaExpression) {
    state_.cfa_expression = CfaOfExpression(cursor_.Take(cursor_.Uleb128()));
    state_.cfa_by_expression = true;
    return true;
  }
  if (opcode == kDefCfa || opcode == kDefCfaSf || opcode == kDefCfaRegister) {
    state_.cfa_register = cursor_.Uleb128();
    state_.cfa_by_expression = false;
  }
  if (opcode == kDefCfa || opcode == kDefCfaOffset) {
    state_.cfa_offset = static_cast<int64_t>(cursor_.Uleb128());
  }
  if (opcode == kDefCfaSf || opcode == kDefCfaOffsetSf) {
    state_.cfa_offset = Multiply(cursor_.Sleb128(), cie_->data_alignment);
  }
  return true;
}

bool CfiInterpreter::RunRegister(uint8_t opcode) {
  const uint64_t number = cursor_.Uleb128();
  switch (opcode) {
    case kOffsetExtended:
      SetFactored(number, Rule::kAtCfa, static_cast<int64_t>(cursor_.Uleb128()));
      return true;
    case kOffsetExtendedSf:
      SetFactored(number, Rule::kAtCfa, cursor_.Sleb128());
      return true;
    case kGnuNegativeOffsetExtended:
      SetFactored(number, Rule::kAtCfa, Multiply(-1, static_cast<int64_t>(cursor_.Uleb128())));
      return true;
    case kValOffset:
      SetFactored(number, Rule::kCfaValue, static_cast<int64_t>(cursor_.Uleb128()));
      return true;
    case kValOffsetSf:
      SetFactored(number, Rule::kCfaValue, cursor_.Sleb128());
      return true;
    case kRestoreExtended:
      Restore(number);
      return true;
    case kUndefined:
      SetRegister(number, Rule::kUndefined, 0);
      return true;
    case kSameValue:
      SetRegister(number, Rule::kSame, 0);
      return true;
    case kRegister:
      SetInRegister(number, cursor_.Uleb128());
      return true;
    case kExpression:
      SetByExpression(number);
      return true;
    case kValExpression:
      cursor_.Skip(cursor_.Uleb128());
      SetRegister(number, Rule::kOther, 0);
      return true;
    default:
      return false;
  }
}

bool CfiInterpreter::AdvanceBy(uint64_t delta) {
  return AdvanceTo(address_ + delta * cie_->code_alignment);
}

bool CfiInterpreter::AdvanceTo(uint64_t address) {
  if (rows_ == nullptr || cursor_.failed() || address < address_) return false;
  if (address == address_) return true;
  if (!EmitRow()) return false;
  address_ = address;
  ended_ = address >= end_;
  return true;
}

bool CfiInterpreter::EmitRow() {
  const UnwindRule rule = state_.ToRule(*cie_);
  if (!rows_->empty() && rows_->back().rule == rule) return true;
  if (rows_->size() == kMaxRows) return false;
  rows_->push_back({address_, rule});
  return true;
}

CfiRegister* CfiInterpreter::Followed(CfiState& state, uint64_t number) const {
  if (number == cie_->return_register) return &state.return_address;
  if (number == kDwarfRbp) return &state.rbp;
  if (number == kDwarfRsp) return &state.rsp;
  return nullptr;
}

void CfiInterpreter::SetRegister(uint64_t number, Rule rule, int64_t offset) {
  CfiRegister* const followed = Followed(number);
  if (followed != nullptr) *followed = {rule, offset};
}

void CfiInterpreter::SetFactored(uint64_t number, Rule rule, int64_t factored) {
  SetRegister(number, rule, Multiply(factored, cie_->data_alignment));
}

void CfiInterpreter::SetInRegister(uint64_t number, uint64_t other) {
  SetRegister(number, other == number ? Rule::kSame : Rule::kRegister, static_cast<int64_t>(other));
}

void CfiInterpreter::SetByExpression(uint64_t number) {
  SavedPlace place;
  if (!PlaceOfExpression(cursor_.Take(cursor_.Uleb128()), place)) {
    SetRegister(number, Rule::kOther, 0);
  } else {
    SetRegister(number, place.base == kDwarfRsp ? Rule::kAtRsp : Rule::kAtRbp, place.offset);
  }
}

void CfiInterpreter::Restore(uint64_t number) {
  CfiState from = *initial_;
  const CfiRegister* const was = Followed(from, number);
  if (was != nullptr) *Followed(number) = *was;
}

}  // namespace xpu

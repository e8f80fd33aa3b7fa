// From the rules of registers to the one rule that a table holds.
#include <utility>

#include "symbolize/unwind/cfi_expression.h"
#include "symbolize/unwind/cfi_interpreter.h"
#include "symbolize/unwind/unwind_walk.h"

namespace xpu {
namespace {

using Rule = CfiRegister::Rule;

constexpr UnwindRule kUnsupportedRule{.cfa = UnwindCfa::kUnsupported};

// `cfa` and `cfa_offset`.
UnwindRule CfaRule(const CfiState& state) {
  if (state.cfa_by_expression) return state.cfa_expression;
  if (!std::in_range<int32_t>(state.cfa_offset)) return kUnsupportedRule;
  const auto offset = static_cast<int32_t>(state.cfa_offset);
  if (state.cfa_register == kDwarfRsp) return {.cfa = UnwindCfa::kRsp, .cfa_offset = offset};
  if (state.cfa_register == kDwarfRbp) return {.cfa = UnwindCfa::kRbp, .cfa_offset = offset};
  if (state.cfa_register < kDwarfRip && std::in_range<int16_t>(state.cfa_offset)) {
    return {.cfa = UnwindCfa::kRegister,
            .cfa_offset = UnwindRule::PackDeref(static_cast<int16_t>(offset),
                                                static_cast<int16_t>(state.cfa_register))};
  }
  return kUnsupportedRule;
}

// The kernel's frame of a signal. Its registers are in the ucontext, at rsp when the handler has
// returned; C libraries describe them all with expressions.
bool IsUcontext(const CfiState& state, UnwindRule cfa) {
  return cfa.cfa == UnwindCfa::kAtRsp &&
         cfa.cfa_offset == UnwindRule::PackDeref(int16_t{kUcontextRsp}, 0) &&
         state.return_address.rule == Rule::kAtRsp &&
         state.return_address.offset == int64_t{kUcontextRip} && state.rbp.rule == Rule::kAtRsp &&
         state.rbp.offset == int64_t{kUcontextRbp};
}

// The C library's vfork takes its return address off the stack, which its child is to use, and
// keeps it in rdi. Where it was it still is: the child puts the same value back there.
bool IsInVfork(const CfiRegister& return_address, UnwindRule cfa) {
  constexpr int64_t kRdi = 5;
  return return_address.rule == Rule::kRegister && return_address.offset == kRdi &&
         cfa.cfa == UnwindCfa::kRsp && cfa.cfa_offset == 0;
}

// `rbp` and `rbp_offset` of a rule whose CFA is known. False: another form.
bool SetRbp(const CfiRegister& rbp, UnwindRule& rule) {
  int64_t offset = rbp.offset;
  switch (rbp.rule) {
    case Rule::kUnspecified:  // callees save it
    case Rule::kSame:
      rule.rbp = UnwindRbp::kSame;
      return true;
    case Rule::kUndefined:
      rule.rbp = UnwindRbp::kUndefined;
      return true;
    case Rule::kAtCfa:
      rule.rbp = UnwindRbp::kAtCfa;
      break;
    case Rule::kAtRbp:
      rule.rbp = UnwindRbp::kAtRbp;
      break;
    case Rule::kAtRsp:
      if (rule.cfa != UnwindCfa::kRsp) return false;
      rule.rbp = UnwindRbp::kAtCfa;
      if (!std::in_range<int32_t>(offset)) return false;
      offset -= rule.cfa_offset;
      break;
    default:
      return false;
  }
  if (!std::in_range<int16_t>(offset)) return false;
  rule.rbp_offset = static_cast<int16_t>(offset);
  return true;
}

}  // namespace

UnwindRule CfiState::ToRule(const Cie& cie) const {
  if (cie.return_register != kDwarfRip) return kUnsupportedRule;
  if (return_address.rule == Rule::kUndefined) return {.cfa = UnwindCfa::kEnd};
  UnwindRule rule = CfaRule(*this);
  if (rule.cfa == UnwindCfa::kUnsupported) return rule;
  if (cie.is_signal_frame) {
    return IsUcontext(*this, rule) ? UnwindRule{.cfa = UnwindCfa::kSignal} : kUnsupportedRule;
  }
  const bool on_stack = return_address.rule == Rule::kAtCfa && return_address.offset == -8;
  if (!on_stack && !IsInVfork(return_address, rule)) return kUnsupportedRule;
  const bool rsp_is_cfa =
      rsp.rule == Rule::kUnspecified || (rsp.rule == Rule::kCfaValue && rsp.offset == 0);
  return rsp_is_cfa && SetRbp(rbp, rule) ? rule : kUnsupportedRule;
}

}  // namespace xpu

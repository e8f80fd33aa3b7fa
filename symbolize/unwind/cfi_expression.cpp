#include "symbolize/unwind/cfi_expression.h"

#include <utility>

namespace xpu {
namespace {

enum Operation : uint8_t {
  kDeref = 0x06,
  kAnd = 0x1a,
  kPlus = 0x22,
  kPlusConstant = 0x23,
  kShiftLeft = 0x24,
  kGreaterOrEqual = 0x2a,
  kLiteral0 = 0x30,
  kLiteral31 = 0x4f,
  kRegisterPlus0 = 0x70,
  kRegisterPlusRbp = kRegisterPlus0 + kDwarfRbp,
  kRegisterPlusRsp = kRegisterPlus0 + kDwarfRsp,
  kRegisterPlusRip = kRegisterPlus0 + kDwarfRip,
};

UnwindRule Unsupported() { return {.cfa = UnwindCfa::kUnsupported}; }

// What follows `breg7 8`.
UnwindRule Plt(CfiCursor rest) {
  const auto next = [&](uint64_t wanted) { return rest.Read<uint8_t>() == wanted; };
  if (!next(kRegisterPlusRip) || rest.Sleb128() != 0) return Unsupported();
  if (!next(kLiteral0 + 15) || !next(kAnd)) return Unsupported();
  const int32_t byte = rest.Read<uint8_t>() - kLiteral0;
  if (byte < 0 || byte > 15) return Unsupported();
  if (!next(kGreaterOrEqual) || !next(kLiteral0 + 3) || !next(kShiftLeft) || !next(kPlus) ||
      !rest.empty()) {
    return Unsupported();
  }
  return {.cfa = UnwindCfa::kPlt, .cfa_offset = byte};
}

// What follows `deref`: the constant that is added, 0 when nothing follows.
bool Addend(CfiCursor rest, int64_t& addend) {
  addend = 0;
  if (rest.empty()) return true;
  const auto operation = rest.Read<uint8_t>();
  if (operation == kPlusConstant) {
    addend = static_cast<int64_t>(rest.Uleb128());
  } else if (operation >= kLiteral0 && operation <= kLiteral31) {
    addend = operation - kLiteral0;
    if (rest.Read<uint8_t>() != kPlus) return false;
  } else {
    return false;
  }
  return rest.empty() && !rest.failed();
}

}  // namespace

UnwindRule CfaOfExpression(CfiCursor expression) {
  const auto operation = expression.Read<uint8_t>();
  if (operation != kRegisterPlusRsp && operation != kRegisterPlusRbp) return Unsupported();
  const bool is_rsp = operation == kRegisterPlusRsp;
  const int64_t offset = expression.Sleb128();
  if (expression.failed() || !std::in_range<int32_t>(offset)) return Unsupported();
  if (expression.empty()) {
    return {.cfa = is_rsp ? UnwindCfa::kRsp : UnwindCfa::kRbp,
            .cfa_offset = static_cast<int32_t>(offset)};
  }
  CfiCursor rest = expression;
  int64_t addend = 0;
  if (rest.Read<uint8_t>() == kDeref) {
    if (!Addend(rest, addend) || !std::in_range<int16_t>(offset) ||
        !std::in_range<int16_t>(addend)) {
      return Unsupported();
    }
    return {.cfa = is_rsp ? UnwindCfa::kAtRsp : UnwindCfa::kAtRbp,
            .cfa_offset =
                UnwindRule::PackDeref(static_cast<int16_t>(offset), static_cast<int16_t>(addend))};
  }
  return is_rsp && offset == 8 ? Plt(expression) : Unsupported();
}

bool PlaceOfExpression(CfiCursor expression, SavedPlace& place) {
  const auto operation = expression.Read<uint8_t>();
  if (operation != kRegisterPlusRsp && operation != kRegisterPlusRbp) return false;
  place.base = static_cast<uint64_t>(operation - kRegisterPlus0);
  place.offset = expression.Sleb128();
  return expression.empty() && !expression.failed();
}

}  // namespace xpu

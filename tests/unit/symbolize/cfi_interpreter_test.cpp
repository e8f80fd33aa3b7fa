#include "symbolize/unwind/cfi_interpreter.h"

#include <gtest/gtest.h>

#include "tests/unit/symbolize/cfi_builder.h"
#include "tests/unit/symbolize/unwind_rules.h"

namespace xpu {
namespace {

using test::Block;
using test::CfiBuilder;
using test::Sleb;
using test::U16;
using test::U32;
using test::U64;
using test::U8;
using test::Uleb;

constexpr uint64_t kBegin = 0x401000;
constexpr UnwindRule kUnsupported{.cfa = UnwindCfa::kUnsupported};

using test::Rsp;
constexpr UnwindRule Register(int16_t number, int16_t offset) {
  return {.cfa = UnwindCfa::kRegister, .cfa_offset = UnwindRule::PackDeref(offset, number)};
}
constexpr UnwindRule RbpAt(UnwindRbp rbp, int16_t offset) {
  return {.cfa = UnwindCfa::kRsp, .rbp = rbp, .rbp_offset = offset, .cfa_offset = 8};
}

class Machine {
 public:
  explicit Machine(std::string cie_instructions = CfiBuilder::UsualCie())
      : cie_instructions_(std::move(cie_instructions)) {
    cie.data_alignment = -8;
    cie.return_register = 16;
    cie.pointer_encoding = kEhPcRelative | kEhSdata4;
  }

  bool Run(const std::string& instructions) {
    cie.instructions = CfiCursor(std::as_bytes(std::span(cie_instructions_)), 0);
    CfiState initial;
    if (!CfiInterpreter::RunCie(cie, initial)) return false;
    const Fde fde{.begin = kBegin,
                  .end = end,
                  .cie = 0,
                  .instructions = CfiCursor(std::as_bytes(std::span(instructions)), kBegin)};
    return interpreter_.Run(cie, initial, fde, rows);
  }

  // The rule at the end of the function.
  UnwindRule Last(const std::string& instructions) {
    return Run(instructions) ? rows.back().rule : UnwindRule{};
  }

  Cie cie;
  uint64_t end = kBegin + 0x1000000000;
  std::vector<CfiRow> rows;

 private:
  std::string cie_instructions_;
  CfiInterpreter interpreter_;
};

UnwindRule Last(const std::string& instructions) { return Machine().Last(instructions); }

TEST(CfiInterpreter, Advances) {
  struct Case {
    std::string instruction;
    uint64_t delta;
  };
  const Case cases[] = {{"\x45", 5},
                        {"\x7f", 0x3f},
                        {"\x02" + U8(0xfe), 0xfe},
                        {"\x03" + U16(0xfedc), 0xfedc},
                        {"\x04" + U32(0xfedcba98), 0xfedcba98},
                        {"\x1d" + U64(0x123456789), 0x123456789},
                        {"\x01" + U32(0x100), 0x101}};  // from where it stands
  for (const Case& each : cases) {
    Machine machine;
    ASSERT_TRUE(machine.Run(each.instruction + "\x0e\x10"));
    ASSERT_EQ(machine.rows.size(), 2u);
    EXPECT_EQ(machine.rows[0].address, kBegin);
    EXPECT_EQ(machine.rows[0].rule, Rsp(8));
    EXPECT_EQ(machine.rows[1].address, kBegin + each.delta);
    EXPECT_EQ(machine.rows[1].rule, Rsp(16));
  }
}

TEST(CfiInterpreter, AdvancesCountInUnitsOfCode) {
  Machine machine;
  machine.cie.code_alignment = 4;
  ASSERT_TRUE(machine.Run("\x43\x0e\x10"));
  EXPECT_EQ(machine.rows[1].address, kBegin + 12);
}

TEST(CfiInterpreter, AnAdvanceByNothingMakesNoRow) {
  Machine machine;
  ASSERT_TRUE(machine.Run(std::string("\x40\x0e\x10\x02\x00\x0e\x18", 7)));
  ASSERT_EQ(machine.rows.size(), 1u);
  EXPECT_EQ(machine.rows[0].rule, Rsp(24));
}

TEST(CfiInterpreter, RowsThatSayTheSameAreOne) {
  Machine machine;
  ASSERT_TRUE(machine.Run("\x41\x83\x02\x41\x8c\x03\x41\x0e\x10"));  // rbx, r12
  ASSERT_EQ(machine.rows.size(), 2u);
  EXPECT_EQ(machine.rows[1].address, kBegin + 3);
}

TEST(CfiInterpreter, WhatFollowsTheFunctionIsLeftOut) {
  Machine machine;
  machine.end = kBegin + 4;
  ASSERT_TRUE(machine.Run("\x43\x0e\x10\x41\x0e\x18\x3f"));  // not even read
  ASSERT_EQ(machine.rows.size(), 2u);
  EXPECT_EQ(machine.rows[1].rule, Rsp(16));
}

TEST(CfiInterpreter, CfaByARegister) {
  EXPECT_EQ(Last("\x0c\x07\x20"), Rsp(32));
  EXPECT_EQ(Last("\x0c\x06\x10"), (UnwindRule{.cfa = UnwindCfa::kRbp, .cfa_offset = 16}));
  EXPECT_EQ(Last("\x0d\x06"), (UnwindRule{.cfa = UnwindCfa::kRbp, .cfa_offset = 8}));
  EXPECT_EQ(Last("\x0e" + Uleb(0x12345)), Rsp(0x12345));
  EXPECT_EQ(Last("\x12\x07" + Sleb(-3)), Rsp(24));  // times the data alignment
  EXPECT_EQ(Last("\x13" + Sleb(-5)), Rsp(40));
  EXPECT_EQ(Last("\x0d\x03\x0d\x07"), Rsp(8));
  EXPECT_EQ(Last("\x0e" + Uleb(uint64_t{1} << 31)), kUnsupported);
}

TEST(CfiInterpreter, CfaByARegisterThatIsNotFollowed) {
  // r10, of GCC's realignment.
  const UnwindRule r10 = Last("\x0c\x0a" + std::string(1, '\0'));
  EXPECT_EQ(r10, Register(10, 0));
  EXPECT_EQ(r10.cfa_offset, 10 << 16);
  EXPECT_EQ(r10.DerefAddend(), 10);
  EXPECT_EQ(r10.DerefOffset(), 0);
  EXPECT_EQ(Last("\x0d\x03"), Register(3, 8));                 // rbx, the offset as it was
  EXPECT_EQ(Last("\x0c" + Uleb(0) + "\x08"), Register(0, 8));  // rax
  EXPECT_EQ(Last("\x0c\x0f\x08"), Register(15, 8));
  EXPECT_EQ(Last("\x0c\x10\x08"), kUnsupported);  // no general register
  EXPECT_EQ(Last("\x12\x0b" + Sleb(3)), Register(11, -24));
  EXPECT_EQ(Last("\x0c\x0a" + Uleb(0x7fff)), Register(10, 0x7fff));
  EXPECT_EQ(Last("\x0c\x0a" + Uleb(0x8000)), kUnsupported);  // more than the rule holds
  EXPECT_EQ(Last("\x12\x0a" + Sleb(4096)), Register(10, -0x8000));
  EXPECT_EQ(Last("\x12\x0a" + Sleb(4097)), kUnsupported);
}

TEST(CfiInterpreter, RbpWhereTheCfaIsByARegisterThatIsNotFollowed) {
  const auto rule = [](UnwindRbp rbp, int16_t offset) {
    UnwindRule with = Register(10, 16);
    with.rbp = rbp;
    with.rbp_offset = offset;
    return with;
  };
  const std::string by_r10 = "\x0c\x0a\x10";
  EXPECT_EQ(Last(by_r10 + "\x86\x02"), rule(UnwindRbp::kAtCfa, -16));
  EXPECT_EQ(Last(by_r10 + "\x07\x06"), rule(UnwindRbp::kUndefined, 0));
  EXPECT_EQ(Last(by_r10 + "\x10\x06" + Block("\x76\x78")), rule(UnwindRbp::kAtRbp, -8));
  // How far the CFA lies from rsp is not known.
  EXPECT_EQ(Last(by_r10 + "\x10\x06" + Block("\x77\x08")), kUnsupported);
  EXPECT_EQ(Last("\x0c\x06\x10\x10\x06" + Block("\x77\x08")), kUnsupported);
  EXPECT_EQ(Last(by_r10 + "\x09\x06\x03"), kUnsupported);
  EXPECT_EQ(Last(by_r10 + "\x90\x02"), kUnsupported);
}

TEST(CfiInterpreter, CfaByAnExpression) {
  const auto cfa = [](const std::string& expression) { return Last("\x0f" + Block(expression)); };
  const auto rule = [](UnwindCfa form, int32_t offset) {
    return UnwindRule{.cfa = form, .cfa_offset = offset};
  };
  EXPECT_EQ(cfa("\x77\x10"), Rsp(16));
  EXPECT_EQ(cfa("\x76\x10"), rule(UnwindCfa::kRbp, 16));
  EXPECT_EQ(cfa("\x76\x78\x06"), rule(UnwindCfa::kAtRbp, UnwindRule::PackDeref(-8, 0)));
  EXPECT_EQ(cfa("\x77" + Sleb(1000) + "\x06\x23\x08"),
            rule(UnwindCfa::kAtRsp, UnwindRule::PackDeref(1000, 8)));
  EXPECT_EQ(cfa("\x77\x08\x06\x38\x22"), rule(UnwindCfa::kAtRsp, UnwindRule::PackDeref(8, 8)));
  // The PLT of the linkers; 9 with -z ibtplt.
  for (const int byte : {9, 11}) {
    const std::string plt = std::string("\x77\x08\x80\x00\x3f\x1a", 6) +
                            U8(0x30u + static_cast<unsigned>(byte)) + "\x2a\x33\x24\x22";
    EXPECT_EQ(cfa(plt), rule(UnwindCfa::kPlt, byte));
    EXPECT_EQ(cfa(plt + "\x22"), kUnsupported);
    for (size_t size = 0; size < plt.size(); ++size) {
      const UnwindRule cut = cfa(plt.substr(0, size));
      EXPECT_EQ(cut, size == 2 ? Rsp(8) : kUnsupported) << size;
    }
  }
  EXPECT_EQ(cfa("\x77\x08\x79" + std::string(1, '\0') + "\x38\x1e\x22\x06\x23\x08"), kUnsupported);
  EXPECT_EQ(cfa("\x73\x08"), kUnsupported);                     // rbx
  EXPECT_EQ(cfa("\x77" + Sleb(40000) + "\x06"), kUnsupported);  // more than the rule holds
  EXPECT_EQ(cfa("\x77\x08\x06\x23" + Uleb(40000)), kUnsupported);
  EXPECT_EQ(cfa(""), kUnsupported);
}

TEST(CfiInterpreter, OffsetsOfRegisters) {
  EXPECT_EQ(Last("\x86\x02"), RbpAt(UnwindRbp::kAtCfa, -16));
  EXPECT_EQ(Last("\x05\x06\x03"), RbpAt(UnwindRbp::kAtCfa, -24));
  EXPECT_EQ(Last("\x11\x06" + Sleb(-1)), RbpAt(UnwindRbp::kAtCfa, 8));
  EXPECT_EQ(Last("\x2f\x06\x01"), RbpAt(UnwindRbp::kAtCfa, 8));
  EXPECT_EQ(Last("\x86" + Uleb(5000)), kUnsupported);
  EXPECT_EQ(Last("\x90\x02"), kUnsupported);    // the return address elsewhere
  EXPECT_EQ(Last("\x87\x02"), kUnsupported);    // rsp is not the CFA
  EXPECT_EQ(Last("\x83\x02\x8f\x03"), Rsp(8));  // others are not followed
}

TEST(CfiInterpreter, OtherPlacesOfRegisters) {
  EXPECT_EQ(Last("\x86\x02\x08\x06"), Rsp(8));  // same value
  EXPECT_EQ(Last("\x07\x06"), RbpAt(UnwindRbp::kUndefined, 0));
  EXPECT_EQ(Last("\x07\x10"), UnwindRule{.cfa = UnwindCfa::kEnd});
  EXPECT_EQ(Last("\x09\x06\x03"), kUnsupported);  // in rbx
  EXPECT_EQ(Last("\x09\x06\x06"), Rsp(8));        // in itself
  EXPECT_EQ(Last("\x09\x10\x01"), kUnsupported);
  EXPECT_EQ(Last(std::string("\x14\x07\x00", 3)), Rsp(8));  // rsp is the CFA
  EXPECT_EQ(Last("\x14\x07\x01"), kUnsupported);
  EXPECT_EQ(Last("\x15\x06" + Sleb(-2)), kUnsupported);  // a value, not a place
  EXPECT_EQ(Last("\x16\x06" + Block("\x76\x08")), kUnsupported);
  EXPECT_EQ(Last("\x10\x06" + Block(std::string("\x76\x00", 2))), RbpAt(UnwindRbp::kAtRbp, 0));
  EXPECT_EQ(Last("\x10\x06" + Block("\x76\x78")), RbpAt(UnwindRbp::kAtRbp, -8));
  EXPECT_EQ(Last("\x10\x06" + Block("\x77\x78")), RbpAt(UnwindRbp::kAtCfa, -16));
  EXPECT_EQ(Last("\x10\x06" + Block("\x73\x08")), kUnsupported);
  EXPECT_EQ(Last("\x10\x03" + Block("\x73\x08")), Rsp(8));
}

TEST(CfiInterpreter, Restores) {
  const std::string cie = CfiBuilder::UsualCie() + "\x86\x04";
  EXPECT_EQ(Machine(cie).Last("\x86\x02\xc6"), RbpAt(UnwindRbp::kAtCfa, -32));
  EXPECT_EQ(Machine(cie).Last("\x08\x06\x06\x06"), RbpAt(UnwindRbp::kAtCfa, -32));
  EXPECT_EQ(Last("\x86\x02\xc6"), Rsp(8));
  EXPECT_EQ(Last("\x0a\x0e\x20\x86\x02\x0b"), Rsp(8));  // the CFA too
  EXPECT_EQ(Last("\x0a\x0e\x20\x0a\x0e\x28\x0b\x41"), Rsp(32));
}

TEST(CfiInterpreter, InstructionsWithoutARule) {
  EXPECT_EQ(Last(std::string("\x00\x2d\x2e\x20", 4)), Rsp(8));
}

TEST(CfiInterpreter, Damaged) {
  Machine machine;
  EXPECT_FALSE(machine.Run("\x0b"));  // nothing was remembered
  EXPECT_TRUE(machine.Run(std::string(16, '\x0a')));
  EXPECT_FALSE(machine.Run(std::string(17, '\x0a')));
  EXPECT_FALSE(machine.Run("\x3f"));  // DW_CFA_hi_user
  EXPECT_FALSE(machine.Run("\x17\x01"));
  EXPECT_FALSE(machine.Run("\x01" + U32(0xffffff00)));  // backwards
  EXPECT_FALSE(Machine("\x41").Run(""));                // a CIE has no addresses
  const std::string all[] = {"\x02" + U8(1),
                             "\x03" + U16(1),
                             "\x04" + U32(1),
                             "\x1d" + U64(1),
                             "\x01" + U32(1),
                             "\x0c\x07\x08",
                             "\x0d\x07",
                             "\x0e\x10",
                             "\x86\x02",
                             "\x05\x06\x02",
                             "\x11\x06\x02",
                             "\x2f\x06\x02",
                             "\x12\x07\x08",
                             "\x13\x08",
                             "\x14\x06\x01",
                             "\x15\x06\x01",
                             "\x06\x06",
                             "\x07\x06",
                             "\x08\x06",
                             "\x09\x06\x06",
                             "\x2e\x10",
                             "\x0f\x02\x77\x08",
                             "\x10\x06\x02\x76\x08",
                             "\x16\x06\x02\x76\x08"};
  for (const std::string& instruction : all) {
    EXPECT_TRUE(machine.Run(instruction));
    for (size_t size = 1; size < instruction.size(); ++size) {
      EXPECT_FALSE(machine.Run(instruction.substr(0, size)))
          << static_cast<int>(instruction[0]) << " cut at " << size;
    }
  }
  EXPECT_FALSE(machine.Run("\x0e" + std::string(40, '\x80')));
}

// As glibc describes __restore_rt.
std::string Ucontext(int64_t rip, int64_t rsp, int64_t rbp) {
  const auto at_rsp = [](int64_t offset) { return "\x77" + Sleb(offset); };
  return "\x0f" + Block(at_rsp(rsp) + "\x06") + "\x10\x06" + Block(at_rsp(rbp)) + "\x10\x07" +
         Block(at_rsp(rsp)) + "\x10\x10" + Block(at_rsp(rip));
}

TEST(CfiInterpreter, SignalFrames) {
  Machine machine(std::string{});
  machine.cie.is_signal_frame = true;
  EXPECT_EQ(machine.Last(Ucontext(168, 160, 120)), UnwindRule{.cfa = UnwindCfa::kSignal});
  EXPECT_EQ(machine.Last(Ucontext(168, 160, 128)), kUnsupported);
  EXPECT_EQ(machine.Last(Ucontext(168, 152, 120)), kUnsupported);
  EXPECT_EQ(machine.Last(Ucontext(160, 160, 120)), kUnsupported);
  EXPECT_EQ(machine.Last("\x0c\x07\x08\x90\x01"), kUnsupported);
  EXPECT_EQ(machine.Last("\x07\x10"), UnwindRule{.cfa = UnwindCfa::kEnd});
  machine.cie.is_signal_frame = false;
  EXPECT_EQ(machine.Last(Ucontext(168, 160, 120)), kUnsupported);
}

// The C library's vfork has its return address in rdi, and still below its stack pointer.
TEST(CfiInterpreter, TheReturnAddressInVfork) {
  EXPECT_EQ(Last("\x0e" + Uleb(0) + "\x09\x10\x05"), Rsp(0));
  EXPECT_EQ(Last("\x0e" + Uleb(0) + "\x09\x10\x05\x0e\x08\x90\x01"), Rsp(8));
  EXPECT_EQ(Last("\x09\x10\x05"), kUnsupported);  // CFA rsp + 8: as any other code says it
  EXPECT_EQ(Last("\x0d\x06\x0e" + Uleb(0) + "\x09\x10\x05"), kUnsupported);
  EXPECT_EQ(Last("\x0e" + Uleb(0) + "\x09\x10\x04"), kUnsupported);  // rsi
}

TEST(CfiInterpreter, AnotherReturnRegister) {
  Machine machine;
  machine.cie.return_register = 30;
  EXPECT_EQ(machine.Last(""), kUnsupported);
}

TEST(CfiInterpreter, NothingSaysWhereTheReturnAddressIs) {
  EXPECT_EQ(Machine("\x0c\x07\x08").Last(""), kUnsupported);
}

}  // namespace
}  // namespace xpu

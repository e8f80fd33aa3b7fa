#include "symbolize/unwind/unwind_walk.h"

#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/symbolize/unwind_rules.h"

namespace xpu {
namespace {

// What the stack holds, word by word; nothing else can be read.
class StackWords {
 public:
  void Set(uint64_t address, uint64_t value) { words_[address] = value; }
  bool Read(uint64_t address, uint64_t* value) {
    const auto found = words_.find(address);
    if (found == words_.end()) return false;
    *value = found->second;
    return true;
  }

 private:
  std::map<uint64_t, uint64_t> words_;
};

// Rules of ranges of addresses; outside them there is no code.
class Rules {
 public:
  void Add(uint64_t begin, uint64_t end, const UnwindRule& rule, CodeKind kind = CodeKind::kRule) {
    ranges_.push_back({begin, end, rule, kind});
  }
  CodeKind Find(uint64_t address, UnwindRule* rule) {
    looked_up_.push_back(address);
    for (const Range& range : ranges_) {
      if (address < range.begin || address >= range.end) continue;
      *rule = range.rule;
      return range.kind;
    }
    return CodeKind::kNotCode;
  }
  const std::vector<uint64_t>& looked_up() const { return looked_up_; }

 private:
  struct Range {
    uint64_t begin, end;
    UnwindRule rule;
    CodeKind kind;
  };
  std::vector<Range> ranges_;
  std::vector<uint64_t> looked_up_;
};

using Frames = std::vector<uint64_t>;

constexpr uint64_t kSp = 0x7000;
constexpr UnwindRule kEnd{.cfa = UnwindCfa::kEnd};
using test::kNoRule;
constexpr int16_t kDwarfR10 = 10;

using test::Rsp;

class UnwindWalk : public testing::Test {
 protected:
  // _start, at 0x2000.
  UnwindWalk() { code_.Add(0x2000, 0x2100, kEnd); }

  Frames Walk(const WalkRegisters& at, uint32_t limit = 128) {
    Frames frames(limit);
    result_ = WalkStack(at, memory_, code_, frames.data(), limit);
    frames.resize(result_.count);
    return frames;
  }

  StackWords memory_;
  Rules code_;
  WalkResult result_;
};

TEST_F(UnwindWalk, ToTheOutermostFrame) {
  code_.Add(0x1000, 0x1100, Rsp(32));
  code_.Add(0x1100, 0x1200, Rsp(16));
  memory_.Set(kSp + 24, 0x1150);
  memory_.Set(kSp + 32 + 8, 0x2050);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010, 0x1150, 0x2050}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
  EXPECT_EQ(result_.flags, kWalkTables);
  // A return address may lie after the end of its function: the call is before it.
  EXPECT_EQ(code_.looked_up(), (std::vector<uint64_t>{0x1010, 0x114f, 0x204f}));
}

TEST_F(UnwindWalk, ARuleThatLeadsToZeroDoesNotMatchItsCode) {
  code_.Add(0x1000, 0x1100, Rsp(8));
  memory_.Set(kSp, 0);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010}));
  EXPECT_EQ(result_.stop, WalkStop::kNotCode);
}

TEST_F(UnwindWalk, CfaByRbpAndRbpFromTheFrame) {
  code_.Add(0x1000, 0x1100, {UnwindCfa::kRbp, UnwindRbp::kAtCfa, -16, 16});
  code_.Add(0x1100, 0x1200, {UnwindCfa::kRbp, UnwindRbp::kSame, 0, 16});
  memory_.Set(0x7100, 0x7200);
  memory_.Set(0x7108, 0x1110);
  memory_.Set(0x7208, 0x2010);
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010, 0x1110, 0x2010}));
}

// GCC's realigned stack: CFA = *(rbp - 8), rbp = *rbp.
TEST_F(UnwindWalk, CfaInMemoryByRbp) {
  code_.Add(0x1000, 0x1100,
            {UnwindCfa::kAtRbp, UnwindRbp::kAtRbp, 0, UnwindRule::PackDeref(-8, 0)});
  code_.Add(0x1100, 0x1200, {UnwindCfa::kRbp, UnwindRbp::kAtCfa, -16, 16});
  memory_.Set(0x7100 - 8, 0x7180);
  memory_.Set(0x7100, 0x7300);
  memory_.Set(0x7178, 0x1110);
  memory_.Set(0x7300, 0);
  memory_.Set(0x7308, 0x2010);
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010, 0x1110, 0x2010}));
}

// OpenSSL: the old stack pointer in the frame, CFA = *(rsp + 40) + 8.
TEST_F(UnwindWalk, CfaInMemoryByRsp) {
  code_.Add(0x1000, 0x1100, {UnwindCfa::kAtRsp, UnwindRbp::kSame, 0, UnwindRule::PackDeref(40, 8)});
  memory_.Set(kSp + 40, 0x7178);
  memory_.Set(0x7178, 0x2010);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010, 0x2010}));
}

// From C on the stack of a thread to the goroutine that called it, whose stack may lie below.
TEST_F(UnwindWalk, FromCToTheGoroutine) {
  code_.Add(0x1000, 0x1100, {.cfa = UnwindCfa::kGoSwitch});
  code_.Add(0x1100, 0x1200, Rsp(16));
  for (const uint64_t top : {kSp - 0x1000, kSp + 0x1000}) {
    memory_.Set(kSp + 40, 0x80);    // how deep the call was
    memory_.Set(kSp + 48, 0x9000);  // the goroutine
    memory_.Set(0x9008, top);
    memory_.Set(top - 0x80, 0x1150);
    memory_.Set(top - 0x80 + 16, 0x2010);
    EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010, 0x1150, 0x2010}));
    EXPECT_EQ(result_.stop, WalkStop::kComplete);
  }
}

TEST_F(UnwindWalk, ByTheFramePointerToAnotherStack) {
  code_.Add(0x1000, 0x1100, {UnwindCfa::kOtherStack, UnwindRbp::kAtCfa, -16, 16});
  code_.Add(0x1100, 0x1200, Rsp(16));
  memory_.Set(0x6000, 0x6100);
  memory_.Set(0x6008, 0x1150);
  memory_.Set(0x6010 + 8, 0x2010);
  ASSERT_LT(uint64_t{0x6000}, kSp);
  EXPECT_EQ(Walk({0x1010, kSp, 0x6000}), (Frames{0x1010, 0x1150, 0x2010}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
}

TEST_F(UnwindWalk, PltEntries) {
  code_.Add(0x1000, 0x1100, {.cfa = UnwindCfa::kPlt, .cfa_offset = 11});
  memory_.Set(kSp, 0x2010);
  memory_.Set(kSp + 8, 0x2020);
  EXPECT_EQ(Walk({0x1020, kSp, 0}), (Frames{0x1020, 0x2010}));
  EXPECT_EQ(Walk({0x102a, kSp, 0}), (Frames{0x102a, 0x2010}));
  EXPECT_EQ(Walk({0x102b, kSp, 0}), (Frames{0x102b, 0x2020}));
  EXPECT_EQ(Walk({0x102f, kSp, 0}), (Frames{0x102f, 0x2020}));
}

TEST_F(UnwindWalk, ThroughASignalHandler) {
  // The rule of the trampoline begins a byte before it, because its address is a return address.
  code_.Add(0x1000, 0x10ff, Rsp(8));
  code_.Add(0x10ff, 0x1200, {.cfa = UnwindCfa::kSignal});
  code_.Add(0x1300, 0x1400, {UnwindCfa::kRbp, UnwindRbp::kSame, 0, 16});
  memory_.Set(kSp, 0x1100);
  const uint64_t context = kSp + 8;
  memory_.Set(context + 168, 0x1300);
  memory_.Set(context + 160, 0x9000);
  memory_.Set(context + 120, 0x9100);
  memory_.Set(0x9108, 0x2010);
  // One after: the trampoline, of which nothing was called, and what the signal interrupted.
  EXPECT_EQ(Walk({0x1010, kSp, 1}), (Frames{0x1010, 0x1101, 0x1301, 0x2010}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
  // The interrupted instruction itself is looked up, not the one before.
  EXPECT_EQ(code_.looked_up(), (std::vector<uint64_t>{0x1010, 0x10ff, 0x1300, 0x200f}));
}

// A signal that comes while the handler of another one returns, or just when it begins.
TEST_F(UnwindWalk, ASignalInASignalsTrampoline) {
  code_.Add(0x1100, 0x1200, {.cfa = UnwindCfa::kSignal});
  code_.Add(0x1300, 0x1400, Rsp(8));
  memory_.Set(kSp + 168, 0x1100);
  memory_.Set(kSp + 160, 0x8000);
  memory_.Set(kSp + 120, 0);
  memory_.Set(0x8000 + 168, 0x1300);
  memory_.Set(0x8000 + 160, 0x9000);
  memory_.Set(0x8000 + 120, 0);
  memory_.Set(0x9000, 0x2010);
  // The innermost frame is an instruction: as it is. The other ones are written one after, once.
  EXPECT_EQ(Walk({0x1100, kSp, 0}), (Frames{0x1100, 0x1101, 0x1301, 0x2010}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
  EXPECT_EQ(code_.looked_up(), (std::vector<uint64_t>{0x1100, 0x1100, 0x1300, 0x200f}));
}

TEST_F(UnwindWalk, ASignalFrameThatCannotBeRead) {
  code_.Add(0x1000, 0x1100, {.cfa = UnwindCfa::kSignal});
  memory_.Set(kSp + 168, 0x1300);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010}));
  EXPECT_EQ(result_.stop, WalkStop::kUnreadable);
}

TEST_F(UnwindWalk, FramePointersWhereThereAreNoTables) {
  code_.Add(0x1000, 0x1100, Rsp(16));
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  code_.Add(0x4000, 0x4100, kNoRule);
  memory_.Set(0x7100, 0x7200);
  memory_.Set(0x7108, 0x4010);
  memory_.Set(0x7200, 0x7300);
  memory_.Set(0x7208, 0x1010);
  memory_.Set(0x7210 + 8, 0x2010);
  EXPECT_EQ(Walk({0x3010, kSp, 0x7100}), (Frames{0x3010, 0x4010, 0x1010, 0x2010}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
  EXPECT_EQ(result_.flags, kWalkTables | kWalkFramePointers);
}

TEST_F(UnwindWalk, TablesThatAreNotReadyAreReported) {
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNotReady);
  memory_.Set(0x7100, 0);
  memory_.Set(0x7108, 0x2010);
  EXPECT_EQ(Walk({0x3010, kSp, 0x7100}), (Frames{0x3010, 0x2010}));
  EXPECT_EQ(result_.flags, kWalkTables | kWalkFramePointers | kWalkNotReady);
}

TEST_F(UnwindWalk, AFramePointerOfZeroThatAFrameSavedIsTheEnd) {
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  memory_.Set(0x7100, 0);
  memory_.Set(0x7108, 0x3020);
  EXPECT_EQ(Walk({0x3010, kSp, 0x7100}), (Frames{0x3010, 0x3020}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
  EXPECT_EQ(result_.flags, kWalkFramePointers);
}

// Code that uses rbp for something else.
TEST_F(UnwindWalk, AnyOtherFramePointerOfZeroLeadsNowhere) {
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  EXPECT_EQ(Walk({0x3010, kSp, 0}), (Frames{0x3010}));  // of the first instruction
  EXPECT_EQ(result_.stop, WalkStop::kNoRule);
  EXPECT_EQ(result_.flags, kWalkFramePointers);
  // What a table found is not a frame's.
  code_.Add(0x1000, 0x1100, {UnwindCfa::kRsp, UnwindRbp::kAtCfa, -16, 16});
  memory_.Set(kSp, 0);
  memory_.Set(kSp + 8, 0x3020);
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010, 0x3020}));
  EXPECT_EQ(result_.stop, WalkStop::kNoRule);
  // Nor when a frame saved it and a table kept it.
  code_.Add(0x1100, 0x1200, Rsp(16));
  memory_.Set(0x7100, 0);
  memory_.Set(0x7108, 0x1110);
  memory_.Set(0x7110 + 8, 0x3020);
  EXPECT_EQ(Walk({0x3010, kSp, 0x7100}), (Frames{0x3010, 0x1110, 0x3020}));
  EXPECT_EQ(result_.stop, WalkStop::kNoRule);
  EXPECT_EQ(result_.flags, kWalkTables | kWalkFramePointers);
}

// What the kernel leaves at the stack pointer of a new program: argc, argv, a null.
TEST_F(UnwindWalk, AFramePointerOfZeroWhereAProgramStartsIsTheEnd) {
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  const auto stop = [&](uint64_t count, uint64_t place_of_end, uint64_t end) {
    memory_ = {};
    memory_.Set(kSp, count);
    memory_.Set(kSp + place_of_end, end);
    EXPECT_EQ(Walk({0x3010, kSp, 0}), (Frames{0x3010}));
    return result_.stop;
  };
  EXPECT_EQ(stop(2, 24, 0), WalkStop::kComplete);
  EXPECT_EQ(stop((1 << 20) - 1, 8 << 20, 0), WalkStop::kComplete);
  EXPECT_EQ(stop(2, 24, 0x7f00), WalkStop::kNoRule);  // no null after argv
  EXPECT_EQ(stop(2, 32, 0), WalkStop::kNoRule);       // not readable
  EXPECT_EQ(stop(0, 8, 0), WalkStop::kNoRule);
  EXPECT_EQ(stop(1 << 20, 8 + (8 << 20), 0), WalkStop::kNoRule);
}

TEST_F(UnwindWalk, WhereAProgramStartsMayBeAnOuterFrame) {
  code_.Add(0x1000, 0x1100, Rsp(8));
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  memory_.Set(kSp, 0x3010);
  memory_.Set(kSp + 8, 1);
  memory_.Set(kSp + 24, 0);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010, 0x3010}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
}

TEST_F(UnwindWalk, FramePointersThatLeadNowhere) {
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  for (const uint64_t bp : {kSp - 8, kSp + 4, kSp + 64}) {  // below, crooked, unreadable
    EXPECT_EQ(Walk({0x3010, kSp, bp}), (Frames{0x3010})) << bp;
    EXPECT_EQ(result_.stop, WalkStop::kNoRule);
  }
}

TEST_F(UnwindWalk, UnreadableMemory) {
  code_.Add(0x1000, 0x1100, Rsp(8));
  code_.Add(0x1100, 0x1200, {UnwindCfa::kRsp, UnwindRbp::kAtCfa, -16, 16});
  code_.Add(0x1200, 0x1300, {.cfa = UnwindCfa::kAtRbp});
  memory_.Set(kSp + 8, 0x2010);
  for (const uint64_t ip : {0x1000, 0x1100, 0x1200}) {  // return address, rbp, CFA
    EXPECT_EQ(Walk({ip, kSp, kSp + 0x100}), (Frames{ip}));
    EXPECT_EQ(result_.stop, WalkStop::kUnreadable);
  }
}

TEST_F(UnwindWalk, AnUnsupportedRule) {
  code_.Add(0x1000, 0x1100, {.cfa = UnwindCfa::kUnsupported});
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010}));
  EXPECT_EQ(result_.stop, WalkStop::kUnsupported);
  code_.Add(0x1100, 0x1200, {.cfa = static_cast<UnwindCfa>(200)});
  EXPECT_EQ(Walk({0x1110, kSp, 0x7100}), (Frames{0x1110}));
  EXPECT_EQ(result_.stop, WalkStop::kUnsupported);
}

// Other registers than the three are known in the kernel only.
TEST_F(UnwindWalk, CfaByARegisterThatIsNotFollowed) {
  code_.Add(0x1000, 0x1100,
            {UnwindCfa::kRegister, UnwindRbp::kSame, 0, UnwindRule::PackDeref(8, kDwarfR10)});
  memory_.Set(kSp, 0x2010);
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010}));
  EXPECT_EQ(result_.stop, WalkStop::kUnsupported);
  EXPECT_EQ(result_.flags, kWalkTables);
}

TEST_F(UnwindWalk, AReturnAddressThatIsNoCode) {
  code_.Add(0x1000, 0x1100, Rsp(8));
  memory_.Set(kSp, 0xdead);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010}));
  EXPECT_EQ(result_.stop, WalkStop::kNotCode);
}

// A call of an address that is no code: the frame pointer is the caller's.
TEST_F(UnwindWalk, TheFirstInstructionMayBeAnywhere) {
  memory_.Set(0x7100, 0);
  memory_.Set(0x7108, 0x2010);
  EXPECT_EQ(Walk({0xdead, kSp, 0x7100}), (Frames{0xdead, 0x2010}));
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
}

TEST_F(UnwindWalk, AFrameThatDoesNotLieAboveTheOneBefore) {
  code_.Add(0x1000, 0x1100, Rsp(0));
  code_.Add(0x1100, 0x1200, {UnwindCfa::kRbp, UnwindRbp::kSame, 0, 16});
  memory_.Set(kSp - 8, 0x1020);
  EXPECT_EQ(Walk({0x1010, kSp, 0}), (Frames{0x1010, 0x1020}));  // vfork may, once
  EXPECT_EQ(result_.stop, WalkStop::kStuck);
  EXPECT_EQ(Walk({0x1110, kSp, kSp - 64}), (Frames{0x1110}));
  EXPECT_EQ(result_.stop, WalkStop::kStuck);
}

TEST_F(UnwindWalk, TheLimitOfFrames) {
  code_.Add(0x1000, 0x1100, Rsp(8));
  for (uint64_t i = 0; i < 10; ++i) memory_.Set(kSp + 8 * i, 0x1050);
  memory_.Set(kSp + 80, 0x2010);
  EXPECT_EQ(Walk({0x1010, kSp, 0}, 4).size(), 4u);
  EXPECT_EQ(result_.stop, WalkStop::kDepth);
  EXPECT_EQ(Walk({0x1010, kSp, 0}, 11).size(), 11u);
  EXPECT_EQ(result_.stop, WalkStop::kDepth);
  EXPECT_EQ(Walk({0x1010, kSp, 0}, 12).size(), 12u);  // just enough
  EXPECT_EQ(result_.stop, WalkStop::kComplete);
}

TEST_F(UnwindWalk, AnUndefinedRbpIsNotUsedAgain) {
  code_.Add(0x1000, 0x1100, {UnwindCfa::kRsp, UnwindRbp::kUndefined, 0, 8});
  code_.Add(0x1100, 0x1200, {UnwindCfa::kRbp, UnwindRbp::kSame, 0, 16});
  memory_.Set(kSp, 0x1110);
  memory_.Set(0x7108, 0x2010);
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010, 0x1110}));
  EXPECT_EQ(result_.stop, WalkStop::kStuck);
}

// Not even as the 0 of the outermost frame.
TEST_F(UnwindWalk, AnUndefinedRbpIsNoFramePointer) {
  code_.Add(0x1000, 0x1100, {UnwindCfa::kRsp, UnwindRbp::kUndefined, 0, 8});
  code_.Add(0x3000, 0x3100, kNoRule, CodeKind::kNoTable);
  memory_.Set(kSp, 0x3010);
  memory_.Set(kSp + 8, 1);  // looks like the start of a program
  memory_.Set(kSp + 24, 0);
  EXPECT_EQ(Walk({0x1010, kSp, 0x7100}), (Frames{0x1010, 0x3010}));
  EXPECT_EQ(result_.stop, WalkStop::kNoRule);
  EXPECT_EQ(result_.flags, kWalkTables | kWalkFramePointers);
}

TEST(UnwindStep, AnUndefinedRbpIsWrittenAsUnknown) {
  StackWords memory;
  memory.Set(kSp, 0x3010);
  WalkRegisters at{0x1010, kSp, 0x7100};
  const UnwindRule rule{UnwindCfa::kRsp, UnwindRbp::kUndefined, 0, 8};
  ASSERT_EQ(walk::StepByRule(rule, at.ip, false, memory, &at), WalkStop::kComplete);
  EXPECT_EQ(at.ip, 0x3010u);
  EXPECT_EQ(at.sp, kSp + 8);
  EXPECT_EQ(at.bp, 1u);
}

}  // namespace
}  // namespace xpu

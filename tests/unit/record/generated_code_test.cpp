#include "record/symbols/generated_code.h"

#include <csignal>
#include <cstring>

#include <gtest/gtest.h>

namespace xpu {
namespace {

std::string TextOf(const std::vector<GeneratedCode>& code) {
  std::string text;
  for (const GeneratedCode& one : code) {
    text += std::to_string(one.time_ns) + " " + std::to_string(one.address) + "+" +
            std::to_string(one.size_bytes) + " " + one.name + "\n";
  }
  return text;
}

// In each of the functions of these tests.
const std::vector<uint64_t> kHits = {16, 49, 80, 4096, 8195, 12288};

TEST(ReadBudget, EndsWithItsBytes) {
  ReadBudget budget;
  budget.Spend(ReadBudget::kMaxBytes - 1);
  EXPECT_EQ(budget.Left(), 1u);
  budget.Spend(2);
  EXPECT_EQ(budget.Left(), 0u);
}

TEST(ReadBudget, ASignalThatAsksForTheEndEndsItAfterAWhile) {
  sigset_t terminate;
  sigset_t before;
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &terminate, &before);
  const ReadBudget impatient(0);
  const ReadBudget usual;
  EXPECT_GT(impatient.Left(), 0u);
  ::raise(SIGTERM);
  EXPECT_EQ(impatient.Left(), 0u);
  EXPECT_GT(usual.Left(), 0u);
  int signal = 0;
  ::sigwait(&terminate, &signal);
  EXPECT_EQ(signal, SIGTERM);
  EXPECT_GT(impatient.Left(), 0u);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(PerfMap, Lines) {
  EXPECT_EQ(TextOf(ParsePerfMap("10 20 first\n"
                                "0x30 0x8 LazyCompile:~second /a b.js:1\n"
                                "40 8\n"
                                "40 8 \n"
                                "zz 8 no\n"
                                "\n"
                                "50 8 last",
                                kHits)),
            "0 16+32 first\n0 48+8 LazyCompile:~second /a b.js:1\n0 80+8 last\n");
  EXPECT_EQ(TextOf(ParsePerfMap("", kHits)), "");
  EXPECT_EQ(ParsePerfMap("10 20 " + std::string(10000, 'x'), kHits).at(0).name.size(), 1024u);
}

TEST(PerfMap, OnlyWhatIsHit) {
  constexpr std::string_view kText = "a 5 a\n14 5 b\nc 8 c\n";
  EXPECT_EQ(TextOf(ParsePerfMap(kText, {14})), "0 10+5 a\n0 12+8 c\n");
  EXPECT_EQ(TextOf(ParsePerfMap(kText, {15, 25})), "0 12+8 c\n");
  EXPECT_EQ(TextOf(ParsePerfMap(kText, {})), "");
}

// Lines that all say the same place: a million of them, and no more.
TEST(PerfMap, IsBounded) {
  std::string text;
  for (size_t i = 0; i < kMaxGeneratedCode + 10; ++i) text += "10 8 x\n";
  EXPECT_EQ(ParsePerfMap(text, kHits).size(), kMaxGeneratedCode);
}

class JitDump {
 public:
  explicit JitDump(uint64_t flags = 0, uint32_t magic = 0x4A695444) {
    for (const uint32_t word : {magic, 1u, 40u, 62u, 0u, 7u}) Put(word);
    Put(uint64_t{5});
    Put(flags);
  }
  void Load(uint64_t time_ns, uint64_t address, uint64_t size_bytes, uint64_t number,
            const std::string& name, const std::string& code) {
    Record(0, time_ns, 40 + name.size() + 1 + code.size());
    Put(7u);
    Put(8u);
    for (const uint64_t value : {address, address, size_bytes, number}) Put(value);
    bytes_ += name + '\0' + code;
  }
  void Move(uint64_t time_ns, uint64_t address, uint64_t size_bytes, uint64_t number) {
    Record(1, time_ns, 48);
    Put(7u);
    Put(8u);
    for (const uint64_t value : {uint64_t{0}, uint64_t{0}, address, size_bytes, number}) Put(value);
  }
  void Record(uint32_t kind, uint64_t time_ns, size_t body_bytes) {
    Put(kind);
    Put(static_cast<uint32_t>(16 + body_bytes));
    Put(time_ns);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void Put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  std::string bytes_;
};

TEST(JitDumpFile, LoadsAndMoves) {
  JitDump dump;
  dump.Load(100, 0x1000, 16, 1, "one", "0123456789abcdef");
  dump.Record(2, 110, 8);  // debug information, passed over
  const std::string skipped(8, 'x');
  std::string bytes = dump.bytes() + skipped;
  JitDump rest;
  rest.Load(120, 0x2000, 4, 2, "two", "0123");
  rest.Move(130, 0x3000, 16, 1);
  rest.Move(140, 0x4000, 16, 9);  // of a function that was never made
  bytes += rest.bytes().substr(40);
  EXPECT_EQ(TextOf(ParseJitDump(bytes, kHits)),
            "100 4096+16 one\n120 8192+4 two\n130 12288+16 one\n");
}

TEST(JitDumpFile, TimesOfTheProcessorsClockAreIgnored) {
  JitDump dump(1);
  dump.Load(100, 0x1000, 16, 1, "one", "");
  EXPECT_EQ(TextOf(ParseJitDump(dump.bytes(), kHits)), "0 4096+16 one\n");
}

TEST(JitDumpFile, OnlyWhatIsHit) {
  JitDump dump;
  dump.Load(100, 0x1000, 16, 1, "one", "0123456789abcdef");
  dump.Move(130, 0x3000, 16, 1);
  EXPECT_EQ(TextOf(ParseJitDump(dump.bytes(), {0x300f})), "130 12288+16 one\n");
  EXPECT_EQ(TextOf(ParseJitDump(dump.bytes(), {0x3010})), "");
}

// Each move is of 64 bytes and has a name of a thousand.
TEST(JitDumpFile, NamesThatMovesRepeatAreBounded) {
  JitDump dump;
  dump.Load(100, 0x1000, 16, 1, std::string(1000, 'x'), "");
  for (int i = 0; i < 200'000; ++i) dump.Move(130, 0x3000, 16, 1);
  size_t bytes = 0;
  for (const GeneratedCode& one : ParseJitDump(dump.bytes(), kHits)) bytes += one.name.size();
  EXPECT_GT(bytes, kMaxGeneratedNameBytes - 1000);
  EXPECT_LE(bytes, kMaxGeneratedNameBytes);
}

TEST(JitDumpFile, OtherFiles) {
  JitDump dump(0, 0x44546954);
  dump.Load(100, 0x1000, 16, 1, "one", "");
  EXPECT_EQ(TextOf(ParseJitDump(dump.bytes(), kHits)), "");
  EXPECT_EQ(TextOf(ParseJitDump("", kHits)), "");
}

// Cut and changed at every byte: nothing is read beyond the end (under ASan), and it ends.
TEST(JitDumpFile, Damaged) {
  JitDump dump;
  dump.Load(100, 0x1000, 16, 1, "one", "0123456789abcdef");
  dump.Load(120, 0x2000, 4, 2, "two", "0123");
  for (size_t size = 0; size <= dump.bytes().size(); ++size) {
    const std::vector<char> exact(dump.bytes().begin(),
                                  dump.bytes().begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(ParseJitDump({exact.data(), exact.size()}, kHits).size(),
              size == dump.bytes().size() ? 2u : (size >= 40 + 16 + 40 + 20 ? 1u : 0u));
  }
  for (size_t at = 0; at < dump.bytes().size(); ++at) {
    std::vector<char> changed(dump.bytes().begin(), dump.bytes().end());
    changed[at] = static_cast<char>(changed[at] ^ 0xff);
    EXPECT_LE(ParseJitDump({changed.data(), changed.size()}, kHits).size(), 2u);
  }
}

}  // namespace
}  // namespace xpu

#include "symbolize/elf/cubin.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/elf/elf_image.h"
#include "symbolize/gpu_code_lines.h"
#include "tests/unit/tests_directory.h"

namespace xpu {
namespace {

constexpr char kInlines[] = "_Z9fma_chainPfi";
constexpr char kCalls[] = "_Z9slow_warpPfi";

std::string Cubin() {
  return ReadFile(TestsDirectory() + "/captures/cubins/inlines.cubin").value();
}

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The functions of a slice, and what their lines say.
class SlicedCode {
 public:
  explicit SlicedCode(const std::set<std::string>& wanted) {
    auto slice = WriteCubinSlice(BytesOf(cubin_), wanted);
    if (!slice) return;
    slice_ = std::move(*slice);
    image_.emplace(ElfImage::Parse(BytesOf(slice_.bytes), "slice").value());
    for (const ElfSymbol& symbol : image_->CodeSymbols())
      symbols_[std::string(symbol.name)] = symbol;
  }

  const MadeCubinSlice& slice() const { return slice_; }
  const ElfImage& image() const { return *image_; }
  const std::map<std::string, ElfSymbol>& symbols() const { return symbols_; }

  // "_Z6Squaref:4 < _Z5Twicef:7 < :17"
  std::string LinesAt(const std::string& function, uint64_t offset) {
    auto info = DebugInfo::Parse(slice_.bytes, "slice");
    if (!info.ok()) return info.error().message;
    std::string text;
    for (const SourceFrame& frame : info->At(symbols_.at(function).link_address + offset)) {
      AppendFormat(text, "{}{}:{}", text.empty() ? "" : " < ", frame.function, frame.line);
      if (frame.file != "/app/inlines.cu") AppendFormat(text, " in {}", frame.file);
    }
    return text;
  }
  // The lines of all instructions of a function, each once, as often as they are.
  std::map<std::string, int> AllLines(const std::string& function) {
    std::map<std::string, int> lines;
    for (uint64_t at = 0; at < symbols_.at(function).size_bytes; at += 16) {
      ++lines[LinesAt(function, at)];
    }
    return lines;
  }

 private:
  const std::string cubin_ = Cubin();
  MadeCubinSlice slice_;
  std::optional<ElfImage> image_;
  std::map<std::string, ElfSymbol> symbols_;
};

TEST(CubinSlice, HasTheWantedFunctionsWithTheirCode) {
  const SlicedCode code({kInlines, "_Z7missingv"});
  EXPECT_EQ(code.slice().functions, std::set<std::string>{kInlines});
  EXPECT_FALSE(code.slice().lines_left_out);
  EXPECT_EQ(code.image().machine(), kCubinMachine);
  ASSERT_EQ(code.symbols().size(), 1u);
  const ElfSymbol& symbol = code.symbols().at(kInlines);
  const auto bytes = code.image().BytesAtLinkAddress(symbol.link_address, symbol.size_bytes);
  EXPECT_EQ(bytes.size(), 512u);
  const std::string cubin = Cubin();
  EXPECT_NE(cubin.find(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())),
            std::string::npos);
  EXPECT_LT(code.slice().bytes.size(), cubin.size() / 2);
}

TEST(CubinSlice, FunctionsHaveAddressesOfTheirOwn) {
  const SlicedCode code({kInlines, kCalls});
  ASSERT_EQ(code.symbols().size(), 3u);  // with what is called and not inlined
  const ElfSymbol& calls = code.symbols().at(kCalls);
  const ElfSymbol& called = code.symbols().at("$_Z9slow_warpPfi$_Z6Calledfi");
  EXPECT_GT(called.link_address, calls.link_address);
  EXPECT_LT(called.link_address, calls.link_address + calls.size_bytes);
  const ElfSymbol& inlines = code.symbols().at(kInlines);
  EXPECT_TRUE(inlines.link_address >= calls.link_address + calls.size_bytes ||
              calls.link_address >= inlines.link_address + inlines.size_bytes);
}

TEST(CubinSlice, LinesTellInlinedFunctions) {
  SlicedCode code({kInlines, kCalls});
  const std::map<std::string, int> lines = code.AllLines(kInlines);
  EXPECT_TRUE(lines.contains(":14"));
  EXPECT_TRUE(lines.contains("_Z6Squaref:4 < _Z5Twicef:7 < :17"));
  EXPECT_TRUE(lines.contains("_Z5Twicef:7 < :17"));
  const std::map<std::string, int> others = code.AllLines(kCalls);
  EXPECT_TRUE(others.contains(":22"));
  EXPECT_TRUE(others.contains(":10"));  // of what is called
  EXPECT_TRUE(others.contains("_Z6Squaref:4 < :25"));
}

TEST(CubinSlice, LinesOfAFunctionDoNotDependOnTheOthers) {
  SlicedCode both({kInlines, kCalls});
  SlicedCode alone({kInlines});
  EXPECT_EQ(both.AllLines(kInlines), alone.AllLines(kInlines));
}

TEST(CubinSlice, NothingOfWhatIsNoCubinOrHasNoneOfTheFunctions) {
  const std::string cubin = Cubin();
  EXPECT_FALSE(WriteCubinSlice(BytesOf(cubin), {"_Z7missingv"}));
  EXPECT_FALSE(WriteCubinSlice({}, {kInlines}));
  std::string other = cubin;
  other[18] = 62;  // EM_X86_64
  EXPECT_FALSE(WriteCubinSlice(BytesOf(other), {kInlines}));
}

// No more than a sound one gives, whatever is read of it.
void ReadAll(const std::string& cubin) {
  const auto slice = WriteCubinSlice(BytesOf(cubin), {kInlines, kCalls});
  if (!slice) return;
  EXPECT_LE(slice->bytes.size(), kMaxCubinSliceBytes + (1 << 16));
  auto info = DebugInfo::Parse(slice->bytes, "slice");
  if (!info.ok()) return;
  for (uint64_t at = 0; at < 4096; at += 64) static_cast<void>(info->At((1 << 20) + at).size());
}

TEST(CubinSlice, CutAnywhere) {
  const std::string cubin = Cubin();
  for (size_t size = 0; size < cubin.size(); size += 7) ReadAll(cubin.substr(0, size));
}

TEST(CubinSlice, DamagedAnywhere) {
  const std::string cubin = Cubin();
  for (size_t at = 0; at < cubin.size(); at += 7) {
    std::string damaged = cubin;
    damaged[at] = static_cast<char>(~damaged[at]);
    ReadAll(damaged);
  }
}

TEST(CubinSlice, LinesThatDoNotBeginWithAnAddressAreLeftOut) {
  std::string cubin = Cubin();
  const size_t sequence = cubin.find(std::string("\0\x09\x02\0\0\0\0\0\0\0\0", 11));
  ASSERT_NE(sequence, std::string::npos);
  cubin[sequence + 1] = 8;
  const auto slice = WriteCubinSlice(BytesOf(cubin), {kInlines, kCalls});
  ASSERT_TRUE(slice);
  EXPECT_TRUE(slice->lines_left_out);
  EXPECT_EQ(slice->functions.size(), 2u);
}

// Also those of functions that are inlined, and of the calls.
TEST(GpuCodeLines, AllOfTheFunctionsOfASlice) {
  const SlicedCode code({"_Z9fma_chainPfi"});
  auto lines = LinesOfGpuCode(code.slice().bytes, "slice", DebugReading::kHere);
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 1u);
  const auto& [file, numbers] = *lines->begin();
  EXPECT_EQ(file, "/app/inlines.cu");
  for (const uint32_t line : {4, 7, 14, 17, 19}) EXPECT_TRUE(numbers.contains(line)) << line;
  for (const uint32_t line : {10, 22, 24, 25}) EXPECT_FALSE(numbers.contains(line)) << line;
}

TEST(GpuCodeLines, NothingOfWhatIsNoSlice) {
  EXPECT_FALSE(LinesOfGpuCode("no ELF file", "slice", DebugReading::kHere).ok());
  const std::string program = ReadFile("/proc/self/exe").value();
  auto lines = LinesOfGpuCode(program, "program", DebugReading::kHere);
  EXPECT_TRUE(!lines.ok() || lines->empty());
}

TEST(GpuCodeLines, DamagedAnywhere) {
  const std::string slice = SlicedCode({"_Z9fma_chainPfi"}).slice().bytes;
  for (size_t at = 0; at < slice.size(); at += 7) {
    std::string damaged = slice;
    damaged[at] = static_cast<char>(~damaged[at]);
    auto lines = LinesOfGpuCode(damaged, "slice", DebugReading::kHere);
    if (!lines.ok()) continue;
    size_t count = 0;
    for (const auto& [file, numbers] : *lines) count += numbers.size();
    EXPECT_LE(count, kMostGpuLines);
  }
}

}  // namespace
}  // namespace xpu

#include "symbolize/elf/symbol_slice.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <set>
#include <sstream>

#include <elf.h>
#include <gtest/gtest.h>

#include "format/base/text.h"
#include "symbolize/file_symbols.h"
#include "tests/unit/symbolize/elf_builder.h"
#include "tests/unit/symbolize/parsed_elf.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::ParsedElf;

// The slice of a built file for hits at offsets of its text.
struct Slice {
  Slice(const ElfBuilder& builder, std::vector<uint64_t> offsets)
      : file(builder.Build()), image(ParsedElf(file)), symbols(image) {
    for (uint64_t& offset : offsets) offset += ElfBuilder::kTextAddress;
    bytes = WriteSymbolSlice(image, symbols.table(), offsets);
  }

  // "name offset size, ..." in the order of the symbol table.
  std::string Symbols() const {
    const ElfImage slice = ParsedElf(bytes);
    std::string text;
    for (const ElfSymbol& symbol : slice.CodeSymbols()) {
      AppendFormat(text, "{}{} {:x} {:x}", text.empty() ? "" : ", ", symbol.name,
                   symbol.link_address - ElfBuilder::kTextAddress, symbol.size_bytes);
    }
    return text;
  }

  std::string file;
  ElfImage image;
  FileSymbols symbols;
  std::string bytes;
};

ElfBuilder Small() {
  return ElfBuilder("0123456789abcdef0123")
      .Symbol("global", 0, 0x40)
      .Symbol("local", 0x40, 0x80, STB_LOCAL)
      .Symbol("weak", 0xc0, 0x10, STB_WEAK)
      .Symbol("label", 0x100, 0, STB_LOCAL, STT_NOTYPE)
      .Symbol("last", 0x180, 0x10);
}

TEST(SymbolSlice, KeepsWhatIsHit) {
  EXPECT_EQ(Slice(Small(), {0x3f, 0x41, 0x40, 0xbf}).Symbols(), "local 40 80, global 0 40");
  EXPECT_EQ(Slice(Small(), {0xc5}).Symbols(), "weak c0 10");
  EXPECT_EQ(Slice(Small(), {0xd0, 0x190, ~uint64_t{0}}).Symbols(), "");
  EXPECT_EQ(Slice(Small(), {}).Symbols(), "");
}

// Where a symbol has no size, the one up to which it counts.
TEST(SymbolSlice, ALabelGetsItsSize) {
  EXPECT_EQ(Slice(Small(), {0x101}).Symbols(), "label 100 80");
}

TEST(SymbolSlice, BindingAndKindStay) {
  const Slice slice(Small(), {0, 0x40, 0xc0, 0x100});
  std::vector<ElfSymbol> symbols = ParsedElf(slice.bytes).CodeSymbols();
  std::ranges::sort(symbols, {}, &ElfSymbol::link_address);
  ASSERT_EQ(symbols.size(), 4u);
  EXPECT_EQ(symbols[0].binding, ElfBinding::kGlobal);
  EXPECT_EQ(symbols[1].binding, ElfBinding::kLocal);
  EXPECT_EQ(symbols[2].binding, ElfBinding::kWeak);
  EXPECT_TRUE(symbols[2].is_function);
  EXPECT_FALSE(symbols[3].is_function);
}

ElfBuilder Nested() {
  return ElfBuilder("id")
      .Symbol("outer", 0x100, 0x100)
      .Symbol("inner", 0x140, 0x10)
      .Symbol("late", 0x1f0, 0x80);
}

// What is in a range but not its own is not taken for it.
TEST(SymbolSlice, NestedRanges) {
  EXPECT_EQ(Slice(Nested(), {0x110}).Symbols(), "outer 100 40");
  EXPECT_EQ(Slice(Nested(), {0x145}).Symbols(), "inner 140 10");
  EXPECT_EQ(Slice(Nested(), {0x150}).Symbols(), "outer 100 f0, inner 140 10");
  EXPECT_EQ(Slice(Nested(), {0x145, 0x110}).Symbols(), "outer 100 40, inner 140 10");
  EXPECT_EQ(Slice(Nested(), {0x200, 0x150}).Symbols(), "outer 100 f0, inner 140 10, late 1f0 80");
}

TEST(SymbolSlice, TheFileStaysWhatItIs) {
  const Slice slice(Small(), {0x10});
  const ElfImage image = ParsedElf(slice.bytes);
  EXPECT_EQ(image.build_id(), "0123456789abcdef0123");
  EXPECT_EQ(image.type(), ET_DYN);
  EXPECT_EQ(image.machine(), EM_X86_64);
  EXPECT_TRUE(image.has_symtab());
  ASSERT_EQ(image.segments().size(), 1u);
  EXPECT_EQ(image.segments()[0].flags, uint32_t{PF_R | PF_X});
  EXPECT_EQ(image.LinkAddressOf(ElfBuilder::kTextOffset), ElfBuilder::kTextAddress);
  EXPECT_EQ(image.LinkAddressOf(ElfBuilder::kTextOffset + 0xfff), ElfBuilder::kTextAddress + 0xfff);
  EXPECT_EQ(image.LinkAddressOf(ElfBuilder::kTextOffset + 0x1000), std::nullopt);
  EXPECT_EQ(ParsedElf(Slice(ElfBuilder(""), {}).bytes).build_id(), "");
}

TEST(SymbolSlice, EqualInputGivesEqualBytesAndNamesAreThereOnce) {
  ElfBuilder builder("id");
  for (uint64_t i = 0; i < 8; ++i) builder.Symbol("same_name", i * 0x10, 0x10, STB_LOCAL);
  const Slice slice(builder, {0x00, 0x31, 0x75});
  EXPECT_EQ(slice.Symbols(), "same_name 0 10, same_name 30 10, same_name 70 10");
  EXPECT_EQ(slice.bytes, Slice(builder, {0x75, 0x01, 0x3f, 0x31}).bytes);
  const size_t first = slice.bytes.find("same_name");
  EXPECT_EQ(slice.bytes.find("same_name", first + 1), std::string::npos);
}

TEST(SymbolSlice, MoreSections) {
  const Slice slice(Small(), {0x10});
  const std::vector<uint64_t> hits = {ElfBuilder::kTextAddress + 0x10};
  const std::vector<SliceSection> more = {{".debug_info", "some bytes"}, {".debug_line", ""}};
  const std::string bytes = WriteSymbolSlice(slice.image, slice.symbols.table(), hits, more);
  const ElfImage image = ParsedElf(bytes);
  const auto content = image.Section(".debug_info").bytes;
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(content.data()), content.size()),
            "some bytes");
  EXPECT_TRUE(image.Section(".debug_line").exists);
  EXPECT_EQ(image.CodeSymbols().size(), 1u);
}

TEST(SymbolSlice, ASliceOfASliceIsTheSame) {
  const Slice slice(Nested(), {0x110, 0x145, 0x150});
  const ElfImage image = ParsedElf(slice.bytes);
  const FileSymbols symbols(image);
  const std::vector<uint64_t> hits = {ElfBuilder::kTextAddress + 0x110,
                                      ElfBuilder::kTextAddress + 0x145,
                                      ElfBuilder::kTextAddress + 0x150};
  EXPECT_EQ(WriteSymbolSlice(image, symbols.table(), hits), slice.bytes);
}

// A file whose names, overlapping ones, are far longer than itself.
TEST(SymbolSlice, IsBounded) {
  const std::string names(size_t{60'000}, 'x');
  std::vector<ElfSymbol> symbols;
  std::vector<uint64_t> hits;
  for (uint64_t i = 0; i < 4000; ++i) {
    const uint64_t address = ElfBuilder::kTextAddress + i;
    symbols.push_back({.link_address = address,
                       .size_bytes = 1,
                       .name = std::string_view(names).substr(i),
                       .binding = ElfBinding::kLocal,
                       .is_function = true});
    hits.push_back(address);
  }
  const std::string file = Small().Build();
  const std::string slice = WriteSymbolSlice(ParsedElf(file), SymbolTable(symbols), hits);
  EXPECT_GT(slice.size(), size_t{31} << 20);
  EXPECT_LT(slice.size(), size_t{33} << 20);
  EXPECT_GT(ParsedElf(slice).CodeSymbols().size(), 500u);
}

// ---- real files --------------------------------------------------------------------------------

// This program, xpu-report where it has been built, a shell, the libraries of C and C++.
std::vector<std::string> RealFiles() {
  namespace fs = std::filesystem;
  const fs::path self = fs::read_symlink("/proc/self/exe");
  std::vector<std::string> files = {self.string(), fs::canonical("/bin/bash").string()};
  for (const fs::path& file : {self.parent_path() / "../../../report/xpu-report",
                               fs::path("/usr/lib/x86_64-linux-gnu/libstdc++.so.6")}) {
    if (fs::exists(file)) files.push_back(fs::canonical(file).string());
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t at = line.find('/');
    if (at == std::string::npos || line.find(".so") == std::string::npos) continue;
    if (std::ranges::find(files, line.substr(at)) == files.end()) files.push_back(line.substr(at));
  }
  return files;
}

// Some address in each of some symbols, and some addresses that no symbol covers.
std::vector<uint64_t> SomeHits(const ElfImage& image, const SymbolTable& table, size_t count) {
  std::mt19937_64 random(count);
  std::vector<uint64_t> hits;
  const auto symbols = table.symbols();
  for (size_t i = 0; i < count && !symbols.empty(); ++i) {
    const ElfSymbol& symbol = symbols[random() % symbols.size()];
    hits.push_back(symbol.link_address + random() % symbol.size_bytes);
    for (const ElfSegment& segment : image.segments()) {
      if (i % 8 == 0 && segment.executable && segment.file_bytes > 0) {
        hits.push_back(segment.link_address + random() % segment.file_bytes);
      }
    }
  }
  return hits;
}

TEST(SymbolSliceOfRealFiles, FindsTheSameSymbols) {
  for (const std::string& path : RealFiles()) {
    auto file = ElfFile::Open(path);
    ASSERT_TRUE(file.ok()) << path;
    const FileSymbols symbols(file->image());
    for (const size_t count : {10, 300, 3000}) {
      const std::vector<uint64_t> hits = SomeHits(file->image(), symbols.table(), count);
      const std::string bytes = WriteSymbolSlice(file->image(), symbols.table(), hits);
      const ElfImage slice = ParsedElf(bytes);
      EXPECT_EQ(slice.build_id(), file->image().build_id());
      const FileSymbols again(slice);
      for (const uint64_t hit : hits) {
        const ElfSymbol* expected = symbols.table().Find(hit);
        const ElfSymbol* found = again.table().Find(hit);
        ASSERT_EQ(found == nullptr, expected == nullptr) << path << std::hex << " " << hit;
        if (expected == nullptr) continue;
        ASSERT_EQ(found->name, expected->name) << path << std::hex << " " << hit;
        ASSERT_EQ(found->link_address, expected->link_address);
        const auto offset = file->image().FileOffsetOf(hit);
        ASSERT_TRUE(offset.has_value());
        ASSERT_EQ(slice.LinkAddressOf(*offset), hit);
      }
      // Nothing false at any other address.
      for (const ElfSymbol& symbol : again.table().symbols()) {
        for (const uint64_t at :
             {symbol.link_address, symbol.link_address + symbol.size_bytes - 1}) {
          const ElfSymbol* found = again.table().Find(at);
          const ElfSymbol* expected = symbols.table().Find(at);
          ASSERT_TRUE(expected != nullptr && found->name == expected->name) << symbol.name;
        }
      }
    }
  }
}

TEST(SymbolSliceOfRealFiles, AreSmall) {
  auto file = ElfFile::Open("/bin/bash");
  ASSERT_TRUE(file.ok());
  const FileSymbols symbols(file->image());
  const auto size = [&](size_t count) {
    return WriteSymbolSlice(file->image(), symbols.table(),
                            SomeHits(file->image(), symbols.table(), count))
        .size();
  };
  EXPECT_LT(size(10), 4096u);
  EXPECT_LT(size(300), size_t{300} * 60);
}

struct Output {
  std::vector<std::string> lines;
  int status = -1;
};

Output OutputOf(const std::string& command) {
  Output output;
  FILE* pipe = ::popen(command.c_str(), "r");
  XPU_CHECK(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, n);
  output.status = ::pclose(pipe);
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) output.lines.push_back(line);
  return output;
}

// binutils reads them: no complaint, the build-id, the same names.
void ExpectToolsRead(const std::string& real, const std::string& path) {
  auto file = ElfFile::Open(real);
  ASSERT_TRUE(file.ok());
  const FileSymbols symbols(file->image());
  std::vector<uint64_t> hits = SomeHits(file->image(), symbols.table(), 100);
  // A symbol without a size reaches to the next one here, to the end of its section there.
  std::set<uint64_t> sizeless;
  for (const ElfSymbol& symbol : file->image().CodeSymbols()) {
    if (symbol.size_bytes == 0) sizeless.insert(symbol.link_address);
  }
  std::erase_if(hits, [&](uint64_t hit) {
    const ElfSymbol* symbol = symbols.table().Find(hit);
    return symbol == nullptr || sizeless.contains(symbol->link_address);
  });
  std::string slice = WriteSymbolSlice(file->image(), symbols.table(), hits);
  const size_t kept = ParsedElf(slice).CodeSymbols().size();
  // With the build-id of a real file, addr2line would read that one's debug information.
  const std::string build_id(file->image().build_id());
  slice.replace(slice.find(build_id), build_id.size(), std::string(build_id.size(), '\x7f'));
  std::ofstream(path, std::ios::binary) << slice;

  const Output complaints = OutputOf(Format("readelf -aW '{}' 2>&1 >/dev/null", path));
  EXPECT_EQ(complaints.status, 0);
  EXPECT_EQ(complaints.lines, std::vector<std::string>());
  const Output notes = OutputOf(Format("readelf -nW '{}' | grep -c 'Build ID: 7f7f'", path));
  EXPECT_EQ(notes.lines, std::vector<std::string>{build_id.empty() ? "0" : "1"});
  EXPECT_EQ(OutputOf(Format("nm '{}' 2>&1", path)).lines.size(), kept);

  std::string command = Format("addr2line -f -e '{}'", path);
  for (const uint64_t hit : hits) AppendFormat(command, " {:x}", hit);
  const Output names = OutputOf(command + " 2>&1");
  ASSERT_EQ(names.lines.size(), hits.size() * 2);
  for (size_t i = 0; i < hits.size(); ++i) {
    EXPECT_EQ(names.lines[2 * i], symbols.table().Find(hits[i])->name);
  }
}

TEST(SymbolSliceOfRealFiles, OtherToolsReadThem) {
  const test::TempDirectory directory;
  for (const std::string& file : RealFiles()) {
    SCOPED_TRACE(file);
    ExpectToolsRead(file, directory / "slice");
  }
}

}  // namespace
}  // namespace xpu

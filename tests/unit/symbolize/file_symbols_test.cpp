#include "symbolize/file_symbols.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <elf.h>
#include <gtest/gtest.h>
#include <lzma.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "symbolize/elf/debug_data.h"
#include "tests/unit/symbolize/elf_builder.h"
#include "tests/unit/symbolize/parsed_elf.h"

namespace xpu {
namespace {

using test::ElfBuilder;
using test::ParsedElf;
using test::WithSection;

std::span<const std::byte> Bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string Compress(const std::string& text) {
  std::string out(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  XPU_CHECK(lzma_easy_buffer_encode(
                6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const uint8_t*>(text.data()),
                text.size(), reinterpret_cast<uint8_t*>(out.data()), &size, out.size()) == LZMA_OK);
  out.resize(size);
  return out;
}

std::string_view NameAt(const FileSymbols& symbols, uint64_t offset) {
  const ElfSymbol* symbol = symbols.table().Find(ElfBuilder::kTextAddress + offset);
  return symbol == nullptr ? "none" : symbol->name;
}

ElfBuilder Stripped() { return ElfBuilder("id").DynamicSymbol("exported", 0, 0x10); }

TEST(FileSymbols, OfTheFileItself) {
  const std::string file = Stripped().Symbol("local@V1", 0x100, 0x10, STB_LOCAL).Build();
  const FileSymbols symbols(ParsedElf(file));
  EXPECT_TRUE(symbols.has_local_names());
  EXPECT_EQ(NameAt(symbols, 0x8), "exported");
  EXPECT_EQ(NameAt(symbols, 0x108), "local");
  EXPECT_EQ(NameAt(symbols, 0x200), "none");
}

TEST(FileSymbols, OfADebugFileWhoseSegmentsAreEmpty) {
  const std::string file = Stripped().Build();
  std::string debug = ElfBuilder("id").Symbol("local", 0x100, 0x10, STB_LOCAL).Build();
  Elf64_Phdr segment;
  std::memcpy(&segment, debug.data() + sizeof(Elf64_Ehdr), sizeof(segment));
  segment.p_filesz = segment.p_memsz = 0;
  std::memcpy(debug.data() + sizeof(Elf64_Ehdr), &segment, sizeof(segment));
  const ElfImage debug_image = ParsedElf(debug);
  const ElfImage image = ParsedElf(file);
  EXPECT_FALSE(FileSymbols(image).has_local_names());
  const FileSymbols symbols(image, &debug_image);
  EXPECT_TRUE(symbols.has_local_names());
  EXPECT_EQ(NameAt(symbols, 0x108), "local");
  EXPECT_EQ(NameAt(symbols, 0x8), "exported");
}

TEST(FileSymbols, OfDebugData) {
  const std::string inner = ElfBuilder("").Symbol("hidden", 0x100, 0x10, STB_LOCAL).Build();
  const std::string file = WithSection(Stripped().Build(), ".gnu_debugdata", Compress(inner));
  const FileSymbols symbols(ParsedElf(file));
  EXPECT_TRUE(symbols.has_local_names());
  EXPECT_EQ(NameAt(symbols, 0x108), "hidden");
  EXPECT_EQ(NameAt(symbols, 0x8), "exported");
}

// A part that is damaged gives no names; the others give theirs.
TEST(FileSymbols, DamagedDebugData) {
  const std::string inner = ElfBuilder("").Symbol("hidden", 0x100, 0x10, STB_LOCAL).Build();
  const std::string packed = Compress(inner);
  for (size_t at = 0; at < packed.size(); ++at) {
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    for (const std::string& content : {damaged, packed.substr(0, at)}) {
      const std::string file = WithSection(Stripped().Build(), ".gnu_debugdata", content);
      const FileSymbols symbols(ParsedElf(file));
      EXPECT_FALSE(symbols.has_local_names()) << at;
      EXPECT_EQ(NameAt(symbols, 0x8), "exported") << at;
      EXPECT_EQ(NameAt(symbols, 0x108), "none") << at;
    }
  }
}

TEST(DebugData, SizesUpToTheLimits) {
  EXPECT_EQ(DecompressDebugData({}), "");
  // Some kinds of text shrink to a 7000th.
  const std::string bomb = Compress(std::string(size_t{8} << 20, 'x'));
  ASSERT_LT(bomb.size() * kMaxDebugDataRatio, size_t{8} << 20);
  EXPECT_EQ(DecompressDebugData(Bytes(bomb)), "");
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>(std::rand() % 16 + 'a');
  EXPECT_EQ(DecompressDebugData(Bytes(Compress(text))), text);
}

void Shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

// As Fedora makes it of a real program: this one.
TEST(DebugData, OfARealProgram) {
  const test::TempDirectory directory;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string mini = directory / "mini";
  const std::string program = directory / "program";
  Shell(Format("objcopy --only-keep-debug '{}' '{}.debug'", self, mini));
  Shell(Format("objcopy -S --keep-symbol=main '{0}.debug' '{0}'", mini));
  Shell(Format("objcopy -S '{}' '{}.stripped'", self, program));
  std::ofstream(mini + ".xz", std::ios::binary) << Compress(ReadFile(mini).value());
  Shell(
      Format("objcopy --add-section .gnu_debugdata='{0}.xz' '{1}.stripped' '{1}'", mini, program));

  auto whole = ElfFile::Open(self);
  auto stripped = ElfFile::Open(program + ".stripped");
  auto file = ElfFile::Open(program);
  ASSERT_TRUE(whole.ok() && stripped.ok() && file.ok());
  const FileSymbols all(whole->image());
  const auto main = std::ranges::find(all.table().symbols(), "main", &ElfSymbol::name);
  ASSERT_NE(main, all.table().symbols().end());
  const FileSymbols symbols(file->image());
  EXPECT_TRUE(symbols.has_local_names());
  const ElfSymbol* found = symbols.table().Find(main->link_address);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->name, "main");
  EXPECT_EQ(found->size_bytes, main->size_bytes);
  const FileSymbols fewer(stripped->image());
  const ElfSymbol* without = fewer.table().Find(main->link_address);
  EXPECT_TRUE(without == nullptr || without->name != "main");
}

}  // namespace
}  // namespace xpu

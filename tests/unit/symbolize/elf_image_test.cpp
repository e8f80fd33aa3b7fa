#include "symbolize/elf/elf_image.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;

std::span<const std::byte> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

ElfBuilder Small() {
  return ElfBuilder("0123456789abcdef0123")
      .Symbol("first", 0x0, 0x40)
      .Symbol("second", 0x40, 0x80, STB_LOCAL)
      .Symbol("label", 0x100, 0, STB_LOCAL, STT_NOTYPE)
      .Symbol("data", 0x140, 8, STB_GLOBAL, STT_OBJECT)
      .Symbol("elsewhere", 0x5000, 8)
      .DynamicSymbol("third", 0xc0, 0x10);
}

TEST(ElfImage, BuildIdSegmentsAndAddresses) {
  const std::string file = Small().Build();
  const auto image = ElfImage::Parse(Bytes(file), "small");
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image.value().build_id(), "0123456789abcdef0123");
  ASSERT_EQ(image.value().segments().size(), 1u);
  EXPECT_TRUE(image.value().segments()[0].executable);
  EXPECT_TRUE(image.value().has_symtab());
  EXPECT_EQ(image.value().LinkAddressOf(0x1000), 0x401000u);
  EXPECT_EQ(image.value().LinkAddressOf(0x1fff), 0x401fffu);
  EXPECT_EQ(image.value().LinkAddressOf(0x2000), std::nullopt);
  EXPECT_EQ(image.value().LinkAddressOf(0xfff), std::nullopt);
  EXPECT_EQ(image.value().FileOffsetOf(0x401040), 0x1040u);
  EXPECT_EQ(image.value().FileOffsetOf(0x1040), std::nullopt);
}

TEST(ElfImage, CodeSymbolsOfBothTables) {
  const std::string file = Small().Build();
  const auto image = ElfImage::Parse(Bytes(file), "small");
  std::map<std::string_view, ElfSymbol> symbols;
  for (const ElfSymbol& symbol : image.value().CodeSymbols()) symbols[symbol.name] = symbol;
  ASSERT_EQ(symbols.size(), 4u);  // neither data nor what lies outside the text
  EXPECT_EQ(symbols["first"].link_address, 0x401000u);
  EXPECT_EQ(symbols["first"].size_bytes, 0x40u);
  EXPECT_EQ(symbols["first"].binding, ElfBinding::kGlobal);
  EXPECT_EQ(symbols["second"].binding, ElfBinding::kLocal);
  EXPECT_FALSE(symbols["label"].is_function);
  EXPECT_EQ(symbols["third"].link_address, 0x4010c0u);
}

// More would be read as often as a file made for it likes.
TEST(ElfImage, OneTableOfSymbolsOfEachKind) {
  std::string file = Small().Build();
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof(header));
  Elf64_Shdr dynamic;  // the sections are: null, text, two tables with their names
  char* at = file.data() + header.e_shoff + 4 * sizeof(dynamic);
  std::memcpy(&dynamic, at, sizeof(dynamic));
  ASSERT_EQ(dynamic.sh_type, uint32_t{SHT_DYNSYM});
  dynamic.sh_type = SHT_SYMTAB;
  std::memcpy(at, &dynamic, sizeof(dynamic));
  const auto image = ElfImage::Parse(Bytes(file), "two tables");
  EXPECT_EQ(image.value().CodeSymbols().size(), 3u);  // without "third"
}

TEST(ElfImage, WhatIsCodeMayBeDefinedByAnotherFile) {
  const std::string file = Small().Build();
  const auto image = ElfImage::Parse(Bytes(file), "small");
  const ElfSegment elsewhere{
      .link_address = ElfBuilder::kTextAddress + 0x5000, .memory_bytes = 0x100, .executable = true};
  const auto symbols = image.value().CodeSymbols({&elsewhere, 1});
  ASSERT_EQ(symbols.size(), 1u);
  EXPECT_EQ(symbols[0].name, "elsewhere");
}

TEST(ElfImage, WhatIsNoElfFileIsRefused) {
  const std::string text = "#!/bin/sh\n" + std::string(100, ' ');
  EXPECT_EQ(ElfImage::Parse(Bytes(text), "script").error().message, "script: not an ELF file");
  EXPECT_EQ(ElfImage::Parse(std::span<const std::byte>(), "empty").error().message,
            "empty: too short for an ELF file");
  std::string narrow = Small().Build();
  narrow[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(ElfImage::Parse(Bytes(narrow), "old").error().message,
            "old: not a 64-bit little-endian ELF file");
}

// Reads everything that the image gives, so that the sanitizers see it.
size_t Touch(const ElfImage& image) {
  size_t sum = image.build_id().size();
  for (const char c : image.build_id()) sum += static_cast<unsigned char>(c);
  for (const ElfSymbol& symbol : image.CodeSymbols()) {
    sum += symbol.size_bytes +
           static_cast<size_t>(std::count(symbol.name.begin(), symbol.name.end(), 'e'));
  }
  return sum + image.LinkAddressOf(0x1000).value_or(0) + image.FileOffsetOf(0x401000).value_or(0);
}

TEST(ElfImage, CutAtEveryByte) {
  const std::string file = Small().Build();
  for (size_t size = 0; size < file.size(); ++size) {
    // A copy on the heap, so that a read after the end is seen.
    const std::string cut = file.substr(0, size);
    const auto image = ElfImage::Parse(Bytes(cut), "cut");
    if (image.ok()) Touch(image.value());
    EXPECT_EQ(image.ok(), size >= sizeof(Elf64_Ehdr)) << size;
  }
}

TEST(ElfImage, EveryByteOfTheTablesFlipped) {
  const std::string file = Small().Build();
  for (size_t at = 0; at < file.size(); ++at) {
    if (at >= 0x200 && at < 0x2000) continue;  // padding and text
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      const auto image = ElfImage::Parse(Bytes(damaged), "damaged");
      if (image.ok()) Touch(image.value());
    }
  }
}

TEST(ElfFile, BuildIdOfAFile) {
  const test::TempDirectory directory;
  Small().WriteTo(directory / "file");
  EXPECT_EQ(ReadBuildId(directory / "file").value(), "0123456789abcdef0123");
  EXPECT_EQ(ReadBuildId(directory / "none").error().kind, ErrorKind::kNotFound);
  ElfBuilder("").WriteTo(directory / "without");
  EXPECT_EQ(ReadBuildId(directory / "without").value(), "");
}

TEST(ElfFile, OnlyRegularFilesAreOpened) {
  const test::TempDirectory directory;
  ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(ElfFile::Open(directory / "pipe").error().kind, ErrorKind::kInvalid);  // and no waiting
  EXPECT_EQ(ElfFile::Open("/dev/zero").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(ElfFile::Open("/proc/self/maps").error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(ElfFile::Open(directory.path()).error().kind, ErrorKind::kInvalid);
  EXPECT_EQ(ElfFile::Open("/dev/zero", "its name").error().message, "its name: not a regular file");
}

// A real linker's file: this program.
TEST(ElfFile, ThisProgram) {
  const auto file = ElfFile::Open("/proc/self/exe");
  ASSERT_TRUE(file.ok());
  const auto symbols = file.value().image().CodeSymbols();
  const auto found = std::find_if(symbols.begin(), symbols.end(),
                                  [](const ElfSymbol& symbol) { return symbol.name == "main"; });
  ASSERT_NE(found, symbols.end());
  EXPECT_TRUE(found->is_function);
  const auto offset = file.value().image().FileOffsetOf(found->link_address);
  ASSERT_TRUE(offset.has_value());
  EXPECT_EQ(file.value().image().LinkAddressOf(*offset), found->link_address);
}

}  // namespace
}  // namespace xpu

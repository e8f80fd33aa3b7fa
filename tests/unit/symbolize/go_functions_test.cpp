#include "symbolize/elf/go_functions.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "symbolize/file_symbols.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

using test::ElfBuilder;

class TableText {
 public:
  template <typename T>
  TableText& Add(T value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  TableText& Add(const char* text) {
    text_.append(text, std::strlen(text) + 1);
    return *this;
  }
  // Up to `offset`.
  TableText& Pad(size_t offset) {
    text_.resize(offset);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Each table has main.a [0, 0x20) and main.b [0x20, 0x30) of the text.
TableText Header(uint32_t magic) {
  TableText bytes;
  bytes.Add(magic).Add(uint16_t{0}).Add(uint8_t{1}).Add(uint8_t{8}).Add(uint64_t{2});
  return bytes;
}

std::string Go12() {
  TableText bytes = Header(0xfffffffb);
  for (const auto& [address, record] : {std::pair(0, 0x80), std::pair(0x20, 0xa0)}) {
    bytes.Add(ElfBuilder::kTextAddress + address).Add(uint64_t(record));
  }
  bytes.Add(ElfBuilder::kTextAddress + 0x30);
  bytes.Pad(0x80).Add(ElfBuilder::kTextAddress).Add(int32_t{0xc0});
  bytes.Pad(0xa0).Add(ElfBuilder::kTextAddress + 0x20).Add(int32_t{0xc7});
  return bytes.Pad(0xc0).Add("main.a").Add("main.b").text();
}

std::string Go116() {
  TableText bytes = Header(0xfffffffa);
  bytes.Add(uint64_t{1}).Add(uint64_t{0x60});
  for (int i = 0; i < 3; ++i) bytes.Add(uint64_t{0});
  bytes.Add(uint64_t{0x80});
  bytes.Pad(0x60).Add("main.a").Add("main.b");
  bytes.Pad(0x80);
  for (const auto& [address, record] : {std::pair(0, 0x40), std::pair(0x20, 0x50)}) {
    bytes.Add(ElfBuilder::kTextAddress + address).Add(uint64_t(record));
  }
  bytes.Add(ElfBuilder::kTextAddress + 0x30);
  bytes.Pad(0xc0).Add(ElfBuilder::kTextAddress).Add(int32_t{0});
  return bytes.Pad(0xd0).Add(ElfBuilder::kTextAddress + 0x20).Add(int32_t{7}).text();
}

std::string Go118(uint32_t magic, uint64_t text) {
  TableText bytes = Header(magic);
  bytes.Add(uint64_t{1}).Add(text).Add(uint64_t{0x60});
  for (int i = 0; i < 3; ++i) bytes.Add(uint64_t{0});
  bytes.Add(uint64_t{0x80});
  bytes.Pad(0x60).Add("main.a").Add("main.b");
  bytes.Pad(0x80);
  for (const auto& [address, record] : {std::pair(0, 0x20), std::pair(0x20, 0x30)}) {
    bytes.Add(uint32_t(address)).Add(uint32_t(record));
  }
  bytes.Add(uint32_t{0x30});
  bytes.Pad(0xa0).Add(uint32_t{0}).Add(int32_t{0});
  return bytes.Pad(0xb0).Add(uint32_t{0x20}).Add(int32_t{7}).text();
}

std::string NamesOf(const std::string& table, std::string_view section = ".gopclntab") {
  const std::string file = test::WithSection(ElfBuilder("id").Build(), section, table);
  const auto image = ElfImage::Parse(std::as_bytes(std::span(file)), "file");
  const FileSymbols symbols(image.value());
  std::string names;
  for (const uint64_t offset : {0x0, 0x1f, 0x20, 0x2f, 0x30}) {
    const ElfSymbol* symbol = symbols.table().Find(ElfBuilder::kTextAddress + offset);
    names += symbol == nullptr ? "-" : std::string(symbol->name);
    names += ' ';
  }
  return names;
}

constexpr char kBoth[] = "main.a main.a main.b main.b - ";

TEST(GoFunctions, OfEachVersion) {
  EXPECT_EQ(NamesOf(Go12()), kBoth);
  EXPECT_EQ(NamesOf(Go116()), kBoth);
  EXPECT_EQ(NamesOf(Go118(0xfffffff0, ElfBuilder::kTextAddress)), kBoth);
  EXPECT_EQ(NamesOf(Go118(0xfffffff1, ElfBuilder::kTextAddress)), kBoth);
  EXPECT_EQ(NamesOf(Go118(0xfffffff2, ElfBuilder::kTextAddress)), "- - - - - ");
}

TEST(GoFunctions, InPositionIndependentPrograms) {
  EXPECT_EQ(NamesOf(Go118(0xfffffff1, ElfBuilder::kTextAddress), ".data.rel.ro.gopclntab"), kBoth);
  EXPECT_EQ(NamesOf(Go118(0xfffffff1, ElfBuilder::kTextAddress), ".other"), "- - - - - ");
}

TEST(GoFunctions, DamagedTablesEnd) {
  std::mt19937_64 random(7);
  for (const std::string& table : {Go12(), Go116(), Go118(0xfffffff1, ElfBuilder::kTextAddress)}) {
    for (size_t size = 0; size < table.size(); ++size) NamesOf(table.substr(0, size));
    for (int round = 0; round < 500; ++round) {
      std::string damaged = table;
      damaged[8 + random() % (damaged.size() - 8)] = static_cast<char>(random());
      NamesOf(damaged);
    }
    std::string endless = table;
    std::memset(endless.data() + 8, 0xff, 8);  // the number of functions
    EXPECT_EQ(NamesOf(endless), "- - - - - ");
  }
}

}  // namespace
}  // namespace xpu

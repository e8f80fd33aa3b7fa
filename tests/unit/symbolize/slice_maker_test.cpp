#include "symbolize/slice_maker.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "symbolize/file_symbols.h"
#include "tests/unit/symbolize/elf_builder.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;
using test::ElfBuilder;

constexpr std::string_view kId("\xab\xcd\xef", 3);

ElfBuilder StrippedProgram(std::string_view id = kId) {
  return ElfBuilder(id).DynamicSymbol("exported", 0, 0x10);
}
ElfBuilder Debug(std::string_view id = kId) {
  return ElfBuilder(id).Symbol("hidden", 0x100, 0x10, STB_LOCAL);
}

class SliceMaker : public ::testing::Test {
 protected:
  // The names that the slice has for hits in the middle of both functions.
  std::string Names(const SliceOrder& order) {
    const std::vector<uint64_t> offsets = {ElfBuilder::kTextOffset + 8,
                                           ElfBuilder::kTextOffset + 0x108};
    Result<MadeSlice> slice = MakeSymbolSlice(order, offsets);
    if (!slice.ok()) return slice.error().message;
    const auto image = ElfImage::Parse(std::as_bytes(std::span(slice->bytes)), "slice");
    if (!image.ok()) return image.error().message;
    const FileSymbols symbols(image.value());
    std::string text;
    for (const ElfSymbol& symbol : symbols.table().symbols()) {
      text += std::string(text.empty() ? "" : " ") + std::string(symbol.name);
    }
    return text;
  }

  SliceOrder Order() const {
    return {.path = directory_ / "bin/file",
            .name = directory_ / "bin/file",
            .build_id = std::string(kId),
            .debug_directory = directory_ / "debug",
            .detail = SliceDetail::kNames};
  }

  void SetUp() override {
    fs::create_directories(directory_ / "bin/.debug");
    fs::create_directories(directory_ / "debug/.build-id/ab");
    fs::create_directories(directory_ / "debug" + directory_.path() + "/bin");
  }

  // A file with a .gnu_debuglink to `debug`, as objcopy makes it.
  void WriteLinked(const ElfBuilder& builder, const std::string& debug) {
    builder.WriteTo(directory_ / "plain");
    const fs::path path = directory_ / "link";
    std::string link = fs::path(debug).filename().string();
    link.resize((link.size() + 4) / 4 * 4);
    const std::string content = ReadFile(debug).value();
    uint32_t crc = ~uint32_t{0};
    for (const char byte : content) {
      crc ^= static_cast<unsigned char>(byte);
      for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    crc = ~crc;
    link.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
    std::ofstream(path, std::ios::binary) << link;
    std::ofstream(directory_ / "bin/file", std::ios::binary)
        << test::WithSection(ReadFile(directory_ / "plain").value(), ".gnu_debuglink", link);
  }

  test::TempDirectory directory_;
};

TEST_F(SliceMaker, NamesOfTheFile) {
  StrippedProgram().Symbol("hidden", 0x100, 0x10, STB_LOCAL).WriteTo(directory_ / "bin/file");
  EXPECT_EQ(Names(Order()), "exported hidden");
  SliceOrder any = Order();
  any.build_id.clear();
  any.detail = SliceDetail::kLines;
  EXPECT_EQ(Names(any), "exported hidden");
}

TEST_F(SliceMaker, WhatIsRefused) {
  StrippedProgram("\x12\x34").WriteTo(directory_ / "bin/file");
  SliceOrder order = Order();
  order.name = "/app/file";
  EXPECT_EQ(Names(order), "/app/file: not the recorded file: build-id 1234, recorded abcdef");
  EXPECT_EQ(MakeSymbolSlice(order, {}).error().kind, ErrorKind::kNotFound);
  StrippedProgram("").WriteTo(directory_ / "bin/file");
  EXPECT_EQ(Names(order), "/app/file: not the recorded file: build-id none, recorded abcdef");
  std::ofstream(order.path) << std::string(100, '#');
  EXPECT_EQ(Names(order), "/app/file: not an ELF file");
  EXPECT_EQ(MakeSymbolSlice(order, {}).error().kind, ErrorKind::kInvalid);
  fs::remove(order.path);
  EXPECT_EQ(MakeSymbolSlice(order, {}).error().kind, ErrorKind::kNotFound);
  ASSERT_EQ(::mkfifo(order.path.c_str(), 0600), 0);
  EXPECT_EQ(Names(order), "/app/file: not a regular file");
}

TEST_F(SliceMaker, DebugFileByBuildId) {
  StrippedProgram().WriteTo(directory_ / "bin/file");
  EXPECT_EQ(Names(Order()), "exported");
  Debug().WriteTo(directory_ / "debug/.build-id/ab/cdef.debug");
  EXPECT_EQ(Names(Order()), "exported hidden");
  SliceOrder without = Order();
  without.debug_directory.clear();
  EXPECT_EQ(Names(without), "exported");
  Debug("\xab\xcd\xee").WriteTo(directory_ / "debug/.build-id/ab/cdef.debug");
  EXPECT_EQ(Names(Order()), "exported");
}

TEST_F(SliceMaker, DebugFileByLink) {
  for (const char* place : {"bin/file.debug", "bin/.debug/file.debug", ""}) {
    const std::string path = *place != '\0'
                                 ? directory_ / place
                                 : directory_ / "debug" + directory_.path() + "/bin/file.debug";
    Debug().WriteTo(path);
    WriteLinked(StrippedProgram(), path);
    EXPECT_EQ(Names(Order()), "exported hidden") << path;
    Debug("\x12\x34").WriteTo(path);
    EXPECT_EQ(Names(Order()), "exported") << path;
    fs::remove(path);
  }
}

TEST_F(SliceMaker, DebugFileByLinkWithoutBuildIds) {
  const std::string path = directory_ / "bin/file.debug";
  SliceOrder order = Order();
  order.build_id.clear();
  Debug("").WriteTo(path);
  WriteLinked(StrippedProgram(""), path);
  EXPECT_EQ(Names(order), "exported hidden");
  std::ofstream(path, std::ios::app) << "x";  // another CRC
  EXPECT_EQ(Names(order), "exported");
}

// The recorder opens files of other mount namespaces and by descriptor.
TEST_F(SliceMaker, OpenedElsewhereThanNamed) {
  const std::string path = directory_ / "bin/file.debug";
  Debug().WriteTo(path);
  WriteLinked(StrippedProgram(), path);
  const UniqueFd fd(::open(Order().path.c_str(), O_RDONLY | O_CLOEXEC));
  SliceOrder order = Order();
  order.path = Format("/proc/self/fd/{}", fd.get());
  EXPECT_EQ(Names(order), "exported hidden");
  order.path = Format("/proc/self/root{}", Order().path);
  order.name = "/nowhere/file";
  EXPECT_EQ(Names(order), "exported hidden");
}

}  // namespace
}  // namespace xpu

// What is refused when a file is opened, and with which message.
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>

#include "container.h"
#include "filled.h"
#include "format/block.h"

namespace xpu::test {
namespace {

Error ErrorOf(std::string_view content) {
  const std::span<const char> chars(content.data(), content.size());
  auto reader = CaptureReader::FromBytes(std::as_bytes(chars), "x.xpu");
  EXPECT_FALSE(reader.ok());
  return reader.ok() ? Error{} : reader.error();
}

TEST(FileHeader, NotACapture) {
  for (std::string_view content : {std::string_view("x"), std::string_view("PERFILE2 and so on"),
                                   std::string_view("\x7f"
                                                    "ELF\x02\x01\x01\0\0\0\0\0",
                                                    12)}) {
    const Error error = ErrorOf(content);
    EXPECT_EQ(error.kind, ErrorKind::kInvalid);
    EXPECT_EQ(error.message, "x.xpu: not an xpu capture");
    EXPECT_EQ(error.hint, "xpu-record writes captures; the default name is capture.xpu");
  }
}

// What packs a capture may leave its blocks as they are: it would read as a damaged one.
TEST(FileHeader, PackedAsAWhole) {
  const FilledFile filled = FilledCapture(2, 1);
  const auto error = [&](std::string begin, std::string name) {
    begin.append(reinterpret_cast<const char*>(filled.bytes.data()), filled.bytes.size());
    const auto bytes = std::as_bytes(std::span(begin));
    auto reader = CaptureReader::FromBytes(bytes, std::move(name));
    EXPECT_FALSE(reader.ok());
    return reader.ok() ? Error{} : reader.error();
  };
  EXPECT_EQ(error("\x1f\x8b", "x.xpu").message, "x.xpu: a compressed file, not a capture");
  EXPECT_EQ(error("\x1f\x8b", "x.xpu").hint,
            "decompress it first: gunzip x.xpu (captures are compressed already)");
  EXPECT_EQ(error("BZh9", "x.xpu").hint,
            "decompress it first: bunzip2 x.xpu (captures are compressed already)");
  EXPECT_EQ(error("\x28\xb5\x2f\xfd", "/dev/stdin").hint,
            "decompress it first: unzstd -c FILE | xpu-report - (captures are compressed already)");
}

TEST(FileHeader, EmptyAndCut) {
  EXPECT_EQ(ErrorOf("").message, "x.xpu: the file is empty");
  const std::string header = EncodeFileHeader({});
  EXPECT_EQ(ErrorOf(header.substr(0, 4)).message, "x.xpu: ends inside its header, after 4 bytes");
  EXPECT_EQ(ErrorOf(header.substr(0, 39)).message, "x.xpu: ends inside its header, after 39 bytes");
}

TEST(FileHeader, RoundTrip) {
  const std::string bytes = EncodeFileHeader(
      {.generation = 7, .capture_id = 0x1122334455667788, .writer = "xpu 9", .features = "a b"});
  EXPECT_EQ(bytes.size(), kFileHeaderMinBytes + 8);
  const ParsedFileHeader parsed = ParseFileHeader(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(parsed.state, FileHeaderState::kWhole);
  EXPECT_EQ(parsed.header.generation, 7u);
  EXPECT_EQ(parsed.header.capture_id, 0x1122334455667788u);
  EXPECT_EQ(parsed.header.writer, "xpu 9");
  EXPECT_EQ(parsed.header.features, "a b");
  EXPECT_EQ(parsed.size_bytes, bytes.size());
}

// Bytes that FORMAT.md promises: a reader of this version and of the first one are combined with
// AND on them.
TEST(FileHeader, FrozenBytes) {
  const std::string bytes =
      EncodeFileHeader({.capture_id = 0x0807060504030201, .writer = "w", .features = "f"});
  const std::string expected(
      "\x89XPU\r\n\x1a\n"
      "\x01\x00\x2a\x00\x01\x00\x00\x00"
      "\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x01\x00\x01\x00\x00\x00\x00\x00"
      "wf",
      34);
  EXPECT_EQ(bytes.substr(0, 34), expected);
  EXPECT_EQ(bytes.size(), 42u);
}

TEST(FileHeader, NewerNamesWhatItNeeds) {
  const Error generation = ErrorOf(EncodeFileHeader({.generation = 2, .writer = "xpu 4.0"}));
  EXPECT_EQ(generation.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(generation.message, "x.xpu: needs a newer xpu: generation 2, this one is 1");
  EXPECT_EQ(generation.hint, "it was written by xpu 4.0; this is xpu " XPU_VERSION);

  const Error features =
      ErrorOf(EncodeFileHeader({.writer = "xpu 4.0", .features = "hourglass sundial"}));
  EXPECT_EQ(features.kind, ErrorKind::kUnsupported);
  EXPECT_EQ(features.message, "x.xpu: needs a newer xpu: one that supports: hourglass sundial");
}

TEST(FileHeader, OfAnotherContainerVersion) {
  std::string bytes = EncodeFileHeader({.writer = "xpu 9.0"});
  bytes[8] = 2;
  bytes = WithFileHeaderChecksum(bytes);
  EXPECT_EQ(ErrorOf(bytes).message, "x.xpu: needs a newer xpu: container version 2");
  EXPECT_EQ(ErrorOf(bytes).hint, "it was written by xpu 9.0; this is xpu " XPU_VERSION);
}

TEST(Open, FilesThatCannotBeOpened) {
  auto absent = CaptureReader::Open("/nonexistent/capture.xpu");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(absent.error().message, "/nonexistent/capture.xpu: open: No such file or directory");
  auto directory = CaptureReader::Open("/tmp");
  ASSERT_FALSE(directory.ok());
  EXPECT_EQ(directory.error().message, "/tmp: open: Is a directory");
}

TEST(Open, ReadsAFile) {
  const FilledFile filled = FilledCapture(2, 1);
  const std::string path = testing::TempDir() + "xpu_format_open_test.xpu";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(filled.bytes.data()),
             static_cast<std::streamsize>(filled.bytes.size()));
  auto reader = CaptureReader::Open(path);
  ASSERT_TRUE(reader.ok());
  CaptureReader moved = std::move(*reader);
  EXPECT_EQ(ReadLines(moved).blocks.size(), 2u);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace xpu::test

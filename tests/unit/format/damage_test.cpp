// Captures cut and damaged at every byte: what was written whole is read, what is read is right.
#include <algorithm>

#include <gtest/gtest.h>

#include "filled.h"
#include "format/block.h"

namespace xpu::test {
namespace {

constexpr uint32_t kBlocks = 3;

std::vector<std::string> Split(std::string_view line) {
  std::vector<std::string> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return words;
}

// The words of `lines` that read "[lost]"; the others must be those of the block.
uint64_t LostIn(const std::vector<std::string>& lines, uint32_t block) {
  static const std::vector<std::vector<std::string>> kExpected = {
      ExpectedRows(0, 1), ExpectedRows(1, 2), ExpectedRows(2, 3)};
  const std::vector<std::string>& expected = kExpected.at(block);
  if (lines == expected) return 0;
  uint64_t lost = 0;
  EXPECT_EQ(lines.size(), expected.size());
  for (size_t i = 0; i < std::min(lines.size(), expected.size()); ++i) {
    const auto words = Split(lines[i]);
    const auto expected_words = Split(expected[i]);
    EXPECT_EQ(words.size(), expected_words.size());
    for (size_t j = 0; j < std::min(words.size(), expected_words.size()); ++j) {
      if (words[j].ends_with("[lost]")) {
        ++lost;
      } else {
        EXPECT_EQ(words[j], expected_words[j]) << lines[i];
      }
    }
  }
  return lost;
}

class Damage : public testing::Test {
 protected:
  const FilledFile file_ = FilledCapture(kBlocks, 1);

  // The block that the byte at `offset` belongs to; kBlocks for the file header.
  uint32_t BlockAt(size_t offset) const {
    for (uint32_t block = 0; block < kBlocks; ++block) {
      if (offset >= file_.ends[block] && offset < file_.ends[block + 1]) return block;
    }
    return kBlocks;
  }
};

TEST_F(Damage, CutAtEveryByte) {
  for (size_t size = 0; size <= file_.bytes.size(); size += kStep) {
    SCOPED_TRACE(size);
    const auto bytes = std::span(file_.bytes).first(size);
    auto reader = CaptureReader::FromBytes(bytes, "cut");
    ASSERT_EQ(reader.ok(), size >= file_.ends[0]);
    if (!reader.ok()) {
      EXPECT_EQ(reader.error().kind, ErrorKind::kInvalid);
      EXPECT_FALSE(reader.error().hint.empty());
      continue;
    }
    const ReadBack back = ReadLines(*reader);
    const auto whole = std::count_if(file_.ends.begin() + 1, file_.ends.end(),
                                     [size](size_t end) { return end <= size; });
    ASSERT_EQ(back.blocks.size(), static_cast<size_t>(whole));
    for (uint32_t block = 0; block < whole; ++block)
      EXPECT_EQ(LostIn(back.blocks[block], block), 0);
    const bool at_end = std::count(file_.ends.begin(), file_.ends.end(), size) != 0;
    EXPECT_EQ(back.problems.cut, !at_end);
    EXPECT_EQ(back.problems.blocks_damaged, 0u);
    EXPECT_EQ(back.problems.bytes_skipped, size - file_.ends[static_cast<size_t>(whole)]);
    EXPECT_EQ(back.problems.references_lost, 0u);
  }
}

class DamageBits : public Damage, public testing::WithParamInterface<int> {};

TEST_P(DamageBits, FlipInEveryByte) {
  std::vector<std::byte> bytes = file_.bytes;
  for (size_t offset = 0; offset < bytes.size(); offset += kStep) {
    SCOPED_TRACE(offset);
    const uint32_t damaged = BlockAt(offset);
    bytes[offset] ^= static_cast<std::byte>(GetParam());
    const ReadBack back = ReadLines(bytes);
    bytes[offset] ^= static_cast<std::byte>(GetParam());

    std::vector<uint32_t> left;
    for (uint32_t block = 0; block < kBlocks; ++block) {
      if (block != damaged) left.push_back(block);
    }
    ASSERT_EQ(back.blocks.size(), left.size());
    uint64_t lost = 0;
    for (size_t i = 0; i < left.size(); ++i) lost += LostIn(back.blocks[i], left[i]);
    EXPECT_EQ(back.problems.references_lost, lost);
    if (damaged == kBlocks) {
      EXPECT_TRUE(back.problems.header_damaged);
      EXPECT_EQ(back.problems.blocks_damaged, 0u);
      EXPECT_EQ(lost, 0u);
      continue;
    }
    EXPECT_EQ(back.problems.blocks_damaged, 1u);
    EXPECT_EQ(back.problems.bytes_skipped, file_.ends[damaged + 1] - file_.ends[damaged]);
    EXPECT_FALSE(back.problems.cut);
    // How many events the last block had is known from its header alone.
    const bool is_known =
        damaged + 1 < kBlocks || offset >= file_.ends[damaged] + kBlockHeaderBytes;
    EXPECT_EQ(back.problems.events_lost, is_known ? kKinds : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, DamageBits, testing::Values(0x01, 0x80));

TEST(DamageOfFour, TwoBlocksLost) {
  FilledFile file = FilledCapture(4, 1);
  file.bytes[file.ends[1] + 3] ^= std::byte{1};  // header of the second block
  file.bytes[file.ends[3] - 1] ^= std::byte{1};  // payload of the third
  const ReadBack back = ReadLines(file.bytes);
  ASSERT_EQ(back.blocks.size(), 2u);
  EXPECT_EQ(back.blocks[0], ExpectedRows(0, 1));
  EXPECT_EQ(back.problems.blocks_damaged, 2u);
  EXPECT_EQ(back.problems.events_lost, 2 * kKinds);
  EXPECT_EQ(back.problems.bytes_skipped, file.ends[3] - file.ends[1]);
}

TEST_F(Damage, BlocksTwiceOrOutOfOrderAreNotReadTwice) {
  std::vector<std::byte> bytes = file_.bytes;
  bytes.insert(bytes.end(), file_.bytes.begin() + static_cast<ptrdiff_t>(file_.ends[1]),
               file_.bytes.end());
  EXPECT_EQ(ReadLines(bytes).blocks.size(), kBlocks);
}

TEST_F(Damage, AnAppendedCaptureIsNotMixedIn) {
  std::vector<std::byte> bytes = file_.bytes;
  const FilledFile other = FilledCapture(2 * kBlocks, 1);
  bytes.insert(bytes.end(), other.bytes.begin(), other.bytes.end());
  const ReadBack back = ReadLines(bytes);
  EXPECT_EQ(back.blocks.size(), kBlocks);
  EXPECT_EQ(back.problems.bytes_skipped, other.bytes.size());
  EXPECT_TRUE(back.problems.captures_follow);
  EXPECT_EQ(back.problems.blocks_damaged, 0u);
}

TEST_F(Damage, AnAppendedCaptureIsReportedAlsoOfACutOne) {
  std::vector<std::byte> cut(file_.bytes.begin(), file_.bytes.end() - 10);
  const FilledFile other = FilledCapture(1, 1);
  cut.insert(cut.end(), other.bytes.begin(), other.bytes.end());
  const ReadBack after_cut = ReadLines(cut);
  EXPECT_EQ(after_cut.blocks.size(), kBlocks - 1);
  EXPECT_TRUE(after_cut.problems.captures_follow);
  EXPECT_EQ(after_cut.problems.blocks_damaged, 1u);

  std::vector<std::byte> twice = file_.bytes;
  twice.insert(twice.end(), file_.bytes.begin(), file_.bytes.end());
  const ReadBack of_twice = ReadLines(twice);
  EXPECT_EQ(of_twice.blocks.size(), kBlocks);
  EXPECT_TRUE(of_twice.problems.captures_follow);
  EXPECT_EQ(of_twice.problems.blocks_damaged, 0u);
  EXPECT_FALSE(ReadLines(file_.bytes).problems.captures_follow);
}

TEST_F(Damage, GarbageBetweenBlocksIsSkipped) {
  std::vector<std::byte> bytes = file_.bytes;
  const std::string garbage = "\xb5xpuBLK\n\xb5xpu\xb5xpuBLK\n" + std::string(1000, '\0');
  const auto* begin = reinterpret_cast<const std::byte*>(garbage.data());
  bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(file_.ends[2]), begin,
               begin + garbage.size());
  const ReadBack back = ReadLines(bytes);
  EXPECT_EQ(back.blocks.size(), kBlocks);
  EXPECT_EQ(back.problems.blocks_damaged, 0u);
  EXPECT_EQ(back.problems.bytes_skipped, garbage.size());
}

// A program may give a thread or a kernel any name: also the bytes of a block.
TEST_F(Damage, BlocksInsideATextAreText) {
  const std::string inner(reinterpret_cast<const char*>(file_.bytes.data()), file_.bytes.size());
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test", {.compression_level = -50});
  ASSERT_TRUE(writer.ok());
  Kernel kernel;
  kernel.name = writer->InternString(inner);
  ASSERT_TRUE(writer->Write(kernel).ok());
  ASSERT_TRUE(writer->Close().ok());
  std::vector<std::byte> bytes = file.Bytes();
  {
    CaptureReader reader = MustRead(bytes);
    const auto batch = reader.Next();
    ASSERT_TRUE(batch.has_value());
    EXPECT_EQ(reader.String(batch->kernels.at(0).name), inner);
    EXPECT_FALSE(reader.Next().has_value());
  }
  // The text is stored as it is here. Without its own header nothing of it may be taken for blocks.
  const size_t outer = FindBlockMagic(bytes, 0);
  const size_t inside = FindBlockMagic(bytes, outer + 1);
  ASSERT_LT(inside, bytes.size());
  EXPECT_TRUE(ParseBlockHeader(std::span(bytes).subspan(inside)).has_value());
  bytes[outer + 20] ^= std::byte{1};
  const ReadBack back = ReadLines(bytes);
  EXPECT_EQ(back.blocks.size(), 0u);
  EXPECT_EQ(back.problems.blocks_damaged, 1u);
}

}  // namespace
}  // namespace xpu::test

#include "report/views/perfetto/block_compressor.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

namespace xpu {
namespace {

std::string Inflated(std::string_view packed) {
  std::string text(size_t{1} << 20, '\0');
  uLongf size = text.size();
  EXPECT_EQ(::uncompress(reinterpret_cast<Bytef*>(text.data()), &size,
                         reinterpret_cast<const Bytef*>(packed.data()), packed.size()),
            Z_OK);
  text.resize(size);
  return text;
}

// Blocks of very different sizes, so that later ones are compressed first.
std::string Block(size_t i) { return std::string(i % 5 == 0 ? 400'000 : 10, 'a' + i % 26); }

constexpr size_t kBlocks = 200;

TEST(BlockCompressor, BlocksLeaveInTheOrderInWhichTheyCame) {
  for (const size_t threads : {1, 2, 4}) {
    std::vector<std::string> written;
    BlockCompressor compressor(
        [&](std::string_view packed) { written.push_back(Inflated(packed)); }, threads);
    for (size_t i = 0; i < kBlocks; ++i) {
      compressor.Add(Block(i));
      EXPECT_LE(i + 1 - written.size(), 2 * threads);  // so many are kept
    }
    compressor.Finish();
    ASSERT_EQ(written.size(), kBlocks);
    for (size_t i = 0; i < kBlocks; ++i) EXPECT_EQ(written[i], Block(i)) << i;
  }
}

TEST(BlockCompressor, WritesOnTheThreadThatAdds) {
  const std::thread::id here = std::this_thread::get_id();
  BlockCompressor compressor([&](std::string_view) { EXPECT_EQ(std::this_thread::get_id(), here); },
                             2);
  for (size_t i = 0; i < kBlocks; ++i) compressor.Add(Block(i));
  compressor.Finish();
}

TEST(BlockCompressor, CanBeDroppedWithBlocksThatNobodyWants) {
  size_t written = 0;
  size_t written_when_added = 0;
  {
    BlockCompressor compressor([&](std::string_view) { ++written; }, 2);
    compressor.Add(Block(0));
    compressor.Add(Block(1));
    written_when_added = written;
  }
  EXPECT_EQ(written, written_when_added);
}

}  // namespace
}  // namespace xpu

// The files of a recording: names, what was there before, what is removed.
#include "record/output/output_parts.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "record/options/output_options.h"

namespace xpu {
namespace {

class OutputPartsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "output-parts-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) { return directory_ + "/" + name; }
  void Put(const std::string& name) { std::ofstream(Path(name)) << name; }
  std::string Content(const std::string& name) {
    std::ifstream file(Path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> Files() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  Result<OutputParts> Prepare(uint32_t keep = 0) {
    OutputOptions options;
    options.rotate_bytes = 1 << 20;
    options.rotate_keep = keep;
    return OutputParts::Prepare(Path("c.xpu"), options);
  }

  std::string directory_;
};

using Names = std::vector<std::string>;

TEST(PartPath, TheNumberStandsBeforeTheExtension) {
  EXPECT_EQ(PartPath("capture.xpu", 1), "capture.0001.xpu");
  EXPECT_EQ(PartPath("/a.b/capture", 12), "/a.b/capture.0012");
  EXPECT_EQ(PartPath("a.b.xpu", 9999), "a.b.9999.xpu");
  EXPECT_EQ(PartPath("a.xpu", 10000), "a.10000.xpu");
  EXPECT_EQ(PartPath(".hidden", 1), ".hidden.0001");
}

TEST(PartNumber, OnlyOfNamesThatPartsHave) {
  EXPECT_EQ(PartNumberOf("x/capture.xpu", "capture.0007.xpu"), 7u);
  EXPECT_EQ(PartNumberOf("capture.xpu", "capture.10000.xpu"), 10000u);
  EXPECT_EQ(PartNumberOf("capture", "capture.0007"), 7u);
  for (const char* other : {"capture.xpu", "capture.007.xpu", "capture.00007.xpu",
                            "capture.0000.xpu", "capture.0001.xpu.old", "capture.0x01.xpu",
                            "other.0001.xpu", "capture.-001.xpu", "capture.99999999999.xpu"}) {
    EXPECT_EQ(PartNumberOf("capture.xpu", other), std::nullopt) << other;
  }
}

TEST(OutputSize, SuffixesAndLimits) {
  EXPECT_EQ(*ParseSize("--max-size", "64M", 1 << 20), uint64_t{64} << 20);
  EXPECT_EQ(*ParseSize("--max-size", "1.5G", 1 << 20), uint64_t{1536} << 20);
  EXPECT_EQ(*ParseSize("--max-size", "2048K", 1 << 20), uint64_t{2} << 20);
  EXPECT_EQ(*ParseSize("--max-size", "1048576", 1 << 20), uint64_t{1} << 20);
  for (const char* bad : {"", "M", "64MB", "64m", "-1M", "nan", "inf", "1e30", "9999999G", "1 M"}) {
    const auto size = ParseSize("--max-size", bad, 1 << 20);
    ASSERT_FALSE(size.ok()) << bad;
    EXPECT_EQ(size.error().kind, ErrorKind::kUsage);
  }
  EXPECT_EQ(ParseSize("--max-size", "1023K", 1 << 20).error().message,
            "--max-size: 1023K is too small; the minimum is 1M");
}

TEST_F(OutputPartsTest, TheOldestAreRemoved) {
  auto parts = Prepare(2);
  ASSERT_TRUE(parts.ok());
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(parts->OpenNext().ok());
  EXPECT_EQ(Files(), (Names{"c.0003.xpu", "c.0004.xpu"}));
  EXPECT_EQ(parts->part(), 4u);
  EXPECT_EQ(parts->Text(), Path("c.0003.xpu") + " to " + Path("c.0004.xpu") +
                               " (2 older parts removed by --rotate-keep, not a loss)");
  struct stat info {};
  ASSERT_EQ(::stat(Path("c.0004.xpu").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(OutputPartsTest, OneThatCannotBeWrittenToDoesNotReplaceAnother) {
  auto parts = Prepare(2);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(parts->OpenNext().ok());
  for (int i = 0; i < 3; ++i) {  // as long as the disk is full
    ASSERT_TRUE(parts->OpenNext().ok());
    parts->TakeBack();
  }
  EXPECT_EQ(Files(), Names{"c.0003.xpu"});
  EXPECT_EQ(parts->part(), 3u);
  ASSERT_TRUE(parts->OpenNext().ok());
  EXPECT_EQ(Files(), (Names{"c.0003.xpu", "c.0004.xpu"}));
  EXPECT_EQ(parts->Text(), Path("c.0003.xpu") + " to " + Path("c.0004.xpu") +
                               " (2 older parts removed by --rotate-keep, not a loss)");
}

TEST_F(OutputPartsTest, ReplacedPartsAreNotRemoved) {
  auto parts = Prepare(2);
  ASSERT_TRUE(parts->OpenNext().ok());
  Put("other");
  std::filesystem::rename(Path("other"), Path("c.0001.xpu"));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(parts->OpenNext().ok());
  EXPECT_EQ(Files(), (Names{"c.0001.xpu", "c.0003.xpu", "c.0004.xpu"}));
}

TEST_F(OutputPartsTest, PartsOfAnEarlierRecordingAreKeptApart) {
  for (const char* name : {"c.0001.xpu", "c.0003.xpu", "c.0002.xpu.old", "c.0003.xpu.old", "c.xpu",
                           "c.0001.txt", "other.0001.xpu"}) {
    Put(name);
  }
  auto parts = Prepare();
  ASSERT_TRUE(parts.ok());
  ASSERT_TRUE(parts->OpenNext().ok());
  EXPECT_EQ(Files(), (Names{"c.0001.txt", "c.0001.xpu", "c.0001.xpu.old", "c.0003.xpu.old", "c.xpu",
                            "other.0001.xpu"}));
  EXPECT_EQ(Content("c.0003.xpu.old"), "c.0003.xpu");
  EXPECT_EQ(Content("c.0001.xpu"), "");
  EXPECT_EQ(parts->kept_text(), "xpu-record: 2 parts of an earlier recording renamed to " +
                                    Path("c.0001.xpu.old") + ", ...\n");
  parts->Discard();
  EXPECT_EQ(Content("c.0001.xpu"), "c.0001.xpu");
  EXPECT_EQ(Content("c.0003.xpu"), "c.0003.xpu");
}

TEST_F(OutputPartsTest, ExistingFilesAreNotOverwritten) {
  auto parts = Prepare();
  Put("c.0001.xpu");
  const auto opened = parts->OpenNext();
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().message, Path("c.0001.xpu") + ": create: File exists");
  EXPECT_EQ(Content("c.0001.xpu"), "c.0001.xpu");
}

TEST_F(OutputPartsTest, AnotherRecorderIsNotDisturbed) {
  auto first = Prepare();
  auto opened = first->OpenNext();
  ASSERT_TRUE(opened.ok());
  const auto second = Prepare();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kBusy);
  EXPECT_EQ(second.error().message, Path("c.0001.xpu") + ": another xpu-record is writing it");
  EXPECT_EQ(Files(), Names{"c.0001.xpu"});
  opened->fd.reset();  // it has ended, however
  EXPECT_TRUE(Prepare().ok());
}

TEST_F(OutputPartsTest, ASingleFileOfAnotherRecorderIsKept) {
  auto first = OutputFile::Open(Path("c.xpu"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(OutputFile::Open(Path("c.xpu")).error().kind, ErrorKind::kBusy);
  { const UniqueFd closed = first->TakeFd(); }
  EXPECT_TRUE(OutputFile::Open(Path("c.xpu")).ok());
  EXPECT_EQ(Files(), (Names{"c.xpu", "c.xpu.old"}));
}

TEST_F(OutputPartsTest, DevicesAndPipesHaveNoParts) {
  ASSERT_EQ(::mkfifo(Path("c.xpu").c_str(), 0600), 0);
  EXPECT_EQ(Prepare().error().message,
            Path("c.xpu") + ": is not a regular file and cannot be rotated");
}

}  // namespace
}  // namespace xpu

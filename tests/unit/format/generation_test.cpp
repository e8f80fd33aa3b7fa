// A capture of the first generation reads for ever: generation_1.xpu, and the fields that it held
// when it was made in generation_1.txt. Fields that came later may be beside them.
//
// Before the first release, a change of the records makes both anew: XPU_UPDATE_CAPTURES=1.
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "filled.h"
#include "tests/unit/tests_directory.h"

namespace xpu::test {
namespace {

const std::string kDirectory = TestsDirectory() + "/unit/format/";

std::string Content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Update() {
  const FilledFile file = FilledCapture(2, 1);
  std::ofstream(kDirectory + "generation_1.xpu", std::ios::binary)
      .write(reinterpret_cast<const char*>(file.bytes.data()),
             static_cast<std::streamsize>(file.bytes.size()));
  std::ofstream text(kDirectory + "generation_1.txt", std::ios::binary);
  for (const auto& block : ReadLines(file.bytes).blocks) {
    for (const std::string& line : block) text << line << '\n';
  }
}

// "list name=value name=value ...": the fields of `old`, in their order, are all in `now`.
bool Holds(std::string_view now, std::string_view old) {
  while (!old.empty()) {
    const size_t end = std::min(old.find(' '), old.size());
    const std::string field = std::string(old.substr(0, end)) + " ";
    const size_t found = (std::string(now) + " ").find(field);
    if (found == std::string::npos) return false;
    now.remove_prefix(std::min(found + end, now.size()));
    old.remove_prefix(std::min(end + 1, old.size()));
  }
  return true;
}

TEST(Generation, TheFirstIsRead) {
  if (std::getenv("XPU_UPDATE_CAPTURES") != nullptr) Update();
  const std::string capture = Content(kDirectory + "generation_1.xpu");
  std::vector<std::string> lines;
  for (auto& block : ReadLines(std::as_bytes(std::span(capture))).blocks) {
    lines.insert(lines.end(), block.begin(), block.end());
  }
  const std::string expected = Content(kDirectory + "generation_1.txt");
  size_t count = 0;
  for (std::string_view rest = expected; !rest.empty(); ++count) {
    const size_t end = rest.find('\n');
    ASSERT_LT(count, lines.size());
    EXPECT_TRUE(Holds(lines[count], rest.substr(0, end))) << lines[count] << "\n does not hold\n"
                                                          << rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  EXPECT_EQ(count, lines.size());
  EXPECT_EQ(count, 2 * 21u);
}

}  // namespace
}  // namespace xpu::test

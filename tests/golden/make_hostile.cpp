// Writes the captures of hostile_captures.h into a directory.
//
//     make_hostile DIRECTORY EVENTS [NAME...]
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>

#include "format/base/check.h"
#include "tests/unit/report/hostile_captures.h"

namespace xpu::test {
namespace {

int Run(const std::string& directory, uint32_t events, const std::vector<std::string>& names) {
  for (const HostileCapture& capture : HostileCaptures()) {
    if (!names.empty() && std::find(names.begin(), names.end(), capture.name) == names.end()) {
      continue;
    }
    const std::string path = directory + "/" + std::string(capture.name) + ".xpu";
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    auto writer = CaptureWriter::Create(std::move(fd), path);
    XPU_CHECK(writer.ok() && capture.write(*writer, events).ok() && writer->Close().ok());
  }
  return 0;
}

}  // namespace
}  // namespace xpu::test

int main(int argc, char** argv) {
  uint32_t events = 0;
  if (argc < 3 ||
      std::from_chars(argv[2], argv[2] + std::strlen(argv[2]), events).ec != std::errc()) {
    std::fputs("usage: make_hostile FOLDER EVENTS [NAME...]\n", stderr);
    return 2;
  }
  return xpu::test::Run(argv[1], events, {argv + 3, argv + argc});
}

#include "recordings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include "tests/unit/tests_directory.h"

namespace xpu::fake_cuda_test {
namespace {

namespace fs = std::filesystem;
using cupti_raw::Capture;

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Capture ParseOrFail(const std::string& bytes, const std::string& name) {
  Capture capture;
  std::string error;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  EXPECT_TRUE(cupti_raw::Parse({data, bytes.size()}, &capture, &error)) << name << ": " << error;
  return capture;
}

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string path = fs::temp_directory_path() / "fake_cuda_test.XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~TemporaryDirectory() { fs::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

[[noreturn]] void Exec(const Strings& command, const Strings& environment) {
  for (const std::string& variable : environment) putenv(strdup(variable.c_str()));
  const int quiet = open("/dev/null", O_WRONLY);
  dup2(quiet, STDOUT_FILENO);
  const std::string program = std::string(XPU_WORKLOADS_DIR) + "/" + command[0];
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  _exit(127);
}

}  // namespace

Strings With(Strings strings, const Strings& more) {
  strings.insert(strings.end(), more.begin(), more.end());
  return strings;
}

Capture LoadReal(const std::string& name) {
  const fs::path path = fs::path(TestsDirectory()) / "captures/cupti" / (name + ".raw.zst");
  const std::string packed = ReadAll(path);
  const auto size = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size > (64 << 20)) {
    ADD_FAILURE() << path << " is missing or no zstd file that states its size";
    return {};
  }
  std::string bytes(size, '\0');
  EXPECT_EQ(ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size()), size);
  return ParseOrFail(bytes, name);
}

std::string LoadRealJson(const std::string& name) {
  return ReadAll(fs::path(TestsDirectory()) / "captures/cupti" / (name + ".json"));
}

std::vector<Capture> RecordFake(const Strings& command, const Strings& environment, int* status) {
  const TemporaryDirectory directory;
  Strings variables = environment;
  variables.push_back("CUDA_INJECTION64_PATH=" XPU_FAKE_CUPTI_RAW);
  variables.push_back("CUPTI_RAW_OUT=" + (directory.path() / "%p.raw").string());
  const pid_t child = fork();
  if (child == 0) Exec(command, variables);
  int local_status = 0;
  EXPECT_EQ(waitpid(child, &local_status, 0), child);
  if (status == nullptr) {
    EXPECT_EQ(local_status, 0) << command[0];
  } else {
    *status = local_status;
  }
  std::vector<Capture> captures;
  for (const auto& entry : fs::directory_iterator(directory.path())) {
    captures.push_back(ParseOrFail(ReadAll(entry.path()), entry.path()));
  }
  std::sort(captures.begin(), captures.end(),
            [](const Capture& a, const Capture& b) { return a.header.pid < b.header.pid; });
  return captures;
}

Capture RecordOne(const Strings& command, const Strings& environment) {
  std::vector<Capture> captures = RecordFake(command, environment);
  EXPECT_EQ(captures.size(), 1U) << command[0];
  return captures.empty() ? Capture{} : std::move(captures[0]);
}

}  // namespace xpu::fake_cuda_test

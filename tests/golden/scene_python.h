// The capture of the golden texts about Python: a training program whose launches and samples have
// stacks of Python beside the native ones, a thread of an extension that calls it, and what can be
// missing from such stacks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "tests/unit/report/model_builder.h"

namespace xpu::test {

class PythonScene {
 public:
  explicit PythonScene(std::string directory) : directory_(std::move(directory)) {}

  // python.xpu and the files that it names.
  Status Write() {
    WriteFiles();
    AddRecording();
    AddCodes();
    AddSamples();
    AddLaunches();
    return builder_.WriteCapture(directory_ + "/python.xpu");
  }

 private:
  void WriteFiles();
  void AddRecording();
  void AddCodes();
  void AddSamples();
  void AddLaunches();
  void AddCode(uint32_t code, const char* name, const char* path, uint32_t first_line);
  void AddSample(uint32_t tid, StackId native, StackId python, uint8_t flags);
  void AddLaunch(uint32_t id, uint32_t tid, StackId native, StackId python);
  // From the start of the program to its first function.
  StackId Native(std::initializer_list<uint64_t> behind);

  std::string directory_;
  ModelBuilder builder_;
  uint64_t time_ns_ = 0;
};

}  // namespace xpu::test

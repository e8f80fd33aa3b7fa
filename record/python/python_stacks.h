// Stacks of Python as the BPF programs walk them: which processes have an interpreter, and what the
// code objects that they meet are called.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "bpf/events.h"
#include "format/base/result.h"
#include "record/process/mapped_file.h"
#include "record/python/python_files.h"
#include "record/python/python_maps.h"
#include "record/sink/event_sink.h"

namespace xpu {

class BpfRing;

// A frame as the programs give it (bpf/python_layout.h).
struct RawPythonFrame {
  uint64_t code = 0;
  uint32_t fingerprint = 0;
  uint32_t offset = 0;
  bool is_entry = false;
};

// The frames of `words`, innermost first, without those of the interpreter itself: what lies on one
// of these is an entry.
std::vector<RawPythonFrame> PythonFramesOf(std::span<const __u64> words);

class PythonStacks {
 public:
  static Result<std::unique_ptr<PythonStacks>> Create();
  ~PythonStacks();

  const PythonMaps& maps() const { return maps_; }

  // What becomes of address spaces, in the order of time. A mapping of a file's code:
  struct Mapping {
    uint64_t address = 0;
    uint64_t size_bytes = 0;
    uint64_t file_offset = 0;
  };
  void SeeMapping(uint32_t pid, const Mapping& mapping, const MappedFile& file);
  void SeeFork(uint32_t parent, uint32_t child);
  void SeeExec(uint32_t pid);
  // Its last samples were taken.
  void Forget(uint32_t pid);

  // Takes what the programs tell of code objects; counts what is missing.
  void Drain(EventSink& sink);
  // CpuSample::python_stack of a stack of `pid`, of which `bytes` are there.
  StackId Take(const xpu_stack& stack, size_t bytes, uint32_t pid, EventSink& sink);

 private:
  struct Process {
    bool has_program = false;  // its first mapping, which is the program, was seen
    bool has_python = false;
    xpu_python_process python{};
  };
  using CodeKey = std::tuple<uint32_t, uint64_t, uint32_t>;  // pid, code, fingerprint

  explicit PythonStacks(PythonMaps maps);
  void SetProcess(uint32_t pid, const Process& process);
  void TakeCode(std::span<const std::byte> bytes);
  uint32_t NumberOf(const RawPythonFrame& frame, uint32_t pid, EventSink& sink);

  PythonMaps maps_;
  PythonFiles files_;
  std::unordered_map<uint32_t, Process> processes_;
  std::map<CodeKey, uint32_t> numbers_;
  struct NotWalked {
    uint32_t pid;
    std::string version;
  };
  std::vector<NotWalked> not_walked_;  // not counted yet
  std::unique_ptr<BpfRing> ring_;
  EventSink* sink_ = nullptr;  // during Drain
  std::vector<Frame> frames_;
};

}  // namespace xpu

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
#include "record/process/process_table.h"
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

class PythonStacks : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this.
  static Result<std::unique_ptr<PythonStacks>> Create(ProcessTable& processes);
  ~PythonStacks() override;

  const PythonMaps& maps() const { return maps_; }

  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override;
  void OnEnd(uint32_t pid) override;

  // Takes what the programs report about code objects; counts what is missing.
  void Drain(EventSink& sink);
  // CpuSample::python_stack of a stack of `pid`, of which `bytes` are there.
  StackId Take(const xpu_stack& stack, size_t bytes, uint32_t pid, EventSink& sink);

 private:
  using CodeKey = std::tuple<uint32_t, uint64_t, uint32_t>;  // pid, code, fingerprint

  PythonStacks(PythonMaps maps, ProcessTable& processes);
  void SetProcess(uint32_t pid, const xpu_python_process& process);
  void TakeCode(std::span<const std::byte> bytes);
  uint32_t NumberOf(const RawPythonFrame& frame, uint32_t pid, EventSink& sink);

  PythonMaps maps_;
  const ProcessTable& table_;
  PythonFiles files_;
  // Those in which an interpreter was found; without a runtime: one whose frames are not known.
  std::unordered_map<uint32_t, xpu_python_process> processes_;
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

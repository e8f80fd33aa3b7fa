// Turns Python stacks that the BPF programs walk into stacks of the capture: it owns the maps that
// describe the interpreter in each process, and the names of the code objects that the programs
// meet.
//
// The programs read the interpreter's memory only; no Python function is called or waited for. A
// code object is sent once, before the first stack that contains it. A version whose frames are not
// supported leaves stacks native, and this is counted.
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

// A frame as the BPF programs send it (bpf/python_layout.h).
struct RawPythonFrame {
  uint64_t code = 0;  // 0: a loop that runs no function
  uint32_t fingerprint = 0;
  uint32_t offset = 0;
  bool is_entry = false;
  uint64_t loop = 0;  // an address on the stack of the loop that runs it; 0: not known
};

// The frames in `words`, innermost first, without those of the interpreter itself; a frame on top
// of one of these is marked as an entry. Frames of several states are in the order of their loops.
std::vector<RawPythonFrame> PythonFramesOf(std::span<const __u64> words);

class PythonStacks : public ProcessListener {
 public:
  // Listens to `processes`, which outlives this object.
  static Result<std::unique_ptr<PythonStacks>> Create(ProcessTable& processes);
  ~PythonStacks() override;

  const PythonMaps& maps() const { return maps_; }

  void OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) override;
  void OnFork(uint32_t parent_pid, uint32_t pid) override;
  void OnExec(uint32_t pid) override;
  void OnEnd(uint32_t pid) override;

  // Takes code objects that the programs report; counts what is missing.
  void Drain(EventSink& sink);
  // The id for CpuSample::python_stack of a stack of `pid`, of which `bytes` were received.
  StackId Take(const xpu_stack& stack, size_t bytes, uint32_t pid, EventSink& sink);
  // The same for a thread that does not run. `own_tid`: its number in its own pid namespace.
  StackId TakeRemote(uint32_t pid, uint32_t own_tid, EventSink& sink);

 private:
  using CodeKey = std::tuple<uint32_t, uint64_t, uint32_t>;  // pid, code, fingerprint

  PythonStacks(PythonMaps maps, ProcessTable& processes);
  void SetProcess(uint32_t pid, const xpu_python_process& process);
  void TakeCode(std::span<const std::byte> bytes);
  uint32_t NumberOf(const RawPythonFrame& frame, uint32_t pid, EventSink& sink);

  PythonMaps maps_;
  const ProcessTable& table_;
  PythonFiles files_;
  // Processes with an interpreter; those without a runtime have one whose frames are not supported.
  std::unordered_map<uint32_t, xpu_python_process> processes_;
  std::map<CodeKey, uint32_t> numbers_;
  struct NotWalked {
    uint32_t pid;
    std::string version;
  };
  std::vector<NotWalked> not_walked_;  // not yet counted
  std::unique_ptr<BpfRing> ring_;
  EventSink* sink_ = nullptr;  // valid during Drain
  std::vector<Frame> frames_;
};

}  // namespace xpu

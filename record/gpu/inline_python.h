// The stacks of Python that one injected library takes itself (cupti_inject/wire.h).
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "cupti_inject/wire.h"
#include "record/base/fair_budget.h"
#include "record/python/python_files.h"
#include "record/sink/event_sink.h"

namespace xpu {

// Messages are untrusted: Take... returns false for an invalid one.
class InlinePython {
 public:
  using Bytes = std::span<const std::byte>;

  // `header`: of the peer's ring; `files`: of all peers, nullptr: no stacks are wanted; `memory`:
  // of the process. All outlive this.
  InlinePython(uint32_t pid, InstanceId instance, wire::RingHeader& header, PythonFiles* files,
               FairBudget::Account& memory)
      : pid_(pid), instance_(instance), header_(header), files_(files), memory_(memory) {}

  // A file with code that the process has mapped, the program first. `bias`: address - link
  // address.
  void SeeFile(const MappedFile& file, uint64_t bias, EventSink& sink);
  bool TakeCode(Bytes message, EventSink& sink);
  bool TakeStack(Bytes message);
  // LaunchStack::python_stack of that number. Counts what is missing.
  StackId Intern(uint32_t number, EventSink& sink);

 private:
  struct Stack {
    std::vector<uint64_t> frames;
    uint32_t stop = 0;
    // With its place in the table.
    uint64_t Cost() const { return 64 + sizeof(*this) + frames.size() * sizeof(uint64_t); }
  };

  uint32_t pid_;
  InstanceId instance_;
  wire::RingHeader& header_;
  PythonFiles* files_;
  FairBudget::Account& memory_;
  bool has_program_ = false;
  bool has_python_ = false;
  std::unordered_map<uint32_t, uint32_t> codes_;  // the library's number -> the capture's
  ChargedTable<Stack> stacks_{memory_};
  std::vector<Frame> frames_;
};

}  // namespace xpu

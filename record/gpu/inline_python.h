// The Python stacks that one injected library takes inside its process (cupti_inject/wire.h).
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

// Messages are untrusted: Take... returns false if one is invalid.
class InlinePython {
 public:
  using Bytes = std::span<const std::byte>;

  // `header`: of the peer's ring. `files`: shared by all peers; nullptr if Python stacks are not
  // recorded. `memory`: of the process. All of them outlive this object.
  InlinePython(uint32_t pid, InstanceId instance, wire::RingHeader& header, PythonFiles* files,
               FairBudget::Account& memory)
      : pid_(pid), instance_(instance), header_(header), files_(files), memory_(memory) {}

  // Called for each file with code that the process has mapped, the program itself first. `bias`:
  // address minus link address.
  void ObserveFile(const MappedFile& file, uint64_t bias, EventSink& sink);
  bool TakeCode(Bytes message, EventSink& sink);
  bool TakeStack(Bytes message);
  // Returns the id for LaunchStack::python_stack of the numbered stack. Counts missing stacks.
  StackId Intern(uint32_t number, EventSink& sink);

 private:
  struct Stack {
    std::vector<uint64_t> frames;
    uint32_t stop = 0;
    // Estimated memory, including the entry in the table.
    uint64_t Cost() const { return 64 + sizeof(*this) + frames.size() * sizeof(uint64_t); }
  };

  uint32_t pid_;
  InstanceId instance_;
  wire::RingHeader& header_;
  PythonFiles* files_;
  FairBudget::Account& memory_;
  bool has_program_ = false;
  bool has_python_ = false;
  std::unordered_map<uint32_t, uint32_t> codes_;  // library's number -> capture's
  ChargedTable<Stack> stacks_{memory_};
  std::vector<Frame> frames_;
};

}  // namespace xpu

// What the interpreter of the calling thread is running: the walk of bpf/python.h, in the process.
// Nothing of Python is called, no lock is taken; memory is read as ReadablePages does.
#pragma once

#include <atomic>
#include <cstdint>

#include "bpf/python_layout.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/stack_ids.h"
#include "cupti_inject/stack_memory.h"
#include "cupti_inject/wire_stacks.h"

namespace xpu::inject {

class PythonStacks {
 public:
  // Both outlive this object. False: no memory.
  bool Open(const wire::RingHeader* header, RingProducer* ring, ScratchPool* scratch);
  void Close();

  // The number of the thread's stack (wire::PythonStackMessage); 0: it is not in Python.
  uint32_t Take(uint32_t tid, uint64_t now_ns, ThreadStack& own) {
    if (header_->has_python.load(std::memory_order_acquire) == 0) return 0;
    return TakeStack(tid, now_ns, own);
  }

 private:
  struct Walk;

  uint32_t TakeStack(uint32_t tid, uint64_t now_ns, ThreadStack& own);
  uint64_t FindThread(uint32_t tid, uint64_t now_ns, ThreadStack& own);
  uint64_t SearchThreads(uint32_t tid, uint64_t now_ns, ThreadStack& own);
  void LearnKey(uint64_t state);
  bool IsOfThread(uint64_t state, uint32_t tid, uint64_t now_ns);
  bool FirstFrame(uint64_t state, Walk& walk);
  void WalkFrames(Walk& walk);
  uint64_t FirstInstruction(const Walk& walk, uint64_t code);
  bool TakeFrame(Walk& walk, uint64_t* previous);
  bool LeaveCframe(Walk& walk);
  uint64_t HashOfContent(const Walk& walk);
  uint32_t NumberOf(const Walk& walk, uint64_t code);
  bool Define(const Walk& walk, uint32_t number);
  uint32_t CopyText(uint64_t text, std::byte* to, uint32_t limit, uint32_t* kind, uint64_t now_ns);
  uint32_t Send(const Walk& walk);
  bool SendFrames(uint32_t number, const Walk& walk);

  bool Read64(uint64_t address, uint64_t* value, uint64_t now_ns) {
    return pages_.Read(address, value, sizeof(*value), now_ns);
  }

  const wire::RingHeader* header_ = nullptr;
  RingProducer* ring_ = nullptr;
  ScratchPool* scratch_ = nullptr;
  ReadablePages pages_;
  StackIds codes_;
  StackIds stacks_;
  std::atomic<uint32_t> next_single_{wire::kFirstSingleStack};
  // pthread_key_t under which the interpreter keeps a thread's state, plus 1; 0: not known yet.
  std::atomic<uint32_t> key_{0};
};

}  // namespace xpu::inject

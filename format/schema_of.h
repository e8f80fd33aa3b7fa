// The struct of columns in capture.capnp of each event type: SchemaOf<Kernel> is schema::Kernel.
#pragma once

#include "format/capture.capnp.h"
#include "format/events.h"

namespace xpu {

// Every kind of event, for what is written out for each of them.
// clang-format off
#define XPU_EVENT_KINDS(X) \
  X(RecordingInfo)         \
  X(RecordingEnd)          \
  X(SampleSource)          \
  X(Loss)                  \
  X(ProcessEvent)          \
  X(Mapping)               \
  X(KernelSymbol)          \
  X(CpuSample)             \
  X(GpuProcess)            \
  X(ClockPair)             \
  X(CallbackName)          \
  X(ApiCall)               \
  X(LaunchStack)           \
  X(Kernel)                \
  X(Memcpy)                \
  X(Memset)                \
  X(Synchronization)       \
  X(GraphLaunch)           \
  X(Overhead)              \
  X(Device)                \
  X(RawActivity)           \
  X(GraphNode)             \
  X(Probe)                 \
  X(ProbeHit)              \
  X(SymbolSlice)           \
  X(GeneratedSymbol)       \
  X(NvtxEvent)             \
  X(MemoryOperation)       \
  X(RecordingSwitch)       \
  X(PythonCode)            \
  X(JitOperation)
// clang-format on

template <typename Event>
struct SchemaOfEvent;

#define XPU_SCHEMA_OF(event)    \
  template <>                   \
  struct SchemaOfEvent<event> { \
    using Type = schema::event; \
  };
XPU_EVENT_KINDS(XPU_SCHEMA_OF)
#undef XPU_SCHEMA_OF

template <typename Event>
using SchemaOf = typename SchemaOfEvent<Event>::Type;

}  // namespace xpu

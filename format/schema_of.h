// The struct of columns in capture.capnp of each event type: SchemaOf<Kernel> is schema::Kernel.
#pragma once

#include "format/capture.capnp.h"
#include "format/events.h"

namespace xpu {

template <typename Event>
struct SchemaOfEvent;

#define XPU_SCHEMA_OF(event)    \
  template <>                   \
  struct SchemaOfEvent<event> { \
    using Type = schema::event; \
  }
XPU_SCHEMA_OF(RecordingInfo);
XPU_SCHEMA_OF(RecordingEnd);
XPU_SCHEMA_OF(SampleSource);
XPU_SCHEMA_OF(Loss);
XPU_SCHEMA_OF(ProcessEvent);
XPU_SCHEMA_OF(Mapping);
XPU_SCHEMA_OF(KernelSymbol);
XPU_SCHEMA_OF(CpuSample);
XPU_SCHEMA_OF(GpuProcess);
XPU_SCHEMA_OF(ClockPair);
XPU_SCHEMA_OF(CallbackName);
XPU_SCHEMA_OF(ApiCall);
XPU_SCHEMA_OF(LaunchStack);
XPU_SCHEMA_OF(Kernel);
XPU_SCHEMA_OF(Memcpy);
XPU_SCHEMA_OF(Memset);
XPU_SCHEMA_OF(Synchronization);
XPU_SCHEMA_OF(GraphLaunch);
XPU_SCHEMA_OF(Overhead);
XPU_SCHEMA_OF(Device);
XPU_SCHEMA_OF(RawActivity);
XPU_SCHEMA_OF(GraphNode);
XPU_SCHEMA_OF(Probe);
XPU_SCHEMA_OF(ProbeHit);
XPU_SCHEMA_OF(SymbolSlice);
XPU_SCHEMA_OF(GeneratedSymbol);
XPU_SCHEMA_OF(NvtxEvent);
XPU_SCHEMA_OF(MemoryOperation);
XPU_SCHEMA_OF(RecordingSwitch);
XPU_SCHEMA_OF(PythonCode);
XPU_SCHEMA_OF(JitOperation);
#undef XPU_SCHEMA_OF

template <typename Event>
using SchemaOf = typename SchemaOfEvent<Event>::Type;

}  // namespace xpu

// cupti.h agrees with the offsets that readers of the file use.
#include <cstddef>

#include <cupti.h>

#include "cupti_raw.h"

namespace xpu::cupti_raw {

static_assert(offsetof(CUpti_ActivityKernel10, start) == record_offset::kKernelStart);
static_assert(offsetof(CUpti_ActivityKernel10, end) == record_offset::kKernelEnd);
static_assert(offsetof(CUpti_ActivityKernel10, deviceId) == record_offset::kKernelDeviceId);
static_assert(offsetof(CUpti_ActivityKernel10, contextId) == record_offset::kKernelContextId);
static_assert(offsetof(CUpti_ActivityKernel10, streamId) == record_offset::kKernelStreamId);
static_assert(offsetof(CUpti_ActivityKernel10, correlationId) ==
              record_offset::kKernelCorrelationId);
static_assert(offsetof(CUpti_ActivityKernel10, name) == record_offset::kKernelName);
static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == record_offset::kKernelGraphNodeId);
static_assert(offsetof(CUpti_ActivityKernel10, graphId) == record_offset::kKernelGraphId);
static_assert(offsetof(CUpti_ActivityAPI, cbid) == record_offset::kApiCbid);
static_assert(offsetof(CUpti_ActivityAPI, start) == record_offset::kApiStart);
static_assert(offsetof(CUpti_ActivityAPI, end) == record_offset::kApiEnd);
static_assert(offsetof(CUpti_ActivityAPI, threadId) == record_offset::kApiThreadId);
static_assert(offsetof(CUpti_ActivityAPI, correlationId) == record_offset::kApiCorrelationId);
static_assert(offsetof(CUpti_ActivityMemcpy6, copyKind) == record_offset::kMemcpyCopyKind);
static_assert(offsetof(CUpti_ActivityMemcpy6, bytes) == record_offset::kMemcpyBytes);
static_assert(offsetof(CUpti_ActivityMemcpy6, start) == record_offset::kMemcpyStart);
static_assert(offsetof(CUpti_ActivityMemcpy6, end) == record_offset::kMemcpyEnd);
static_assert(offsetof(CUpti_ActivityMemcpy6, streamId) == record_offset::kMemcpyStreamId);
static_assert(offsetof(CUpti_ActivityMemcpy6, correlationId) ==
              record_offset::kMemcpyCorrelationId);
static_assert(offsetof(CUpti_ActivityMemset4, bytes) == record_offset::kMemsetBytes);
static_assert(offsetof(CUpti_ActivityMemset4, start) == record_offset::kMemsetStart);
static_assert(offsetof(CUpti_ActivityMemset4, end) == record_offset::kMemsetEnd);
static_assert(offsetof(CUpti_ActivityMemset4, streamId) == record_offset::kMemsetStreamId);
static_assert(offsetof(CUpti_ActivityMemset4, correlationId) ==
              record_offset::kMemsetCorrelationId);
static_assert(offsetof(CUpti_ActivitySynchronization2, type) == record_offset::kSyncType);
static_assert(offsetof(CUpti_ActivitySynchronization2, start) == record_offset::kSyncStart);
static_assert(offsetof(CUpti_ActivitySynchronization2, end) == record_offset::kSyncEnd);
static_assert(offsetof(CUpti_ActivitySynchronization2, correlationId) ==
              record_offset::kSyncCorrelationId);
static_assert(offsetof(CUpti_ActivityOverhead3, overheadKind) == record_offset::kOverheadKind);
static_assert(offsetof(CUpti_ActivityOverhead3, start) == record_offset::kOverheadStart);
static_assert(offsetof(CUpti_ActivityOverhead3, end) == record_offset::kOverheadEnd);
static_assert(offsetof(CUpti_ActivityGraphTrace2, correlationId) ==
              record_offset::kGraphCorrelationId);
static_assert(offsetof(CUpti_ActivityGraphTrace2, start) == record_offset::kGraphStart);
static_assert(offsetof(CUpti_ActivityGraphTrace2, end) == record_offset::kGraphEnd);
static_assert(offsetof(CUpti_ActivityGraphTrace2, graphId) == record_offset::kGraphGraphId);

}  // namespace xpu::cupti_raw

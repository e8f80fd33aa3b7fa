// Asserts nvtx_abi.h against the toolkit's NVTX headers. Compiled where a toolkit is found;
// produces no code.
#include <cstddef>
#include <cstdint>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>

#include "cupti_inject/nvtx_abi.h"

namespace xpu::nvtx {
namespace {

#define SAME(ours, theirs) static_assert(static_cast<int64_t>(ours) == int64_t{theirs})

SAME(kTableCallbacks, NVTX_ETID_CALLBACKS);
SAME(kModuleCore, NVTX_CB_MODULE_CORE);
SAME(kModuleDomains, NVTX_CB_MODULE_CORE2);
SAME(kMarkEx, NVTX_CBID_CORE_MarkEx);
SAME(kRangeStartEx, NVTX_CBID_CORE_RangeStartEx);
SAME(kRangeEnd, NVTX_CBID_CORE_RangeEnd);
SAME(kRangePushEx, NVTX_CBID_CORE_RangePushEx);
SAME(kRangePushW, NVTX_CBID_CORE_RangePushW);
SAME(kRangePop, NVTX_CBID_CORE_RangePop);
SAME(kNameOsThreadW, NVTX_CBID_CORE_NameOsThreadW);
SAME(kDomainMarkEx, NVTX_CBID_CORE2_DomainMarkEx);
SAME(kDomainRangePushEx, NVTX_CBID_CORE2_DomainRangePushEx);
SAME(kDomainRegisterStringA, NVTX_CBID_CORE2_DomainRegisterStringA);
SAME(kDomainCreateW, NVTX_CBID_CORE2_DomainCreateW);
SAME(kDomainDestroy, NVTX_CBID_CORE2_DomainDestroy);
SAME(kColorArgb, NVTX_COLOR_ARGB);
SAME(kMessageText, NVTX_MESSAGE_TYPE_ASCII);
SAME(kMessageWide, NVTX_MESSAGE_TYPE_UNICODE);
SAME(kMessageRegistered, NVTX_MESSAGE_TYPE_REGISTERED);
SAME(kPayloadUint64, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64);
SAME(kPayloadUint32, NVTX_PAYLOAD_TYPE_UNSIGNED_INT32);
SAME(kPayloadFloat, NVTX_PAYLOAD_TYPE_FLOAT);
SAME(kNoTracking, NVTX_NO_PUSH_POP_TRACKING);

#define AT(our_field, their_field) \
  static_assert(offsetof(Attributes, our_field) == offsetof(nvtxEventAttributes_t, their_field))
AT(size, size);
AT(category, category);
AT(color_type, colorType);
AT(color, color);
AT(payload_type, payloadType);
AT(payload, payload);
AT(message_type, messageType);
AT(message, message);
static_assert(sizeof(Attributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(Callbacks, get_functions) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));

}  // namespace
}  // namespace xpu::nvtx

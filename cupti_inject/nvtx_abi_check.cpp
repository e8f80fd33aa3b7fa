// Asserts nvtx_abi.h against the toolkit's NVTX headers. Compiled where a toolkit is found;
// produces no code.
#include <cstddef>
#include <cstdint>

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

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
SAME(kPayloadExtended, NVTX_PAYLOAD_TYPE_EXT);
SAME(kModulePayload, NVTX_EXT_PAYLOAD_MODULEID);
SAME(kSchemaRegister, NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
SAME(kEnumRegister, NVTX3EXT_CBID_nvtxPayloadEnumRegister);
SAME(kMarkPayload, NVTX3EXT_CBID_nvtxMarkPayload);
SAME(kRangePushPayload, NVTX3EXT_CBID_nvtxRangePushPayload);
SAME(kRangePopPayload, NVTX3EXT_CBID_nvtxRangePopPayload);
SAME(kRangeStartPayload, NVTX3EXT_CBID_nvtxRangeStartPayload);
SAME(kRangeEndPayload, NVTX3EXT_CBID_nvtxRangeEndPayload);
SAME(kSchemaHasEntries, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES);
SAME(kSchemaHasEntryCount, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
SAME(kSchemaHasSize, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE);
SAME(kSchemaHasId, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
SAME(kEnumHasEntries, NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES);
SAME(kEnumHasEntryCount, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES);
SAME(kEnumHasSize, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE);
SAME(kEnumHasId, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID);

#define AT(our_field, their_field) \
  static_assert(offsetof(Attributes, our_field) == offsetof(nvtxEventAttributes_t, their_field))
AT(size, size);
AT(category, category);
AT(color_type, colorType);
AT(color, color);
AT(payload_type, payloadType);
AT(payload_count, reserved0);
AT(payload, payload);
AT(message_type, messageType);
AT(message, message);
static_assert(sizeof(Attributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(Callbacks, get_functions) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));

#define PLACE(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))
PLACE(ExtensionSegment, slot_count, nvtxExtModuleSegment_t, slotCount);
PLACE(ExtensionSegment, slots, nvtxExtModuleSegment_t, functionSlots);
PLACE(ExtensionModule, module, nvtxExtModuleInfo_t, moduleId);
PLACE(ExtensionModule, segments, nvtxExtModuleInfo_t, segments);
PLACE(PayloadData, size, nvtxPayloadData_t, size);
PLACE(PayloadData, payload, nvtxPayloadData_t, payload);
static_assert(sizeof(SchemaEntry) == sizeof(nvtxPayloadSchemaEntry_t));
PLACE(SchemaEntry, type, nvtxPayloadSchemaEntry_t, type);
PLACE(SchemaEntry, name, nvtxPayloadSchemaEntry_t, name);
PLACE(SchemaEntry, array_length, nvtxPayloadSchemaEntry_t, arrayOrUnionDetail);
PLACE(SchemaEntry, offset, nvtxPayloadSchemaEntry_t, offset);
PLACE(SchemaAttributes, entries, nvtxPayloadSchemaAttr_t, entries);
PLACE(SchemaAttributes, entry_count, nvtxPayloadSchemaAttr_t, numEntries);
PLACE(SchemaAttributes, size, nvtxPayloadSchemaAttr_t, payloadStaticSize);
PLACE(SchemaAttributes, schema, nvtxPayloadSchemaAttr_t, schemaId);
static_assert(sizeof(EnumEntry) == sizeof(nvtxPayloadEnum_t));
PLACE(EnumEntry, value, nvtxPayloadEnum_t, value);
PLACE(EnumAttributes, entries, nvtxPayloadEnumAttr_t, entries);
PLACE(EnumAttributes, entry_count, nvtxPayloadEnumAttr_t, numEntries);
PLACE(EnumAttributes, size, nvtxPayloadEnumAttr_t, sizeOfEnum);
PLACE(EnumAttributes, schema, nvtxPayloadEnumAttr_t, schemaId);

}  // namespace
}  // namespace xpu::nvtx

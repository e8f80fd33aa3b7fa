// The little of NVTX's binary interface that xpu uses: how a tool attaches to the copy of NVTX in a
// program, and what its functions are given. Written from NVIDIA's headers with names of our own;
// where a toolkit is found, nvtx_abi_check.cpp asserts it against them. x86-64 Linux.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xpu::nvtx {

inline constexpr uint32_t kTableCallbacks = 1;  // what GetExportTable is asked for

using FunctionPointer = void (*)();

struct Callbacks {
  size_t struct_size;
  // The places of the functions of a module, by their ids: a null where there is none. Returns 1
  // for success.
  int (*get_functions)(uint32_t module, FunctionPointer*** table, uint32_t* size);
};
using GetExportTable = const void* (*)(uint32_t table);

// Modules, and the ids of the functions in them.
inline constexpr uint32_t kModuleCore = 1;
inline constexpr uint32_t kModuleDomains = 5;

enum Core : uint32_t {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameCategoryA,
  kNameCategoryW,
  kNameOsThreadA,
  kNameOsThreadW,
};

enum Domains : uint32_t {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainResourceDestroy,
  kDomainNameCategoryA,
  kDomainNameCategoryW,
  kDomainRegisterStringA,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW,
  kDomainDestroy,
};

inline constexpr int32_t kColorArgb = 1;
inline constexpr int32_t kMessageText = 1;
inline constexpr int32_t kMessageWide = 2;
inline constexpr int32_t kMessageRegistered = 3;
inline constexpr int32_t kPayloadUint64 = 1;
inline constexpr int32_t kPayloadUint32 = 4;  // this and the next ones have 32 bits
inline constexpr int32_t kPayloadFloat = 6;   // the last one
inline constexpr int32_t kPayloadExtended = static_cast<int32_t>(0xDFBD0009);  // PayloadData
inline constexpr int kNoTracking = -2;  // in place of a range's level

// A mark's or range's name, color and payload.
struct Attributes {
  uint16_t version;
  uint16_t size;  // of what the program knows of this struct
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t payload_count;  // of kPayloadExtended
  uint64_t payload;       // of kPayloadExtended the address of the first PayloadData
  int32_t message_type;
  const void* message;  // a text, a wide one, or what registering one returned
};

// ---- the payload extension: InitializeInjectionNvtxExtension is given a module with the places of
// its functions, by their ids

inline constexpr uint16_t kModulePayload = 2;

enum Payloads : uint32_t {
  kSchemaRegister = 0,
  kEnumRegister,
  kMarkPayload,
  kRangePushPayload,
  kRangePopPayload,
  kRangeStartPayload,
  kRangeEndPayload,
};

struct ExtensionSegment {
  size_t id;
  size_t slot_count;
  intptr_t* slots;
};

struct ExtensionModule {
  uint16_t version;
  uint16_t struct_size;
  uint16_t module;
  uint16_t compatibility;
  size_t segment_count;
  ExtensionSegment* segments;
};

struct PayloadData {
  uint64_t schema;
  size_t size;
  const void* payload;
};

struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t array_length;
  uint64_t offset;
  const void* semantics;
  const void* reserved;
};

// Bits of SchemaAttributes::fields, for those that may be missing.
inline constexpr uint64_t kSchemaHasEntries = 1 << 4;
inline constexpr uint64_t kSchemaHasEntryCount = 1 << 5;
inline constexpr uint64_t kSchemaHasSize = 1 << 6;
inline constexpr uint64_t kSchemaHasId = 1 << 8;

struct SchemaAttributes {
  uint64_t fields;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t entry_count;
  size_t size;
  size_t alignment;
  uint64_t schema;
};

inline constexpr uint64_t kEnumHasEntries = 1 << 2;
inline constexpr uint64_t kEnumHasEntryCount = 1 << 3;
inline constexpr uint64_t kEnumHasSize = 1 << 4;
inline constexpr uint64_t kEnumHasId = 1 << 5;

struct EnumEntry {
  const char* name;
  uint64_t value;
  int8_t is_flag;
};

struct EnumAttributes {
  uint64_t fields;
  const char* name;
  const EnumEntry* entries;
  size_t entry_count;
  size_t size;
  uint64_t schema;
};

// Ids of schemas from here on are the tool's to give; smaller ones are the program's.
inline constexpr uint64_t kFirstDynamicSchema = uint64_t{1} << 32;

}  // namespace xpu::nvtx

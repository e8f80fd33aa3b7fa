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
inline constexpr int kNoTracking = -2;        // in place of a range's level

// What a mark or a range says of itself.
struct Attributes {
  uint16_t version;
  uint16_t size;  // of what the program knows of this struct
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t reserved;
  uint64_t payload;
  int32_t message_type;
  const void* message;  // a text, a wide one, or what registering one returned
};

}  // namespace xpu::nvtx

// Activities as CUPTI lays them out, and CUPTI's clock.
#pragma once

#include <cstdint>
#include <vector>

#include <cupti.h>

#include "../hooks.h"

namespace xpu::fake_cupti {

// A kind that no CUPTI has, for XPU_FAKE_UNKNOWN_KIND_EVERY.
inline constexpr uint32_t kUnknownKind = 200;
inline constexpr uint32_t kUnknownKindBytes = 72;

struct Record {
  std::vector<uint8_t> bytes;  // times and name pointer are filled in by Finish
  uint32_t kind = 0;
  uint64_t finish_ns = 0;  // CLOCK_MONOTONIC; 0: it has no end to wait for
  uint64_t start = 0;      // CUPTI's clock
  uint64_t end = 0;
  const char* name = nullptr;  // lives as long as the process
  uint32_t context_id = 0;     // of work on the device; 0: of something else
};

// 0: no such kind here.
uint32_t RecordSize(uint32_t kind);

uint64_t CuptiTime(uint64_t monotonic_ns);

Record MakeRecord(const fake_cuda::Activity& activity, uint32_t thread_id);
Record MakeApiRecord(const fake_cuda::ApiCall& call, uint32_t thread_id);
Record MakeUnknownRecord();

// Writes times and name pointer into `bytes`, the record's place in a buffer.
void Finish(const Record& record, uint64_t start, uint64_t end, const char* name, uint8_t* bytes);

// The offset of the first time of this kind of record; 0: it has none.
uint32_t TimeOffset(uint32_t kind);
bool IsKernel(uint32_t kind);

// A copy that is never freed.
const char* Intern(const char* text);

}  // namespace xpu::fake_cupti

// One call that makes the GPU work, and what became of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/model/huge_pages.h"
#include "report/model/model.h"
#include "report/trace/api_names.h"
#include "report/trace/match.h"

namespace xpu {

// The kinds of GPU work that calls start.
enum class WorkKind : uint8_t { kKernel, kMemcpy, kMemset, kGraph, kSynchronization };

// How far a stack may lie before its call, and fitted GPU times before their launch: more than any
// error of the clocks, less than any wrap of the ids (2^32 launches take hours).
inline constexpr uint64_t kToleranceNs = 1'000'000;

// One call that makes the GPU work: the call, its stack, or both.
struct Launch {
  InstanceId instance;
  uint64_t kernel = 0;    // ProbeHit::kernel
  uint64_t start_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint32_t correlation_id = 0;
  uint32_t callback_id = 0;
  StackId stack;
  StackId python_stack;      // LaunchStack::python_stack
  uint32_t pid = 0;          // as the recorder sees it, 0: unknown
  uint32_t tid = 0;          // likewise
  uint32_t program_tid = 0;  // as the program sees it, 0: unknown
  int32_t return_value = 0;
  uint32_t graph_nodes = 0;  // nodes of CUDA graphs that it made
  uint32_t probe = 0;        // Probe::probe when nothing but a probe saw it: it has no id
  uint32_t work_count = 0;   // GPU records matched to it
  ApiDomain domain = ApiDomain::kDriver;
  ApiKind kind = ApiKind::kOther;
  uint8_t stack_flags = 0;
  MatchKind stack_match : 4 = MatchKind::kNone;
  bool has_call : 1 = false;  // else start_ns = end_ns = the time of the stack
  bool has_stack : 1 = false;
};
// There are as many as calls.
static_assert(sizeof(Launch) == 80);

// What became of a launch.
enum class LaunchStatus : uint8_t {
  kNoLaunch,   // a call after which no kernel or graph record must come
  kMatched,    // a record came
  kProbed,     // recorded without GPU records
  kFailed,     // the call returned an error
  kCaptured,   // it went into a CUDA graph and started nothing
  kUnmatched,  // it owes a record
};
LaunchStatus LaunchStatusOf(const Launch& launch);
inline bool IsPending(const Launch& launch) {
  return LaunchStatusOf(launch) == LaunchStatus::kUnmatched;
}

ApiNameId ApiNameIdOf(const ApiNames& names, const Launch& launch);
// "cudaLaunchKernel"
const std::string& ApiNameOf(const ApiNames& names, const Launch& launch);

// One instance of the injected library.
struct CudaProcess {
  uint32_t pid = 0;            // as the recorder sees it, 0: unknown
  uint32_t namespace_pid = 0;  // as it sees itself
  bool has_work = false;       // GPU records came from it
};

using LaunchList = std::vector<Launch, HugePageAllocator<Launch>>;

}  // namespace xpu

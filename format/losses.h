// The loss ledger's vocabulary: every place that can drop, cut or give up has one row here.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace xpu {

enum class Severity : uint8_t {
  kNote,     // nothing is missing from the totals
  kPartial,  // events are there but poorer: no stack, no time
  kLost,     // events are missing
};

enum class LossKind : uint8_t {
  // kernel side
  kSampleRingFull,
  kLaunchRingFull,
  kLaunchStackMissing,
  kPerfRecordsLost,
  kPrivilegesGained,
  kProcessNotFollowed,
  kStackCut,
  kStackUnreadable,
  kStackNoRule,
  kStackRuleUnsupported,
  kStackBadReturn,
  kStackStuck,
  kStackNotCalled,
  kUnwindTableNotReady,
  kUnwindTableFailed,
  kPythonNotWalked,
  kPythonCut,
  kPythonUnreadable,
  kPythonCodeMissing,
  // inside the program
  kWireRingFull,
  kCallLost,
  kWireTorn,
  kWireInvalid,
  kCuptiDropped,
  kCuptiNotDelivered,
  kProcessNotReached,
  kInjectionUnknown,
  kInjectDormant,
  kOtherProfilerRefused,
  kProcessOutlived,
  kGpuFault,
  kProbeNotPlaced,
  kProbeRingFull,
  // in the recorder
  kWriteFailed,
  kOutputStalled,
  kKernelSymbolsHidden,
  kSymbolsNotStored,
  // found by the report
  kInvalidTime,
  kBlockDamaged,
  kFileCut,
  kReferenceLost,
  // in the recorder; later, at the end: numbers do not change
  kGeneratedCodeCut,
  kProcessMemoryFull,
  kMappingsDropped,
  kLinesNotStored,
  kOffCpuRingFull,
  kOffCpuNotSummed,
  kOffCpuWakersDropped,
  kOffCpuThreadsMissed,
  kOffCpuEventsMissed,
  kGpuMetricsRefused,
  kGpuSamplesLost,
  kGpuNotSampled,
  kGpuSamplesDropped,
  kGpuCodeMissing,
  kAllocatorUnknown,
  kSourcesNotStored,
  kGpuClocksRefused,
  kOldCupti,
  kGeneratedCodeOutdated,
  kMovedCodeUnknown,
  kHangTimesLost,
  kGpuNotFinished,
  kThreadsNotListed,
  kCount,
};

struct LossInfo {
  LossKind kind;
  std::string_view name;  // stored in captures: never renamed
  Severity severity;
  std::string_view what;    // one line: what is missing; a pattern of ForCount
  std::string_view advice;  // one sentence: what to do; may be empty
};

// True for stacks that are incomplete, and why: they end before their outermost frame. No event is
// missing or without a stack, so these do not make a recording incomplete.
bool IsAboutStacks(LossKind kind);

// Rows in the order of LossKind.
std::span<const LossInfo> LossTable();
const LossInfo& InfoOf(LossKind kind);
// nullptr: written by a newer version.
const LossInfo* FindLoss(std::string_view name);

}  // namespace xpu

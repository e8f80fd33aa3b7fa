#include "record/checks/limits_check.h"

#include <algorithm>
#include <string_view>

#include "format/base/text.h"
#include "record/base/size_text.h"
#include "record/kernel/own_limits.h"
#include "record/kernel/perf_event.h"

namespace xpu {
namespace {

// What was open at once in recordings of all kinds, but for what each CPU takes.
constexpr uint64_t kDescriptors = 24;
constexpr uint64_t kDescriptorsOfBpf = 56;
constexpr uint64_t kDescriptorsOfProbes = 80;
constexpr uint64_t kDescriptorsOfRings = 16;  // of one CUDA process
// BPF maps and rings, tables, threads: half of it was mapped in a recording of a small program.
constexpr uint64_t kLeastAddressBytes = uint64_t{512} << 20;
// A recording of a small program took 60 MiB that are not shared, those of large ones more.
constexpr uint64_t kLeastDataBytes = uint64_t{128} << 20;
// The smallest ring of a CUDA process, and what lies around it.
constexpr uint64_t kLeastFileBytes = uint64_t{2} << 20;

uint64_t NeededDescriptors(const RecordOptions& options, bool uses_bpf) {
  const bool has_probes = !options.probes.empty() || (options.record_gpu && !options.inject);
  const uint64_t events = options.record_cpu ? std::max<size_t>(options.cpu_events.size(), 1) : 0;
  const uint64_t others = has_probes ? kDescriptorsOfProbes
                          : uses_bpf ? kDescriptorsOfBpf
                                     : kDescriptors;
  const uint64_t rings = options.record_gpu && options.inject ? kDescriptorsOfRings : 0;
  return others + rings + (1 + 2 * events) * OnlineCpus().size();
}

Error TooLittle(std::string_view limit, std::string_view of_what, uint64_t left, uint64_t needed,
                std::string_view option) {
  return Error{ErrorKind::kSystem,
               Format("{}: {} of {} is left, but a recording needs {}", limit, SizeText(left),
                      of_what, SizeText(needed)),
               Format("ulimit {0} unlimited; to limit only the program: xpu-record sh -c 'ulimit "
                      "{0} N; exec PROGRAM'",
                      option)};
}

}  // namespace

Status CheckOwnLimits(const RecordOptions& options, bool uses_bpf) {
  const uint64_t descriptors = AllowedDescriptors();
  const uint64_t needed = NeededDescriptors(options, uses_bpf);
  if (descriptors < needed) {
    return Error{
        ErrorKind::kSystem,
        Format("RLIMIT_NOFILE: {} descriptors are allowed, but this recording needs about {}",
               descriptors, needed),
        "ulimit -n 1024; to limit only the program: xpu-record sh -c "
        "'ulimit -n N; exec PROGRAM'"};
  }
  if (const uint64_t left = FreeAddressBytes(); left < kLeastAddressBytes) {
    return TooLittle("RLIMIT_AS", "address space", left, kLeastAddressBytes, "-v");
  }
  if (const uint64_t left = FreeDataBytes(); left < kLeastDataBytes) {
    return TooLittle("RLIMIT_DATA", "memory", left, kLeastDataBytes, "-d");
  }
  if (options.record_gpu && options.inject && LargestFileBytes() < kLeastFileBytes) {
    return Error{ErrorKind::kSystem,
                 Format("RLIMIT_FSIZE: files of {} are allowed, but the memory shared with a CUDA "
                        "program takes {}",
                        SizeText(LargestFileBytes()), SizeText(kLeastFileBytes)),
                 "ulimit -f unlimited, or --cpu-only; to limit only the program: xpu-record sh -c "
                 "'ulimit -f N; exec PROGRAM'"};
  }
  return Ok();
}

std::string OwnLimitsText() {
  const auto some = [](uint64_t bytes) {
    return bytes == UINT64_MAX ? "any" : SizeText(bytes) + " of";
  };
  const uint64_t descriptors = AllowedDescriptors();
  const uint64_t file_bytes = LargestFileBytes();
  return Format("{} descriptors, {} address space, {} memory, files of {}",
                descriptors == UINT64_MAX ? "any number of" : Format("{}", descriptors),
                some(FreeAddressBytes()), some(FreeDataBytes()),
                file_bytes == UINT64_MAX ? "any size" : "up to " + SizeText(file_bytes));
}

}  // namespace xpu

#include "record/machine/own_limits.h"

#include <algorithm>
#include <cstdlib>

#include <sys/resource.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/cpu/perf_event.h"
#include "record/output/summary.h"

namespace xpu {
namespace {

// What was open at once in recordings of all kinds, but for what each CPU takes.
constexpr uint64_t kDescriptors = 24;
constexpr uint64_t kDescriptorsOfBpf = 56;
constexpr uint64_t kDescriptorsOfProbes = 80;
constexpr uint64_t kDescriptorsOfRings = 16;  // of one CUDA process
// BPF maps and rings, tables, threads: half of it was mapped in a recording of a small program.
constexpr uint64_t kLeastAddressBytes = uint64_t{512} << 20;
// The smallest ring of a CUDA process, and what lies around it.
constexpr uint64_t kLeastFileBytes = uint64_t{2} << 20;

uint64_t SoftLimit(__rlimit_resource resource) {
  rlimit limit{};
  return ::getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

uint64_t NeededDescriptors(const RecordOptions& options, bool uses_bpf) {
  const bool has_probes = !options.probes.empty() || (options.record_gpu && !options.inject);
  const uint64_t events = options.record_cpu ? std::max<size_t>(options.cpu_events.size(), 1) : 0;
  const uint64_t others = has_probes ? kDescriptorsOfProbes
                          : uses_bpf ? kDescriptorsOfBpf
                                     : kDescriptors;
  const uint64_t rings = options.record_gpu && options.inject ? kDescriptorsOfRings : 0;
  return others + rings + (1 + 2 * events) * OnlineCpus().size();
}

}  // namespace

uint64_t FreeAddressBytes() {
  const uint64_t limit = SoftLimit(RLIMIT_AS);
  if (limit == RLIM_INFINITY) return UINT64_MAX;
  const auto pages = ReadFile("/proc/self/statm");
  const uint64_t used = pages.ok() ? std::strtoull(pages.value().c_str(), nullptr, 10) *
                                         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))
                                   : 0;
  return limit - std::min(limit, used);
}

uint64_t LargestFileBytes() {
  const uint64_t limit = SoftLimit(RLIMIT_FSIZE);
  return limit == RLIM_INFINITY ? UINT64_MAX : limit;
}

Status CheckOwnLimits(const RecordOptions& options, bool uses_bpf) {
  const uint64_t descriptors = SoftLimit(RLIMIT_NOFILE);
  const uint64_t needed = NeededDescriptors(options, uses_bpf);
  if (descriptors < needed) {
    return Error{ErrorKind::kSystem,
                 Format("RLIMIT_NOFILE: {} descriptors are allowed, and this recording needs about "
                        "{}",
                        descriptors, needed),
                 "ulimit -n 1024; a limit for the program alone is set in it: xpu-record sh -c "
                 "'ulimit -n N; exec PROGRAM'"};
  }
  const uint64_t free_bytes = FreeAddressBytes();
  if (free_bytes < kLeastAddressBytes) {
    return Error{
        ErrorKind::kSystem,
        Format("RLIMIT_AS: {} of address space are left, and a recording needs {}",
               SizeText(free_bytes), SizeText(kLeastAddressBytes)),
        "ulimit -v unlimited; a limit for the program alone is set in it: xpu-record sh -c "
        "'ulimit -v N; exec PROGRAM'"};
  }
  if (options.record_gpu && options.inject && LargestFileBytes() < kLeastFileBytes) {
    return Error{
        ErrorKind::kSystem,
        Format("RLIMIT_FSIZE: files of {} are allowed, and what is shared with a CUDA program "
               "takes {}",
               SizeText(LargestFileBytes()), SizeText(kLeastFileBytes)),
        "ulimit -f unlimited, or --cpu-only; a limit for the program alone is set in it: "
        "xpu-record sh -c 'ulimit -f N; exec PROGRAM'"};
  }
  return Ok();
}

std::string OwnLimitsText() {
  const uint64_t free_bytes = FreeAddressBytes();
  const uint64_t descriptors = SoftLimit(RLIMIT_NOFILE);
  const uint64_t file_bytes = LargestFileBytes();
  return Format("{} descriptors, {} address space, files of {}",
                descriptors == RLIM_INFINITY ? "any number of" : Format("{}", descriptors),
                free_bytes == UINT64_MAX ? "any" : SizeText(free_bytes) + " of",
                file_bytes == UINT64_MAX ? "any size" : "up to " + SizeText(file_bytes));
}

}  // namespace xpu

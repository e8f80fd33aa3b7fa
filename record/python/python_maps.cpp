#include "record/python/python_maps.h"

#include <iterator>

#include "record/kernel/bpf_support.h"

namespace xpu {
namespace {

constexpr char kProcesses[] = "python_processes";
constexpr char kThreads[] = "python_threads";
constexpr char kSent[] = "python_codes_sent";
constexpr char kCodes[] = "python_codes";
constexpr const char* kMapNames[] = {kProcesses, kThreads, kSent, kCodes};

constexpr uint32_t kMaxProcesses = 16u << 10;
constexpr uint32_t kMaxThreads = 16u << 10;
constexpr uint32_t kMaxCodeKeys = 64u << 10;
constexpr uint32_t kRingBytes = 4u << 20;

}  // namespace

Result<PythonMaps> PythonMaps::Create() {
  PythonMaps maps;
  XPU_ASSIGN_OR_RETURN(maps.processes_, CreateMap(BPF_MAP_TYPE_HASH, kProcesses, sizeof(uint32_t),
                                                  sizeof(xpu_python_process), kMaxProcesses));
  XPU_ASSIGN_OR_RETURN(maps.threads_,
                       CreateMap(BPF_MAP_TYPE_LRU_HASH, kThreads, sizeof(xpu_thread_key),
                                 sizeof(xpu_python_thread), kMaxThreads));
  XPU_ASSIGN_OR_RETURN(maps.sent_, CreateMap(BPF_MAP_TYPE_LRU_HASH, kSent,
                                             sizeof(xpu_python_code_key), 1, kMaxCodeKeys));
  XPU_ASSIGN_OR_RETURN(maps.codes_, CreateMap(BPF_MAP_TYPE_RINGBUF, kCodes, 0, 0, kRingBytes));
  return maps;
}

Status PythonMaps::ShareWith(bpf_object* object) const {
  const SharedMap maps[] = {{kProcesses, processes_.get()},
                            {kThreads, threads_.get()},
                            {kSent, sent_.get()},
                            {kCodes, codes_.get()}};
  static_assert(std::size(maps) == std::size(kMapNames));
  return ShareMaps(object, maps);
}

Status PythonMaps::Shrink(bpf_object* object) { return ShrinkMaps(object, kMapNames); }

Status PythonMaps::SetProcess(uint32_t pid, const xpu_python_process& process) {
  const int result = bpf_map_update_elem(processes_.get(), &pid, &process, BPF_ANY);
  return result == 0 ? Ok() : Status(BpfError("BPF map python_processes", result));
}

void PythonMaps::Forget(uint32_t pid) { bpf_map_delete_elem(processes_.get(), &pid); }

}  // namespace xpu

#include "record/kernel/bpf_support.h"

#include <cerrno>
#include <cstdio>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

int PrintWarnings(libbpf_print_level level, const char* pattern, va_list arguments) {
  return level == LIBBPF_WARN ? std::vfprintf(stderr, pattern, arguments) : 0;
}

int PassOn(void* visit, void* data, size_t size) {
  (*static_cast<BpfRing::Visit*>(visit))({static_cast<const std::byte*>(data), size});
  return 0;
}

}  // namespace

void SetBpfMessages(bool verbose) { libbpf_set_print(verbose ? PrintWarnings : nullptr); }

Error BpfError(std::string_view what, int result) {
  std::string hint = "xpu-record --check shows what this machine lacks; -v prints the kernel's log";
  if (result == -EPERM || result == -EACCES) {
    hint = "run as root, or with the capabilities CAP_BPF and CAP_PERFMON";
  }
  return SystemError(std::string(what), -result, std::move(hint));
}

Result<PidNamespace> OwnPidNamespace() {
  struct stat info {};
  if (::stat("/proc/self/ns/pid", &info) != 0) {
    return SystemError("/proc/self/ns/pid: stat", errno,
                       "mount /proc here: mount -t proc proc /proc");
  }
  return PidNamespace{info.st_dev, info.st_ino};
}

std::array<uint64_t, XPU_COUNTERS> ReadCounters(const bpf_map* counters) {
  std::array<uint64_t, XPU_COUNTERS> sums{};
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return sums;
  std::vector<uint64_t> values(static_cast<size_t>(cpus));
  for (uint32_t counter = 0; counter < XPU_COUNTERS; ++counter) {
    if (bpf_map__lookup_elem(counters, &counter, sizeof(counter), values.data(),
                             values.size() * sizeof(uint64_t), 0) != 0) {
      continue;
    }
    for (uint64_t value : values) sums[counter] += value;
  }
  return sums;
}

Result<UniqueFd> CreateMap(bpf_map_type type, const char* name, uint32_t key_bytes,
                           uint32_t value_bytes, uint32_t entries, uint32_t flags, int inner_fd) {
  LIBBPF_OPTS(bpf_map_create_opts, options);
  options.map_flags = flags;
  options.inner_map_fd = static_cast<uint32_t>(inner_fd);
  const int fd = bpf_map_create(type, name, key_bytes, value_bytes, entries, &options);
  if (fd < 0) return BpfError(Format("BPF map {}", name), fd);
  return UniqueFd(fd);
}

Status ShareMaps(bpf_object* object, std::span<const SharedMap> maps) {
  for (const SharedMap& shared : maps) {
    bpf_map* map = bpf_object__find_map_by_name(object, shared.name);
    if (int result = bpf_map__reuse_fd(map, shared.fd); result != 0) {
      return BpfError(Format("BPF map {}: share", shared.name), result);
    }
  }
  return Ok();
}

Status ShrinkMaps(bpf_object* object, std::span<const char* const> names) {
  for (const char* name : names) {
    bpf_map* map = bpf_object__find_map_by_name(object, name);
    const bool is_ring = bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF;
    const auto entries = is_ring ? static_cast<uint32_t>(::getpagesize()) : 1;
    if (int result = bpf_map__set_max_entries(map, entries); result != 0) {
      return BpfError(Format("BPF map {}: shrink", name), result);
    }
  }
  return Ok();
}

Result<BpfRing> BpfRing::Open(int ring_fd, Visit visit) {
  BpfRing opened;
  opened.visit_ = std::make_unique<Visit>(std::move(visit));
  opened.ring_.reset(ring_buffer__new(ring_fd, PassOn, opened.visit_.get(), nullptr));
  if (!opened.ring_) return BpfError("mapping a BPF ring buffer", -errno);
  return opened;
}

}  // namespace xpu

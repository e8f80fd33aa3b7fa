#include "record/kernel/probe_links.h"

#include <cerrno>
#include <cstring>
#include <iterator>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/kernel_features.h"

namespace xpu {
namespace {

// Values of enum bpf_attach_type that the headers of older distributions lack.
constexpr auto kUprobeMulti = static_cast<bpf_attach_type>(48);    // BPF_TRACE_UPROBE_MULTI
constexpr auto kUprobeSession = static_cast<bpf_attach_type>(57);  // BPF_TRACE_UPROBE_SESSION

constexpr uint32_t kMultiReturn = 1;  // BPF_F_UPROBE_MULTI_RETURN

// The part of union bpf_attr that BPF_LINK_CREATE reads for uprobe_multi. The headers of older
// distributions lack it.
struct MultiLinkAttributes {
  uint32_t program_fd;
  uint32_t target_fd;
  uint32_t attach_type;
  uint32_t link_flags;
  uint64_t path;
  uint64_t offsets;
  uint64_t reference_counters;
  uint64_t cookies;
  uint32_t count;
  uint32_t flags;
  uint32_t pid;  // 0: all processes
  uint32_t padding;
};
static_assert(sizeof(MultiLinkAttributes) == 64);

uint64_t AsNumber(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// On failure the descriptor is empty and errno is set.
UniqueFd CreateMultiLink(int program_fd, bpf_attach_type type, const char* path,
                         std::span<const ProbePoint> points, bool is_return, int process) {
  std::vector<uint64_t> offsets, cookies;
  for (const ProbePoint& point : points) {
    offsets.push_back(point.file_offset);
    cookies.push_back(point.cookie);
  }
  MultiLinkAttributes attributes{};
  attributes.program_fd = static_cast<uint32_t>(program_fd);
  attributes.attach_type = type;
  attributes.path = AsNumber(path);
  attributes.offsets = AsNumber(offsets.data());
  attributes.cookies = AsNumber(cookies.data());
  attributes.count = static_cast<uint32_t>(points.size());
  attributes.flags = is_return && type == kUprobeMulti ? kMultiReturn : 0;
  if (process == kThisProcess) attributes.pid = static_cast<uint32_t>(::getpid());
  return UniqueFd(
      static_cast<int>(::syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes))));
}

// Loads a program of this type and links it to a path that cannot be probed: kernels with the
// feature examine the path and return EBADF, older ones fail earlier.
bool IsKnown(bpf_attach_type type) {
  const bpf_insn nothing[] = {
      {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0},
      {.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type);
  const UniqueFd program(bpf_prog_load(BPF_PROG_TYPE_KPROBE, "xpu_ability", "Dual BSD/GPL", nothing,
                                       std::size(nothing), &options));
  if (!program) return false;
  const ProbePoint anywhere{};
  const UniqueFd link =
      CreateMultiLink(program.get(), type, "/", {&anywhere, 1}, false, kEveryProcess);
  return !link && errno == EBADF;
}

}  // namespace

bool SelectMultiLink(std::initializer_list<bpf_program*> programs) {
  if (!MayUse(KernelFeature::kMultiProbes) || !IsKnown(kUprobeMulti)) return false;
  for (bpf_program* program : programs) {
    bpf_program__set_expected_attach_type(program, kUprobeMulti);
  }
  return true;
}

bool SelectSession(bpf_program* program) {
  if (!MayUse(KernelFeature::kProbeSessions) || !IsKnown(kUprobeSession)) return false;
  bpf_program__set_expected_attach_type(program, kUprobeSession);
  return true;
}

Result<AttachedProbes> AttachedProbes::Attach(const bpf_program* program, const std::string& path,
                                              std::span<const ProbePoint> points, bool is_return,
                                              int process) {
  AttachedProbes attached;
  const bpf_attach_type type = bpf_program__expected_attach_type(program);
  if (type == kUprobeMulti || type == kUprobeSession) {
    attached.multi_link_ =
        CreateMultiLink(bpf_program__fd(program), type, path.c_str(), points, is_return, process);
    if (!attached.multi_link_) return BpfError(Format("uprobes in {}", path), -errno);
    return attached;
  }
  for (const ProbePoint& point : points) {
    LIBBPF_OPTS(bpf_uprobe_opts, options, .bpf_cookie = point.cookie, .retprobe = is_return);
    BpfLink link(bpf_program__attach_uprobe_opts(program, process, path.c_str(), point.file_offset,
                                                 &options));
    if (!link) {
      Error error =
          BpfError(Format("uprobe at offset {:#x} of {}", point.file_offset, path), -errno);
      if (error.kind == ErrorKind::kPermission) {
        error.hint = "before Linux 6.6 a uprobe needs root (CAP_SYS_ADMIN)";
      }
      return error;
    }
    attached.links_.push_back(std::move(link));
  }
  return attached;
}

}  // namespace xpu

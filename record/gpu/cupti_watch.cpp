#include "record/gpu/cupti_watch.h"

#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include <cupti_refused.skel.h>
#include <fcntl.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/probe_links.h"
#include "record/process/target_file.h"
#include "symbolize/elf/data_symbol.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

constexpr size_t kMaxFiles = 64;

}  // namespace

class CuptiWatch::Impl {
 public:
  Status Open();
  Status Attach(RegularFile opened, const std::string& name);

  Handle<cupti_refused_bpf, cupti_refused_bpf::destroy> program_;
  std::vector<AttachedProbes> links_;
  std::set<std::pair<dev_t, ino_t>> files_;
};

Status CuptiWatch::Impl::Open() {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(cupti_refused_bpf::open());
  if (!program_) return BpfError("BPF program cupti_refused: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  SelectMultiLink({program_->progs.cupti_refused});
  if (int result = cupti_refused_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program cupti_refused: load", result);
  }
  return Ok();
}

// Looks up the functions itself: libbpf would map the file, which belongs to the untrusted program.
Status CuptiWatch::Impl::Attach(RegularFile opened, const std::string& name) {
  const UniqueFd handle(
      ::open(Format("/proc/self/fd/{}", opened.fd.get()).c_str(), O_PATH | O_CLOEXEC));
  XPU_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Of(std::move(opened), name));
  std::vector<ProbePoint> points;
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"}) {
    const auto address = FindSymbolAddress(file.image(), function);
    const auto offset = address ? file.image().FileOffsetOf(*address) : std::nullopt;
    if (offset) points.push_back({*offset, 0});  // cuptiSubscribe_v2 exists from CUDA 13 on
  }
  if (points.empty()) {
    return Error{ErrorKind::kNotFound, Format("{}: does not define cuptiSubscribe", name), {}};
  }
  const std::string path = Format("/proc/self/fd/{}", handle.get());
  XPU_ASSIGN_OR_RETURN(AttachedProbes attached,
                       AttachedProbes::Attach(program_->progs.cupti_refused, path, points,
                                              /*is_return=*/true));
  links_.push_back(std::move(attached));
  return Ok();
}

CuptiWatch::CuptiWatch(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CuptiWatch::CuptiWatch(CuptiWatch&&) noexcept = default;
CuptiWatch::~CuptiWatch() = default;

Result<CuptiWatch> CuptiWatch::Open() {
  auto impl = std::make_unique<Impl>();
  XPU_RETURN_IF_ERROR(impl->Open());
  return CuptiWatch(std::move(impl));
}

Status CuptiWatch::Watch(pid_t pid, const std::string& path) {
  // The path is resolved in the root of the program, which may run in a container.
  const std::string name = Format("/proc/{}/root{}", pid, path);
  XPU_ASSIGN_OR_RETURN(RegularFile file, OpenTargetFile(name));
  if (!impl_->files_.insert({file.info.st_dev, file.info.st_ino}).second) return Ok();
  if (impl_->files_.size() > kMaxFiles) {
    return Error{ErrorKind::kInvalid, Format("{}: too many CUPTI libraries", name), {}};
  }
  return impl_->Attach(std::move(file), name);
}

uint64_t CuptiWatch::Refusals(pid_t pid) const {
  const auto key = static_cast<uint32_t>(pid);
  xpu_refusal refusal{};
  const int map = bpf_map__fd(impl_->program_->maps.refusals);
  return bpf_map_lookup_elem(map, &key, &refusal) == 0 ? refusal.count : 0;
}

}  // namespace xpu

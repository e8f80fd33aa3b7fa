#include "record/cupti_watch.h"

#include <cerrno>
#include <set>
#include <utility>
#include <vector>

#include <cupti_refused.skel.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/bpf_support.h"
#include "record/marker_timing.h"

namespace xpu {

class CuptiWatch::Impl {
 public:
  Status Open();
  Status Attach(const std::string& file);

  Handle<cupti_refused_bpf, cupti_refused_bpf::destroy> program_;
  std::vector<BpfLink> links_;
  std::set<std::pair<dev_t, ino_t>> files_;
};

Status CuptiWatch::Impl::Open() {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(cupti_refused_bpf::open());
  if (!program_) return BpfError("BPF program cupti_refused: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  if (int result = cupti_refused_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program cupti_refused: load", result);
  }
  return Ok();
}

Status CuptiWatch::Impl::Attach(const std::string& file) {
  int error = 0;
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"}) {
    LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = true, .func_name = function);
    BpfLink link(bpf_program__attach_uprobe_opts(program_->progs.cupti_refused, kEveryProcess,
                                                 file.c_str(), 0, &options));
    if (link) {
      links_.push_back(std::move(link));
    } else {
      error = errno;
    }
  }
  // The second is of CUDA 13.
  if (links_.empty()) return BpfError(Format("uprobe on cuptiSubscribe in {}", file), -error);
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
  // As the program sees it: it may live in a container.
  const std::string file = Format("/proc/{}/root{}", pid, path);
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return SystemError(file, errno);
  if (!impl_->files_.insert({info.st_dev, info.st_ino}).second) return Ok();
  return impl_->Attach(file);
}

uint64_t CuptiWatch::Refusals(pid_t pid) const {
  const auto key = static_cast<uint32_t>(pid);
  xpu_refusal refusal{};
  const int map = bpf_map__fd(impl_->program_->maps.refusals);
  return bpf_map_lookup_elem(map, &key, &refusal) == 0 ? refusal.count : 0;
}

}  // namespace xpu

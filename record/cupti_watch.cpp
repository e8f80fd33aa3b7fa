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
#include "record/probe_links.h"
#include "record/probe_places.h"

namespace xpu {

class CuptiWatch::Impl {
 public:
  Status Open();
  Status Attach(const std::string& file);

  Handle<cupti_refused_bpf, cupti_refused_bpf::destroy> program_;
  std::vector<PlacedProbes> links_;
  bool with_multi_ = false;
  std::set<std::pair<dev_t, ino_t>> files_;
};

Status CuptiWatch::Impl::Open() {
  XPU_ASSIGN_OR_RETURN(const PidNamespace pid_namespace, OwnPidNamespace());
  program_.reset(cupti_refused_bpf::open());
  if (!program_) return BpfError("BPF program cupti_refused: open", -errno);
  program_->rodata->pid_namespace_device = pid_namespace.device;
  program_->rodata->pid_namespace_inode = pid_namespace.inode;
  with_multi_ = HasUprobeMulti();
  if (with_multi_) {
    bpf_program__set_expected_attach_type(program_->progs.cupti_refused, kUprobeMulti);
  }
  if (int result = cupti_refused_bpf::load(program_.get()); result != 0) {
    return BpfError("BPF program cupti_refused: load", result);
  }
  return Ok();
}

Status CuptiWatch::Impl::Attach(const std::string& file) {
  XPU_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(file));
  std::vector<ProbePoint> points;
  for (const char* function : {"cuptiSubscribe", "cuptiSubscribe_v2"}) {
    const UserProbe probe{ProbeKind::kUretprobe, file, function};
    auto place = FindProbePlace(elf.image(), probe, file);
    if (!place.ok()) continue;  // the second is of CUDA 13
    for (const uint64_t file_offset : place->file_offsets) points.push_back({file_offset, 0});
  }
  if (points.empty()) {
    return Error{ErrorKind::kNotFound, Format("{}: no cuptiSubscribe in it", file), {}};
  }
  XPU_ASSIGN_OR_RETURN(PlacedProbes placed,
                       PlacedProbes::Place(program_->progs.cupti_refused, file, points,
                                           /*is_return=*/true, with_multi_));
  links_.push_back(std::move(placed));
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

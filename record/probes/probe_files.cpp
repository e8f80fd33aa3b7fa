#include "record/probes/probe_files.h"

#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/process/target_file.h"

namespace xpu {
namespace {

Error NothingToProbe(const std::string& name) {
  return Error{
      ErrorKind::kNotFound,
      Format("{}: defines no launch function (cudaLaunchKernel, cuLaunchKernel, ...)", name),
      "name a libcudart.so or libcuda.so; a program with static cudart is recorded through "
      "libcuda.so"};
}

}  // namespace

Status ProbeFiles::Attach(const std::string& path, std::span<const ProbedFunction> probes) {
  std::vector<ProbePoint> points;
  for (const ProbedFunction& probe : probes) {
    const auto argument = static_cast<uint64_t>(probe.function->kernel);
    points.push_back({probe.file_offset, argument << XPU_PROBE_ARGUMENT_SHIFT | probe.probe});
  }
  // Return probes are attached first, so that every recorded entry has its return.
  XPU_ASSIGN_OR_RETURN(AttachedProbes returns,
                       AttachedProbes::Attach(programs_.at_return, path, points, true));
  XPU_ASSIGN_OR_RETURN(AttachedProbes entries,
                       AttachedProbes::Attach(programs_.at_entry, path, points, false));
  at_return_.push_back(std::move(returns));
  at_entry_.push_back(std::move(entries));
  probes_.insert(probes_.end(), probes.begin(), probes.end());
  return Ok();
}

bool ProbeFiles::Knows(const std::string& path) const {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && known_.contains({info.st_dev, info.st_ino});
}

void ProbeFiles::Forget(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) known_.erase({info.st_dev, info.st_ino});
}

std::vector<ProbedFunction> ProbeFiles::Number(const ElfImage& image, const std::string& name) {
  std::vector<ProbedFunction> probes;
  for (const FunctionLocation& handle : FindLaunchFunctions(image)) {
    probes.push_back({next_probe_++, handle.function, handle.file_offset, name});
  }
  return probes;
}

Status ProbeFiles::Add(const std::string& given, const std::string& name) {
  XPU_ASSIGN_OR_RETURN(RegularFile opened, OpenTargetFile(given));
  if (!known_.insert({opened.info.st_dev, opened.info.st_ino}).second) return Ok();
  // The probes are attached to the file that was examined, whatever its path leads to by then.
  const UniqueFd handle(
      ::open(Format("/proc/self/fd/{}", opened.fd.get()).c_str(), O_PATH | O_CLOEXEC));
  const std::string path = Format("/proc/self/fd/{}", handle.get());
  XPU_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Of(std::move(opened), name));
  const std::vector<ProbedFunction> probes = Number(file.image(), name);
  if (probes.empty()) return NothingToProbe(name);
  if (Attach(path, probes).ok()) return Ok();
  // One function cannot be probed, so the others are tried one by one.
  std::optional<Error> refusal;
  size_t refused = 0;
  for (const ProbedFunction& probe : probes) {
    Status attached = Attach(path, {&probe, 1});
    if (attached.ok()) continue;
    ++refused;
    refusals_.push_back(
        Format("{} in {}: {}", probe.function->name, name, attached.error().message));
    if (!refusal) refusal = std::move(attached).error();
  }
  if (refused < probes.size()) return Ok();
  refusals_.clear();
  return *std::move(refusal);
}

void ProbeFiles::RemoveAll() {
  at_entry_.clear();
  at_return_.clear();
}

}  // namespace xpu

#include "record/probes/user_probe_links.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <utility>

#include <unistd.h>

#include "bpf/events.h"
#include "format/base/text.h"
#include "record/kernel/bpf_support.h"
#include "record/kernel/perf_event.h"
#include "record/kernel/trace_points.h"
#include "record/probes/probe_locations.h"

namespace xpu {
namespace {

constexpr char kKprobeDevice[] = "/sys/bus/event_source/devices/kprobe/type";

Error OfProbe(const UserProbe& probe, Error error) {
  error.message = Format("{}: {}", probe.Text(), error.message);
  return error;
}

// `error`: why the file is not a program or a library.
Error NoFunctionsIn(const std::string& path, const UserProbe& probe, Error error) {
  std::ifstream file(path, std::ios::binary);
  char begin[2] = {};
  if (file.read(begin, sizeof(begin)) && begin[0] == '#' && begin[1] == '!') {
    error.hint = "it is a script: name the program that it runs";
  }
  return OfProbe(probe, std::move(error));
}

bool IsKprobe(const UserProbe& probe) {
  return probe.kind == ProbeKind::kKprobe || probe.kind == ProbeKind::kKretprobe;
}

}  // namespace

Status CheckUserProbes(std::span<const UserProbe> probes) {
  const auto kprobe = std::find_if(probes.begin(), probes.end(), IsKprobe);
  if (kprobe == probes.end() || ::access(kKprobeDevice, F_OK) == 0) return Ok();
  return Error{ErrorKind::kUnsupported,
               Format("{}: this kernel has no kprobes (CONFIG_KPROBES)", kprobe->Text()),
               "--tracepoint and --uprobe work without them"};
}

uint64_t UserProbeLinks::NextCookie(const UserProbe& probe) const {
  uint64_t cookie = attached_.size() + 1;
  if (probe.is_return()) cookie |= XPU_PROBE_STACK_AT_RETURN;
  return cookie;
}

Status UserProbeLinks::AttachToFile(const Programs& programs, const UserProbe& probe,
                                    const std::string& path) {
  auto file = ElfFile::Open(path);
  if (!file.ok()) return NoFunctionsIn(path, probe, file.error());
  XPU_ASSIGN_OR_RETURN(ProbeLocation location, FindProbeLocation(file->image(), probe, path));
  std::vector<ProbePoint> points;
  for (const uint64_t file_offset : location.file_offsets) {
    points.push_back({file_offset, NextCookie(probe)});
  }
  const bpf_program* program = probe.is_return() ? programs.at_return : programs.at_entry;
  auto links = AttachedProbes::Attach(program, path, points, probe.is_return());
  if (!links.ok()) return OfProbe(probe, std::move(links).error());
  if (location.is_slow) slow_.push_back(probe.Text());
  in_files_.push_back(*std::move(links));
  attached_.push_back({probe, std::move(location.function), path});
  return Ok();
}

Status UserProbeLinks::AttachToKernel(const Programs& programs, const UserProbe& probe) {
  LIBBPF_OPTS(bpf_kprobe_opts, options, .bpf_cookie = NextCookie(probe), .offset = probe.offset,
              .retprobe = probe.is_return());
  BpfLink link(bpf_program__attach_kprobe_opts(
      probe.is_return() ? programs.kernel_return : programs.in_kernel, probe.function.c_str(),
      &options));
  if (!link) {
    Error error = BpfError(probe.Text(), -errno);
    if (errno == ENOENT || errno == EINVAL || errno == EADDRNOTAVAIL) {
      error.hint = "/proc/kallsyms lists the kernel's functions; some of them cannot be probed";
    }
    return error;
  }
  in_kernel_.push_back(std::move(link));
  attached_.push_back({probe, probe.function, {}});
  return Ok();
}

Status UserProbeLinks::AttachToTracepoint(const Programs& programs, const UserProbe& probe) {
  XPU_ASSIGN_OR_RETURN(const uint64_t id, FindTracepoint(probe.function));
  perf_event_attr attributes = PerfAttributes(PERF_TYPE_TRACEPOINT, id);
  attributes.sample_period = 1;
  // One CPU is enough: the program runs on all of them.
  UniqueFd event = OpenPerfEvent(attributes, -1, 0);
  if (!event) return SystemError(Format("{}: perf_event_open", probe.Text()), errno);
  LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = NextCookie(probe));
  BpfLink link(bpf_program__attach_perf_event_opts(programs.tracepoint, event.get(), &options));
  if (!link) return BpfError(probe.Text(), -errno);
  event.release();  // the link closes it
  in_kernel_.push_back(std::move(link));
  attached_.push_back({probe, probe.function, {}});
  return Ok();
}

Status UserProbeLinks::Attach(const Programs& programs, std::span<const UserProbe> probes,
                              const std::string& program,
                              const std::vector<std::string>& environment, bool verbose) {
  for (const UserProbe& probe : probes) {
    std::string path;
    if (probe.kind == ProbeKind::kTracepoint) {
      XPU_RETURN_IF_ERROR(AttachToTracepoint(programs, probe));
    } else if (!probe.is_in_program()) {
      XPU_RETURN_IF_ERROR(AttachToKernel(programs, probe));
    } else {
      auto found = FindLibrary(probe.library, program, environment);
      if (!found.ok()) return OfProbe(probe, std::move(found).error());
      path = *std::move(found);
      XPU_RETURN_IF_ERROR(AttachToFile(programs, probe, path));
    }
    if (!verbose) continue;
    std::fprintf(stderr, "%s: placed%s%s\n", probe.Text().c_str(), path.empty() ? "" : " in ",
                 path.c_str());
  }
  return Ok();
}

const UserProbe* UserProbeLinks::Of(uint32_t probe) const {
  return probe == 0 || probe > attached_.size() ? nullptr : &attached_[probe - 1].probe;
}

void UserProbeLinks::WriteDefinitions(EventSink& sink) const {
  uint32_t number = 0;
  for (const UserProbeLink& attached : attached_) {
    Probe probe;
    probe.probe = ++number;
    probe.purpose = ProbePurpose::kUser;
    probe.kind = attached.probe.kind;
    probe.offset = attached.probe.offset;
    probe.function = sink.Intern(attached.function);
    probe.path = sink.Intern(attached.path);
    sink.Write(probe);
  }
}

void UserProbeLinks::RemoveAll() {
  in_files_.clear();
  in_kernel_.clear();
}

}  // namespace xpu

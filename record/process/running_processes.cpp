#include "record/process/running_processes.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/number.h"
#include "format/base/path.h"
#include "format/base/text.h"
#include "record/base/process_status.h"
#include "record/kernel/capabilities.h"
#include "record/process/mapped_file.h"
#include "record/process/moved_code.h"
#include "record/process/process_maps.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

std::vector<pid_t> NumbersIn(const std::string& directory) {
  std::vector<pid_t> numbers;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed)) {
    if (const auto number = ParseNumber<pid_t>(at->path().filename().native())) {
      numbers.push_back(*number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// The mapping before all[i] if it is of a file that goes on after that: there was its code before
// the program moved it. nullptr: anonymous code of another kind, or none.
const ProcessMapping* FileAround(const std::vector<ProcessMapping>& all, size_t i) {
  if (i == 0 || i + 1 == all.size() || all[i].path != "//anon") return nullptr;
  const ProcessMapping &before = all[i - 1], &after = all[i + 1];
  const bool is_inside = before.end_address == all[i].start_address &&
                         after.start_address == all[i].end_address && before.inode == after.inode &&
                         before.path == after.path;
  return is_inside && IsFilePath(before.path) ? &before : nullptr;
}

// Makes anonymous code that lies inside a file code of that file if its bytes are the file's.
void TakeFor(uint32_t pid, const ProcessMapping& file, ProcessMapping& code, LossLedger& losses) {
  const uint64_t file_bytes = file.end_address - file.start_address;
  const MappedFile paths{.paths = PathsOfMapping({pid, file.start_address, file_bytes, file.path}),
                         .build_id = {},
                         .device = PackedDevice(file.device_major, file.device_minor),
                         .inode = file.inode};
  ProcessMapping moved = file;
  moved.start_address = code.start_address;
  moved.end_address = code.end_address;
  moved.file_offset = file.file_offset + file_bytes;
  moved.protection = code.protection;
  if (CompareWithFile(pid, moved.start_address, moved.end_address, paths, moved.file_offset) ==
      CodeOrigin::kFile) {
    code = std::move(moved);
  } else {
    losses.Add(LossKind::kMovedCodeUnknown, 1, pid, {}, file.path);
    code.path = Format("[anon in {}]", FileNameOf(file.path));
  }
}

Error UsageError(std::string message, std::string hint) {
  return Error{ErrorKind::kUsage, std::move(message), std::move(hint)};
}

}  // namespace

std::vector<pid_t> ListProcesses() { return NumbersIn("/proc"); }

Status CheckProcess(pid_t pid) {
  auto status = ReadFile(Format("/proc/{}/status", pid));
  if (!status.ok()) return UsageError(Format("-p {}: no such process", pid), {});
  const std::string_view process = StatusField(*status, "Tgid");
  if (process != std::to_string(pid)) {
    return UsageError(Format("-p {}: is a thread of process {}", pid, process),
                      Format("-p {} records all of its threads", process));
  }
  if (pid == ::getpid()) return UsageError(Format("-p {}: is xpu-record itself", pid), {});
  const std::string_view state = StatusField(*status, "State");
  // Others may go on when the first one has ended.
  const bool has_threads = LivingThread(pid) != pid;
  if (!has_threads && (state.starts_with('Z') || state.starts_with('X'))) {
    return UsageError(Format("-p {}: the process has already exited", pid),
                      "it is a zombie: its parent has not read its status yet");
  }
  // Kernel threads have no memory of their own, and this field is missing.
  if (!has_threads && StatusField(*status, "VmSize").empty()) {
    return UsageError(Format("-p {}: is a kernel thread", pid), "-a records kernel threads too");
  }
  if (auto maps = ReadProcessMaps(static_cast<uint32_t>(pid)); !maps.ok()) {
    return Error{
        ErrorKind::kPermission, Format("-p {}: no permission to examine the process", pid),
        "it belongs to another user or is protected: " + HowToGetCapabilities(",cap_sys_ptrace")};
  }
  return Ok();
}

const std::string& RunningProcesses::BuildIdOf(uint32_t pid, const ProcessMapping& mapping) {
  const uint64_t device = PackedDevice(mapping.device_major, mapping.device_minor);
  const auto [entry, is_new] = build_ids_.try_emplace({device, mapping.inode});
  if (!is_new) return entry->second;
  for (const std::string& path :
       PathsOfMapping({pid, mapping.start_address, mapping.end_address - mapping.start_address,
                       mapping.path})) {
    auto file = IdentifyFile(path);
    if (file.ok() && MayBeMapped(file->info, path, {device, mapping.inode})) {
      entry->second = std::move(file->build_id);
      break;
    }
  }
  return entry->second;
}

void RunningProcesses::Write(pid_t pid, uint64_t time_ns, EventSink& sink) {
  auto stat = ReadFile(Format("/proc/{}/stat", pid));
  if (!stat.ok()) return;
  ProcessEvent event;
  event.time_ns = time_ns;
  event.kind = ProcessEventKind::kExisting;
  event.pid = event.tid = static_cast<uint32_t>(pid);
  event.parent_pid = event.parent_tid = ParseProcessStat(*stat).parent_pid;
  event.name = sink.Intern(ReadComm(Format("/proc/{}/comm", pid)));
  sink.Write(event);
  for (const pid_t tid : NumbersIn(Format("/proc/{}/task", pid))) {
    const std::string name = ReadComm(Format("/proc/{}/task/{}/comm", pid, tid));
    if (tid == pid || name.empty()) continue;
    event.kind = ProcessEventKind::kName;
    event.tid = static_cast<uint32_t>(tid);
    event.name = sink.Intern(name);
    sink.Write(event);
  }
  auto mappings = ReadProcessMaps(static_cast<uint32_t>(pid));
  if (!mappings.ok()) return;
  for (size_t i = 0; i < mappings->size(); ++i) {
    ProcessMapping mapping = (*mappings)[i];
    if ((mapping.protection & PROT_EXEC) == 0) continue;
    if (const ProcessMapping* file = FileAround(*mappings, i)) {
      TakeFor(static_cast<uint32_t>(pid), *file, mapping, sink.losses());
    }
    Mapping written = MappingEventOf(static_cast<uint32_t>(pid), time_ns, mapping);
    written.path = sink.Intern(mapping.path);
    if (IsFilePath(mapping.path)) written.build_id = sink.Intern(BuildIdOf(written.pid, mapping));
    sink.Write(written);
  }
}

}  // namespace xpu

#include "record/symbols/hit_files.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>

#include "format/base/file.h"
#include "format/base/path.h"
#include "record/process/mapped_file.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

// Of one process. With more nodes its stacks are walked again.
constexpr size_t kMaxNodes = size_t{1} << 20;
constexpr size_t kMaxAddresses = size_t{1} << 20;
constexpr size_t kMaxRanges = 65536;
constexpr size_t kMaxAllRanges = size_t{1} << 23;  // each child begins with its parent's
constexpr size_t kMaxFiles = 65536;
constexpr size_t kMaxAllOffsets = size_t{1} << 24;  // of all files
constexpr uint64_t kRoundsBetweenLooks = 100;
// Of all processes, of code that is in no file.
constexpr size_t kMaxCodeAddresses = size_t{4} << 20;
// What only late samples and mappings are known of does not end again.
constexpr uint64_t kRoundsBetweenSearches = 20000;

UniqueFd OpenMapped(const HitFiles::MappedRange& mapping) {
  const std::vector<std::string> paths =
      PathsOfMapping({mapping.pid, mapping.address, mapping.size_bytes, mapping.path});
  // By now another file may be mapped there, or lie there.
  if (!mapping.build_id.empty()) {
    auto file = FindUnwindFile(paths, std::string(mapping.build_id), mapping.identity);
    return file.ok() ? std::move(file->fd) : UniqueFd();
  }
  for (const std::string& path : paths) {
    auto file = OpenTargetFile(path);
    if (file.ok() && MayBeMapped(file->info, path, mapping.identity)) return std::move(file->fd);
  }
  return {};
}

// perf's convention: what makes code maps its dump as if it were code, to be found. The number is
// the one by which the process knows itself.
bool IsJitDump(std::string_view path) {
  const std::string_view name = FileNameOf(path);
  constexpr std::string_view kBefore = "jit-", kBehind = ".dump";
  if (!name.starts_with(kBefore) || !name.ends_with(kBehind)) return false;
  const std::string_view number = name.substr(
      kBefore.size(), name.size() - std::min(name.size(), kBefore.size() + kBehind.size()));
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

size_t HitFiles::DefaultHeld() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<size_t>(limit.rlim_cur / 4, 1024);
}

HitFiles::HitFiles(size_t max_held) : max_held_(max_held) {}

uint32_t HitFiles::FileOf(const MappedRange& mapping) {
  if (!IsFilePath(mapping.path) && mapping.path != kVdso) return kNoFile;
  std::pair id{std::string(mapping.path), std::string(mapping.build_id)};
  if (files_.size() >= kMaxFiles && !ids_.contains(id)) {
    ++dropped_;
    return kNoFile;
  }
  const auto [at, is_new] = ids_.try_emplace(std::move(id), static_cast<uint32_t>(files_.size()));
  if (is_new) {
    File& file = files_.emplace_back();
    file.identity = mapping.identity;
    if (held_ < max_held_) file.fd = OpenMapped(mapping);
    if (file.fd) ++held_;
  }
  return at->second;
}

// A program that maps the same code again and again has the same ranges many times. They are merged
// whenever there are twice as many as remained the last time.
bool HitFiles::HasRoom(Process& process) {
  if (process.ranges.size() >= process.merge_at) {
    std::sort(process.ranges.begin(), process.ranges.end());
    const auto end = std::unique(process.ranges.begin(), process.ranges.end());
    all_ranges_ -= static_cast<size_t>(process.ranges.end() - end);
    process.ranges.erase(end, process.ranges.end());
    process.merge_at = std::clamp(2 * process.ranges.size(), kFirstMerge, kMaxRanges);
    // Different ones: sorting them for each mapping would gain little.
    if (process.ranges.size() > kMaxRanges / 8 * 7) process.merge_at = SIZE_MAX;
  }
  return process.ranges.size() < kMaxRanges && all_ranges_ < kMaxAllRanges;
}

void HitFiles::SeeMapping(const MappedRange& mapping) {
  if (mapping.address + mapping.size_bytes <= mapping.address) return;
  Process& process = processes_[mapping.pid];
  const bool is_dump = IsJitDump(mapping.path);
  // Again now and then: some begin as root and go on as somebody else.
  if (is_dump || std::has_single_bit(++process.mappings_seen)) {
    if (const auto owner = OwnerOf(mapping.pid)) process.owner = *owner;
  }
  if (is_dump) process.dump_path = mapping.path;
  const uint32_t file = FileOf(mapping);
  if (file == kNoFile) return;
  if (!HasRoom(process)) {
    ++dropped_;
    return;
  }
  ++all_ranges_;
  process.ranges.push_back(
      {mapping.address, mapping.address + mapping.size_bytes, mapping.file_offset, file});
}

void HitFiles::SeeFork(uint32_t pid, uint32_t parent_pid, uint64_t time_ns) {
  Process& process = processes_[pid];
  process.parent = parent_pid;
  process.forked_ns = time_ns;
  process.ended_round = 0;  // the number is in use again
  ended_.erase(pid);
  recent_ = {};
  const auto parent = processes_.find(parent_pid);
  if (parent == processes_.end()) return;
  process.owner.user = parent->second.owner.user;
  const std::vector<Range>& inherited = parent->second.ranges;
  if (process.ranges.size() + inherited.size() > kMaxRanges ||
      all_ranges_ + inherited.size() > kMaxAllRanges) {
    dropped_ += inherited.size();
    return;
  }
  all_ranges_ += inherited.size();
  process.ranges.insert(process.ranges.end(), inherited.begin(), inherited.end());
}

void HitFiles::SeeExit(uint32_t pid, uint64_t time_ns) {
  const auto process = processes_.find(pid);
  if (process == processes_.end() || time_ns < process->second.forked_ns) return;
  process->second.ended_round = round_;
  ended_.insert(pid);
}

void HitFiles::See(const Mapping& mapping, std::string_view path, std::string_view build_id) {
  SeeMapping({mapping.pid,
              mapping.start_address,
              mapping.size_bytes,
              mapping.file_offset,
              path,
              build_id,
              {PackedDevice(mapping.device_major, mapping.device_minor), mapping.inode}});
}

void HitFiles::See(const ProcessEvent& event, std::string_view) {
  // Threads share what their process has mapped.
  if (event.kind == ProcessEventKind::kFork && event.pid != event.parent_pid) {
    SeeFork(event.pid, event.parent_pid, event.time_ns);
  } else if (event.kind == ProcessEventKind::kExit && event.pid == event.tid) {
    SeeExit(event.pid, event.time_ns);
  }
}

void HitFiles::SeeStack(uint32_t pid, StackId stack, const NodeOf& node_of) {
  auto& recent = recent_[stack.value % recent_.size()];
  if (std::exchange(recent, {pid, stack}) == std::pair(pid, stack)) return;
  Process& process = processes_[pid];
  if (process.addresses.size() >= kMaxAddresses) return;
  if (process.nodes.size() >= kMaxNodes) process.nodes.clear();
  bool innermost = true;
  while (stack) {
    const StackNode node = node_of(stack);
    if (node.frame.kind == FrameKind::kUser) {
      // Where execution was, or like the other frames a return address.
      if (innermost) process.addresses.insert(node.frame.address);
      innermost = false;
      if (!process.nodes.insert(stack.value).second) return;  // and so were its callers
      process.addresses.insert(node.frame.address - 1);
    }
    stack = node.caller;
  }
}

void HitFiles::MatchRanges(const std::vector<Range>& ranges, const std::vector<uint64_t>& addresses,
                           std::vector<bool>& in_file) {
  for (const Range& range : ranges) {
    auto at = std::lower_bound(addresses.begin(), addresses.end(), range.start);
    for (; at != addresses.end() && *at < range.end; ++at) {
      if (offsets_ < kMaxAllOffsets &&
          files_[range.file].offsets.insert(*at - range.start + range.file_offset).second) {
        ++offsets_;
      }
      in_file[static_cast<size_t>(at - addresses.begin())] = true;
    }
  }
}

// The addresses that no mapping covers are code that the program made.
void HitFiles::Match(uint32_t pid, Process& process) {
  std::vector<uint64_t> addresses(process.addresses.begin(), process.addresses.end());
  std::sort(addresses.begin(), addresses.end());
  std::vector<bool> in_file(addresses.size());
  MatchRanges(process.ranges, addresses, in_file);
  // What the parent had mapped just before the fork may have been told after it.
  const auto parent = processes_.find(process.parent);
  if (parent != processes_.end()) MatchRanges(parent->second.ranges, addresses, in_file);
  process.addresses.clear();
  HitCode* code = nullptr;
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (in_file[i]) continue;
    if (code_addresses_ >= kMaxCodeAddresses) break;
    if (code == nullptr) code = &code_[pid];
    code->addresses.push_back(addresses[i]);
    ++code_addresses_;
  }
  if (code == nullptr) return;
  code->owner = process.owner;
  if (!process.dump_path.empty()) code->dump_path = process.dump_path;
}

void HitFiles::FindEnded() {
  for (auto& [pid, process] : processes_) {
    if (process.ended_round != 0 || ::kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH) {
      continue;
    }
    process.ended_round = round_;
    ended_.insert(pid);
  }
}

void HitFiles::EndRound() {
  if (++round_ % kRoundsBetweenSearches == 0) FindEnded();
  std::erase_if(ended_, [this](uint32_t pid) {
    const auto process = processes_.find(pid);
    if (process->second.ended_round + 2 > round_) return false;
    if (::kill(static_cast<pid_t>(pid), 0) == 0) {  // only its first thread has ended
      process->second.ended_round = round_ + kRoundsBetweenLooks;
      return false;
    }
    Match(pid, process->second);
    all_ranges_ -= process->second.ranges.size();
    processes_.erase(process);
    return true;
  });
}

OccurringCode HitFiles::Take() {
  OccurringCode code;
  code.files = TakeFiles();  // first: it finds the rest
  code.generated = TakeCode();
  return code;
}

std::vector<HitFile> HitFiles::TakeFiles() {
  for (auto& [pid, process] : processes_) {
    // Of one that has ended the number may be another's by now.
    if (process.ended_round == 0) {
      if (const auto owner = OwnerOf(pid)) process.owner = *owner;
    }
    Match(pid, process);
    process.nodes.clear();
  }
  recent_ = {};
  offsets_ = 0;
  std::vector<HitFile> hit;
  for (const auto& [name, index] : ids_) {
    File& file = files_[index];
    if (file.offsets.empty()) continue;
    std::vector<uint64_t> offsets(file.offsets.begin(), file.offsets.end());
    std::sort(offsets.begin(), offsets.end());
    file.offsets = {};
    // Another descriptor: the file may occur again.
    UniqueFd fd(file.fd ? ::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0) : -1);
    hit.push_back({name.first, name.second, std::move(offsets), std::move(fd), file.identity});
  }
  return hit;
}

std::vector<HitCode> HitFiles::TakeCode() {
  std::vector<HitCode> all;
  for (auto& [pid, code] : code_) {
    code.pid = pid;
    std::sort(code.addresses.begin(), code.addresses.end());
    code.addresses.erase(std::unique(code.addresses.begin(), code.addresses.end()),
                         code.addresses.end());
    all.push_back(std::move(code));
  }
  code_.clear();
  code_addresses_ = 0;
  return all;
}

}  // namespace xpu

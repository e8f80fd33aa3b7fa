#include "record/symbols/hit_files.h"

#include <algorithm>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>

#include "record/process/mapped_file.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

// For one process. Beyond this number its stacks are walked again.
constexpr size_t kMaxNodes = size_t{1} << 20;
constexpr size_t kMaxAddresses = size_t{1} << 20;
constexpr size_t kMaxAllOffsets = size_t{1} << 24;  // for all files
// For all processes, of code outside files.
constexpr size_t kMaxCodeAddresses = size_t{4} << 20;

UniqueFd OpenMapped(const MappedFile& mapped) {
  const FileIdentity identity{mapped.device, mapped.inode};
  // By now another file may be mapped there, or may have this path.
  if (!mapped.build_id.empty()) {
    auto file = FindUnwindFile(mapped.paths, mapped.build_id, identity);
    return file.ok() ? std::move(file->fd) : UniqueFd();
  }
  for (const std::string& path : mapped.paths) {
    auto file = OpenTargetFile(path);
    if (file.ok() && MayBeMapped(file->info, path, identity)) return std::move(file->fd);
  }
  return {};
}

}  // namespace

size_t HitFiles::DefaultHeld() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<size_t>(limit.rlim_cur / 4, 1024);
}

HitFiles::HitFiles(ProcessTable& processes, SourcePlaces* places, size_t max_held)
    : processes_(processes), places_(places), max_held_(max_held) {
  processes_.AddListener(this);
}

HitFiles::File& HitFiles::FileOf(uint32_t number) {
  if (files_.size() <= number) files_.resize(processes_.file_count());
  return files_[number];
}

void HitFiles::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  if (!processes_.file(mapping.file).holds_code) return;
  File& file = FileOf(mapping.file);
  if (std::exchange(file.was_seen, true)) return;
  if (places_ != nullptr) file.namer = places_->At(pid, mapping.time_ns);
  if (held_ >= max_held_) return;
  file.fd = OpenMapped(processes_.MappedFileOf(pid, start, mapping));
  if (file.fd) ++held_;
}

void HitFiles::OnFork(uint32_t, uint32_t) { recent_ = {}; }

void HitFiles::OnEnd(uint32_t pid) {
  const auto found = hits_.find(pid);
  if (found == hits_.end()) return;
  Match(pid, found->second);
  hits_.erase(found);
  recent_ = {};
}

void HitFiles::ObserveStack(uint32_t pid, StackId stack, const NodeOf& node_of) {
  auto& recent = recent_[stack.value % recent_.size()];
  if (std::exchange(recent, {pid, stack}) == std::pair(pid, stack)) return;
  Hits& hits = hits_[pid];
  if (hits.addresses.size() >= kMaxAddresses) return;
  if (hits.nodes.size() >= kMaxNodes) hits.nodes.clear();
  bool innermost = true;
  while (stack) {
    const StackNode node = node_of(stack);
    if (node.frame.kind == FrameKind::kUser) {
      // The innermost frame is the current instruction; all others are return addresses.
      if (innermost) hits.addresses.insert(node.frame.address);
      innermost = false;
      if (!hits.nodes.insert(stack.value).second) return;  // its callers are known too
      hits.addresses.insert(node.frame.address - 1);
    }
    stack = node.caller;
  }
}

void HitFiles::MatchPast(const ProcessTable::Process& process,
                         const std::vector<uint64_t>& addresses, std::vector<bool>& in_file) {
  ProcessTable::ForEachPastMapping(process, [&](const PastMapping& past) {
    // Both are stored then, its symbols and what its compiler says.
    const bool is_certain = !processes_.file(past.file).may_be_generated();
    auto at = std::lower_bound(addresses.begin(), addresses.end(), past.start);
    for (; at != addresses.end() && *at < past.end; ++at) {
      if (offsets_ < kMaxAllOffsets &&
          FileOf(past.file).offsets.insert(*at - past.start + past.file_offset).second) {
        ++offsets_;
      }
      if (is_certain) in_file[static_cast<size_t>(at - addresses.begin())] = true;
    }
  });
}

// Addresses outside all mappings belong to code that the program generated.
void HitFiles::Match(uint32_t pid, Hits& hits) {
  std::vector<uint64_t> addresses(hits.addresses.begin(), hits.addresses.end());
  std::sort(addresses.begin(), addresses.end());
  std::vector<bool> in_file(addresses.size());
  const ProcessTable::Process* process = processes_.Find(pid);
  if (process != nullptr) {
    MatchPast(*process, addresses, in_file);
    // What the parent mapped just before the fork may have been reported after it.
    const ProcessTable::Process* parent = processes_.Find(process->parent_pid);
    if (parent != nullptr) MatchPast(*parent, addresses, in_file);
  }
  hits.addresses.clear();
  HitCode* code = nullptr;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto* now = processes_.FindCode(pid, addresses[i]);
    const bool is_generated_now =
        now != nullptr && processes_.file(now->second.file).may_be_generated();
    if (in_file[i] && !is_generated_now) continue;
    if (code_addresses_ >= kMaxCodeAddresses) break;
    if (code == nullptr) code = &code_[pid];
    code->addresses.push_back(addresses[i]);
    ++code_addresses_;
  }
  if (code == nullptr || process == nullptr) return;
  code->owner = process->owner;
  if (process->dump_file != 0) code->dump_path = processes_.file(process->dump_file).path;
}

OccurringCode HitFiles::Take() {
  for (auto& [pid, hits] : hits_) {
    const ProcessTable::Process* process = processes_.Find(pid);
    // The pid of an ended process may have been reused.
    if (process != nullptr && process->exit_ns == 0) processes_.UpdateOwner(pid);
    Match(pid, hits);
    hits.nodes.clear();
  }
  recent_ = {};
  OccurringCode code;
  code.files = TakeFiles();
  code.generated = TakeCode();
  return code;
}

// Files that differ only in their identities are merged by name.
std::vector<HitFile> HitFiles::TakeFiles() {
  offsets_ = 0;
  std::map<std::pair<std::string_view, std::string_view>, HitFile> hit;
  for (uint32_t number = 1; number < files_.size(); ++number) {
    File& file = files_[number];
    if (file.offsets.empty()) continue;
    const ProcessTable::File& known = processes_.file(number);
    HitFile& one = hit[{known.path, known.build_id}];
    if (one.path.empty()) {
      one.path = known.path;
      one.build_id = known.build_id;
      one.identity = known.identity;
      one.namer = file.namer;
    }
    // A duplicate, because the file may occur again.
    if (!one.fd && file.fd) one.fd.reset(::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0));
    one.offsets.insert(one.offsets.end(), file.offsets.begin(), file.offsets.end());
    file.offsets = {};
  }
  std::vector<HitFile> files;
  for (auto& [name, file] : hit) {
    std::sort(file.offsets.begin(), file.offsets.end());
    file.offsets.erase(std::unique(file.offsets.begin(), file.offsets.end()), file.offsets.end());
    files.push_back(std::move(file));
  }
  return files;
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

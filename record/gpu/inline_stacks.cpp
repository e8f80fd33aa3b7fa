#include "record/gpu/inline_stacks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/remote_mounts.h"
#include "record/gpu/wire_message.h"
#include "record/process/mapped_file.h"
#include "record/process/unwind_file.h"

namespace xpu {
namespace {

constexpr size_t kMaxNewFiles = 4096;  // in one round
constexpr size_t kMaxRanges = size_t{1} << 16;
constexpr size_t kMaxThreads = size_t{1} << 16;
constexpr uint64_t kEntryBytes = 112;  // estimated memory of an entry in a map or set
constexpr size_t kMaxQuestions = 4096;
// How often waiting copies are tried when nothing new has arrived, so that those that have waited
// long enough are given up.
constexpr uint64_t kWalkPeriodNs = 500'000'000;

// Names of the loader that are not paths of files.
constexpr std::string_view kVdsoFile = "linux-vdso.so.1";
// The block that a stack is of, `at` bytes into the message. False: it should be there and is not.
bool ReadBlock(std::span<const std::byte> message, size_t at, const wire::LaunchCall& call,
               std::optional<wire::Block>* block) {
  if (call.domain_and_callback_id >> wire::kDomainShift != wire::kDomainAllocator) return true;
  const auto bytes = BytesAfter(message, at, sizeof(wire::Block));
  if (!bytes) return false;
  std::memcpy(&block->emplace(), bytes->data(), sizeof(wire::Block));
  return true;
}

// The suffix that the kernel adds to the path of a removed file.
constexpr std::string_view kDeleted = " (deleted)";

}  // namespace

InlineStacks::InlineStacks(const Settings& settings, uint32_t pid, InstanceId instance,
                           wire::RingHeader& header, FairBudget::Account& memory)
    : settings_(settings),
      pid_(pid),
      instance_(instance),
      header_(header),
      memory_(memory),
      python_(pid, instance, header, settings.python, memory) {}

bool InlineStacks::TakeCodeFile(Bytes message) {
  const auto fixed = ReadFixed<wire::CodeFileMessage>(message);
  if (!fixed || settings_.tables == nullptr) return false;
  const wire::CodeFileMessage& raw = *fixed->operator->();
  const auto name = BytesAfter(message, sizeof(raw), raw.name_bytes);
  if (!name || raw.file >= wire::kMaxCodeFiles || raw.end_address <= raw.start_address ||
      raw.build_id_bytes > wire::kMaxBuildIdBytes || new_files_.size() >= kMaxNewFiles) {
    return false;
  }
  const CodeRange range{raw.end_address, raw.bias, raw.file};
  // Added at once: stack copies that follow were taken with the file mapped.
  ranges_.Add(raw.start_address, range);
  new_files_.push_back({range,
                        raw.start_address,
                        raw.file_offset,
                        {reinterpret_cast<const char*>(raw.build_id), raw.build_id_bytes},
                        std::string(TextOf(*name))});
  return true;
}

bool InlineStacks::TakeCodeFileGone(Bytes message) {
  const auto fixed = ReadFixed<wire::CodeFileGoneMessage>(message);
  if (!fixed) return false;
  ranges_.Remove((*fixed)->start_address);
  return true;
}

bool InlineStacks::TakeCodeFilesComplete(Bytes message) {
  const auto fixed = ReadFixed<wire::CodeFilesCompleteMessage>(message);
  if (!fixed) return false;
  loads_reported_ = (*fixed)->loads;
  copies_.SetCode(loads_reported_, ranges_.now());
  new_copies_ = true;  // some may have waited for it
  return true;
}

bool InlineStacks::TakeStack(Bytes message) {
  const auto fixed = ReadFixed<wire::StackMessage>(message);
  if (!fixed || (*fixed)->frame_count > wire::kMaxFrames || (*fixed)->stack == 0) return false;
  const size_t bytes = (*fixed)->frame_count * sizeof(uint64_t);
  const auto frames = BytesAfter(message, sizeof(wire::StackMessage), bytes);
  if (!frames) return false;
  Stack stack;
  stack.walk = {(*fixed)->flags, (*fixed)->stop};
  stack.frames.resize((*fixed)->frame_count);
  if (bytes > 0) std::memcpy(stack.frames.data(), frames->data(), bytes);
  stacks_.Put((*fixed)->stack, std::move(stack));
  return true;
}

bool InlineStacks::TakeLaunch(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::LaunchMessage>(message);
  std::optional<wire::Block> block;
  if (!fixed || !ReadBlock(message, sizeof(wire::LaunchMessage), (*fixed)->call, &block)) {
    return false;
  }
  const uint32_t number = (*fixed)->stack;
  Stack* stack = stacks_.Find(number);
  if (stack == nullptr) {
    if (block) sink.Write(EventOf((*fixed)->call, *block));
    return stacks_.MayBeRefused();
  }
  Write((*fixed)->call, block, *stack, sink);
  if (number >= wire::kFirstSingleStack) stacks_.Erase(number);
  return true;
}

bool InlineStacks::TakeStackCopy(Bytes message) {
  const auto fixed = ReadFixed<wire::StackCopyMessage>(message);
  if (!fixed || (*fixed)->bytes > wire::kMaxCopyBytes) return false;
  const auto bytes = BytesAfter(message, sizeof(wire::StackCopyMessage), (*fixed)->bytes);
  std::optional<wire::Block> block;
  if (!bytes ||
      !ReadBlock(message, sizeof(wire::StackCopyMessage) + bytes->size(), (*fixed)->call, &block)) {
    return false;
  }
  new_copies_ = true;
  const bool is_told = (*fixed)->loads == 0 || (*fixed)->loads == loads_reported_;
  copies_.Add({(*fixed)->call,
               block,
               {(*fixed)->ip, (*fixed)->sp, (*fixed)->bp},
               (*fixed)->loads,
               MonotonicNs(),
               {bytes->begin(), bytes->end()},
               is_told ? ranges_.now() : nullptr});
  ChargeCopies();
  return true;
}

bool InlineStacks::TakeOtherCode(Bytes message) {
  const auto fixed = ReadFixed<wire::OtherCodeMessage>(message);
  if (!fixed || questions_.size() >= kMaxQuestions) return false;
  questions_.push_back((*fixed)->address);
  return true;
}

void InlineStacks::ReportThread(uint32_t tid, EventSink& sink) {
  if (settings_.tracker == nullptr || tid == last_thread_) return;
  if (threads_.size() >= kMaxThreads || !HasRoomFor(threads_, tid)) return;
  if (threads_.insert(tid).second) settings_.tracker->ObserveThread(pid_, tid, sink);
  last_thread_ = tid;
}

// Programs that launch kernels in a loop do so from few distinct stacks, so ids are kept.
StackId InlineStacks::IdOf(Stack& stack, EventSink& sink) {
  if (stack.tables != sink.TablesNumber()) {
    frames_.clear();
    for (uint64_t address : stack.frames) frames_.push_back({FrameKind::kUser, address});
    stack.id = sink.Intern(frames_);
    stack.tables = sink.TablesNumber();
  }
  return stack.id;
}

bool InlineStacks::TakeBlock(Bytes message, EventSink& sink) {
  const auto fixed = ReadFixed<wire::BlockMessage>(message);
  if (!fixed) return false;
  ReportThread((*fixed)->call.tid, sink);
  sink.Write(EventOf((*fixed)->call, (*fixed)->block));
  return true;
}

// Without its stack.
AllocatorEvent InlineStacks::EventOf(const wire::LaunchCall& call, const wire::Block& block) const {
  AllocatorEvent event;
  event.instance = instance_;
  event.time_ns = call.time_ns;
  event.pid = pid_;
  event.tid = call.tid;
  event.allocator = AllocatorKind::kPyTorch;
  event.device_id = block.device;
  event.address = block.address;
  event.size_bytes = block.size_bytes;
  event.has_totals = block.has_totals != 0;
  event.allocated_bytes = block.allocated_bytes;
  event.reserved_bytes = block.reserved_bytes;
  return event;
}

void InlineStacks::Write(const wire::LaunchCall& call, const std::optional<wire::Block>& block,
                         Stack& stack, EventSink& sink) {
  CountStop(stack.walk, sink.losses(), pid_, instance_);
  ReportThread(call.tid, sink);
  if (block) {
    AllocatorEvent event = EventOf(call, *block);
    event.python_stack = python_.Intern(call.python_stack, sink);
    event.stack = IdOf(stack, sink);
    event.stack_flags = StackFlagsOf(stack.walk) | kStackInProcess;
    return sink.Write(event);
  }
  LaunchStack launch;
  launch.instance = instance_;
  launch.correlation_id = call.correlation_id;
  launch.domain = static_cast<ApiDomain>(call.domain_and_callback_id >> wire::kDomainShift);
  launch.callback_id = call.domain_and_callback_id & ((1u << wire::kDomainShift) - 1);
  launch.time_ns = call.time_ns;
  launch.pid = pid_;
  launch.tid = call.tid;
  launch.cpu = call.cpu;
  launch.python_stack = python_.Intern(call.python_stack, sink);
  launch.stack = IdOf(stack, sink);
  launch.stack_flags = StackFlagsOf(stack.walk) | kStackInProcess;
  sink.Write(launch);
}

void InlineStacks::Update(EventSink& sink) {
  if (settings_.tables == nullptr) return;
  if (!new_files_.empty() || !questions_.empty()) {
    UpdateProcess(sink);
    header_.code_files_seen.store(static_cast<uint32_t>(files_.size()), std::memory_order_release);
  }
  const bool new_tables = AnswerTables();
  AnswerQuestions();
  if (copies_.empty()) return;
  const uint64_t now_ns = MonotonicNs();
  if (!std::exchange(new_copies_, false) && !new_tables && now_ns < next_walk_ns_) return;
  next_walk_ns_ = now_ns + kWalkPeriodNs;
  WalkCopies(sink, false);
}

void InlineStacks::Finish(EventSink& sink) {
  if (settings_.tables == nullptr) return;
  AnswerTables();
  WalkCopies(sink, true);
}

template <typename Map>
bool InlineStacks::HasRoomFor(const Map& map, uint64_t key) {
  return map.contains(static_cast<typename Map::key_type>(key)) || memory_.Take(kEntryBytes);
}

void InlineStacks::ChargeCopies() {
  const uint64_t bytes = copies_.bytes();
  if (bytes < copy_bytes_) {
    memory_.Give(copy_bytes_ - bytes);
  } else if (!memory_.Take(bytes - copy_bytes_)) {
    copies_have_room_ = false;
    return;
  }
  copy_bytes_ = bytes;
  copies_have_room_ = true;
}

// Reads what the process has mapped: records of the kernel may still be on their way, and they
// leave out memory that becomes code later (mprotect).
void InlineStacks::UpdateProcess(EventSink& sink) {
  std::vector<ProcessMapping> mappings;
  if (!process_ended_) {
    if (auto read = ReadProcessMaps(pid_); read.ok()) mappings = *std::move(read);
  }
  std::map<uint64_t, std::pair<ProcessMapping, const NewFile*>> code;  // by start
  for (ProcessMapping& mapping : mappings) {
    const uint64_t start = mapping.start_address;
    if ((mapping.protection & PROT_EXEC) != 0) code[start] = {std::move(mapping), nullptr};
  }
  const std::vector<NewFile> files = std::exchange(new_files_, {});
  for (const NewFile& file : files) {
    // Prefers the kernel's mapping; uses the loader's if the process has ended or has unmapped the
    // file already.
    auto at = code.upper_bound(file.start);
    const bool is_found =
        at != code.begin() && std::prev(at)->second.first.end_address > file.start;
    if (!is_found || WasReplaced(file, std::prev(at)->second.first)) {
      if (is_found) code.erase(std::prev(at));
      code[file.start] = {MappingOf(file), &file};
      at = code.upper_bound(file.start);
    }
    std::prev(at)->second.second = &file;
    AddFile(file, std::prev(at)->second.first, sink);
  }
  for (const auto& [start, found] : code) {
    ReportCode(found.first, found.second != nullptr ? found.second->build_id : std::string(), sink);
  }
  settings_.processes->ApplyNotes();
}

// Writes nothing if the mapping is known. A mapping is split where part of it changes its
// protection.
void InlineStacks::ReportCode(const ProcessMapping& mapping, const std::string& build_id,
                              EventSink& sink) {
  const auto* known = settings_.processes->FindCode(pid_, mapping.start_address);
  if (known != nullptr && known->second.end >= mapping.end_address) {
    const ProcessTable::File& file = settings_.processes->file(known->second.file);
    const uint64_t offset = known->second.file_offset + (mapping.start_address - known->first);
    const bool is_same =
        file.path == mapping.path && (!file.holds_code || offset == mapping.file_offset);
    const bool adds_build_id = settings_.tracker != nullptr && !build_id.empty();
    if (is_same && (!adds_build_id || file.build_id == build_id)) return;
  }
  Mapping event = MappingEventOf(pid_, MonotonicNs(), mapping);
  // If the kernel reports mappings, its record is in the capture or will be.
  if (settings_.tracker == nullptr) {
    return settings_.processes->Amend(event, mapping.path, build_id);
  }
  event.path = sink.Intern(mapping.path);
  if (!build_id.empty()) event.build_id = sink.Intern(build_id);
  sink.Write(event);
}

// True if another file has been mapped there since the program reported this one, or nobody can
// say: what the loader reports, name and build-id, is at least of one file.
bool InlineStacks::WasReplaced(const NewFile& file, const ProcessMapping& mapping) const {
  if (!IsFilePath(file.name) || mapping.path == file.name) return false;
  if (mapping.path.ends_with(kDeleted)) return false;
  // The loader's names may be symbolic links. The inode of the mapping is no help: overlayfs shows
  // another one to stat.
  const auto find = [this](const std::string& path, struct stat* info) {
    const std::string in_root = Format("/proc/{}/root{}", pid_, path);
    return CheckMountAnswers(in_root).ok() && ::stat(in_root.c_str(), info) == 0;
  };
  struct stat loaded {};
  struct stat mapped {};
  if (!find(file.name, &loaded) || !find(mapping.path, &mapped)) return true;
  return std::pair(loaded.st_dev, loaded.st_ino) != std::pair(mapped.st_dev, mapped.st_ino);
}

// The mapping as the loader describes it.
ProcessMapping InlineStacks::MappingOf(const NewFile& file) const {
  ProcessMapping mapping;
  mapping.start_address = file.start;
  mapping.end_address = file.range.end;
  mapping.file_offset = file.file_offset;
  mapping.protection = PROT_READ | PROT_EXEC;
  mapping.flags = MAP_PRIVATE;
  mapping.path = file.name == kVdsoFile ? kVdso : file.name;
  return mapping;
}

void InlineStacks::AddFile(const NewFile& file, const ProcessMapping& mapping, EventSink& sink) {
  if (files_.size() <= file.range.file) files_.resize(file.range.file + 1);
  File& known = files_[file.range.file];
  if (std::exchange(known.known, true)) return;
  UnwindTables::File wanted;
  wanted.build_id = file.build_id;
  wanted.device = PackedDevice(mapping.device_major, mapping.device_minor);
  wanted.inode = mapping.inode;
  if (mapping.path == kVdso) {
    wanted.paths = {kVdso};
  } else if (mapping.inode != 0 || !file.build_id.empty()) {
    // Without an inode or a build-id only the program says which file it is, and is not trusted.
    wanted.paths = PathsOfMapping(
        {pid_, mapping.start_address, mapping.end_address - mapping.start_address, mapping.path});
    // Another file may have been mapped there meanwhile.
    if (!file.build_id.empty() && file.name != mapping.path) {
      std::ranges::copy(PathsOfMapping({.pid = pid_, .path = file.name}),
                        std::back_inserter(wanted.paths));
    }
  }
  python_.ObserveFile(wanted, file.range.bias, sink);
  known.table = wanted.paths.empty() ? 0 : settings_.tables->Request(std::move(wanted));
}

bool InlineStacks::AnswerTables() {
  bool any = false;
  for (size_t number = 0; number < files_.size(); ++number) {
    File& file = files_[number];
    if (!file.known || file.location != wire::kTablePending) continue;
    file.location = settings_.tables->LocationOf(file.table);
    header_.tables[number].store(file.location, std::memory_order_release);
    any = any || file.location != wire::kTablePending;
  }
  return any;
}

void InlineStacks::AnswerQuestions() {
  for (uint64_t address : std::exchange(questions_, {})) {
    const auto* code = settings_.processes->FindCode(pid_, address);
    if (code != nullptr) AddOtherCode(code->first, code->second.end);
    header_.other_code_answers.fetch_add(1, std::memory_order_release);
  }
}

void InlineStacks::AddOtherCode(uint64_t start_address, uint64_t end_address) {
  if (other_code_.size() >= kMaxRanges) return;
  if (!HasRoomFor(other_code_, start_address)) return;
  uint64_t& end = other_code_[start_address];
  if (end >= end_address) return;
  end = end_address;
  const uint32_t count = header_.other_code_count.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < std::min(count, wire::kMaxOtherCode); ++i) {
    wire::AddressRange& range = header_.other_code[i];
    if (range.start.load(std::memory_order_relaxed) == start_address) {
      range.end.store(end_address, std::memory_order_release);
      return;
    }
  }
  if (count >= wire::kMaxOtherCode) return;
  header_.other_code[count].start.store(start_address, std::memory_order_relaxed);
  header_.other_code[count].end.store(end_address, std::memory_order_relaxed);
  header_.other_code_count.store(count + 1, std::memory_order_release);
}

CodeKind InlineStacks::FindRule(const CodeRanges::Version& code, uint64_t address,
                                UnwindRule* rule) const {
  const CodeRange* range = code.Find(address);
  if (range == nullptr) {
    const bool is_code = settings_.processes->FindCode(pid_, address) != nullptr;
    return is_code ? CodeKind::kNoTable : CodeKind::kNotCode;
  }
  const uint32_t location =
      range->file < files_.size() ? files_[range->file].location : wire::kTablePending;
  if (location == wire::kTablePending) return CodeKind::kNotReady;
  if (location == wire::kTableNone) return CodeKind::kNoTable;
  *rule = settings_.tables->arena().At(location).Find(address - range->bias);
  return CodeKind::kRule;
}

void InlineStacks::WalkCopies(EventSink& sink, bool last) {
  const auto find = [this](const CodeRanges::Version& code, uint64_t address, UnwindRule* rule) {
    return FindRule(code, address, rule);
  };
  copies_.Walk(
      find, MonotonicNs(), last || !copies_have_room_,
      [&](const StackCopy& copy, const WalkResult& walk, std::span<const uint64_t> frames) {
        Stack stack{.walk = {walk.flags, static_cast<uint32_t>(walk.stop)},
                    .frames = {frames.begin(), frames.end()}};
        Write(copy.call, copy.block, stack, sink);
      });
  ChargeCopies();
}

}  // namespace xpu

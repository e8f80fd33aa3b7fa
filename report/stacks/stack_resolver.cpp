#include "report/stacks/stack_resolver.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>
#include <utility>

#include "format/base/file.h"
#include "format/base/path.h"
#include "format/base/text.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

// Symbols before an address that are looked at: a hostile file may pile up any number of them.
constexpr int kMaxSteps = 256;

uint64_t EndOf(const GeneratedSymbol& symbol) {
  const uint64_t end = symbol.address + symbol.size_bytes;
  return end < symbol.address ? std::numeric_limits<uint64_t>::max() : end;
}

// A hostile file can chain more nodes than any stack has.
constexpr size_t kMaxNativeFrames = 4096;
// Answers that are kept of all spaces together, until they are forgotten: a small file can have the
// same deep stack in thousands of processes.
constexpr size_t kMostKept = 500'000;

// Addresses of user space have no highest bit, those of the kernel always have it, and no file is
// that long: it makes place for `exact`.
uint64_t KeyOf(uint64_t address, bool exact) { return address << 1 | (exact ? 1 : 0); }

template <size_t kCount>
bool IsOneOf(const std::array<std::string_view, kCount>& libraries, std::string_view module) {
  return std::any_of(libraries.begin(), libraries.end(), [&](std::string_view library) {
    return module.starts_with(library) ||
           // PyTorch wheels carry libcudart-1a2b3c4d.so.12.
           (module.starts_with(library.substr(0, library.size() - 3)) &&
            module.substr(library.size() - 3).starts_with("-"));
  });
}

bool IsProfiler(std::string_view module) {
  static constexpr std::array<std::string_view, 2> kLibraries = {"libcupti.so", "libxpu_inject.so"};
  return IsOneOf(kLibraries, module);
}

bool IsCudaInternal(std::string_view module) {
  static constexpr std::array<std::string_view, 2> kLibraries = {"libcuda.so", "libcudart.so"};
  return IsOneOf(kLibraries, module) || IsProfiler(module);
}

// A static libcudart names its own functions libcudart_static_<hash> and __cudart<number>.
bool IsStaticRuntime(std::string_view symbol) {
  return symbol.starts_with("libcudart_static_") || symbol.starts_with("__cudart");
}

}  // namespace

GeneratedSymbols::GeneratedSymbols(const Model& model, const ProcessHistory& processes)
    : processes_(processes) {
  const auto& symbols = model.events.generated_symbols;
  if (symbols.empty()) return;
  spaces_.resize(processes.spaces().size());
  std::unordered_map<uint32_t, std::vector<SpaceId>> of_pid;
  for (uint32_t i = 1; i <= processes.size(); ++i) {
    const ProcessHistory::Process& process = processes[ProcessId{i}];
    for (const auto& [since, space] : process.spaces) of_pid[process.pid].push_back(space);
  }
  for (const GeneratedSymbol& symbol : symbols) {
    if (symbol.time_ns == 0) {
      // A perf-PID.map says nothing of when: it is every life's of the pid.
      for (const SpaceId space : of_pid[symbol.pid]) Add(space, symbol);
    } else if (const ProcessId process = processes.At(symbol.pid, symbol.time_ns)) {
      Add(processes.SpaceAt(process, symbol.time_ns), symbol);
    }
  }
  for (Space& space : spaces_) {
    std::stable_sort(
        space.by_start.begin(), space.by_start.end(),
        [](const GeneratedSymbol* a, const GeneratedSymbol* b) { return a->address < b->address; });
    space.index.Set(space.by_start.size(), [&](size_t i) { return EndOf(*space.by_start[i]); });
  }
}

void GeneratedSymbols::Add(SpaceId space, const GeneratedSymbol& symbol) {
  if (space) spaces_.at(space.value - 1).by_start.push_back(&symbol);
}

void GeneratedSymbols::AddChangesOf(SpaceId space, std::vector<uint64_t>& times) const {
  if (spaces_.empty()) return;
  for (const GeneratedSymbol* symbol : spaces_.at(space.value - 1).by_start) {
    times.push_back(symbol->time_ns);
  }
}

template <typename Visit>
void GeneratedSymbols::ForEachOver(const Space& space, uint64_t address, Visit&& visit) {
  const auto after = std::upper_bound(
      space.by_start.begin(), space.by_start.end(), address,
      [](uint64_t value, const GeneratedSymbol* symbol) { return value < symbol->address; });
  int steps = 0;
  space.index.ForEachDown(static_cast<size_t>(after - space.by_start.begin()), address,
                          [&](size_t i) {
                            if (steps++ >= kMaxSteps) return false;
                            const GeneratedSymbol& symbol = *space.by_start[i];
                            if (EndOf(symbol) > address) visit(symbol);
                            return true;
                          });
}

GeneratedSymbols::Found GeneratedSymbols::Find(SpaceId id, uint64_t address,
                                               uint64_t time_ns) const {
  const AddressSpaces& spaces = processes_.spaces();
  const GeneratedSymbol* newest = nullptr;
  const GeneratedSymbol* any = nullptr;
  int seen = 0;
  bool always = true;
  // Code that a parent made after the copy is not in the copy.
  uint64_t copied_ns = std::numeric_limits<uint64_t>::max();
  for (int steps = 0; id && !spaces_.empty() && steps < kMaxSteps; id = spaces.ParentOf(id)) {
    ++steps;
    const bool decided = newest != nullptr;
    bool covered = false;
    ForEachOver(spaces_[id.value - 1], address, [&](const GeneratedSymbol& symbol) {
      if (symbol.time_ns > copied_ns) return;
      ++seen;
      any = &symbol;
      always = always && symbol.time_ns == 0;
      covered = covered || symbol.time_ns == 0;
      if (decided || symbol.time_ns > time_ns) return;
      // The later one in the file of two of one time, visited first, counts.
      if (newest == nullptr || symbol.time_ns > newest->time_ns) newest = &symbol;
    });
    if (covered) break;  // at every time: the parents' are never seen
    copied_ns = std::min(copied_ns, spaces.CopiedNs(id));
  }
  if (seen <= 1) return {any, true};
  return {newest, always};
}

KernelSymbols::KernelSymbols(const std::vector<KernelSymbol>& symbols) {
  by_address_.reserve(symbols.size());
  for (const KernelSymbol& symbol : symbols) by_address_.push_back(&symbol);
  std::stable_sort(
      by_address_.begin(), by_address_.end(),
      [](const KernelSymbol* a, const KernelSymbol* b) { return a->address < b->address; });
}

const KernelSymbol* KernelSymbols::Find(uint64_t address) const {
  const auto after = std::upper_bound(
      by_address_.begin(), by_address_.end(), address,
      [](uint64_t value, const KernelSymbol* symbol) { return value < symbol->address; });
  if (after == by_address_.begin()) return nullptr;
  const KernelSymbol* symbol = *std::prev(after);
  return address - symbol->address < symbol->size_bytes ? symbol : nullptr;
}

std::string ModuleName(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  return std::string(FileNameOf(path));
}

StackResolver::StackResolver(const Model& model, const ProcessHistory& processes,
                             const ApiNames& api_names, Symbolizer& symbolizer, FrameTable& frames,
                             FramePlaces places)
    : model_(model),
      processes_(processes),
      api_names_(api_names),
      symbolizer_(symbolizer),
      frames_(frames),
      places_(places),
      kernel_symbols_(model.events.kernel_symbols.rows()),
      generated_(model, processes),
      unknown_(frames.Intern("[unknown]")),
      lost_(frames.Intern("[lost]")),
      unknown_frames_(KeepOne(unknown_)) {}

StackResolver::FramesId StackResolver::Keep(Frames frames) {
  kept_.push_back(std::move(frames));
  return FramesId{static_cast<uint32_t>(kept_.size())};
}

StackResolver::FramesId StackResolver::KeepOne(FrameId frame) {
  FramesId& known = single_[frame.value];
  if (!known) known = Keep(Frames{frame});
  return known;
}

void StackResolver::Want(StackId stack, SpaceId space, uint64_t time_ns) {
  if (!stack || !space) return;
  const auto key_of = [&](StackId id) { return uint64_t{id.value} << 32 | space.value; };
  if (wanted_stacks_.Get(key_of(stack))) return;
  if (wanted_callers_.size() >= kMostKept) wanted_callers_ = {};
  wanted_stacks_[key_of(stack)] = space;
  bool user_seen = false;
  for (size_t depth = 0; stack && depth < kMaxNativeFrames; ++depth) {
    if (model_.tables->IsLost(stack)) return;
    ++frames_resolved_;
    const StackNode node = model_.tables->Node(stack);
    if (node.frame.kind == FrameKind::kUser) {
      // After a caller that was met before are only such.
      if (user_seen && wanted_callers_.Get(key_of(stack))) return;
      if (user_seen) wanted_callers_[key_of(stack)] = space;
      const uint64_t address = node.frame.address - (user_seen && node.frame.address != 0 ? 1 : 0);
      if (const auto place = FileAt(address, space, time_ns)) {
        symbolizer_.Want(place->module, place->file_offset);
      }
      user_seen = true;
    }
    stack = node.caller;
  }
}

ResolvedStack StackResolver::Resolve(StackId stack, SpaceId space, uint64_t time_ns) {
  ResolvedStack resolved;
  // The innermost frame of each kind is where execution was; the others are return addresses,
  // which may lie after the end of the function when its call is the last thing it does.
  bool kernel_seen = false;
  bool user_seen = false;
  while (stack && resolved.frames.size() < kMaxNativeFrames) {
    if (model_.tables->IsLost(stack)) {
      resolved.frames.push_back(lost_);
      break;
    }
    const StackNode node = model_.tables->Node(stack);
    ++frames_resolved_;
    if (node.frame.kind == FrameKind::kKernel) {
      resolved.frames.push_back(ResolveKernel(node.frame.address, !kernel_seen));
      kernel_seen = true;
    } else {
      const ResolvedAddress at = ResolveUser(node.frame.address, !user_seen, space, time_ns);
      const Frames& frames = kept_[at.frames.value - 1];
      resolved.frames.insert(resolved.frames.end(), frames.begin(), frames.end());
      resolved.at_any_time = resolved.at_any_time && at.at_any_time;
      user_seen = true;
    }
    stack = node.caller;
  }
  return resolved;
}

StackResolver::FramesAt StackResolver::At(const Frame& frame, bool exact, SpaceId space,
                                          uint64_t time_ns) {
  ++frames_resolved_;
  ResolvedAddress at;
  if (frame.kind == FrameKind::kKernel) {
    at.frames = KeepOne(ResolveKernel(frame.address, exact));
  } else {
    at = ResolveUser(frame.address, exact, space, time_ns);
  }
  return {kept_[at.frames.value - 1], at.at_any_time};
}

std::optional<uint32_t> StackResolver::EpochAt(SpaceId space, uint64_t time_ns) {
  if (!space) return std::nullopt;
  const AddressSpaces& spaces = processes_.spaces();
  // The parent's code at that time has changes of its own.
  if (spaces.ParentOf(space) && time_ns < spaces.CopiedNs(space)) return std::nullopt;
  if (changes_.size() < space.value) changes_.resize(space.value);
  std::optional<std::vector<uint64_t>>& changes = changes_[space.value - 1];
  if (!changes) {
    changes = spaces.ChangesOf(space);
    generated_.AddChangesOf(space, *changes);
    std::sort(changes->begin(), changes->end());
    changes->erase(std::unique(changes->begin(), changes->end()), changes->end());
  }
  const auto later = std::upper_bound(changes->begin(), changes->end(), time_ns);
  return static_cast<uint32_t>(later - changes->begin());
}

FrameId StackResolver::ResolveKernel(uint64_t address, bool exact) {
  FrameId& known = kernel_frames_[KeyOf(address, exact)];
  if (known) return known;
  const KernelSymbol* symbol = kernel_symbols_.Find(exact || address == 0 ? address : address - 1);
  NamedFrame frame{.origin = FrameOrigin::kKernel, .name = "[kernel]", .module = "[kernel]"};
  if (symbol != nullptr) {
    frame.name = model_.Text(symbol->name);
    frame.is_profiler = frame.name.starts_with("bpf_prog_");
    if (symbol->module) frame.module = model_.Text(symbol->module);
    if (places_.offsets) frame.place = Format("+{:#x}", address - symbol->address);
  }
  return known = frames_.Intern(frame);
}

StackResolver::ResolvedAddress StackResolver::ResolveUser(uint64_t address, bool exact,
                                                          SpaceId space, uint64_t time_ns) {
  if (!space) return {unknown_frames_, true};
  if (user_frame_count_ >= kMostKept) {
    user_frames_.clear();
    user_frame_count_ = 0;
  }
  if (user_frames_.size() < space.value) user_frames_.resize(space.value);
  FlatMap<FramesId>& known = user_frames_[space.value - 1];
  if (const FramesId frames = known.Get(KeyOf(address, exact))) return {frames, true};
  const uint64_t inside = exact || address == 0 ? address : address - 1;
  const ResolvedAddress resolved = NameUser(inside, exact, space, time_ns);
  if (!resolved.at_any_time) return resolved;
  known[KeyOf(address, exact)] = resolved.frames;
  ++user_frame_count_;
  return resolved;
}

std::optional<StackResolver::InFile> StackResolver::FileOf(const Mapping* mapping,
                                                           uint64_t address) {
  if (mapping == nullptr) return std::nullopt;
  const std::string_view path = model_.Text(mapping->path);
  const std::string_view build_id = model_.Text(mapping->build_id);
  const bool is_file = IsFilePath(path) && !(build_id.empty() && MayBeGeneratedCode(path));
  if (!IsFilePath(path) && !path.starts_with('[')) return std::nullopt;
  const ModuleId module = symbolizer_.Module(path, build_id);
  // The vdso and ELF files in memory have a slice if the recorder made one.
  if (!is_file && symbolizer_[module].slice.empty()) return std::nullopt;
  return InFile{module, address - mapping->start_address + mapping->file_offset};
}

std::optional<StackResolver::InFile> StackResolver::FileAt(uint64_t address, SpaceId space,
                                                           uint64_t time_ns) {
  if (!space) return std::nullopt;
  return FileOf(processes_.spaces().Find(space, address, time_ns).mapping, address);
}

std::optional<std::string_view> StackResolver::SymbolAt(uint64_t address, SpaceId space,
                                                        uint64_t time_ns) {
  const std::optional<InFile> place = FileAt(address, space, time_ns);
  if (!place) return std::nullopt;
  return symbolizer_.FunctionAt(place->module, place->file_offset);
}

StackResolver::ResolvedAddress StackResolver::NameUser(uint64_t address, bool exact, SpaceId space,
                                                       uint64_t time_ns) {
  const AddressSpaces::Found found = processes_.spaces().Find(space, address, time_ns);
  if (const std::optional<InFile> place = FileOf(found.mapping, address)) {
    return {NameInFile(*found.mapping, *place, exact), found.at_any_time};
  }
  const GeneratedSymbols::Found generated = generated_.Find(space, address, time_ns);
  const bool at_any_time = found.at_any_time && generated.at_any_time;
  if (generated.symbol != nullptr) {
    return {NameGenerated(*generated.symbol, address, exact), at_any_time};
  }
  if (found.mapping == nullptr) return {unknown_frames_, at_any_time};
  const std::string_view path = model_.Text(found.mapping->path);
  const std::string_view name = path.starts_with('[') ? path : "[anon]";
  return {KeepOne(frames_.Intern({.name = std::string(name), .module = {}})), at_any_time};
}

StackResolver::FramesId StackResolver::NameGenerated(const GeneratedSymbol& symbol,
                                                     uint64_t address, bool exact) {
  const std::string_view name = model_.Text(symbol.name);
  NamedFrame frame{
      .python_role = PythonRoleOf(name, "[jit]"), .name = std::string(name), .module = "[jit]"};
  if (places_.offsets) {
    frame.place = Format("+{:#x}", address - symbol.address + (exact ? 0 : 1));
  }
  return KeepOne(frames_.Intern(frame));
}

FrameId StackResolver::NameFunction(const CodeFrame& function, NamedFrame frame,
                                    const InFile& place, bool exact) {
  frame.is_api_entry = api_names_.IsEntryPoint(function.function);
  frame.is_cuda_internal = frame.is_cuda_internal || IsStaticRuntime(function.function);
  frame.is_inlined = function.is_inlined;
  frame.python_role = PythonRoleOf(function.function, frame.module);
  frame.name = Demangle(function.function);
  if (frame.name.empty()) {
    frame.name =
        Format("{}!fun_{:x}", frame.module, place.file_offset - function.offset.value_or(0));
    frame.nameless_in = place.module;
  }
  if (places_.offsets && function.offset) {
    frame.place = Format("+{:#x}", *function.offset + (exact ? 0 : 1));
  }
  if (places_.lines && !function.file.empty()) {
    frame.place += Format(" {}:{}", ModuleName(function.file), function.line);
    frame.source = function.file;
  }
  return frames_.Intern(frame);
}

StackResolver::FramesId StackResolver::NameInFile(const Mapping& mapping, const InFile& place,
                                                  bool exact) {
  // The offset is the call's, `exact` tells it from an instruction's: only for the text of frames
  // that show the address as it was recorded.
  if (file_frames_.size() < place.module.value) file_frames_.resize(place.module.value);
  const uint64_t key = KeyOf(place.file_offset, exact);
  FlatMap<FramesId>& known = file_frames_[place.module.value - 1];
  if (const FramesId frames = known.Get(key)) return frames;
  const std::string_view path = model_.Text(mapping.path);
  NamedFrame frame{.name = {}, .module = ModuleName(path)};
  frame.is_cuda_internal = IsCudaInternal(frame.module);
  frame.is_profiler = IsProfiler(frame.module);
  Frames frames;
  for (const CodeFrame& function : symbolizer_.FramesAt(place.module, place.file_offset)) {
    frames.push_back(NameFunction(function, frame, place, exact));
  }
  if (frames.empty() && !IsFilePath(path)) {
    frame.name = path;  // "[vdso]"
    frames.push_back(frames_.Intern(frame));
  } else if (frames.empty()) {
    frame.name =
        Format("{}+{:#x}", frame.module, exact ? place.file_offset : place.file_offset + 1);
    frame.nameless_in = place.module;
    frames.push_back(frames_.Intern(frame));
  }
  return known[key] = Keep(std::move(frames));
}

}  // namespace xpu

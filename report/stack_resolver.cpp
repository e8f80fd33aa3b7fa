#include "report/stack_resolver.h"

#include <algorithm>
#include <array>

#include "format/base/text.h"
#include "symbolize/demangle.h"

namespace xpu {
namespace {

// A hostile file can chain more nodes than any stack has.
constexpr size_t kMaxFrames = 4096;

// Addresses of user space have no highest bit, those of the kernel always have it, and no file is
// that long: it makes place for `exact`.
uint64_t KeyOf(uint64_t address, bool exact) { return address << 1 | (exact ? 1 : 0); }

bool IsCudaInternal(std::string_view module) {
  static constexpr std::array<std::string_view, 4> kLibraries = {"libcuda.so", "libcudart.so",
                                                                 "libcupti.so", "libxpu_inject.so"};
  return std::any_of(kLibraries.begin(), kLibraries.end(), [&](std::string_view library) {
    return module.starts_with(library) ||
           // PyTorch wheels carry libcudart-1a2b3c4d.so.12.
           (module.starts_with(library.substr(0, library.size() - 3)) &&
            module.substr(library.size() - 3).starts_with("-"));
  });
}

// A static libcudart names its own functions libcudart_static_<hash> and __cudart<number>.
bool IsStaticRuntime(std::string_view symbol) {
  return symbol.starts_with("libcudart_static_") || symbol.starts_with("__cudart");
}

}  // namespace

std::string ModuleName(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
  const size_t slash = path.rfind('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

StackResolver::StackResolver(const Model& model, const ProcessTable& processes,
                             const ApiNames& api_names, Symbolizer& symbolizer, FrameTable& frames)
    : model_(model),
      processes_(processes),
      api_names_(api_names),
      symbolizer_(symbolizer),
      frames_(frames),
      kernel_symbols_(model.events.kernel_symbols),
      unknown_(frames.Intern("[unknown]")),
      lost_(frames.Intern("[lost]")) {}

ResolvedStack StackResolver::Resolve(StackId stack, SpaceId space, uint64_t time_ns) {
  ResolvedStack resolved;
  // The innermost frame of each kind is where execution was; the others are return addresses,
  // which may lie behind the end of the function when its call is the last thing it does.
  bool kernel_seen = false;
  bool user_seen = false;
  while (stack && resolved.frames.size() < kMaxFrames) {
    if (model_.tables->IsLost(stack)) {
      resolved.frames.push_back(lost_);
      break;
    }
    const StackNode node = model_.tables->Node(stack);
    if (node.frame.kind == FrameKind::kKernel) {
      resolved.frames.push_back(ResolveKernel(node.frame.address, !kernel_seen));
      kernel_seen = true;
    } else {
      const ResolvedFrame frame = ResolveUser(node.frame.address, !user_seen, space, time_ns);
      resolved.frames.push_back(frame.frame);
      resolved.at_any_time = resolved.at_any_time && frame.at_any_time;
      user_seen = true;
    }
    stack = node.caller;
  }
  return resolved;
}

FrameId StackResolver::ResolveKernel(uint64_t address, bool exact) {
  FrameId& known = kernel_frames_[KeyOf(address, exact)];
  if (known) return known;
  const KernelSymbol* symbol = kernel_symbols_.Find(exact || address == 0 ? address : address - 1);
  NamedFrame frame{.origin = FrameOrigin::kKernel, .name = "[unknown]", .module = "[kernel]"};
  if (symbol != nullptr) {
    frame.name = model_.Text(symbol->name);
    if (symbol->module) frame.module = model_.Text(symbol->module);
  }
  return known = frames_.Intern(frame);
}

StackResolver::ResolvedFrame StackResolver::ResolveUser(uint64_t address, bool exact, SpaceId space,
                                                        uint64_t time_ns) {
  if (!space) return {unknown_, true};
  if (user_frames_.size() < space.value) user_frames_.resize(space.value);
  FlatMap<FrameId>& known = user_frames_[space.value - 1];
  if (const FrameId frame = known.Get(KeyOf(address, exact))) return {frame, true};
  const uint64_t inside = exact || address == 0 ? address : address - 1;
  const AddressSpaces::Found found = processes_.spaces().Find(space, inside, time_ns);
  const FrameId frame = NameUser(found.mapping, inside, exact);
  if (found.at_any_time) known[KeyOf(address, exact)] = frame;
  return {frame, found.at_any_time};
}

std::optional<std::string_view> StackResolver::SymbolAt(uint64_t address, SpaceId space,
                                                        uint64_t time_ns) {
  if (!space) return std::nullopt;
  const Mapping* mapping = processes_.spaces().Find(space, address, time_ns).mapping;
  if (mapping == nullptr || !model_.Text(mapping->path).starts_with('/')) return std::nullopt;
  const ModuleId module =
      symbolizer_.Module(model_.Text(mapping->path), model_.Text(mapping->build_id));
  return symbolizer_.FunctionAt(module, address - mapping->start_address + mapping->file_offset);
}

FrameId StackResolver::NameUser(const Mapping* mapping, uint64_t address, bool exact) {
  if (mapping == nullptr) return unknown_;
  const std::string_view path = model_.Text(mapping->path);
  if (path.starts_with('[')) return frames_.Intern({.name = std::string(path), .module = {}});
  if (path.empty() || path.starts_with("//anon")) {
    return frames_.Intern({.name = "[anon]", .module = {}});
  }
  return NameInFile(*mapping, address - mapping->start_address + mapping->file_offset, exact);
}

FrameId StackResolver::NameInFile(const Mapping& mapping, uint64_t file_offset, bool exact) {
  const ModuleId module =
      symbolizer_.Module(model_.Text(mapping.path), model_.Text(mapping.build_id));
  // `file_offset` is the call's, `exact` tells it from an instruction's: only for the text of
  // frames without a name, which show the address as it was recorded.
  if (file_frames_.size() < module.value) file_frames_.resize(module.value);
  FrameId& known = file_frames_[module.value - 1][KeyOf(file_offset, exact)];
  if (known) return known;
  NamedFrame frame{.name = {}, .module = ModuleName(model_.Text(mapping.path))};
  frame.is_cuda_internal = IsCudaInternal(frame.module);
  if (const auto symbol = symbolizer_.FunctionAt(module, file_offset)) {
    frame.is_api_entry = api_names_.IsEntryPoint(*symbol);
    frame.is_cuda_internal = frame.is_cuda_internal || IsStaticRuntime(*symbol);
    frame.name = Demangle(*symbol);
  } else {
    frame.name = Format("{}+{:#x}", frame.module, exact ? file_offset : file_offset + 1);
  }
  return known = frames_.Intern(frame);
}

}  // namespace xpu

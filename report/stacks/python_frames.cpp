#include "report/stacks/python_frames.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "format/base/source_name.h"
#include "format/base/split.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Most names in a frame; the page and the files have the rest.
constexpr size_t kMostNames = 8;
constexpr size_t kMostLines = 8;
constexpr size_t kMostText = 60;

std::string Listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    text += i == 0 ? "" : ", ";
    text += names[i];
  }
  if (names.size() > kMostNames) AppendFormat(text, " and {} more", names.size() - kMostNames);
  return text;
}

// "aten.silu" as "silu".
std::string_view OperatorOf(std::string_view name) {
  const size_t dot = name.find('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

// The first characters, and whole ones.
std::string Shortened(std::string_view text) {
  if (text.size() <= kMostText) return std::string(text);
  size_t size = kMostText;
  while (size > 0 && (text[size] & 0xc0) == 0x80) --size;
  return Format("{}..", text.substr(0, size));
}

using Paths = std::unordered_set<std::string_view>;

// The files of the innermost functions, other than PyTorch's, below which generated code runs:
// those that go through torch.compile.
template <typename IsGenerated>
Paths CompiledFiles(const Model& model, IsGenerated is_generated) {
  std::unordered_map<uint32_t, std::string_view> paths;
  for (const PythonCode& code : model.events.python_codes) {
    paths.try_emplace(code.code, model.Text(code.path));
  }
  Paths files;
  std::unordered_set<uint32_t> seen[2];  // stacks, and those below which generated code runs
  for (const LaunchStack& launch : model.events.launch_stacks) {
    bool is_below = false;
    for (StackId stack = launch.python_stack; stack && !model.tables->IsLost(stack);) {
      if (!seen[is_below ? 1 : 0].insert(stack.value).second) break;
      const StackNode node = model.tables->Node(stack);
      stack = node.caller;
      const auto path = paths.find(PythonFrame::OfBits(node.frame.address).code);
      if (node.frame.kind != FrameKind::kPython || path == paths.end()) continue;
      if (is_generated(path->second)) {
        is_below = true;
      } else if (is_below && !IsPyTorchFile(path->second)) {
        files.insert(path->second);
        break;
      }
    }
  }
  return files;
}

// A hostile file can chain more nodes than any stack has.
constexpr size_t kMaxPythonFrames = 4096;

// The first version whose line tables PythonLines reads.
constexpr uint32_t kLineTables = 3 << 8 | 9;  // 3.9

// The first version whose loops can be found on the stack.
constexpr uint32_t kLoopAddresses = 3 << 8 | 11;

// "model.py"; of the files that every package has also the package: "torch/__init__.py".
std::string_view FileOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return path;
  const std::string_view file = path.substr(slash + 1);
  if (!file.starts_with("__") || slash == 0) return file;
  const size_t directory = path.rfind('/', slash - 1);
  return directory == std::string_view::npos ? path : path.substr(directory + 1);
}

}  // namespace

FusedFrames::FusedFrames(const Model& model, const SourceParts& sources) {
  FindCalls(sources.parts);
  if (calls_.empty()) return;
  const Paths files =
      CompiledFiles(model, [this](std::string_view path) { return calls_.contains(path); });
  FindDefinitions(sources.parts, files);
}

void FusedFrames::FindCalls(std::span<const SourcePart> parts) {
  for (const SourcePart& part : parts) {
    const std::vector<FusedCall> calls = FusedCallsOf(part.text, part.first_line);
    if (calls.empty()) continue;
    std::vector<FusedCall>& all = calls_[part.path];
    all.insert(all.end(), calls.begin(), calls.end());
  }
  for (auto& [path, calls] : calls_) {
    std::stable_sort(calls.begin(), calls.end(), [](const FusedCall& a, const FusedCall& b) {
      return a.last_line < b.last_line;
    });
    for (const FusedCall& call : calls) {
      for (const std::string_view name : call.operators) operators_.insert(OperatorOf(name));
    }
  }
}

void FusedFrames::FindDefinitions(std::span<const SourcePart> parts, const Paths& files) {
  std::map<std::string_view, std::map<uint32_t, std::string_view>> of_files;
  for (const SourcePart& part : parts) {
    if (!files.contains(part.path)) continue;
    std::string_view& known = of_files[part.path][part.first_line];
    if (part.text.size() > known.size()) known = part.text;
  }
  for (const auto& [path, of_file] : of_files) {
    // The recorder stores all of a file that assigns one of the names, so what begins at the first
    // line and has no gap is all of it.
    std::string whole;
    uint32_t next = 1;
    for (const auto& [first_line, text] : of_file) {
      if (first_line != next) {
        whole.clear();
        break;
      }
      whole += text;
      next += static_cast<uint32_t>(std::count(text.begin(), text.end(), '\n'));
    }
    if (!whole.empty()) AddDefinitions(path, texts_.emplace_back(std::move(whole)));
  }
}

void FusedFrames::AddDefinitions(std::string_view path, std::string_view text) {
  std::vector<std::string_view> lines;
  ForEachLine(text, [&](std::string_view line) { lines.push_back(line); });
  constexpr std::string_view kSpace = " \t\r";
  for (const auto& [variable, binding] : BindingsOf(text)) {
    if (binding.line > lines.size()) continue;
    std::string_view content = lines[binding.line - 1];
    content = content.substr(std::min(content.find_first_not_of(kSpace), content.size()));
    content = content.substr(0, content.find_last_not_of(kSpace) + 1);
    const auto [known, is_new] = definitions_.try_emplace(
        variable, Definition{path, binding.is_sole ? binding.line : 0, content});
    if (!is_new) known->second.line = 0;
  }
}

std::vector<NamedFrame> FusedFrames::At(std::string_view path, int64_t line) const {
  std::vector<NamedFrame> frames;
  const auto calls = calls_.find(path);
  if (calls == calls_.end()) return frames;
  const auto call =
      std::lower_bound(calls->second.begin(), calls->second.end(), line,
                       [](const FusedCall& one, int64_t at) { return one.last_line < at; });
  if (call == calls->second.end() || line < call->first_line) return frames;
  std::vector<std::string_view> operators;
  std::transform(call->operators.begin(), call->operators.end(), std::back_inserter(operators),
                 OperatorOf);
  frames.push_back({.origin = FrameOrigin::kOther,
                    .name = Format("[fused] {}: {}", Listed(call->nodes), Listed(operators)),
                    .module = std::string(path)});
  std::set<std::tuple<std::string_view, uint32_t, std::string_view>> lines;
  for (const std::string_view node : call->nodes) {
    const auto at = definitions_.find(node);
    if (at == definitions_.end() || at->second.line == 0 || operators_.contains(node)) continue;
    lines.emplace(at->second.path, at->second.line, at->second.text);
  }
  for (const auto& [file, number, text] : lines) {
    if (frames.size() > kMostLines) break;
    frames.push_back({.origin = FrameOrigin::kOther,
                      .name = Format("[fused] {}:{} {}", file.substr(file.rfind('/') + 1), number,
                                     Shortened(text)),
                      .module = std::string(file)});
  }
  return frames;
}

PythonFrames::PythonFrames(const Model& model, const SourceParts& sources, FrameTable& frames,
                           FramePlaces places)
    : model_(model),
      frames_(frames),
      places_(places),
      fused_(model, sources),
      unknown_(frames.Intern("[unknown Python function]", FrameOrigin::kPython)),
      cut_(frames.Intern("[python frames cut]", FrameOrigin::kPython)) {
  for (const PythonCode& code : model.events.python_codes) codes_.try_emplace(code.code, &code);
}

PythonStack PythonFrames::Resolve(StackId stack) {
  PythonStack resolved;
  bool group_is_open = false;
  for (size_t depth = 0; stack; ++depth) {
    if (depth == kMaxPythonFrames || model_.tables->IsLost(stack)) break;
    ++resolved.walked;
    const StackNode node = model_.tables->Node(stack);
    if (node.frame.kind != FrameKind::kPython) break;
    const PythonFrame frame = PythonFrame::OfBits(node.frame.address);
    const PythonGap gap = frame.code == 0 ? PythonGap{frame.offset} : PythonGap::kCodeMissing;
    if (gap != PythonGap::kCodeMissing && gap != PythonGap::kNoFunction) break;
    if (depth == 0) {
      const auto code = codes_.find(frame.code);
      resolved.is_on_top = frame.is_on_top;
      resolved.is_top_known = code == codes_.end() || code->second->version >= kLoopAddresses;
    }
    if (!group_is_open) resolved.groups.emplace_back();
    if (const FrameId name = Name(frame); name != kHidden && gap != PythonGap::kNoFunction) {
      std::vector<FrameId>& frames = resolved.groups.back().frames;
      if (!fused_.empty()) {
        const std::vector<FrameId>& below = FusedBelow(frame);
        frames.insert(frames.end(), below.begin(), below.end());
      }
      frames.push_back(name);
    }
    group_is_open = !frame.is_entry;
    stack = node.caller;
  }
  resolved.is_whole = !stack && !group_is_open;
  return resolved;
}

FrameId PythonFrames::Name(PythonFrame frame) {
  frame.is_entry = frame.is_on_top = false;
  FrameId& known = names_[frame.Bits()];
  if (known) return known;
  const auto code = codes_.find(frame.code);
  if (frame.code == 0 || code == codes_.end()) return known = unknown_;
  if (IsHidden(*code->second)) return known = kHidden;
  return known = frames_.Intern(Describe(*code->second, frame.offset));
}

// Frames that the interpreter puts onto its stack for itself have no line.
bool PythonFrames::IsHidden(const PythonCode& code) {
  return code.first_line == 0 && code.version >= kLineTables &&
         !LinesOf(code.line_table).has_lines();
}

NamedFrame PythonFrames::Describe(const PythonCode& code, uint32_t offset) {
  const std::string_view path = model_.Text(code.path);
  NamedFrame frame{.origin = FrameOrigin::kPython, .name = {}, .module = std::string(path)};
  if (!path.empty()) frame.name = Format("{}:", FileOf(path));
  frame.name += code.name ? model_.Text(code.name) : "[unknown]";
  if (places_.offsets) frame.place = Format("+{:#x}", offset);
  if (!places_.lines) return frame;
  if (const std::optional<int64_t> line = LineOf(code, offset)) {
    frame.place += Format(":{}", *line);
  }
  return frame;
}

std::optional<int64_t> PythonFrames::LineOf(const PythonCode& code, uint32_t offset) {
  if (code.version < kLineTables) return std::nullopt;
  const std::optional<int64_t> line = LinesOf(code.line_table).At(offset);
  return line ? std::optional(*line + code.first_line) : std::nullopt;
}

const std::vector<FrameId>& PythonFrames::FusedBelow(PythonFrame frame) {
  frame.is_entry = frame.is_on_top = false;
  const auto [known, is_new] = fused_below_.try_emplace(frame.Bits());
  const auto code = codes_.find(frame.code);
  if (!is_new || code == codes_.end()) return known->second;
  const std::optional<int64_t> line = LineOf(*code->second, frame.offset);
  if (!line) return known->second;
  for (const NamedFrame& each : fused_.At(model_.Text(code->second->path), *line)) {
    known->second.insert(known->second.begin(), frames_.Intern(each));
  }
  return known->second;
}

const PythonLines& PythonFrames::LinesOf(StringId line_table) {
  const auto known = lines_.find(line_table);
  if (known != lines_.end()) return known->second;
  return lines_.emplace(line_table, PythonLines(model_.Bytes(line_table))).first->second;
}

bool IsPythonImport(const NamedFrame& frame) {
  return frame.origin == FrameOrigin::kPython && (frame.module.starts_with("<frozen importlib") ||
                                                  frame.module.ends_with("/importlib/__init__.py"));
}

std::string PythonModuleName(std::string_view path) {
  size_t begin = path.rfind('/') + 1;
  for (const std::string_view place : kInstalledPython) {
    const size_t at = path.rfind(place);
    if (at == std::string_view::npos) continue;
    begin = at + place.size();
    if (!place.ends_with('/')) begin = path.find('/', begin) + 1;  // "/lib/python3" and "12/"
    break;
  }
  path.remove_prefix(begin);
  for (const std::string_view end : {".py", "/__init__"}) {
    if (path.ends_with(end)) path.remove_suffix(end.size());
  }
  std::string name(path);
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

}  // namespace xpu

#include "report/stacks/python_frames.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/source_name.h"
#include "format/base/text.h"

namespace xpu {
namespace {

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

// What the interpreter puts onto its stack for itself is of no line.
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

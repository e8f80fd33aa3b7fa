#include "report/stacks/fused_frames.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "format/base/split.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Of a frame; the page and the files have the rest.
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

}  // namespace xpu

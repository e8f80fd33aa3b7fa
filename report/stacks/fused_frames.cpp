#include "report/stacks/fused_frames.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <unordered_set>

#include "format/base/text.h"

namespace xpu {
namespace {

// Of a frame; the page and the files have the rest.
constexpr size_t kMostNames = 8;
constexpr size_t kMostLines = 8;
constexpr size_t kMostText = 60;
constexpr size_t kMostDepth = 4096;

bool IsOfPyTorch(std::string_view path) {
  return path.starts_with('<') || path.find("/torch/") != std::string_view::npos;
}

template <typename Take>
void ForEachLine(std::string_view text, Take&& take) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    take(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

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

// The files of the innermost functions, other than PyTorch's, below which one of `generated` runs:
// those that go through torch.compile.
std::unordered_set<std::string_view> CompiledFiles(
    const Model& model, const std::unordered_set<std::string_view>& generated) {
  std::unordered_map<uint32_t, std::string_view> paths;
  for (const PythonCode& code : model.events.python_codes) {
    paths.try_emplace(code.code, model.Text(code.path));
  }
  std::unordered_set<std::string_view> files;
  std::unordered_set<uint32_t> seen;
  for (const LaunchStack& launch : model.events.launch_stacks) {
    bool is_below = false;
    StackId stack = launch.python_stack;
    if (!stack || !seen.insert(stack.value).second) continue;
    for (size_t depth = 0; stack && depth < kMostDepth; ++depth) {
      if (model.tables->IsLost(stack)) break;
      const StackNode node = model.tables->Node(stack);
      stack = node.caller;
      const auto path = paths.find(PythonFrame::OfBits(node.frame.address).code);
      if (node.frame.kind != FrameKind::kPython || path == paths.end()) continue;
      if (generated.contains(path->second)) {
        is_below = true;
      } else if (is_below && !IsOfPyTorch(path->second)) {
        files.insert(path->second);
        break;
      }
    }
  }
  return files;
}

}  // namespace

FusedFrames::FusedFrames(const Model& model) {
  std::unordered_set<std::string_view> generated;
  for (const SourceText& text : model.events.source_texts) {
    std::vector<FusedCall> calls = FusedCallsOf(model.Bytes(text.text), text.first_line);
    if (calls.empty()) continue;
    std::vector<FusedCall>& all = calls_[*generated.insert(model.Text(text.path)).first];
    all.insert(all.end(), std::make_move_iterator(calls.begin()),
               std::make_move_iterator(calls.end()));
  }
  if (calls_.empty()) return;
  for (const std::string_view path : CompiledFiles(model, generated)) AddDefinitions(model, path);
}

void FusedFrames::AddDefinitions(const Model& model, std::string_view path) {
  std::set<uint32_t> seen;  // parts of a recording have the same lines again
  for (const SourceText& text : model.events.source_texts) {
    if (model.Text(text.path) != path) continue;
    uint32_t number = text.first_line;
    ForEachLine(model.Bytes(text.text), [&](std::string_view line) {
      const std::string_view variable = AssignedVariable(line);
      if (const uint32_t at = number++; variable.empty() || !seen.insert(at).second) return;
      const auto [known, is_new] =
          definitions_.try_emplace(variable, Definition{path, number - 1, line});
      if (!is_new) known->second.line = 0;
    });
  }
}

const FusedFrames::Definition* FusedFrames::DefinitionOf(std::string_view node) const {
  for (const std::string_view name : {node, VariableOf(node)}) {
    const auto found = definitions_.find(name);
    if (found != definitions_.end()) return found->second.line == 0 ? nullptr : &found->second;
  }
  return nullptr;
}

std::vector<NamedFrame> FusedFrames::At(std::string_view path, int64_t line) const {
  std::vector<NamedFrame> frames;
  const auto calls = calls_.find(path);
  if (calls == calls_.end()) return frames;
  const auto call = std::find_if(
      calls->second.begin(), calls->second.end(),
      [&](const FusedCall& one) { return line >= one.first_line && line <= one.last_line; });
  if (call == calls->second.end()) return frames;
  std::vector<std::string_view> operators;
  std::transform(call->operators.begin(), call->operators.end(), std::back_inserter(operators),
                 OperatorOf);
  frames.push_back({.origin = FrameOrigin::kOther,
                    .name = Format("[fused] {}: {}", Listed(call->nodes), Listed(operators)),
                    .module = std::string(path)});
  std::set<std::tuple<std::string_view, uint32_t, std::string_view>> lines;
  for (const std::string_view node : call->nodes) {
    if (const Definition* at = DefinitionOf(node)) lines.emplace(at->path, at->line, at->text);
  }
  for (const auto& [file, number, text] : lines) {
    if (frames.size() > kMostLines) break;
    constexpr std::string_view kSpace = " \t\r";
    std::string_view content = text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
    content = content.substr(0, content.find_last_not_of(kSpace) + 1);
    const bool is_long = content.size() > kMostText;
    content = content.substr(0, kMostText);
    // Not in the middle of a character of UTF-8.
    while (is_long && !content.empty() && (content.back() & 0x80) != 0) content.remove_suffix(1);
    frames.push_back({.origin = FrameOrigin::kOther,
                      .name = Format("[fused] {}:{} {}{}", file.substr(file.rfind('/') + 1), number,
                                     content, is_long ? ".." : ""),
                      .module = std::string(file)});
  }
  return frames;
}

}  // namespace xpu

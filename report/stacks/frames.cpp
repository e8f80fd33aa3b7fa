#include "report/stacks/frames.h"

#include "report/output/text.h"

namespace xpu {

std::string NamedFrame::Label() const {
  std::string label = name + place;
  if (origin == FrameOrigin::kKernel) label += "_[k]";
  if (is_inlined) label += " (inlined)";
  return label;
}

FrameId FrameTable::Intern(const NamedFrame& frame) {
  std::string key(1, static_cast<char>(frame.origin));
  key += frame.is_inlined ? 'i' : ' ';
  key += frame.module;
  key += '\0';
  key += frame.name;
  key += '\0';
  key += frame.place;
  const auto [at, is_new] = ids_.try_emplace(std::move(key));
  if (is_new) {
    frames_.push_back(frame);
    at->second = FrameId{static_cast<uint32_t>(frames_.size())};
  }
  return at->second;
}

std::string FoldedText(const FrameTable& frames, std::span<const FrameId> path) {
  std::string text;
  for (const FrameId frame : path) {
    if (!text.empty()) text += ';';
    text += ToFoldedFrame(frames[frame].Label());
  }
  return text;
}

}  // namespace xpu

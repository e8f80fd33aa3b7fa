// Labels that the user gave a recording: xpu-record --label KEY=VALUE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xpu {

struct Label {
  std::string key;
  std::string value;
};

// Returns the labels among the recorder's arguments, RecordingInfo::settings, which keep them.
std::vector<Label> LabelsOf(std::string_view settings);

}  // namespace xpu

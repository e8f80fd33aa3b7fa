// What the user said of a recording: xpu-record --label KEY=VALUE.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xpu {

struct Label {
  std::string key;
  std::string value;
};

// Those among the arguments of the recorder, RecordingInfo::settings, which keep them.
std::vector<Label> LabelsOf(std::string_view settings);

}  // namespace xpu

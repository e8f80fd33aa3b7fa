// Who is alive and has mapped what at a point of a recording: what the writer repeats, so that
// a later part of the file can be read alone.
#pragma once

#include <functional>
#include <string_view>

#include "format/events.h"

namespace xpu {

class LiveState {
 public:
  virtual ~LiveState() = default;
  // Their times are those of the original events: stating something again changes nothing for a
  // reader that knows it already. Ids of texts are left empty.
  using TakeProcess = std::function<void(const ProcessEvent& event, std::string_view name)>;
  using TakeMapping =
      std::function<void(const Mapping& mapping, std::string_view path, std::string_view build_id)>;

  // Gives each live thread, as an event of kExisting, and each mapping. Of a process its threads
  // come first.
  virtual void ForEach(const TakeProcess& take_process, const TakeMapping& take_mapping) = 0;
};

}  // namespace xpu

// Python frames as events of the capture, and the losses that belong to them.
#pragma once

#include <cstdint>
#include <vector>

#include "bpf/python_layout.h"
#include "record/sink/event_sink.h"

namespace xpu {

// Code 0: a loop without function, or nothing is known, which is counted.
inline void AddPythonFrame(PythonFrame frame, uint32_t pid, InstanceId instance, EventSink& sink,
                           std::vector<Frame>& frames) {
  if (frame.code == 0 && frame.offset == XPU_PYTHON_NO_FUNCTION) {
    frame.offset = static_cast<uint32_t>(PythonGap::kNoFunction);
  } else if (frame.code == 0) {
    sink.losses().Add(LossKind::kPythonCodeMissing, 1, pid, instance);
    frame.offset = static_cast<uint32_t>(PythonGap::kCodeMissing);
  }
  frames.push_back({FrameKind::kPython, frame.Bits()});
}

// Called after the outermost frame. `stop`: an xpu_python_stop.
inline void AddPythonStop(uint32_t stop, uint32_t pid, InstanceId instance, EventSink& sink,
                          std::vector<Frame>& frames) {
  if (stop == XPU_PYTHON_COMPLETE) return;
  const bool is_cut = stop == XPU_PYTHON_DEPTH;
  sink.losses().Add(is_cut ? LossKind::kPythonCut : LossKind::kPythonUnreadable, 1, pid, instance);
  const auto gap = static_cast<uint32_t>(is_cut ? PythonGap::kDepth : PythonGap::kUnreadable);
  frames.push_back({FrameKind::kPython, PythonFrame{.offset = gap}.Bits()});
}

}  // namespace xpu

// Captures of a few kilobytes whose events are many and refer to little, each made to be slow or
// large in one way. What an attacker writes by hand, the writer's columns do by themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "format/base/result.h"
#include "format/writer.h"

namespace xpu::test {

struct HostileCapture {
  std::string_view name;
  // Writes about so many events.
  Status (*write)(CaptureWriter& writer, uint32_t events);
};

std::span<const HostileCapture> HostileCaptures();

}  // namespace xpu::test

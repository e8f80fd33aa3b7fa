// The recorder's invitation in the environment: XPU_INJECT (wire.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/wire.h"

namespace xpu::inject {

struct Invitation {
  char socket_name[108];  // abstract, without the leading zero
  size_t socket_name_bytes;
  uint8_t secret[wire::kSecretBytes];
  uint64_t session;
};

// False: absent (nullptr) or not `<name>:<secret>:<session>`.
bool ParseInvitation(const char* text, Invitation* invitation);

}  // namespace xpu::inject

// Meeting the recorder: from the invitation to a mapped ring. wire.h says the steps.
#pragma once

#include <cstdint>

#include "cupti_inject/invitation.h"
#include "cupti_inject/wire.h"

namespace xpu::inject {

struct MappedRing {
  wire::RingHeader* header = nullptr;  // the data behind it is mapped twice in a row
  uint64_t capacity_bytes = 0;
};

// The most time that Connect may take: a recorder that is stopped must not stop the program.
inline constexpr uint64_t kConnectTimeoutNs = 1'000'000'000;

// False: there is nobody, they are not who they should be, they refuse, or time is up. Leaves no
// descriptor open.
bool Connect(const Invitation& invitation, uint64_t instance, uint64_t timeout_ns,
             MappedRing* ring);
void Unmap(const MappedRing& ring);

}  // namespace xpu::inject

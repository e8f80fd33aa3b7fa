// Setting CUPTI up, in the order that CUPTI wants, and giving it back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cupti_inject/injection.h"

namespace xpu::inject {

// By each of these the driver, or CUPTI, may have registered exit handlers.
enum class SetUpStep : uint8_t { kBegins, kLoaded, kSubscribed };
// Asked at the last two. False: the program exits, and CUPTI must not be called any more.
using MayGoOn = bool (*)(SetUpStep step);
inline constexpr char kExitedMeanwhile[] = "the program exited while CUPTI was being started";

// Everything of Start() after the ring. False with one sentence in `reason`.
bool SetUpCupti(Injection& self, const char* chosen_cupti, MayGoOn may_go_on, char* reason,
                size_t reason_size);
void TearDownCupti(const Injection& self);
void SendDetail(Injection& self, wire::DetailKind kind, uint64_t number, const char* text);

}  // namespace xpu::inject

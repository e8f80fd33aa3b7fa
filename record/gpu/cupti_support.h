// What is known of the CUPTI and the driver in use: whether xpu was tested with both, and what that
// CUPTI lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xpu {

// "12.4", of 12040.
std::string CudaVersionText(uint32_t cuda);

// Of a CUPTI of CUDA `cuda` with a driver of CUDA `driver`; 0: not known.
std::string TestedText(uint32_t cuda, uint32_t driver);

// What is missing compared with the newest CUPTI, separated by "; ". Empty: nothing.
std::string LacksText(uint32_t cuda);

// What a recording lacks with the CUPTI of this version of its interface, and with which driver it
// was. None: nothing.
std::optional<std::string> OldCuptiText(uint32_t api_version, uint32_t driver);

}  // namespace xpu

// What fuzz_wire begins from: each message of cupti_inject/wire.h, with and without sense.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace xpu::fuzz {

// Name and bytes.
std::vector<std::pair<std::string, std::string>> WireSeeds();

}  // namespace xpu::fuzz

// Rules of unwind tables.
#pragma once

#include <cstdint>

#include "symbolize/unwind/unwind_table.h"

namespace xpu::test {

constexpr UnwindRule kNoRule{};

constexpr UnwindRule Rsp(int32_t offset) { return {.cfa = UnwindCfa::kRsp, .cfa_offset = offset}; }

}  // namespace xpu::test

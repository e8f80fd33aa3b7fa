// Kernel names for places with little room.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xpu {

// "softmax<float>" of "void softmax<float>(float*, int)": without parameters and "void", which for
// kernels say nothing. Other text stays.
std::string_view ShortKernelName(std::string_view demangled);

// The same, and what is wider than `width` gets shorter from the inside: first the template
// arguments lose their namespaces, then the innermost arguments become "...", at last the middle
// is cut out.
std::string CompactKernelName(std::string_view demangled, size_t width = 80);

}  // namespace xpu

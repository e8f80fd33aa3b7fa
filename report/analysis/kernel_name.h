// Kernel names for places with little room.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

// "softmax<float>" of "void softmax<float>(float*, int)": without parameters and the type that it
// returns, which for kernels say nothing. Other text stays.
std::string_view ShortKernelName(std::string_view demangled);

// Drops further what is common to many kernels and hides the rest: namespaces that name no library,
// parameters and enclosing calls of lambdas, template arguments that only say how memory is reached
// (arrays, allocators, offset calculators). The functor or operator of a template stays.
std::string TidyKernelName(std::string_view demangled);

// TidyKernelName within `width` columns. What is wider loses first what tells least: namespaces of
// template arguments, plain arguments that repeat the one before, then those beside a functor,
// wrappers around a functor, the middle of the kernel's own name; at last the middle of all.
std::string CompactKernelName(std::string_view demangled, size_t width = 80);

// "at::native::normal_fill" of "void at::native::normal_fill<float>(at::Tensor&) [clone .isra.0]":
// a function as people call it, for call paths.
std::string BareFunctionName(std::string_view demangled);

// A name for each of `demangled`, within `width` columns where it can be, that no other one of them
// has: CompactKernelName, or as much more of the name as tells it from the others.
std::map<std::string, std::string> DistinctKernelNames(const std::vector<std::string>& demangled,
                                                       size_t width = 80);

}  // namespace xpu

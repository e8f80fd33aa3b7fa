// GPU code as the driver loads it: an ELF file (a "cubin") with one section for each kernel.
//
// Its line table has no units, and every function in it begins at address 0 until it is relocated.
// A part of a cubin that a capture carries is an ordinary ELF file: each function has an address of
// its own, and its lines have a table of their own, because the rows of inlined functions
// (DW_LNE_NVIDIA_inlined_call) count from the beginning of the function. Neither libelf nor libdw
// cuts such tables. Pure functions over bytes, which are untrusted.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xpu {

inline constexpr uint16_t kCubinMachine = 190;  // EM_CUDA

struct MadeCubinSlice {
  std::string bytes;                // an ELF file of kCubinMachine
  std::set<std::string> functions;  // those of `wanted` that the cubin has
  // True: there are lines, and they are left out because they are too large or damaged.
  bool lines_left_out = false;
};

// The sections that hold one of the functions `wanted` (mangled names), with their symbols and
// lines. nullopt: it is no cubin, or has none of them. Of a cubin that was made to have large ones,
// no more than kMaxCubinSliceBytes.
std::optional<MadeCubinSlice> WriteCubinSlice(std::span<const std::byte> cubin,
                                              const std::set<std::string>& wanted);
inline constexpr uint64_t kMaxCubinSliceBytes = uint64_t{16} << 20;

}  // namespace xpu

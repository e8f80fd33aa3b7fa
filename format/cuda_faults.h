// Errors of CUDA that come from the GPU.
#pragma once

#include <cstdint>
#include <string_view>

namespace xpu {

// Describes the errors after which a CUDA context cannot be used; "" for other results. CUresult
// and cudaError_t agree in these numbers.
constexpr std::string_view FaultMeaning(int32_t result) {
  switch (result) {
    case 214:
      return "an uncorrectable memory error (ECC)";
    case 220:
      return "an uncorrectable NVLink error";
    case 226:
      return "a contained hardware error";
    case 700:
      return "an illegal memory access";
    case 702:
      return "a kernel that ran too long";
    case 710:
      return "a failed assertion in a kernel";
    case 714:
      return "an error of the hardware stack";
    case 715:
      return "an illegal instruction";
    case 716:
      return "a misaligned address";
    case 717:
      return "an address of the wrong space";
    case 718:
      return "an invalid program counter";
    case 719:
      return "an unspecified launch failure";
    default:
      return "";
  }
}

}  // namespace xpu

// Names in frameworks: which frames only lead from one place to the next, and by which names
// frameworks call their operators, and libraries their kernels. All else asks here, so a new
// framework or library is a line in the tables of framework_names.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/stacks/frames.h"

namespace xpu {

enum class FrameFamily : uint8_t {
  kNone,
  kDispatcher,   // how PyTorch gets from an operator to its code, and from a module to its forward
  kInterpreter,  // the code of CPython itself
  kImport,       // what carries out an import statement
};
inline constexpr size_t kFrameFamilies = 4;
// In place of frames of one family that follow each other: "[dispatcher]".
std::string_view NameOf(FrameFamily family);

FrameFamily FrameFamilyOf(const NamedFrame& frame);

// ---- operators and libraries

// "aten::add" of "at::_ops::add_Tensor::call(at::Tensor const&, ...)"; "" of other functions.
//
// torch.profiler shows operators without their overload ("Tensor"), which the C++ name only appends
// with an underscore, so overloads are recognized by the names that PyTorch gives them.
std::string AtenOperatorOf(std::string_view function);

// "AddmmBackward0" of "torch::autograd::generated::AddmmBackward0::apply(...)", of other nodes of
// the autograd graph likewise; "" of other functions.
std::string AutogradNodeOf(std::string_view function);

// Whether the function runs the backward pass; it adds up gradients itself.
bool IsAutogradEngine(std::string_view function);

// A node whose code is in Python: the name of its class is that of the function that it calls.
inline constexpr std::string_view kPythonNode = "PyNode";
// "AttentionBackward" of "model.py:Attention.backward"; "" of other functions.
std::string PythonNodeOf(std::string_view function);

// A field of an NVTX range of XLA: "fusion.3" of the key "hlo_op" in "TSL:Thunk:#hlo_op=fusion.3#";
// "" without the key.
std::string_view XlaField(std::string_view range, std::string_view key);

// "cuBLAS", "PyTorch", "Triton", ... of a kernel's name, demangled; "other" of those of the
// program.
std::string_view KernelLibraryOf(std::string_view kernel);
inline constexpr std::string_view kTriton = "Triton";

}  // namespace xpu

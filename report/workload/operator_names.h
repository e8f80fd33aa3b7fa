// The names by which frameworks call their operators, and libraries of kernels: the one table of
// both. Everything else asks here, so a new framework or library is a line in operator_names.cpp.
#pragma once

#include <string>
#include <string_view>

namespace xpu {

// "aten::add" of "at::_ops::add_Tensor::call(at::Tensor const&, ...)"; "" of other functions.
//
// torch.profiler shows operators without their overload ("Tensor"), which the C++ name only appends
// with an underscore, so overloads are recognized by the names that PyTorch gives them.
std::string AtenOperatorOf(std::string_view function);

// "AddmmBackward0" of "torch::autograd::generated::AddmmBackward0::apply(...)", of other nodes of
// the autograd graph likewise; "" of other functions.
std::string AutogradNodeOf(std::string_view function);

// Of what runs the backward pass; it adds up gradients itself.
bool IsAutogradEngine(std::string_view function);

// A node whose code is in Python: the name of its class is that of the function that it calls.
inline constexpr std::string_view kPythonNode = "PyNode";
// "AttentionBackward" of "model.py:Attention.backward"; "" of other functions.
std::string PythonNodeOf(std::string_view function);

// What an NVTX range of XLA is about: "fusion.3" of the key "hlo_op" in
// "TSL:Thunk:#hlo_op=fusion.3#"; "" without the key.
std::string_view XlaField(std::string_view range, std::string_view key);

// "cuBLAS", "PyTorch", "Triton", ... of a kernel's name, demangled; "other" of those of the
// program.
std::string_view KernelLibraryOf(std::string_view kernel);
inline constexpr std::string_view kTriton = "Triton";

}  // namespace xpu

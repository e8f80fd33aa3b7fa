#include <gtest/gtest.h>

#include "report/workload/framework_names.h"

namespace xpu {
namespace {

std::string Aten(std::string name) {
  return AtenOperatorOf("at::_ops::" + name + "::call(at::Tensor const&)");
}

TEST(OperatorNamesTest, OperatorsOfPytorchHaveNoOverload) {
  EXPECT_EQ(Aten("addmm"), "aten::addmm");
  EXPECT_EQ(Aten("add_Tensor"), "aten::add");
  EXPECT_EQ(Aten("add__Tensor"), "aten::add_");
  EXPECT_EQ(Aten("copy_"), "aten::copy_");
  EXPECT_EQ(Aten("addmm_out"), "aten::addmm");
  EXPECT_EQ(Aten("pow_Tensor_Scalar_out"), "aten::pow");
  EXPECT_EQ(Aten("sum_dim_IntList"), "aten::sum");
  EXPECT_EQ(Aten("mean_dim"), "aten::mean");
  EXPECT_EQ(Aten("to_dtype_layout"), "aten::to");
  EXPECT_EQ(Aten("_to_copy"), "aten::_to_copy");
  EXPECT_EQ(Aten("_foreach_add__List"), "aten::_foreach_add_");
  EXPECT_EQ(Aten("__and___Tensor"), "aten::__and__");
  EXPECT_EQ(Aten("_local_scalar_dense"), "aten::_local_scalar_dense");
}

TEST(OperatorNamesTest, OperatorsThatEndLikeAnOverloadAreWhole) {
  EXPECT_EQ(Aten("split_with_sizes"), "aten::split_with_sizes");
  EXPECT_EQ(Aten("split_sizes"), "aten::split");
  EXPECT_EQ(Aten("take_along_dim"), "aten::take_along_dim");
  EXPECT_EQ(Aten("_cast_Float"), "aten::_cast_Float");
  EXPECT_EQ(Aten("masked_select"), "aten::masked_select");
}

TEST(OperatorNamesTest, OtherFunctionsAreNoOperators) {
  EXPECT_EQ(AtenOperatorOf("at::_ops::addmm::redispatch(c10::DispatchKeySet)"), "aten::addmm");
  EXPECT_EQ(AtenOperatorOf("at::native::addmm(at::Tensor const&)"), "");
  EXPECT_EQ(AtenOperatorOf("at::_ops::"), "");
  EXPECT_EQ(AtenOperatorOf("at::_ops::::call"), "");
  EXPECT_EQ(AtenOperatorOf("at::_ops::addmm::schema"), "");
}

TEST(OperatorNamesTest, NodesOfAutogradAreOperatorsOfTheBackwardPass) {
  EXPECT_EQ(AutogradNodeOf("torch::autograd::generated::AddmmBackward0::apply(std::vector<"
                           "at::Tensor, std::allocator<at::Tensor> >&&)"),
            "AddmmBackward0");
  EXPECT_EQ(AutogradNodeOf("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)"),
            "AccumulateGrad");
  EXPECT_EQ(AutogradNodeOf("torch::autograd::generated::AddmmBackward0_apply_functional(int)"), "");
  EXPECT_EQ(AutogradNodeOf("torch::autograd::Node::operator()(std::vector<at::Tensor>&&)"), "");
  EXPECT_EQ(PythonNodeOf("model.py:make.<locals>.Attention.backward"), "AttentionBackward");
  EXPECT_EQ(PythonNodeOf("model.py:backward"), "");
  EXPECT_EQ(PythonNodeOf("model.py:Attention.forward"), "");
}

TEST(OperatorNamesTest, RangesOfXlaHaveFields) {
  EXPECT_EQ(XlaField("TSL:Thunk:#hlo_op=fusion.3#", "hlo_op"), "fusion.3");
  EXPECT_EQ(XlaField("TSL:XlaModule:#hlo_module=jit_step,program_id=7#", "program_id"), "7");
  EXPECT_EQ(XlaField("TSL:XlaModule:#hlo_module=jit_step", "hlo_module"), "jit_step");
  EXPECT_EQ(XlaField("TSL:XlaModule:#hlo_module=jit_step#", "module"), "");
  EXPECT_EQ(XlaField("app:hlo_op=fusion", "hlo_op"), "");
  EXPECT_EQ(XlaField("#", "hlo_op"), "");
}

TEST(OperatorNamesTest, KernelsAreOfLibraries) {
  EXPECT_EQ(KernelLibraryOf("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)"), "NCCL");
  EXPECT_EQ(KernelLibraryOf("triton_per_fused_gelu_0"), "Triton");
  EXPECT_EQ(KernelLibraryOf("void cudnn::engines_precompiled::nchwToNhwcKernel<float>()"), "cuDNN");
  EXPECT_EQ(KernelLibraryOf("sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32"), "cuDNN");
  EXPECT_EQ(KernelLibraryOf("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n"), "cuBLAS");
  EXPECT_EQ(KernelLibraryOf("void cublasLt::splitKreduce_kernel<32, 16>()"), "cuBLASLt");
  EXPECT_EQ(KernelLibraryOf("void cutlass::Kernel2<cutlass_80_simt_sgemm>()"), "CUTLASS");
  EXPECT_EQ(KernelLibraryOf("void at::native::reduce_kernel<512>()"), "PyTorch");
  EXPECT_EQ(KernelLibraryOf("input_reduce_fusion_2"), "XLA");
  EXPECT_EQ(KernelLibraryOf("void ncclDevKernel()"), "NCCL");
  EXPECT_EQ(KernelLibraryOf("softmax_kernel(float*)"), "other");
}

}  // namespace
}  // namespace xpu

#include "report/analysis/kernel_name.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace xpu {
namespace {

TEST(ShortKernelName, WithoutParameters) {
  EXPECT_EQ(ShortKernelName("void softmax<float>(float*, int)"), "softmax<float>");
  EXPECT_EQ(ShortKernelName("void a::f<b(int)>(b (*)(int))"), "a::f<b(int)>");
  EXPECT_EQ(ShortKernelName("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
  EXPECT_EQ(ShortKernelName("sm80_gemm"), "sm80_gemm");
  EXPECT_EQ(ShortKernelName("[CUDA memset]"), "[CUDA memset]");
  EXPECT_EQ(ShortKernelName("(x)"), "(x)");
  EXPECT_EQ(ShortKernelName("))"), "))");
  EXPECT_EQ(ShortKernelName(""), "");
}

TEST(ShortKernelName, WithoutTheTypeThatItReturns) {
  EXPECT_EQ(ShortKernelName("std::enable_if<!(false), void>::type ns::kernel<int, 9>(P<int>)"),
            "ns::kernel<int, 9>");
  EXPECT_EQ(ShortKernelName("void a::operator<< <int>(int)"), "a::operator<< <int>");
}

TEST(TidyKernelName, TheFunctorStaysAndHowMemoryIsReachedGoes) {
  EXPECT_EQ(TidyKernelName("void at::native::vectorized_elementwise_kernel<4, "
                           "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
                           "at::native::GeluType)::{lambda()#2}::operator()() const::{lambda()#2}::"
                           "operator()() const::{lambda(float)#1}, std::array<char*, 2ul> >(int)"),
            "vectorized_elementwise_kernel<4, GeluCUDAKernelImpl::{lambda(float)#1}>");
  EXPECT_EQ(TidyKernelName("void at::native::(anonymous namespace)::f<x::native::g>(int)"),
            "f<x::native::g>");
  EXPECT_EQ(TidyKernelName("void k<std::array<char*, 2ul> >(int)"), "k<std::array<char*, 2ul> >");
  EXPECT_EQ(TidyKernelName("void cutlass::Kernel2<gemm_nn>(gemm_nn::Params)"),
            "cutlass::Kernel2<gemm_nn>");
}

TEST(CompactKernelName, WhatFitsKeepsItsArguments) {
  EXPECT_EQ(CompactKernelName("void ns::softmax<ns::Op<float>, 4>(float*, int)"),
            "ns::softmax<ns::Op<float>, 4>");
}

TEST(CompactKernelName, WhatSaysLeastGoesFirst) {
  const char* reduce =
      "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
      "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()("
      "at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >(int)";
  EXPECT_EQ(CompactKernelName(reduce, 80),
            "reduce_kernel<512, 1, ReduceOp<func_wrapper_t<sum_functor<float> > > >");
  EXPECT_EQ(CompactKernelName(reduce, 65),
            "reduce_kernel<ReduceOp<func_wrapper_t<sum_functor<float> > > >");
  EXPECT_EQ(CompactKernelName(reduce, 42), "reduce_kernel<..sum_functor<float> >");
  EXPECT_EQ(CompactKernelName(reduce, 30), "reduce_kernel<..sum_functor>");
  EXPECT_EQ(CompactKernelName("void at::native::vectorized_elementwise_kernel<4, "
                              "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
                              42),
            "vectoriz.._kernel<CUDAFunctor_add<float> >");
  EXPECT_EQ(
      CompactKernelName("void cutlass::Kernel2<cutlass_80_simt_sgemm_64x64_8x5_nn_align1>(P)", 42),
      "cutlass_80_simt_sgemm_64x64_8x5_nn_align1");
  EXPECT_EQ(CompactKernelName("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3", 42),
            "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n..");
}

// Kernels without a functor are distinguished by their types and numbers.
TEST(CompactKernelName, OfPlainArgumentsTheFirstThatFitStay) {
  const char* gemv =
      "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, "
      "float, false, true, true, false, 7, false, cublasGemvParamsEx<int, float> >(P)";
  EXPECT_EQ(CompactKernelName(gemv, 80),
            "internal::gemvx::kernel<int, float, false, true, false, 7, false>");
  EXPECT_EQ(CompactKernelName(gemv, 42), "internal::gemvx::kernel<int, float, ...>");
  EXPECT_EQ(CompactKernelName(gemv, 29), "internal::gemvx::kernel<...>");
}

TEST(CompactKernelName, OperatorsAreNoBrackets) {
  EXPECT_EQ(CompactKernelName("void a::operator<< <verylongargument>(int)", 40),
            "a::operator<< <verylongargument>");
  EXPECT_EQ(CompactKernelName("void f<decltype(a->b), g>(int)", 40), "f<decltype(a->b), g>");
}

TEST(DistinctKernelNames, KernelsThatDifferStayDifferent) {
  const std::vector<std::string> full = {
      "void fill<4, Functor<float> >(int)",
      "void fill<4, Functor<long> >(int)",
      "void fill<4, Other>(int)",
      "scale(float*)",
      "scale(double*)",
      "void k<f()::{lambda()#1}::operator()() const::{lambda(int)#1}>(int)",
      "void k<f()::{lambda()#2}::operator()() const::{lambda(int)#1}>(int)"};
  const std::map<std::string, std::string> names = DistinctKernelNames(full, 16);
  std::set<std::string> different;
  for (const auto& [whole, name] : names) different.insert(name);
  EXPECT_EQ(different.size(), full.size());
  EXPECT_EQ(names.at(full[0]), "fill<4, Functor<float> >");
  EXPECT_EQ(names.at(full[2]), "fill<4, Other>");
  EXPECT_EQ(names.at(full[3]), "scale(float*)");
}

TEST(BareFunctionName, AsPeopleCallIt) {
  EXPECT_EQ(BareFunctionName("void at::native::fill<float>(at::Tensor&) [clone .isra.0]"), "fill");
  EXPECT_EQ(BareFunctionName("a::B<int>::c(int) const"), "a::B::c");
  EXPECT_EQ(BareFunctionName("PyObject_Call"), "PyObject_Call");
}

TEST(CompactKernelName, DamagedNamesStayBounded) {
  for (const char* name : {"<<<<<<<<<<<<<<", ">>>>>>>>>>>>>>>>", "a<b<c<d<e<f<g",
                           "::::::::::::::", "(((((((((((((((", "a)))))))))))))))))"}) {
    EXPECT_LE(CompactKernelName(name, 10).size(), 10u) << name;
  }
  const std::string open(60'000, '<');
  EXPECT_LE(CompactKernelName("f" + open, 10).size(), 10u);
  std::string deep;
  for (int i = 0; i < 2'000; ++i) deep += "a<";
  EXPECT_LE(CompactKernelName(deep + std::string(2'000, '>'), 10).size(), 10u);
}

// A pass over the name for each level of its brackets, and for each of them one over its run, would
// take hours.
TEST(CompactKernelName, AMebibyteOfBracketsIsCut) {
  constexpr size_t kHalf = size_t{1} << 19;
  const std::string name = std::string(kHalf, '<') + std::string(kHalf, '>');
  EXPECT_EQ(CompactKernelName(name, 10), "<<<<..>>>>");
}

TEST(CompactKernelName, WhatIsNestedDeeperThanAnyCompilersNamesIsCut) {
  constexpr size_t kLevels = 4000;
  std::string name;
  for (size_t i = 0; i < kLevels; ++i) name += "f<";
  name += "int" + std::string(kLevels, '>');
  EXPECT_EQ(CompactKernelName(name, 10), "f<f<..>>>>");
}

}  // namespace
}  // namespace xpu

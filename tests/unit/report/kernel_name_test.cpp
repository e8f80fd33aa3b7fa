#include "report/tree/kernel_name.h"

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

TEST(CompactKernelName, WhatFitsKeepsItsArguments) {
  EXPECT_EQ(CompactKernelName("void ns::softmax<ns::Op<float>, 4>(float*, int)"),
            "ns::softmax<ns::Op<float>, 4>");
}

TEST(CompactKernelName, FirstTheArgumentsLoseTheirNamespaces) {
  EXPECT_EQ(CompactKernelName("void at::native::vectorized_elementwise_kernel<4, "
                              "at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
                              "(int, at::native::CUDAFunctor_add<float>)"),
            "at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<...>, array<...> >");
  EXPECT_EQ(CompactKernelName(
                "void k<at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >()", 50),
            "k<CUDAFunctor_add<float>, array<char*, 3ul> >");
  EXPECT_EQ(CompactKernelName("void k<a::(anonymous namespace)::f(int)::{lambda(x::y)#1}, "
                              "a::b<c::d>::e*>()",
                              30),
            "k<{lambda(y)#1}, e*>");
}

TEST(CompactKernelName, ThenTheInnermostArgumentsGo) {
  EXPECT_EQ(CompactKernelName("void kernel<A<B<C<int> > >, D<float> >(int)", 30),
            "kernel<A<B<...> >, D<float> >");
  EXPECT_EQ(CompactKernelName("void kernel<A<B<C<int> > >, D<float> >(int)", 24),
            "kernel<A<...>, D<...> >");
  EXPECT_EQ(CompactKernelName("void kernel<A<B<C<int> > >, D<float> >(int)", 12), "kernel<...>");
  EXPECT_EQ(CompactKernelName("void kernel<A<B<C<int> > >, D<float> >(int)", 8), "ker....>");
}

TEST(CompactKernelName, OperatorsAreNoBrackets) {
  EXPECT_EQ(CompactKernelName("void a::operator<< <verylongargument>(int)", 20),
            "a::operator<< <...>");
  EXPECT_EQ(CompactKernelName("void f<decltype(a->b), aaaaaaaaaaaaaaaaaaaaaa>(int)", 10), "f<...>");
}

TEST(CompactKernelName, DamagedNamesStayBounded) {
  for (const char* name : {"<<<<<<<<<<<<<<", ">>>>>>>>>>>>>>>>", "a<b<c<d<e<f<g",
                           "::::::::::::::", "(((((((((((((((", "a)))))))))))))))))"}) {
    EXPECT_LE(CompactKernelName(name, 10).size(), 10u) << name;
  }
}

}  // namespace
}  // namespace xpu

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
  EXPECT_EQ(CompactKernelName(name, 10), "f<f<...>>");
}

}  // namespace
}  // namespace xpu

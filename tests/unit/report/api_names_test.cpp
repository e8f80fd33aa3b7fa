#include "report/trace/api_names.h"

#include <gtest/gtest.h>

#include "tests/unit/report/model_builder.h"

namespace xpu {
namespace {

TEST(ApiNames, Normalized) {
  EXPECT_EQ(NormalizeApiName("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(NormalizeApiName("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(NormalizeApiName("__cudaLaunchKernel"), "cudaLaunchKernel");
  EXPECT_EQ(NormalizeApiName("__cudaLaunchKernel_ptsz"), "cudaLaunchKernel");
  EXPECT_EQ(NormalizeApiName("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
  EXPECT_EQ(NormalizeApiName("cuLaunchKernel"), "cuLaunchKernel");
  EXPECT_EQ(NormalizeApiName("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync");
  EXPECT_EQ(NormalizeApiName("cuMemcpy_ptds"), "cuMemcpy");
  EXPECT_EQ(NormalizeApiName("_v7000"), "");
  EXPECT_EQ(NormalizeApiName("__libc_start_main"), "__libc_start_main");
}

TEST(ApiNames, WhatACallStarts) {
  EXPECT_EQ(KindOfApi("cudaLaunchKernel"), ApiKind::kKernelLaunch);
  EXPECT_EQ(KindOfApi("cuLaunchKernelEx"), ApiKind::kKernelLaunch);
  EXPECT_EQ(KindOfApi("cuLaunchCooperativeKernel"), ApiKind::kKernelLaunch);
  EXPECT_EQ(KindOfApi("cudaGraphLaunch"), ApiKind::kGraphLaunch);
  EXPECT_EQ(KindOfApi("cudaLaunchHostFunc"), ApiKind::kOther);
  EXPECT_EQ(KindOfApi("cudaMemcpyAsync"), ApiKind::kOther);
}

TEST(ApiNames, NamesBelongToAnInstance) {
  test::ModelBuilder builder;
  builder.Callback(1, ApiDomain::kRuntime, 9, "cudaFoo_v9000");
  builder.Callback(2, ApiDomain::kRuntime, 9, "cudaBar_v9000");
  builder.Callback(1, ApiDomain::kRuntime, 10, "INVALID");
  const Model model = builder.Build();
  const ApiNames names(model);
  EXPECT_EQ(names.Text(names.Of({1}, ApiDomain::kRuntime, 9)), "cudaFoo");
  EXPECT_EQ(names.Text(names.Of({2}, ApiDomain::kRuntime, 9)), "cudaBar");
  EXPECT_EQ(names.Text(names.Of({1}, ApiDomain::kDriver, 9)), "cuda_driver_api_9");
  EXPECT_EQ(names.Text(names.Of({1}, ApiDomain::kRuntime, 10)), "cuda_runtime_api_10");
  EXPECT_EQ(names.Text(names.Of({1}, ApiDomain::kDriver, 307)),
            "cuLaunchKernel");  // known without a name
  EXPECT_EQ(names.Text(names.Of({1}, ApiDomain::kRuntime, 505)), "cudaLaunchKernel");
}

TEST(ApiNames, EntryPoints) {
  test::ModelBuilder builder;
  builder.Callback(1, ApiDomain::kRuntime, 9, "cudaFoo_v9000");
  const Model model = builder.Build();
  const ApiNames names(model);
  EXPECT_TRUE(names.IsEntryPoint("cudaFoo"));
  EXPECT_TRUE(names.IsEntryPoint("__cudaLaunchKernel"));
  EXPECT_TRUE(names.IsEntryPoint("cudaMemcpyAsync_ptsz"));
  EXPECT_FALSE(names.IsEntryPoint("cudaHelperOfTheUser"));
  EXPECT_FALSE(names.IsEntryPoint("_Z16cudaLaunchKernelv"));
  EXPECT_FALSE(names.IsEntryPoint(""));
}

}  // namespace
}  // namespace xpu

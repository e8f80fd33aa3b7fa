// What of CUDA's binary interface our headers must get right.
#pragma once

#include <map>
#include <string>

namespace xpu::fake_cuda_test {

std::map<std::string, unsigned long> FakeAbi();  // of tests/fake_cuda/include
std::map<std::string, unsigned long> RealAbi();  // of the toolkit

}  // namespace xpu::fake_cuda_test

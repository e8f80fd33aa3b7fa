// Raw captures to compare: the real ones of tests/captures/cupti, and what the same recorder writes
// about the same workload on the simulated device.
#pragma once

#include <string>
#include <vector>

#include "cupti_raw.h"

namespace xpu::fake_cuda_test {

using Strings = std::vector<std::string>;

// The workload of the captures transformer_*.
inline const Strings kTransformer = {"transformer", "--requests", "2",           "--layers", "2",
                                     "--seq",       "64",         "--kernel-us", "50"};
Strings With(Strings strings, const Strings& more);

// `name`: of a file in tests/captures/cupti, without .raw.zst. Fails the test when it is not good.
cupti_raw::Capture LoadReal(const std::string& name);

// What the workload of the capture printed.
std::string LoadRealJson(const std::string& name);

// Runs `command` (a workload and its arguments) under the recorder with `environment`
// ("NAME=VALUE"). One capture per process that used CUDA, in the order of their pids; `*status` as
// of waitpid.
std::vector<cupti_raw::Capture> RecordFake(const Strings& command, const Strings& environment = {},
                                           int* status = nullptr);

// Of a workload with one process.
cupti_raw::Capture RecordOne(const Strings& command, const Strings& environment = {});

}  // namespace xpu::fake_cuda_test

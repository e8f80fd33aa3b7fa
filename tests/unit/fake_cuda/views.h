// What two captures of one workload have in common, as lines of text: what differs from run to run
// (times, addresses, pids) is left out, correlation ids are numbered in the order of their first
// use.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "cupti_raw.h"

namespace xpu::fake_cuda_test {

using Lines = std::vector<std::string>;

template <typename T>
T FieldOf(std::span<const uint8_t> record, size_t offset) {
  T value{};
  if (offset + sizeof(T) <= record.size()) std::memcpy(&value, &record[offset], sizeof(T));
  return value;
}

// The calls of the set-up with argument and result.
Lines SetupLines(const cupti_raw::Capture& capture);

// Every callback of the program's first thread, in order: domain, site, name, id, context, result.
// The resource callbacks of nodes that the driver makes for itself are left out.
Lines CallbackLines(const cupti_raw::Capture& capture);

// Every record of the buffers that belong to the program's first thread, in order, byte by byte in
// hexadecimal but for times, addresses, pids, tids and what depends on the compiled kernel or the
// card.
Lines RecordLines(const cupti_raw::Capture& capture);

// How many records there are by kind and, for overheads, by their kind; without the overheads of
// flushing and of asking for buffers, which depend on when threads run.
std::map<std::string, int> RecordCounts(const cupti_raw::Capture& capture);

// The thread of the first callback.
uint32_t MainThread(const cupti_raw::Capture& capture);

}  // namespace xpu::fake_cuda_test

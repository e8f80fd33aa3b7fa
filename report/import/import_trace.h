// The text that the printer of CUPTI's samples makes of activity records (activity_trace_async and
// the samples after it), as records.
//
// Lines that are read: RUNTIME, DRIVER, CONCURRENT_KERNEL, KERNEL, MEMCPY, MEMCPY2, MEMSET,
// MEMORY2, OVERHEAD, MARKER, MARKER_DATA, SYNCHRONIZATION, GRAPH_TRACE, DEVICE and names of
// threads, as the samples of CUDA 5 to 13 write them. Lines of other records, and what the program
// itself printed between them, are counted; so are those of records that are incomplete, which are
// left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "format/events.h"

namespace xpu {

// One record: its event, without texts and without an instance.
template <typename Event>
struct Imported {
  Event event;
  std::string name;  // of the event's StringId
  uint32_t pid = 0;  // of the line, or else of the nearest one before it that has one
};

// A moment of NVTX. The text does not say whether it begins or ends a range: of two with one id
// the first does the one, the second the other.
struct ImportedMarker {
  uint64_t time_ns = 0;
  uint32_t id = 0;
  uint32_t pid = 0;
  std::string name;
  std::string domain;  // empty: the default one
};

struct MarkerData {
  uint32_t color = 0;
  uint32_t category = 0;
  NvtxPayload payload_type = NvtxPayload::kNone;
  uint64_t payload = 0;
};

struct ThreadNamed {
  uint32_t tid = 0;
  std::string name;
};

// Lines that no record was made of.
struct LeftOutLines {
  uint64_t count = 0;
  uint64_t first_number = 0;  // from 1
  std::string first;

  void Count(uint64_t number, std::string_view line) {
    if (count++ > 0) return;
    first_number = number;
    first = line;
  }
};

struct ImportedTrace {
  std::vector<Imported<ApiCall>> calls;
  std::vector<Imported<Kernel>> kernels;
  std::vector<Imported<Memcpy>> memcpys;
  std::vector<Imported<Memset>> memsets;
  std::vector<Imported<MemoryOperation>> memory_operations;
  std::vector<Imported<Overhead>> overheads;
  std::vector<Imported<Synchronization>> synchronizations;
  std::vector<Imported<GraphLaunch>> graph_launches;
  std::vector<Imported<Device>> devices;
  std::vector<ImportedMarker> markers;
  std::map<uint32_t, MarkerData> marker_data;  // by id
  std::vector<ThreadNamed> thread_names;

  uint64_t dropped_records = 0;  // by CUPTI, as the text says
  LeftOutLines unknown;
  LeftOutLines broken;  // of records that are cut, or have numbers that do not fit

  bool is_empty() const {
    return calls.empty() && kernels.empty() && memcpys.empty() && memsets.empty() &&
           memory_operations.empty() && overheads.empty() && synchronizations.empty() &&
           graph_launches.empty() && markers.empty();
  }
};

ImportedTrace ParseCuptiText(std::string_view text);

}  // namespace xpu

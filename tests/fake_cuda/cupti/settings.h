// How this libcupti behaves, from the environment; README.md has the list and what each shows.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace xpu::fake_cupti {

enum class Order { kAsIs, kReverse, kShuffle };

struct Settings {
  uint32_t cuda = 13000;  // the version whose CUPTI this one is like
  Order order = Order::kAsIs;
  uint64_t zero_times_every = 0;
  uint64_t backward_times_every = 0;
  uint64_t unknown_kind_every = 0;
  uint64_t drop_every = 0;
  uint64_t delivery_delay_us = 0;
  bool poison_names = true;
  bool hold_back = true;
  bool per_thread = true;
  bool has_worker = true;
  bool overheads = true;
  uint64_t set_up_ms = 0;
  bool confidential = false;           // no device buffers in memory of the host
  bool subscribed = false;             // by another tool, from the start
  std::string holder;                  // the other tool's name
  uint64_t device_buffer_records = 0;  // in each; 0: no limit
  int64_t clock_offset_ns = 0;
  int64_t clock_drift_ppm = 0;
  int32_t timestamp_before_context = 0;      // CUptiResult
  std::map<uint32_t, uint32_t> record_size;  // by kind, where it differs from that of the version
};

const Settings& TheSettings();

}  // namespace xpu::fake_cupti

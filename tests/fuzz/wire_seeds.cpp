#include "wire_seeds.h"

#include <cstring>
#include <span>
#include <type_traits>

#include "bpf/events.h"
#include "cupti_inject/cupti_abi.h"
#include "cupti_inject/wire_stacks.h"

namespace xpu::fuzz {
namespace {

using namespace wire;

// The row of messages that fuzz_wire reads.
class Row {
 public:
  template <typename Message>
  Row& Add(MessageKind kind, const Message& message, std::string_view behind = {}) {
    static_assert(std::is_standard_layout_v<Message>);
    const char* bytes = reinterpret_cast<const char*>(&message) + sizeof(MessageHeader);
    std::string content(bytes, sizeof(Message) - sizeof(MessageHeader));
    return Piece(static_cast<uint8_t>(kind), content.append(behind));
  }
  Row& Header(uint8_t field, uint64_t value) {
    std::string content(1, static_cast<char>(field));
    return Piece(0, content.append(reinterpret_cast<const char*>(&value), sizeof(value)));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Row& Piece(uint8_t kind, const std::string& content) {
    bytes_ += static_cast<char>(kind);
    bytes_ += static_cast<char>(content.size() & 0xff);
    bytes_ += static_cast<char>(content.size() >> 8);
    bytes_ += content;
    return *this;
  }

  std::string bytes_ = "\3";
};

std::string Numbers(std::initializer_list<uint64_t> values) {
  const std::span<const uint64_t> span(values.begin(), values.size());
  return {reinterpret_cast<const char*>(span.data()), span.size_bytes()};
}

// A record of CUPTI: its kind, then bytes that differ.
std::string Record(uint32_t kind, size_t bytes) {
  std::string record(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) record[i] = static_cast<char>(i);
  std::memcpy(record.data(), &kind, sizeof(kind));
  return record;
}

std::string Activities() {
  Row row;
  row.Add(MessageKind::kName, NameMessage{{}, 1, 6}, "kernel");
  for (uint32_t kind = 0; kind < 60; ++kind) {
    for (const uint32_t bytes : {40u, 96u, 216u}) {
      row.Add(MessageKind::kActivity, ActivityMessage{{}, kind % 2, bytes}, Record(kind, bytes));
    }
  }
  return row.Header(1, 1).bytes();
}

std::string Calls() {
  Row row;
  row.Add(MessageKind::kCallbackName, CallbackNameMessage{{}, 1, 307, 14, 0}, "cuLaunchKernel");
  row.Add(MessageKind::kApiCall, ApiCallMessage{{}, 1, 307, 5, 77, 1000, 2000, 0, 0});
  row.Add(MessageKind::kClockPair, ClockPairMessage{{}, 10, 20, 30});
  row.Add(MessageKind::kGraphNode, GraphNodeMessage{{}, 10, 2, 1, 3, 0, 1, 77, 5, 0});
  for (uint8_t kind = 0; kind < 8; ++kind) {
    row.Add(MessageKind::kNvtx,
            NvtxMessage{{}, 10, 1, 2, 77, 0, 0, 0, 5, static_cast<NvtxKind>(kind), 1, 0, 0, 0},
            "range");
  }
  row.Add(MessageKind::kNvtx,
          NvtxMessage{{}, 10, 1, 2, 77, 0, 0, 0, 5, NvtxKind::kPush, kPayloadOfSchema, 0, 4, 9},
          "rangedata");
  row.Add(MessageKind::kNvtxSchemaEntry,
          NvtxSchemaEntryMessage{{}, 9, 16, 0, 0, 0, 0, 4, 0, 0, 5, 0}, "field");
  row.Add(MessageKind::kSwitch, SwitchMessage{{}, 10, 1, 0});
  for (uint32_t kind = 1; kind < 7; ++kind) {
    row.Add(MessageKind::kDetail, DetailMessage{{}, static_cast<DetailKind>(kind), 4, 13}, "text");
  }
  return row.Header(0, 100).Header(1, 2).bytes();
}

LaunchCall Call(uint32_t python_stack) {
  return {1000, 5, 1u << kDomainShift | 307, 77, 0, python_stack, 0};
}

std::string Stacks() {
  Row row;
  CodeFileMessage file{};
  file.name_bytes = 16;
  file.start_address = 0x7f0000001000;
  file.end_address = 0x7f0000005000;
  file.bias = 0x7f0000000000;
  file.build_id_bytes = 20;
  row.Add(MessageKind::kCodeFile, file, "/usr/lib/libf.so");
  row.Add(MessageKind::kCodeFileGone, CodeFileGoneMessage{{}, 0x7f0000008000});
  row.Add(MessageKind::kCodeFilesComplete, CodeFilesCompleteMessage{{}, 9, 0});
  row.Add(MessageKind::kStack, StackMessage{{}, 1, 3, XPU_STOP_COMPLETE, XPU_WALK_TABLES},
          Numbers({0x7f0000001234, 0x7f0000002345, 0x401000}));
  row.Add(MessageKind::kPythonCode, PythonCodeMessage{{}, 1, 0x030d, 10, 4, 1, 6, 1, 4},
          "mainapp.py\x80\x01\x81\x02");
  row.Add(MessageKind::kPythonStack, PythonStackMessage{{}, 1, 2, 0, 0},
          Numbers({uint64_t{1} << 32 | 8, uint64_t{1} << 32 | kPythonEntry | 4}));
  row.Add(MessageKind::kLaunch, LaunchMessage{{}, Call(1), 1, 0});
  row.Add(MessageKind::kOtherCode, OtherCodeMessage{{}, 0x7f0000009000});
  row.Add(MessageKind::kStackCopy,
          StackCopyMessage{{}, Call(0), 0x7f0000001234, 0x7ffc00000000, 0x7ffc00000010, 64, 0},
          Numbers({1, 2, 0x7ffc00000020, 0x7f0000002345, 0, 0x401000, 7, 8}));
  const LaunchCall block{1000, 0, kDomainAllocator << kDomainShift, 77, 0, 1, 0};
  row.Add(MessageKind::kBlock, BlockMessage{{}, block, {0x7e0000000000, -512, 4096, 8192, 0, 1}});
  row.Add(MessageKind::kLaunch, LaunchMessage{{}, block, 1, 0},
          Numbers({0x7e0000000000, 512, 4096, 8192, uint64_t{1} << 32}));
  return row.Header(1, 1).bytes();
}

std::string Samples() {
  Row row;
  const std::string cubin("\177ELF\2\1\1\x41\0\0\0\0\0\0\0\0\2\0\276\0", 20);
  row.Add(MessageKind::kGpuClaim, GpuClaimMessage{{}, {1, 2, 3}, 1, 0});
  row.Add(MessageKind::kStallReason, StallReasonMessage{{}, 1, 7, 4, 0}, "wait");
  row.Add(MessageKind::kGpuFunction, GpuFunctionMessage{{}, 99, 5, 4}, "_Z1k");
  row.Add(MessageKind::kGpuSamples, GpuSamplesMessage{{}, 10, 99, 16, 1, 5, 1, 0},
          Numbers({uint64_t{3} << 32 | 7}));
  row.Add(MessageKind::kGpuSampling,
          GpuSamplingMessage{{}, 10, 5, 1, 0, 262144, 1 << 26, 3, 1, 0, 1, 0});
  row.Add(MessageKind::kCubin, CubinMessage{{}, 99, 40, 0, 20, 0}, cubin);
  row.Add(MessageKind::kCubin, CubinMessage{{}, 99, 40, 20, 20, 0}, cubin);
  return row.bytes();
}

// The memory of a ring: one message, then what cannot be one.
std::string Memory() {
  std::string bytes(1, '\0');
  const uint32_t words[] = {32 | kReady, static_cast<uint32_t>(MessageKind::kClockPair)};
  bytes.append(reinterpret_cast<const char*>(words), sizeof(words));
  return bytes.append(Numbers({10, 20, 30, 7, uint64_t{kReady} | 1}));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> WireSeeds() {
  return {{"activities", Activities()},
          {"calls", Calls()},
          {"stacks", Stacks()},
          {"samples", Samples()},
          {"ring", Memory()}};
}

}  // namespace xpu::fuzz

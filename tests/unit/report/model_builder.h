// Captures by hand: events with texts and stacks, as a model in memory or as a file.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/model/model.h"

namespace xpu::test {

// Of CUDA's runtime, as CUPTI numbers its calls.
inline constexpr uint32_t kLaunchKernel = 211;
inline constexpr uint32_t kMemcpy = 31;
// Where the tests map the text of their programs, and that of the kernel.
inline constexpr uint64_t kText = 0x10000;
inline constexpr uint64_t kKernelText = 0xffffffff81000000;

// Grows while events are made; shared with the models built from it.
class BuilderTables : public CaptureTables {
 public:
  std::string_view String(StringId id) const override;
  StackNode Node(StackId id) const override;
  bool IsLost(StackId id) const override { return id.value > nodes_.size(); }

  StringId Add(std::string_view text);
  StackId Add(StackId caller, Frame frame);

 private:
  std::deque<std::string> strings_;  // by id - 1
  std::map<std::string, StringId, std::less<>> string_ids_;
  std::vector<StackNode> nodes_;  // by id - 1
  std::map<std::tuple<StackId, FrameKind, uint64_t>, StackId> node_ids_;
};

// Kernel addresses in stacks have their highest bit set.
class ModelBuilder {
 public:
  ModelBuilder() : tables_(std::make_unique<BuilderTables>()) {}

  StringId Text(std::string_view text) { return tables_->Add(text); }
  // Outermost first, as one reads call paths.
  StackId Stack(std::initializer_list<uint64_t> outermost_first) {
    return Stack(std::span(outermost_first.begin(), outermost_first.size()));
  }
  StackId Stack(std::span<const uint64_t> outermost_first);
  StackId PythonStack(std::initializer_list<PythonFrame> outermost_first) {
    return PythonStack(std::span(outermost_first.begin(), outermost_first.size()));
  }
  StackId PythonStack(std::span<const PythonFrame> outermost_first);

  // The events; each returns what it added, to change what is unlike the rest.
  ProcessEvent& Process(ProcessEventKind kind, uint64_t time_ns, uint32_t pid, uint32_t tid,
                        std::string_view name = {}, uint32_t parent_pid = 0,
                        uint32_t parent_tid = 0);
  Mapping& Map(uint64_t time_ns, uint32_t pid, uint64_t start, uint64_t size, uint64_t offset,
               std::string_view path, std::string_view build_id = {});
  CpuSample& Sample(uint64_t time_ns, uint32_t pid, uint32_t tid, StackId stack);
  // Source 1, `period_ns` each.
  void Source(uint64_t period_ns);
  // The clock of `instance` is `offset_ns` ahead of CLOCK_MONOTONIC, seen at these times.
  void Clock(uint64_t instance, uint64_t offset_ns, std::initializer_list<uint64_t> at_ns);
  void Callback(uint64_t instance, ApiDomain domain, uint32_t id, std::string_view name);
  // A call with its stack (none: without) at its start.
  ApiCall& Call(uint64_t instance, uint32_t correlation, uint32_t callback_id, uint64_t start_ns,
                uint64_t end_ns, uint32_t tid);
  LaunchStack& Launch(uint64_t instance, uint32_t correlation, uint64_t time_ns, uint32_t pid,
                      uint32_t tid, StackId stack);
  Kernel& AddKernel(uint64_t instance, uint32_t correlation, uint64_t start_ns, uint64_t end_ns,
                    std::string_view name);
  // At 1 ns, of no process.
  Loss& Lose(std::string_view name, uint64_t count, std::string_view detail = {});
  void End(uint64_t time_ns);

  EventBatch events;
  ReadProblems problems;

  // The builder is empty afterwards.
  Model Build();
  Status WriteCapture(const std::string& path) const;

 private:
  std::unique_ptr<BuilderTables> tables_;
};

}  // namespace xpu::test

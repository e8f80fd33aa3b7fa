// Records which container each process is in: when it is there at the start, forks, or runs another
// program, which is when a container begins.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "record/process/container.h"
#include "record/process/process_table.h"
#include "record/source/source.h"

namespace xpu {

class ContainerSource : public Source, private ProcessListener {
 public:
  static Result<std::unique_ptr<Source>> Open(SourceContext& context);

  void Begin(EventSink& sink) override;
  void Drain(EventSink& sink) override;
  void Stop(EventSink& sink, bool /*may_go_on*/) override { Drain(sink); }

 private:
  struct Due {
    uint32_t pid = 0;
    uint32_t parent = 0;  // 0: it is not a fork
    uint32_t tries = 0;   // that found no environment
  };

  explicit ContainerSource(const SourceContext& context) : context_(context) {}
  void OnFork(uint32_t parent_pid, uint32_t pid) override { due_.push_back({pid, parent_pid, 0}); }
  void OnExec(uint32_t pid) override { due_.push_back({pid, 0, 0}); }
  void OnEnd(uint32_t pid) override { ended_.push_back(pid); }
  void Take(const Due& due, EventSink& sink);
  void Write(uint32_t pid, const Container& container, EventSink& sink) const;

  const SourceContext& context_;
  const ContainerFinder finder_;
  std::vector<Due> due_;         // in order
  std::vector<uint32_t> ended_;  // since the last drain
  // Of the live processes; nullptr: in none.
  std::unordered_map<uint32_t, std::shared_ptr<const Container>> known_;
};

}  // namespace xpu

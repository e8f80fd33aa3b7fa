#include "record/source/container_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "record/base/clock.h"

namespace xpu {

Result<std::unique_ptr<Source>> ContainerSource::Open(SourceContext& context) {
  std::unique_ptr<ContainerSource> source(new ContainerSource(context));
  context.processes.AddListener(source.get());
  return std::unique_ptr<Source>(std::move(source));
}

void ContainerSource::Begin(EventSink& sink) {
  context_.processes.ForEachProcess([&](uint32_t pid, const ProcessTable::Process&) {
    due_.push_back({pid, 0, 0});
  });
  Drain(sink);
}

void ContainerSource::Drain(EventSink& sink) {
  for (const Due& due : std::exchange(due_, {})) Take(due, sink);
  // After what was due: some fork and end between two drains.
  for (const uint32_t pid : std::exchange(ended_, {})) {
    if (context_.processes.Find(pid) != nullptr) continue;  // its number is used again
    if (const auto known = known_.find(pid); known != known_.end()) {
      if (known->second) sink.ForgetContainer(pid);
      known_.erase(known);
    }
  }
}

// A process that has ended cannot be read: what it was forked with counts. The kernel reports an
// exec before the program has its environment: then it is looked at again, and what has been forked
// meanwhile gets what it finds.
void ContainerSource::Take(const Due& due, EventSink& sink) {
  constexpr uint32_t kMostTries = 20;
  if (due.tries > 0 && !known_.contains(due.pid)) return;  // it has ended meanwhile
  std::shared_ptr<const Container>& known = known_[due.pid];
  const std::shared_ptr<const Container> before = known;
  const auto parent = due.parent == 0 ? known_.end() : known_.find(due.parent);
  if (parent != known_.end()) {
    known = parent->second;
  } else {
    std::optional<Container> found;
    const ContainerFinder::Answer answer = finder_.Find(static_cast<pid_t>(due.pid), found);
    if (answer == ContainerFinder::Answer::kNone) return;
    if (!found) known = nullptr;
    if (found && (!known || *known != *found)) {
      known = std::make_shared<Container>(*std::move(found));
    }
    if (answer == ContainerFinder::Answer::kPartial && due.tries < kMostTries) {
      due_.push_back({due.pid, 0, due.tries + 1});
    }
  }
  if (known == before) return;
  Write(due.pid, known ? *known : Container(), sink);
  if (due.tries == 0 || !before) return;
  for (auto& [pid, container] : known_) {
    if (container != before) continue;
    container = known;
    Write(pid, known ? *known : Container(), sink);
  }
}

void ContainerSource::Write(uint32_t pid, const Container& container, EventSink& sink) const {
  ContainerInfo info;
  info.time_ns = MonotonicNs();
  info.pid = pid;
  info.runtime = container.runtime;
  info.id = sink.Intern(container.id);
  info.name = sink.Intern(container.name);
  info.pod_uid = sink.Intern(container.pod_uid);
  info.pod_name = sink.Intern(container.pod_name);
  info.pod_namespace = sink.Intern(container.pod_namespace);
  sink.Write(info);
}

}  // namespace xpu

#include "record/unwind/unwind_publisher.h"

#include <algorithm>
#include <utility>

#include "record/base/clock.h"

namespace xpu {

UnwindPublisher::UnwindPublisher(UnwindMaps& maps, UnwindTables& tables, ProcessTable& processes)
    : maps_(maps), tables_(tables), processes_(processes) {
  processes.AddListener(this);
}

// A child of an unknown process stays unknown too, until it maps code or calls exec.
void UnwindPublisher::OnFork(uint32_t parent_pid, uint32_t pid) {
  if (processes_.Find(parent_pid) != nullptr) changed_.insert(pid);
}

void UnwindPublisher::OnExec(uint32_t pid) {
  published_ns_.erase(pid);
  changed_.insert(pid);
}

void UnwindPublisher::OnMapping(uint32_t pid, uint64_t start, const CodeMapping& mapping) {
  if (!processes_.IsCurrent(pid, mapping)) return;
  changed_.insert(pid);
  MappedFile file = processes_.MappedFileOf(pid, start, mapping);
  if (file.paths.empty()) return;
  if (tables_of_files_.size() <= mapping.file) tables_of_files_.resize(processes_.file_count());
  // Requested for known files too: a path given now may lead to a file that was not found before.
  tables_of_files_[mapping.file] = tables_.Request(std::move(file));
}

void UnwindPublisher::OnEnd(uint32_t pid) {
  published_ns_.erase(pid);
  maps_.Forget(pid, MonotonicNs());
}

UnwindTables::Id UnwindPublisher::TableOf(const CodeMapping& mapping) const {
  return mapping.file < tables_of_files_.size() ? tables_of_files_[mapping.file] : 0;
}

void UnwindPublisher::TakeFinishedTables(uint64_t limit_ns) {
  for (const UnwindTables::Id id : tables_.TakeFinished()) finished_.push_back(id);
  const uint64_t start_ns = MonotonicNs();
  std::unordered_set<UnwindTables::Id> taken;
  while (!finished_.empty() && MonotonicNs() - start_ns < limit_ns) {
    const UnwindTables::Id id = finished_.front();
    finished_.pop_front();
    taken.insert(id);
    if (tables_.state(id) == UnwindTables::State::kReady) {
      if (auto pages = maps_.Add(tables_.table(id)); pages.ok()) {
        pages_[id] = *pages;
        if (const auto file = tables_.CodeFileOf(id)) {
          maps_.SetFile(file->device, file->inode, *pages, file->link_delta);
        }
      } else {
        full_ = pages.error();
        omitted_.insert(id);
      }
    }
  }
  if (taken.empty()) return;
  processes_.ForEachProcess([&](uint32_t pid, const ProcessTable::Process& process) {
    if (!process.code) return;
    const auto& mappings = process.code->mappings();
    if (std::any_of(mappings.begin(), mappings.end(),
                    [&](const auto& entry) { return taken.contains(TableOf(entry.second)); })) {
      changed_.insert(pid);
    }
  });
}

xpu_mapping UnwindPublisher::ForMaps(uint64_t start, const CodeMapping& mapping) const {
  xpu_mapping raw{start, mapping.end, 0, 0, XPU_TABLE_NONE};
  const UnwindTables::Id table = TableOf(mapping);
  if (table == 0) return raw;
  const auto pages = pages_.find(table);
  if (pages == pages_.end()) {
    const bool is_failed =
        tables_.state(table) == UnwindTables::State::kFailed || omitted_.contains(table);
    if (!is_failed) raw.page_count = XPU_TABLE_NOT_READY;
    return raw;
  }
  const auto link_address =
      tables_.LinkAddressOfMapping(table, mapping.file_offset, mapping.end - start);
  if (!link_address) return raw;
  raw.origin = start - *link_address + pages->second.first_link_address;
  raw.first_page = pages->second.first_page;
  raw.page_count = pages->second.page_count;
  return raw;
}

Status UnwindPublisher::PublishProcess(uint32_t pid, const ProcessTable::Process& process,
                                       uint64_t now_ns) {
  published_ns_[pid] = now_ns;
  std::vector<xpu_mapping> mappings;
  if (process.code) {
    mappings.reserve(process.code->mappings().size());
    for (const auto& [start, mapping] : process.code->mappings()) {
      mappings.push_back(ForMaps(start, mapping));
    }
  }
  return maps_.SetCode(pid, mappings, now_ns);
}

// Processes that have to wait remain in `changed_`.
Status UnwindPublisher::Publish(uint64_t now_ns) {
  // Publishes a part at a time, so that each table is used as soon as possible.
  constexpr uint64_t kPublishingNs = 2'000'000;
  TakeFinishedTables(kPublishingNs);
  std::erase_if(changed_, [&](uint32_t pid) {
    const ProcessTable::Process* process = processes_.Find(pid);
    if (process == nullptr) return true;
    const uint64_t interval_ns =
        PublishIntervalNs(process->code ? process->code->mappings().size() : 0);
    const auto published = published_ns_.find(pid);
    if (published != published_ns_.end() && now_ns - published->second < interval_ns) return false;
    if (Status set = PublishProcess(pid, *process, now_ns); !set.ok()) full_ = std::move(set);
    return true;
  });
  return std::exchange(full_, Ok());
}

}  // namespace xpu

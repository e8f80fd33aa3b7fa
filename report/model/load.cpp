#include "report/model/load.h"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "format/base/text.h"
#include "report/model/batches_ahead.h"
#include "report/model/join_parts.h"
#include "report/model/merge_captures.h"
#include "report/model/missing_capture.h"

namespace xpu {
namespace {

// The reader keeps the tables, so it lives as long as the model.
class ReaderTables : public CaptureTables {
 public:
  explicit ReaderTables(CaptureReader reader) : reader_(std::move(reader)) {}
  std::string_view String(StringId id) const override { return reader_.String(id); }
  StackNode Node(StackId id) const override { return reader_.Node(id); }
  bool IsLost(StackId id) const override { return reader_.IsLost(id); }

 private:
  CaptureReader reader_;
};

template <typename Event>
void Append(EventList<Event>& list, std::vector<Event>& more) {
  std::vector<Event>& all = list.rows();
  if (all.empty()) {
    all = std::move(more);
  } else {
    all.insert(all.end(), more.begin(), more.end());
  }
}

// Growing takes a copy of all, as far as possible from the last one: what is reserved and not used
// takes no memory.
void Append(SampleList& list, const std::vector<CpuSample>& more) {
  constexpr size_t kGrowth = 4;
  auto& all = list.rows();
  const size_t size = all.size() + more.size();
  if (size > all.capacity()) all.reserve(kGrowth * size);
  all.insert(all.end(), more.begin(), more.end());
}

template <typename List, typename Event>
void Append(List& all, const std::vector<Event>& more) {
  for (const Event& event : more) all.push_back(event);
}

}  // namespace

void AppendEvents(LoadedEvents& all, EventBatch& more) {
  VisitBoth(all, more, [](auto& list, auto& added) { Append(list, added); });
}

namespace {

LoadedPart LoadPart(CaptureReader reader, std::string path) {
  LoadedPart part;
  part.model.path = std::move(path);
  {
    BatchesAhead batches(reader);
    while (std::optional<EventBatch> batch = batches.Next()) {
      AppendEvents(batch->restated ? part.restated : part.model.events, *batch);
    }
  }
  part.model.problems = reader.problems();
  part.model.file_bytes = reader.data_bytes();
  part.model.tables = std::make_unique<ReaderTables>(std::move(reader));
  return part;
}

Result<LoadedPart> LoadPart(const std::string& path) {
  if (path == "-") return LoadPart("/dev/stdin");
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0) {
    return Error{ErrorKind::kInvalid, Format("{}: is empty, not a capture", path),
                 "the recording ended before anything was written; record again"};
  }
  Result<CaptureReader> reader = CaptureReader::Open(path);
  if (!reader.ok()) {
    Error error = reader.error();
    if (!error.hint.empty()) return error;
    if (error.kind == ErrorKind::kNotFound) error.hint = HintOfMissingCapture(path);
    if (error.kind == ErrorKind::kPermission) {
      error.hint = Format("only the owner of a capture may read it: sudo chown $USER {}", path);
    }
    return error;
  }
  return LoadPart(std::move(reader).value(), path);
}

}  // namespace

Result<Model> LoadCapture(CaptureReader reader, std::string path) {
  return WithRestated(LoadPart(std::move(reader), std::move(path)));
}

Result<Model> LoadCapture(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(LoadedPart part, LoadPart(path));
  return WithRestated(std::move(part));
}

Result<Model> LoadCaptures(const std::vector<std::string>& paths) {
  std::vector<LoadedPart> captures;
  for (const std::string& path : paths) {
    XPU_ASSIGN_OR_RETURN(LoadedPart capture, LoadPart(path));
    captures.push_back(std::move(capture));
  }
  XPU_ASSIGN_OR_RETURN(std::vector<Model> recordings, JoinParts(std::move(captures)));
  return MergeCaptures(std::move(recordings));
}

}  // namespace xpu

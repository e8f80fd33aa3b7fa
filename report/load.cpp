#include "report/load.h"

#include <optional>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include "format/base/text.h"
#include "report/merge_captures.h"

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
void Append(std::vector<Event>& all, std::vector<Event>& more) {
  if (all.empty()) {
    all = std::move(more);
  } else {
    all.insert(all.end(), more.begin(), more.end());
  }
}

template <typename List, typename Event>
void Append(List& all, const std::vector<Event>& more) {
  for (const Event& event : more) all.push_back(event);
}

}  // namespace

void AppendEvents(LoadedEvents& all, EventBatch& more) {
  VisitBoth(all, more, [](auto& list, auto& added) { Append(list, added); });
}

Result<Model> LoadCapture(CaptureReader reader, std::string path) {
  Model model;
  model.path = std::move(path);
  while (std::optional<EventBatch> batch = reader.Next()) AppendEvents(model.events, *batch);
  model.problems = reader.problems();
  model.tables = std::make_unique<ReaderTables>(std::move(reader));
  return model;
}

Result<Model> LoadCaptures(const std::vector<std::string>& paths) {
  std::vector<Model> captures;
  for (const std::string& path : paths) {
    XPU_ASSIGN_OR_RETURN(Model capture, LoadCapture(path));
    captures.push_back(std::move(capture));
  }
  return MergeCaptures(std::move(captures));
}

Result<Model> LoadCapture(const std::string& path) {
  if (path == "-") return LoadCapture("/dev/stdin");
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0) {
    return Error{ErrorKind::kInvalid, Format("{}: is empty, not a capture", path),
                 "the recording ended before anything was written; record again"};
  }
  Result<CaptureReader> reader = CaptureReader::Open(path);
  if (!reader.ok()) {
    Error error = reader.error();
    if (error.kind == ErrorKind::kNotFound && error.hint.empty()) {
      error.hint = "record one first: xpu-record -- PROGRAM";
    }
    return error;
  }
  return LoadCapture(std::move(reader).value(), path);
}

}  // namespace xpu

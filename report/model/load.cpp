#include "report/model/load.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/stat.h>

#include "format/base/text.h"
#include "report/model/batches_ahead.h"

namespace xpu {
namespace {

// Why a capture is missing where the user says, and what to name instead: a hint for the file
// `path`, which is not there. A link to it that leads nowhere is looked through.
std::string HintOfMissingCapture(const std::string& path);

namespace fs = std::filesystem;

constexpr std::string_view kDefaultCapture = "capture.xpu";  // of both programs
constexpr size_t kDigits = 4;                                // or more, from the 10000th part on

bool IsPartNumber(std::string_view text) {
  return text.size() >= kDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "capture" and ".xpu" of capture.0001.xpu, as xpu-record --rotate-size names it; of a recording
// whose name has no extension the number comes last.
struct RecordingName {
  std::string stem;
  std::string extension;
  bool is_of_part = false;
};

RecordingName NameOf(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::string extension = path.extension().string();
  if (IsPartNumber(std::string_view(extension).substr(std::min<size_t>(1, extension.size())))) {
    return {stem, "", true};
  }
  const size_t dot = stem.rfind('.');
  if (dot != std::string::npos && IsPartNumber(std::string_view(stem).substr(dot + 1))) {
    return {stem.substr(0, dot), extension, true};
  }
  return {stem, extension, false};
}

bool HasParts(const fs::path& directory, const RecordingName& recording) {
  const std::string begin = recording.stem + ".";
  std::error_code error;
  fs::directory_iterator at(directory.empty() ? "." : directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() <= begin.size() + recording.extension.size()) continue;
    if (!name.starts_with(begin) || !name.ends_with(recording.extension)) continue;
    const size_t digits = name.size() - begin.size() - recording.extension.size();
    if (IsPartNumber(std::string_view(name).substr(begin.size(), digits))) return true;
  }
  return false;
}

// "xpu-report annotate x.xpu", as perf and nsys have it: what does the same here. Empty: it is none
// of theirs.
std::string HintForSubcommand(std::string_view word) {
  struct Verb {
    std::string_view word;
    std::string_view options;
  };
  constexpr std::array<Verb, 9> kVerbs = {{{"report", "[OPTIONS]"},
                                           {"stats", "--top"},
                                           {"top", "--top"},
                                           {"script", "--script"},
                                           {"annotate", "--folded --lines"},
                                           {"diff", "--diff BEFORE"},
                                           {"timechart", "--chrome-trace"},
                                           {"export", "--chrome-trace"},
                                           {"analyze", "[OPTIONS]"}}};
  for (const Verb& verb : kVerbs) {
    if (verb.word != word) continue;
    return Format("xpu-report has no subcommands: xpu-report {} [CAPTURE]", verb.options);
  }
  return {};
}

std::string HintOfMissingCapture(const std::string& path) {
  if (std::string hint = HintForSubcommand(path); !hint.empty()) return hint;
  std::error_code error;
  fs::path target = path;
  const bool is_link = fs::is_symlink(target, error);
  if (is_link) target = target.parent_path() / fs::read_symlink(target, error);
  const RecordingName recording = NameOf(target);
  const std::string all =
      (target.parent_path() / (recording.stem + ".*" + recording.extension)).string();
  std::string link =
      is_link ? Format("it is a link to {}, which does not exist", target.string()) : "";
  if (!HasParts(target.parent_path(), recording)) {
    if (is_link) return link;
    return Format("record one first: xpu-record{} -- PROGRAM",
                  path == kDefaultCapture ? "" : " -o " + path);
  }
  const std::string parts =
      recording.is_of_part
          ? Format("xpu-record --rotate-keep removes the oldest parts; the remaining ones: {}", all)
          : Format("it was recorded in parts; name all of them: {}", all);
  return is_link ? link + "; " + parts : parts;
}

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

template <typename List, typename Event>
void Append(List& all, const std::vector<Event>& more) {
  using Loaded = std::remove_cvref_t<decltype(all[0])>;
  for (const Event& event : more) all.push_back(Loaded(event));
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
    return Error{ErrorKind::kInvalid, Format("{}: the file is empty", path),
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

namespace {

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

Result<std::vector<std::string>> CapturesAt(const std::string& path) {
  if (!IsDirectory(path)) return std::vector<std::string>{path};
  std::vector<std::string> captures;
  std::error_code error;
  fs::directory_iterator at(path, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code ignored;
    if (at->path().extension() == ".xpu" && at->is_regular_file(ignored)) {
      captures.push_back(at->path().string());
    }
  }
  if (error) return Error{ErrorKind::kSystem, Format("{}: {}", path, error.message()), {}};
  if (captures.empty()) {
    return Error{ErrorKind::kNotFound, Format("{}: no captures (*.xpu) in this directory", path),
                 "record some: xpu-record -o " + path + "/ -- PROGRAM"};
  }
  std::sort(captures.begin(), captures.end());
  return captures;
}

Result<Model> LoadCapture(CaptureReader reader, std::string path) {
  return WithRestated(LoadPart(std::move(reader), std::move(path)));
}

Result<Model> LoadCapture(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(LoadedPart part, LoadPart(path));
  return WithRestated(std::move(part));
}

Result<Model> LoadCaptures(const std::vector<std::string>& paths, const RefineClocks& refine,
                           std::string* unreadable) {
  std::vector<LoadedPart> captures;
  for (const std::string& path : paths) {
    if (!IsDirectory(path)) {
      XPU_ASSIGN_OR_RETURN(LoadedPart capture, LoadPart(path));
      captures.push_back(std::move(capture));
      continue;
    }
    XPU_ASSIGN_OR_RETURN(const std::vector<std::string> files, CapturesAt(path));
    std::optional<Error> first;
    const size_t before = captures.size();
    for (const std::string& file : files) {
      Result<LoadedPart> capture = LoadPart(file);
      if (capture.ok()) {
        captures.push_back(std::move(capture).value());
        continue;
      }
      // One rank that was killed must not hide the others.
      if (!first) first = capture.error();
      if (unreadable != nullptr) *unreadable += Format("left out: {}\n", capture.error().message);
    }
    if (captures.size() == before) return std::move(*first);
  }
  XPU_ASSIGN_OR_RETURN(std::vector<Model> recordings, JoinParts(std::move(captures)));
  return MergeCaptures(std::move(recordings), refine);
}

}  // namespace xpu

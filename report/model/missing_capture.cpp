#include "report/model/missing_capture.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "format/base/text.h"

namespace xpu {
namespace {

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

bool HasParts(const fs::path& folder, const RecordingName& recording) {
  const std::string begin = recording.stem + ".";
  std::error_code error;
  fs::directory_iterator at(folder.empty() ? "." : folder, error);
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
std::string HintOfVerb(std::string_view word) {
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
    return Format("the capture follows xpu-report itself: xpu-report {} [CAPTURE]", verb.options);
  }
  return {};
}

}  // namespace

std::string HintOfMissingCapture(const std::string& path) {
  if (std::string hint = HintOfVerb(path); !hint.empty()) return hint;
  std::error_code error;
  fs::path target = path;
  const bool is_link = fs::is_symlink(target, error);
  if (is_link) target = target.parent_path() / fs::read_symlink(target, error);
  const RecordingName recording = NameOf(target);
  const std::string all =
      (target.parent_path() / (recording.stem + ".*" + recording.extension)).string();
  std::string link =
      is_link ? Format("it is a link to {}, which is not there", target.string()) : "";
  if (!HasParts(target.parent_path(), recording)) {
    if (is_link) return link;
    return Format("record one first: xpu-record{} -- PROGRAM",
                  path == kDefaultCapture ? "" : " -o " + path);
  }
  const std::string parts =
      recording.is_of_part
          ? Format("xpu-record --rotate-keep removes the oldest parts; those that are left: {}",
                   all)
          : Format("it was recorded in parts: name them all, as {}", all);
  return is_link ? link + "; " + parts : parts;
}

}  // namespace xpu

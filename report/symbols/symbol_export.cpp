#include "report/symbols/symbol_export.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/counted.h"
#include "format/base/file.h"
#include "format/base/output_place.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Like mkdir -p, but that root does not follow links of other users.
Status MakeFolders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    XPU_ASSIGN_OR_RETURN(const OutputPlace place, FindOutputPlace(part, "mkdir"));
    if (!place.entry && !place.name.empty() &&
        ::mkdirat(place.directory.get(), place.name.c_str(), 0777) != 0 && errno != EEXIST) {
      return SystemError(Format("{}: mkdir", part), errno);
    }
    if (at == std::string::npos) return Ok();
  }
}

enum class Outcome { kWritten, kThere, kDiffers };

Outcome Compare(const OutputPlace& place, const std::string& bytes) {
  if (place.is_behind_link || !S_ISREG(place.info.st_mode)) return Outcome::kDiffers;
  const UniqueFd fd = OpenEntry(place, O_RDONLY);
  if (!fd) return Outcome::kDiffers;
  const Result<std::string> old = ReadFile(Format("/proc/self/fd/{}", fd.get()));
  return old.ok() && old.value() == bytes ? Outcome::kThere : Outcome::kDiffers;
}

Result<Outcome> WriteNew(const std::string& path, const std::string& bytes) {
  XPU_ASSIGN_OR_RETURN(const OutputPlace place, FindOutputPlace(path, "open"));
  if (place.entry || place.is_behind_link) return Compare(place, bytes);
  UniqueFd fd(::openat(place.directory.get(), place.name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd) return SystemError(Format("{}: open", path), errno);
  Status status = WriteAll(fd.get(), bytes, path);
  if (!status.ok()) {
    ::unlinkat(place.directory.get(), place.name.c_str(), 0);
    return status.error();
  }
  return Outcome::kWritten;
}

}  // namespace

Result<std::string> ExportSymbols(const Analysis& analysis, const std::string& folder) {
  // Of one build under several paths the fullest slice counts.
  std::map<std::string_view, std::string> by_build;
  size_t without_id = 0;
  for (const AssembledSlice& slice : analysis.slices.slices) {
    if (slice.build_id.size() < 2) {
      ++without_id;
      continue;
    }
    std::string bytes = slice.Bytes();
    const Result<ElfImage> image =
        ElfImage::Parse(std::as_bytes(std::span(bytes)), std::string(slice.path));
    if (!image.ok() || image.value().build_id() != slice.build_id) continue;
    std::string& kept = by_build[slice.build_id];
    if (bytes.size() > kept.size()) kept = std::move(bytes);
  }
  size_t written = 0;
  std::vector<std::string> different;
  for (const auto& [build_id, bytes] : by_build) {
    const std::string hex = ToHex(build_id);
    const std::string below = Format("{}/.build-id/{}", folder, hex.substr(0, 2));
    XPU_RETURN_IF_ERROR(MakeFolders(below));
    const std::string path = Format("{}/{}.debug", below, hex.substr(2));
    XPU_ASSIGN_OR_RETURN(const Outcome outcome, WriteNew(path, bytes));
    if (outcome == Outcome::kWritten) ++written;
    if (outcome == Outcome::kDiffers) different.push_back(path);
  }
  if (!different.empty()) {
    return Error{ErrorKind::kSystem,
                 Format("{}: is there and differs, as {} others; nothing is overwritten, {} of {} "
                        "files were written",
                        different.front(), different.size() - 1, written, by_build.size()),
                 "each capture has other functions of a file: export it to a folder of its own"};
  }
  std::string text = Format("{} of {} written to {}/.build-id\n", written,
                            Counted(by_build.size(), "file", "files"), ForOneLine(folder));
  if (written < by_build.size()) text += "  the others are there already\n";
  if (without_id > 0)
    AppendFormat(
        text, "  {} left out\n",
        Counted(without_id, "file has no build-id and is", "files have no build-id and are"));
  if (by_build.empty()) {
    text +=
        "  hint: xpu-record --symbols=slice, or xpu-report --embed-symbols, puts symbols into "
        "the capture\n";
  }
  return text;
}

}  // namespace xpu

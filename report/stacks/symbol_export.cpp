#include "report/stacks/symbol_export.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/counted.h"
#include "format/base/file.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Like mkdir -p below an existing or new `folder`.
Status MakeFolders(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    if (::mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      return SystemError(Format("{}: mkdir", part), errno);
    }
    if (at == std::string::npos) return Ok();
  }
}

enum class Outcome { kWritten, kThere, kDiffers };

Result<Outcome> WriteNew(const std::string& path, const std::string& bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!fd && errno == EEXIST) {
    struct stat info {};
    const bool is_file = ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
    const Result<std::string> old = is_file ? ReadFile(path) : std::string();
    return is_file && old.ok() && old.value() == bytes ? Outcome::kThere : Outcome::kDiffers;
  }
  if (!fd) return SystemError(Format("{}: open", path), errno);
  Status status = WriteAll(fd.get(), bytes, path);
  if (!status.ok()) {
    ::unlink(path.c_str());
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

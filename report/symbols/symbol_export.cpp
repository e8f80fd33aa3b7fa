#include "report/symbols/symbol_export.h"

#include <cerrno>
#include <map>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/counted.h"
#include "format/base/file.h"
#include "format/base/output_location.h"
#include "format/base/path.h"
#include "format/base/terminal_text.h"
#include "format/base/text.h"
#include "format/slice_parts.h"
#include "format/writer.h"
#include "report/analysis/call_paths.h"
#include "symbolize/slice_maker.h"

namespace xpu {
namespace {

// Like mkdir -p, but that root does not follow links of other users.
Status MakeDirectories(const std::string& path) {
  for (size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string part = path.substr(0, at);
    XPU_ASSIGN_OR_RETURN(const OutputLocation place, FindOutputLocation(part, "mkdir"));
    if (!place.entry && !place.name.empty() &&
        ::mkdirat(place.directory.get(), place.name.c_str(), 0777) != 0 && errno != EEXIST) {
      return SystemError(Format("{}: mkdir", part), errno);
    }
    if (at == std::string::npos) return Ok();
  }
}

enum class Outcome { kWritten, kThere, kDiffers };

Outcome Compare(const OutputLocation& place, const std::string& bytes) {
  if (place.is_behind_link || !S_ISREG(place.info.st_mode)) return Outcome::kDiffers;
  const UniqueFd fd = OpenEntry(place, O_RDONLY);
  if (!fd) return Outcome::kDiffers;
  const Result<std::string> old = ReadFile(Format("/proc/self/fd/{}", fd.get()));
  return old.ok() && old.value() == bytes ? Outcome::kThere : Outcome::kDiffers;
}

Result<Outcome> WriteNew(const std::string& path, const std::string& bytes) {
  XPU_ASSIGN_OR_RETURN(const OutputLocation place, FindOutputLocation(path, "open"));
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

struct NewSlice {
  RecordedFile file;
  SymbolDetail detail = SymbolDetail::kNames;
  std::string bytes;
};

struct NewSlices {
  std::vector<NewSlice> slices;
  size_t kept = 0;                    // files that have one
  std::vector<std::string> failures;  // why there is none
};

// Makes slices of every file that an address of a stack is in.
NewSlices MakeSlices(Analysis& analysis, bool lines) {
  CallPaths(analysis, {})
      .WantAll({.samples = true, .launches = true, .probe_hits = true, .off_cpu_waits = true});
  std::map<std::pair<std::string_view, std::string_view>, SymbolDetail> known;
  for (const AssembledSlice& slice : analysis.slices.slices) {
    known[{slice.path, slice.build_id}] = slice.detail;
  }
  NewSlices made;
  const Symbolizer& symbolizer = analysis.symbolizer;
  for (uint32_t i = 1; i <= symbolizer.size(); ++i) {
    const RecordedFile& file = symbolizer[ModuleId{i}];
    const std::vector<uint64_t> offsets = symbolizer.Wanted(ModuleId{i});
    if (offsets.empty() || !IsFilePath(file.path)) continue;
    const auto slice = known.find({file.path, file.build_id});
    if (slice != known.end() && (!lines || slice->second == SymbolDetail::kLines)) {
      ++made.kept;
      continue;
    }
    const FileSearch search = symbolizer.finder().Program(file.path, file.build_id);
    if (!search.found) {
      made.failures.push_back(search.message);
      continue;
    }
    Result<MadeSlice> bytes =
        MakeSymbolSlice({.path = search.found->path,
                         .name = file.path,
                         .build_id = file.build_id,
                         .debug_directory = symbolizer.finder().FirstDebugDirectory(),
                         .detail = lines ? SliceDetail::kLines : SliceDetail::kNames,
                         .reading = symbolizer.finder().reading()},
                        offsets);
    if (!bytes.ok()) {
      made.failures.push_back(bytes.error().message);
      continue;
    }
    const bool has_lines = bytes->has_lines;
    if (!bytes->lines_failure.empty()) made.failures.push_back(bytes->lines_failure);
    if (slice != known.end() && !has_lines) {  // what is there says as much
      ++made.kept;
      continue;
    }
    made.slices.push_back(
        {file, has_lines ? SymbolDetail::kLines : SymbolDetail::kNames, std::move(bytes->bytes)});
  }
  return made;
}

Status WriteSlice(CaptureWriter& writer, const NewSlice& slice) {
  return WriteSliceParts(
      {slice.file.path, slice.file.build_id, slice.detail, slice.bytes},
      [&](std::string_view text) { return writer.InternString(text); },
      [&](const SymbolSlice& part) { return writer.Write(part); });
}

// The capture's bytes as they are, and after them the slices, in a file that takes the place of
// `output` when it is whole.
Status WriteCapture(const std::string& capture, const std::string& output,
                    const NewSlices& slices) {
  XPU_ASSIGN_OR_RETURN(const OutputLocation place, FindOutputLocation(output));
  // A file that replaces a link or a device leaves nothing of it.
  if (place.is_behind_link || (place.entry && !S_ISREG(place.info.st_mode))) {
    return Error{ErrorKind::kUsage, Format("{}: not a regular file", output),
                 "name the file itself, or another one with -o"};
  }
  XPU_ASSIGN_OR_RETURN(const FileBytes original, FileBytes::Open(capture));
  XPU_ASSIGN_OR_RETURN(const CaptureEnd end, FindCaptureEnd(original.bytes(), capture));
  const int directory = place.directory.get();
  std::string path = Format("/proc/self/fd/{}/{}.XXXXXX", directory, place.name);
  UniqueFd fd(::mkostemp(path.data(), O_CLOEXEC));  // mode 0600
  if (!fd) return SystemError(Format("{}: create a file next to it", output), errno);
  const std::string temporary(FileNameOf(path));
  const auto write = [&]() -> Status {
    if (place.entry) {
      // Permissions stay as they are. Root keeps the file its owner's.
      if (::fchown(fd.get(), place.info.st_uid, place.info.st_gid) != 0 && errno != EPERM) {
        return SystemError(Format("{}: fchown", temporary), errno);
      }
      ::fchmod(fd.get(), place.info.st_mode & 0777);
    }
    const auto bytes = original.bytes();
    XPU_RETURN_IF_ERROR(
        WriteAll(fd.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, temporary));
    CaptureWriter writer = CaptureWriter::Continue(std::move(fd), temporary, end);
    for (const NewSlice& slice : slices.slices) {
      XPU_RETURN_IF_ERROR(WriteSlice(writer, slice));
    }
    XPU_RETURN_IF_ERROR(writer.Close());
    if (::renameat(directory, temporary.c_str(), directory, place.name.c_str()) != 0) {
      return SystemError(Format("{}: rename", output), errno);
    }
    return Ok();
  };
  Status status = write();
  if (!status.ok()) ::unlinkat(directory, temporary.c_str(), 0);
  return status;
}

}  // namespace

Result<std::string> ExportSymbols(const Analysis& analysis, const std::string& directory) {
  // The fullest slice of a build under several paths counts.
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
    const std::string below = Format("{}/.build-id/{}", directory, hex.substr(0, 2));
    XPU_RETURN_IF_ERROR(MakeDirectories(below));
    const std::string path = Format("{}/{}.debug", below, hex.substr(2));
    XPU_ASSIGN_OR_RETURN(const Outcome outcome, WriteNew(path, bytes));
    if (outcome == Outcome::kWritten) ++written;
    if (outcome == Outcome::kDiffers) different.push_back(path);
  }
  if (!different.empty()) {
    return Error{
        ErrorKind::kSystem,
        Format("{}: a different file exists (as for {} others) and is not overwritten; {} of {} "
               "files were written",
               different.front(), different.size() - 1, written, by_build.size()),
        "each capture has different functions of a file: use a new directory"};
  }
  std::string text = Format("{} of {} written to {}/.build-id\n", written,
                            Counted(by_build.size(), "file", "files"), ForOneLine(directory));
  if (written < by_build.size()) text += "  the others exist already\n";
  if (without_id > 0)
    AppendFormat(
        text, "  {} left out\n",
        Counted(without_id, "file has no build-id and is", "files have no build-id and are"));
  if (by_build.empty()) {
    text +=
        "  hint: xpu-record --symbols=slice and xpu-report --embed-symbols store symbols in the "
        "capture\n";
  }
  return text;
}

Result<std::string> EmbedSymbols(Analysis& analysis, const std::string& output, bool lines) {
  const NewSlices made = MakeSlices(analysis, lines);
  const std::string& capture = analysis.model.path;
  const std::string& target = output.empty() ? capture : output;
  if (!made.slices.empty() || target != capture) {
    XPU_RETURN_IF_ERROR(WriteCapture(capture, target, made));
  }
  size_t bytes = 0;
  for (const NewSlice& slice : made.slices) bytes += slice.bytes.size();
  std::string text =
      Format("symbols of {} added to {}, {} bytes before compression\n",
             Counted(made.slices.size(), "file", "files"), ForOneLine(target), bytes);
  if (made.kept > 0)
    AppendFormat(text, "  {}\n",
                 Counted(made.kept, "file has its symbols already", "files have theirs already"));
  for (const std::string& failure : made.failures)
    AppendFormat(text, "  {}\n", ForOneLine(failure));
  return text;
}

}  // namespace xpu

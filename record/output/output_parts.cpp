#include "record/output/output_parts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include <sys/stat.h>

#include "format/base/counted.h"
#include "format/base/path.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kDigits = 4;

// "directory/", "capture", ".xpu"
struct NameParts {
  std::string directory;
  std::string stem;
  std::string extension;
};

NameParts Split(const std::string& path) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  // A leading dot makes a file hidden and does not start an extension.
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return {path.substr(0, name), path.substr(name, dot - name), path.substr(dot)};
}

// The names of the regular files that are parts of `name`, with their numbers.
std::vector<std::pair<uint32_t, std::string>> FindParts(const OutputDirectory& directory,
                                                        const std::string& name,
                                                        std::string_view suffix) {
  std::vector<std::pair<uint32_t, std::string>> found;
  for (const std::string& file : directory.RegularFiles()) {
    if (!file.ends_with(suffix)) continue;
    const std::string_view part = std::string_view(file).substr(0, file.size() - suffix.size());
    if (const auto number = PartNumberOf(name, part)) found.emplace_back(*number, file);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

std::string PartPath(const std::string& path, uint32_t part) {
  std::string number = Format("{}", part);
  number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
  const NameParts name = Split(path);
  return Format("{}{}.{}{}", name.directory, name.stem, number, name.extension);
}

std::optional<uint32_t> PartNumberOf(const std::string& path, std::string_view file_name) {
  const NameParts name = Split(path);
  const std::string begin = name.stem + ".";
  if (file_name.size() < begin.size() + kDigits + name.extension.size() ||
      !file_name.starts_with(begin) || !file_name.ends_with(name.extension)) {
    return std::nullopt;
  }
  const std::string_view digits =
      file_name.substr(begin.size(), file_name.size() - begin.size() - name.extension.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number == 0) {
    return std::nullopt;
  }
  // Each number has exactly one name.
  if (PartPath(path, number) != name.directory + std::string(file_name)) return std::nullopt;
  return number;
}

Result<OutputParts> OutputParts::Prepare(const std::string& path, const OutputOptions& options) {
  OutputParts parts;
  parts.path_ = path;
  parts.options_ = options;
  if (!parts.rotates()) return parts;
  XPU_ASSIGN_OR_RETURN(OutputName output, FindOutput(path));
  if (output.location.entry && !S_ISREG(output.location.info.st_mode)) {
    return Error{ErrorKind::kInvalid,
                 Format("{}: is not a regular file and cannot be rotated", path),
                 "omit --rotate-size, or name a file with -o"};
  }
  parts.directory_ = std::move(output.directory);
  parts.name_ = std::move(output.name);
  parts.turn_ = parts.directory_->TakeTurn();
  if (Status kept = parts.KeepEarlierParts(); !kept.ok()) {
    parts.Discard();
    return std::move(kept).error();
  }
  return parts;
}

Status OutputParts::KeepEarlierParts() {
  const auto earlier = FindParts(*directory_, name_, "");
  for (const auto& [number, name] : earlier) {
    XPU_RETURN_IF_ERROR(directory_->CheckNotBeingWritten(name));
  }
  if (earlier.empty()) return Ok();
  for (const auto& [number, name] : FindParts(*directory_, name_, kOldSuffix)) {
    directory_->RemoveFile(name);
  }
  for (const auto& [number, name] : earlier) {
    XPU_ASSIGN_OR_RETURN(RenamedFile renamed, directory_->Rename(name, name + kOldSuffix));
    kept_.push_back(std::move(renamed));
  }
  kept_text_ = Format("xpu-record: {} of an earlier recording renamed to {}{}\n",
                      Counted(earlier.size(), "part", "parts"),
                      directory_->PathOf(kept_.front().now), earlier.size() == 1 ? "" : ", ...");
  return Ok();
}

Result<OutputParts::Opened> OutputParts::OpenNext() {
  if (!rotates()) {
    XPU_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path_));
    only_.emplace(std::move(file));
    return Opened{only_->TakeFd(), only_->name()};
  }
  if (options_.rotate_keep != 0 && written_.size() >= options_.rotate_keep) {
    directory_->Remove(written_.front());
    written_.pop_front();
  }
  XPU_ASSIGN_OR_RETURN(OutputFile file,
                       OutputFile::CreateNew(directory_, PartPath(name_, part_ + 1)));
  turn_.reset();  // from now on the file itself is locked
  ++part_;
  written_.push_back(file.created());
  return Opened{file.TakeFd(), file.name()};
}

void OutputParts::TakeBack() {
  directory_->Remove(written_.back());
  written_.pop_back();
  --part_;
}

void OutputParts::Discard() {
  if (only_) only_->Discard();
  for (const NamedFile& file : written_) directory_->Remove(file);
  written_.clear();
  for (const RenamedFile& file : kept_) directory_->RenameBack(file);
  kept_.clear();
}

std::string OutputParts::Text() const {
  if (!rotates()) return only_ ? only_->name() : path_;
  if (written_.empty()) return path_;
  std::string text = directory_->PathOf(written_.front().name);
  if (written_.size() > 1) {
    AppendFormat(text, " to {}", directory_->PathOf(written_.back().name));
  }
  const size_t removed = part_ - written_.size();
  if (removed > 0) {
    AppendFormat(text, " ({} older {} removed by --rotate-keep, not a loss)", removed,
                 removed == 1 ? "part" : "parts");
  }
  return text;
}

}  // namespace xpu

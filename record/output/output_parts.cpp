#include "record/output/output_parts.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "format/base/counted.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kDigits = 4;

// "folder/", "capture", ".xpu"
struct NameParts {
  std::string folder;
  std::string stem;
  std::string extension;
};

NameParts Split(const std::string& path) {
  const size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  // A dot in front makes a file hidden, it begins no extension.
  size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return {path.substr(0, name), path.substr(name, dot - name), path.substr(dot)};
}

// Paths of the regular files beside `path` that are its parts, by their numbers.
std::vector<std::pair<uint32_t, std::string>> FindParts(const std::string& path,
                                                        std::string_view suffix) {
  const std::string folder = Split(path).folder;
  std::vector<std::pair<uint32_t, std::string>> found;
  std::error_code error;
  std::filesystem::directory_iterator at(folder.empty() ? "." : folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.ends_with(suffix)) continue;
    const std::string_view part = std::string_view(name).substr(0, name.size() - suffix.size());
    std::error_code ignored;
    if (!at->is_regular_file(ignored) || at->is_symlink(ignored)) continue;
    if (const auto number = PartNumberOf(path, part)) found.emplace_back(*number, folder + name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

Status CheckNoOtherKind(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) return Ok();
  return Error{ErrorKind::kInvalid, Format("{}: is not a file: it has no parts", path),
               "--rotate-size is for files; leave it out, or name a file with -o"};
}

}  // namespace

std::string PartPath(const std::string& path, uint32_t part) {
  std::string number = Format("{}", part);
  number.insert(0, kDigits - std::min(kDigits, number.size()), '0');
  const NameParts name = Split(path);
  return Format("{}{}.{}{}", name.folder, name.stem, number, name.extension);
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
  // One number has one name.
  if (PartPath(path, number) != name.folder + std::string(file_name)) return std::nullopt;
  return number;
}

Result<OutputParts> OutputParts::Prepare(const std::string& path, const OutputOptions& options) {
  OutputParts parts;
  parts.path_ = path;
  parts.options_ = options;
  if (!parts.rotates()) return parts;
  XPU_RETURN_IF_ERROR(CheckNoOtherKind(path));
  XPU_RETURN_IF_ERROR(parts.KeepEarlierParts());
  return parts;
}

Status OutputParts::KeepEarlierParts() {
  const auto earlier = FindParts(path_, "");
  for (const auto& [number, path] : earlier) XPU_RETURN_IF_ERROR(CheckNotBeingWritten(path));
  if (earlier.empty()) return Ok();
  for (const auto& [number, path] : FindParts(path_, kOldSuffix)) ::unlink(path.c_str());
  for (const auto& [number, path] : earlier) {
    const std::string old = path + kOldSuffix;
    if (::rename(path.c_str(), old.c_str()) != 0) {
      const int error_number = errno;
      Discard();
      return SystemError(Format("{}: rename to {}", path, old), error_number, kOtherFileHint);
    }
    kept_.emplace_back(path, old);
  }
  kept_text_ = Format("xpu-record: {} of an earlier recording: kept as {}{}\n",
                      Counted(earlier.size(), "part", "parts"), kept_.front().second,
                      earlier.size() == 1 ? "" : ", ...");
  return Ok();
}

Result<OutputParts::Opened> OutputParts::OpenNext() {
  if (!rotates()) {
    XPU_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path_));
    only_.emplace(std::move(file));
    return Opened{only_->TakeFd(), only_->name()};
  }
  if (options_.rotate_keep != 0 && written_.size() >= options_.rotate_keep) {
    RemoveOwn(written_.front());
    written_.pop_front();
  }
  const std::string path = PartPath(path_, part_ + 1);
  XPU_ASSIGN_OR_RETURN(OutputFile file, OutputFile::CreateNew(path));
  Written written{path};
  struct stat info {};
  UniqueFd fd = file.TakeFd();
  if (::fstat(fd.get(), &info) == 0) {
    written.device = info.st_dev;
    written.inode = info.st_ino;
  }
  ++part_;
  written_.push_back(std::move(written));
  return Opened{std::move(fd), path};
}

// Somebody may have put another file in its place.
void OutputParts::RemoveOwn(const Written& file) {
  struct stat info {};
  if (::lstat(file.path.c_str(), &info) != 0) return;
  if (info.st_dev == file.device && info.st_ino == file.inode) ::unlink(file.path.c_str());
}

void OutputParts::Discard() {
  if (only_) only_->Discard();
  for (const Written& file : written_) RemoveOwn(file);
  written_.clear();
  for (const auto& [path, old] : kept_) std::rename(old.c_str(), path.c_str());
  kept_.clear();
}

std::string OutputParts::Text() const {
  if (!rotates()) return only_ ? only_->name() : path_;
  if (written_.empty()) return path_;
  std::string text = written_.front().path;
  if (written_.size() > 1) AppendFormat(text, " to {}", written_.back().path);
  const size_t removed = part_ - written_.size();
  if (removed > 0) {
    AppendFormat(text, " ({} older {} removed, as asked for: no loss)", removed,
                 removed == 1 ? "part" : "parts");
  }
  return text;
}

}  // namespace xpu

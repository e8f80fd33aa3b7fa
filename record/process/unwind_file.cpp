#include "record/process/unwind_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <elf.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/text.h"
#include "symbolize/file_finder.h"
#include "symbolize/unwind/cfi_section.h"

namespace xpu {
namespace {

// Linkers put program headers and notes here; otherwise the whole file is read.
constexpr size_t kHeadBytes = size_t{16} << 10;

Error Replaced(const std::string& path) {
  return Error{ErrorKind::kUnsupported, Format("{}: the file has been replaced", path), {}};
}

// Others than its owner can write to it.
bool IsOpen(const struct stat& info) { return (info.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

void Describe(const ElfImage& image, UnwindFile& file) {
  file.build_id = image.build_id();
  file.segments = image.segments();
}

}  // namespace

Result<ElfFile> UnwindFile::Reopen() const {
  XPU_ASSIGN_OR_RETURN(RegularFile opened,
                       OpenTargetFile(fd ? Format("/proc/self/fd/{}", fd.get()) : path));
  XPU_ASSIGN_OR_RETURN(ElfFile file, ElfFile::Of(std::move(opened), path));
  if (file.image().build_id() != build_id) return Replaced(path);
  return file;
}

void UnwindFile::FindDebugFrame() {
  auto file = Reopen();
  if (!file.ok()) return;
  if (HasDebugFrame(file->image())) {
    frames_path = path;
    frames_bytes = bytes;
    return;
  }
  const FileSearch debug = FileFinder({}).Debug(path, build_id, &file->image());
  struct stat found {};
  if (!debug.found || !HasDebugFrame(debug.found->file.image()) ||
      ::stat(debug.found->path.c_str(), &found) != 0 || IsOpen(found) ||
      (found.st_uid != 0 && found.st_uid != info.st_uid)) {
    return;
  }
  frames_path = debug.found->path;
  frames_bytes = static_cast<uint64_t>(found.st_size);
}

std::string UnwindFile::CacheKey() const {
  std::string key = build_id;
  const auto add = [&key](char what, auto value) {
    key += what;
    key.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  if (key.empty()) return key;
  if (frames_bytes != 0) add('f', frames_bytes);
  const bool is_ours = info.st_uid == 0 || info.st_uid == ::geteuid();
  if (!is_ours || IsOpen(info)) add(IsOpen(info) ? 'w' : 'u', info.st_uid);
  return key;
}

std::span<const std::byte> VdsoImage() {
  const auto* start = reinterpret_cast<const std::byte*>(::getauxval(AT_SYSINFO_EHDR));
  if (start == nullptr) return {};
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(start);
  return {start, header->e_shoff + uint64_t{header->e_shnum} * header->e_shentsize};
}

Result<UnwindFile> IdentifyFile(const std::string& path) {
  XPU_ASSIGN_OR_RETURN(RegularFile opened, OpenTargetFile(path));
  std::vector<std::byte> head(kHeadBytes);
  const ssize_t n = ::pread(opened.fd.get(), head.data(), head.size(), 0);
  if (n < 0) return SystemError(Format("{}: read", path), errno);
  head.resize(static_cast<size_t>(n));
  UnwindFile file{.path = path,
                  .build_id = {},
                  .bytes = static_cast<uint64_t>(opened.info.st_size),
                  .info = opened.info,
                  .segments = {},
                  .fd = {},
                  .frames_path = {}};
  XPU_ASSIGN_OR_RETURN(const ElfImage image, ElfImage::Parse(head, path));
  Describe(image, file);
  file.fd = std::move(opened.fd);
  if (!file.segments.empty() && !file.build_id.empty()) return file;
  XPU_ASSIGN_OR_RETURN(RegularFile again,
                       OpenRegularFile(Format("/proc/self/fd/{}", file.fd.get()), 0, path));
  XPU_ASSIGN_OR_RETURN(const ElfFile whole, ElfFile::Of(std::move(again), path));
  Describe(whole.image(), file);
  return file;
}

Result<UnwindFile> FindUnwindFile(const std::vector<std::string>& paths,
                                  const std::string& build_id, const FileIdentity& identity) {
  Error failure{ErrorKind::kNotFound, "no path", {}};
  int best = -1;
  const auto remember = [&](Error error, int closeness) {
    if (std::exchange(best, std::max(best, closeness)) <= closeness) failure = std::move(error);
  };
  for (const std::string& path : paths) {
    auto file = IdentifyFile(path);
    if (!file.ok()) {
      const bool opened = file.error().kind == ErrorKind::kInvalid;
      remember(std::move(file).error(), opened ? 1 : 0);
    } else if (build_id.empty() ? !MayBeMapped(file->info, path, identity)
                                : file->build_id != build_id) {
      remember(Replaced(path), 2);
    } else {
      return file;
    }
  }
  return failure;
}

std::string ReasonOf(const Error& error, const std::string& path) {
  const std::string name = path + ": ";
  return error.message.starts_with(name) ? error.message.substr(name.size()) : error.message;
}

}  // namespace xpu

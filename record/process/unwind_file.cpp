#include "record/process/unwind_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <elf.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/text.h"

namespace xpu {
namespace {

// Linkers put program headers and notes here; otherwise the whole file is read.
constexpr size_t kHeadBytes = size_t{16} << 10;

Error Replaced(const std::string& path) {
  return Error{ErrorKind::kUnsupported, Format("{}: the file has been replaced", path), {}};
}

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

std::string UnwindFile::CacheKey() const {
  const bool is_ours = info.st_uid == 0 || info.st_uid == ::geteuid();
  const bool is_open = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (build_id.empty() || (is_ours && !is_open)) return build_id;
  std::string key = build_id + (is_open ? 'w' : 'u');
  return key.append(reinterpret_cast<const char*>(&info.st_uid), sizeof(info.st_uid));
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
                  .fd = {}};
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

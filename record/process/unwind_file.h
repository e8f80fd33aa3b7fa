// The file of a mapping, found again by the paths that may lead to it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "record/process/target_file.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

// What the beginning of an ELF file tells, read without the rest: of a library of 2 GB that is 16
// KiB.
struct UnwindFile {
  std::string path;
  std::string build_id;  // raw bytes; empty: it has none
  uint64_t bytes = 0;
  struct stat info {};
  std::vector<ElfSegment> segments;
  UniqueFd fd;  // none: Reopen goes by the path
  // What its table is called in the cache of tables: its build-id, which is what the file says of
  // itself. So that nobody makes the tables of others' files, who owns it is a part of the name
  // unless only root, or who records, can have written it. Empty: it has no build-id.
  std::string CacheKey() const;

  // The whole of it, also when its path does not lead to it any more because it was replaced or
  // because the process whose /proc/PID/root that was is gone. An error where its build-id changed.
  Result<ElfFile> Reopen() const;
};

// The recorder's own image of the vdso; empty: it has none.
std::span<const std::byte> VdsoImage();

// kInvalid: it opens, but is no ELF file.
Result<UnwindFile> IdentifyFile(const std::string& path);

// The first of `paths` that is an ELF file with that build-id; empty: that may be the file with
// that identity (MayBeMapped). Where there is none, the error of the path that came closest:
// another build-id or file, no ELF file, cannot be opened.
Result<UnwindFile> FindUnwindFile(const std::vector<std::string>& paths,
                                  const std::string& build_id, const FileIdentity& identity = {});

// An error's message without the name that it begins with.
std::string ReasonOf(const Error& error, const std::string& path);

}  // namespace xpu

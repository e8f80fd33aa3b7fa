// Finds and identifies the file of a mapping, by the paths that may lead to it.
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

// What the beginning of an ELF file says about it. Only 16 KiB are read, even from a library of 2
// GB.
struct UnwindFile {
  std::string path;
  std::string build_id;  // raw bytes; empty: none
  uint64_t bytes = 0;
  struct stat info {};
  std::vector<ElfSegment> segments;
  UniqueFd fd;  // empty: Reopen uses the path
  // Where its .debug_frame is: itself, or its separate debug file; empty: there is none.
  std::string frames_path;
  uint64_t frames_bytes = 0;  // of that file

  // Fills in `frames_path`. A debug file that others than the owner of this file and root can have
  // written is not used.
  void FindDebugFrame();

  // The name of its table in the unwind cache: its build-id, and what else the table depends on.
  // Stripping a file or compressing its .debug_frame changes its size and not its build-id. A file
  // can claim any build-id, so the name includes the owner unless only root or the recorder's user
  // can have written the file: nobody can provide the table for another user's file. Empty if it
  // has no build-id.
  std::string CacheKey() const;

  // Reads the whole file, even if its path does not lead to it any more because the file was
  // replaced or the process of /proc/PID/root has ended. Fails if the build-id has changed.
  Result<ElfFile> Reopen() const;
};

// The recorder's own image of the vdso; empty if it has none.
std::span<const std::byte> VdsoImage();

// Returns kInvalid if the file can be opened but is not an ELF file.
Result<UnwindFile> IdentifyFile(const std::string& path);

// The first of `paths` that is an ELF file with that build-id or, if it is empty, that may be the
// file with that identity (MayBeMapped). If there is none, returns the error of the path that came
// closest: another build-id or file, not an ELF file, cannot be opened.
Result<UnwindFile> FindUnwindFile(const std::vector<std::string>& paths,
                                  const std::string& build_id, const FileIdentity& identity = {});

// The message of an error without the name that it begins with.
std::string ReasonOf(const Error& error, const std::string& path);

}  // namespace xpu

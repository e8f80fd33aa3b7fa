#include "record/process/loader.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/path.h"
#include "format/base/split.h"
#include "record/base/environment.h"
#include "symbolize/elf/elf_needs.h"

namespace xpu {
namespace {

constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
constexpr int32_t kX8664Library = 0x0303;

struct Header {
  char magic[20];
  uint32_t count;
  uint32_t strings_bytes;
  uint32_t unused[5];
};
static_assert(sizeof(Header) == 48);

struct Entry {
  int32_t flags;
  uint32_t name;  // offset of the string, from the header on
  uint32_t path;
  uint32_t os_version;
  uint64_t hwcap;  // 0: for all processors
};
static_assert(sizeof(Entry) == 24);

std::string_view TextAt(std::string_view cache, uint32_t offset) {
  if (offset >= cache.size()) return {};
  const size_t end = cache.find('\0', offset);
  if (end == std::string_view::npos) return {};
  return cache.substr(offset, end - offset);
}

}  // namespace

std::unordered_map<std::string_view, std::string_view> LibrariesOfLoaderCache(
    std::string_view cache) {
  std::unordered_map<std::string_view, std::string_view> libraries;
  const size_t start = cache.find(kMagic);
  if (start == std::string_view::npos) return libraries;
  cache.remove_prefix(start);
  Header header;
  if (cache.size() < sizeof(header)) return libraries;
  std::memcpy(&header, cache.data(), sizeof(header));
  Entry entry;
  for (uint64_t i = 0, at = sizeof(header); i < header.count && at + sizeof(entry) <= cache.size();
       ++i, at += sizeof(entry)) {
    std::memcpy(&entry, cache.data() + at, sizeof(entry));
    if (entry.flags != kX8664Library || entry.hwcap != 0) continue;
    const std::string_view name = TextAt(cache, entry.name), path = TextAt(cache, entry.path);
    if (!name.empty() && path.starts_with('/')) libraries.emplace(name, path);
  }
  return libraries;
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardDirectories[] = {"/lib64",
                                                "/usr/lib64",
                                                "/lib",
                                                "/usr/lib",
                                                "/lib/x86_64-linux-gnu",
                                                "/usr/lib/x86_64-linux-gnu",
                                                "/usr/local/cuda/lib64",
                                                "/usr/lib/wsl/lib"};

void ReplaceAll(std::string& text, std::string_view old, const std::string& now) {
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + now.size())) {
    text.replace(at, old.size(), now);
  }
}

void AppendCudaLibraries(const std::string& directory, std::vector<std::string>& paths) {
  std::error_code failed;
  fs::directory_iterator entry(directory, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    if (IsCudaLibrary(entry->path().native())) paths.push_back(entry->path().native());
  }
}

}  // namespace

std::vector<std::string> LoaderDirectories(const std::string& program,
                                           const std::string& library_path) {
  std::error_code failed;
  const std::string origin = fs::canonical(program, failed).parent_path().native();
  std::vector<std::string> directories;
  if (const auto needs = ReadElfNeeds(program); needs.ok()) {
    const ElfNeeds& found = needs.value();
    directories =
        DirectoriesOf(found.run_path.empty() ? found.old_run_path : found.run_path, origin);
  }
  for (std::string& directory : DirectoriesOf(library_path, origin))
    directories.push_back(std::move(directory));
  return directories;
}

std::vector<std::string> StandardDirectories() {
  return {std::begin(kStandardDirectories), std::end(kStandardDirectories)};
}

bool IsCudaLibrary(std::string_view path) {
  const std::string_view name = FileNameOf(path);
  if (name.starts_with("libcuda.so") || name.starts_with("libcudart.so")) return true;
  return name.starts_with("libcudart-") && name.find(".so") != std::string_view::npos;
}

// In all versions of the format the paths are zero-terminated strings that begin with '/'; the rest
// is not needed.
std::vector<std::string> CudaLibrariesOfCache(std::string_view cache) {
  std::vector<std::string> paths;
  for (std::string_view text : Split(cache, std::string_view("\0", 1))) {
    if (text.front() == '/' && IsCudaLibrary(text)) paths.emplace_back(text);
  }
  return paths;
}

std::vector<std::string> DirectoriesOf(std::string_view run_path, const std::string& origin) {
  std::vector<std::string> directories;
  for (std::string_view part : Split(run_path, ":;")) {
    std::string directory(part);
    ReplaceAll(directory, "${ORIGIN}", origin);
    ReplaceAll(directory, "$ORIGIN", origin);
    if (directory.front() == '/') directories.push_back(std::move(directory));
  }
  return directories;
}

std::vector<std::string> FindCudaLibraries(const std::string& program,
                                           const std::vector<std::string>& environment) {
  const std::string found =
      FindProgram(program, FindVariable(environment, "PATH").value_or("/bin:/usr/bin"));
  std::vector<std::string> directories =
      LoaderDirectories(found, FindVariable(environment, "LD_LIBRARY_PATH").value_or(""));
  directories.insert(directories.end(), std::begin(kStandardDirectories),
                     std::end(kStandardDirectories));

  std::vector<std::string> paths;
  for (const std::string& directory : directories) AppendCudaLibraries(directory, paths);
  if (auto cache = ReadFile(kLoaderCache); cache.ok()) {
    for (std::string& path : CudaLibrariesOfCache(*cache)) paths.push_back(std::move(path));
  }
  std::set<std::string> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    const fs::path real = fs::canonical(path, failed);
    if (!failed && fs::is_regular_file(real, failed)) files.insert(real.native());
  }
  return {files.begin(), files.end()};
}

}  // namespace xpu

#include "symbolize/file_finder.h"

#include <cstring>
#include <optional>

#include <unistd.h>
#include <zlib.h>

#include "format/base/open_file.h"
#include "format/base/path.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::string_view kDwzDirectory = "/.dwz/";

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string IdText(std::string_view build_id) {
  return build_id.empty() ? "none" : ToHex(build_id);
}

// `build_id`: the one asked for; empty: any.
FileSearch Try(const std::string& path, std::string_view build_id) {
  Result<ElfFile> file = ElfFile::Open(path);
  if (!file.ok()) {
    const bool invalid = file.error().kind == ErrorKind::kInvalid;
    return {{}, invalid ? FileProblem::kUnreadable : FileProblem::kMissing, file.error().message};
  }
  const std::string_view found = file->image().build_id();
  if (!build_id.empty() && found != build_id) {
    return {{},
            FileProblem::kMismatch,
            Format("{}: not the recorded file: build-id {}, recorded {}", path, IdText(found),
                   ToHex(build_id))};
  }
  return {FoundFile{path, std::move(file).value()}, FileProblem::kNone, {}};
}

// What is said of several failures: a refused file before one that is none, that before a missing
// one; of equals the first.
void KeepWorse(FileSearch& kept, FileSearch&& next) {
  const auto rank = [](FileProblem problem) {
    if (problem == FileProblem::kMismatch) return 3;
    if (problem == FileProblem::kUnreadable) return 2;
    return problem == FileProblem::kMissing ? 1 : 0;
  };
  if (next.found || rank(next.problem) > rank(kept.problem)) kept = std::move(next);
}

// The checksum of .gnu_debuglink, of a whole file; nullopt: it cannot be read.
std::optional<uint32_t> Checksum(const std::string& path) {
  auto file = OpenRegularFile(path);
  if (!file.ok()) return std::nullopt;
  std::vector<std::byte> piece(size_t{256} << 10);
  uLong sum = ::crc32(0, nullptr, 0);
  while (true) {
    const ssize_t n = ::read(file->fd.get(), piece.data(), piece.size());
    if (n < 0) return std::nullopt;
    if (n == 0) return static_cast<uint32_t>(sum);
    sum = ::crc32(sum, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(n));
  }
}

struct DebugLink {
  std::string_view name;  // of a file, without a directory; empty: none
  uint32_t checksum = 0;
};

DebugLink DebugLinkOf(const ElfImage& image) {
  const std::string_view section = AsText(image.Section(".gnu_debuglink").bytes);
  const size_t end = section.find('\0');
  if (end == std::string_view::npos || end == 0) return {};
  const size_t at = (end + 4) & ~size_t{3};  // padded to four bytes
  if (at + 4 > section.size()) return {};
  DebugLink link{.name = section.substr(0, end)};
  std::memcpy(&link.checksum, section.data() + at, sizeof(link.checksum));
  if (link.name.find('/') != std::string_view::npos) return {};
  return link;
}

}  // namespace

std::vector<std::string> FileFinder::TreePaths(std::string_view build_id,
                                               std::string_view suffix) const {
  std::vector<std::string> paths;
  if (build_id.size() < 2) return paths;
  const std::string hex = ToHex(build_id);
  const std::string below = Format("{}/{}{}", hex.substr(0, 2), hex.substr(2), suffix);
  for (const std::string& directory : options_.debug_directories) {
    paths.push_back(Format("{}/.build-id/{}", directory, below));
    paths.push_back(Format("{}/{}", directory, below));  // the directory is such a tree itself
  }
  if (!options_.symfs.empty()) {
    paths.push_back(Format("{}/usr/lib/debug/.build-id/{}", options_.symfs, below));
  }
  return paths;
}

std::vector<std::string> FileFinder::ProgramPaths(const std::string& path,
                                                  std::string_view build_id) const {
  std::vector<std::string> paths = {path};
  std::string kept = path;
  // A file that was replaced while it ran: there may be an equal one in its place.
  if (kept.ends_with(kDeleted) && !build_id.empty()) {
    kept.resize(kept.size() - kDeleted.size());
    paths.push_back(kept);
  }
  if (!options_.symfs.empty()) paths.push_back(options_.symfs + kept);
  for (std::string& more : TreePaths(build_id, "")) paths.push_back(std::move(more));
  return paths;
}

std::string FileFinder::Ask(std::string_view what, std::string_view build_id,
                            std::string_view name) const {
  if (!options_.debuginfod || build_id.empty()) return {};
  return options_.debuginfod->Find(what, build_id, name);
}

FileSearch FileFinder::Program(const std::string& path, std::string_view build_id) const {
  FileSearch search;
  for (const std::string& candidate : ProgramPaths(path, build_id)) {
    KeepWorse(search, Try(candidate, build_id));
    if (search.found) return search;
  }
  const std::string downloaded = Ask("executable", build_id, path);
  if (!downloaded.empty()) KeepWorse(search, Try(downloaded, build_id));
  return search;
}

std::vector<std::string> FileFinder::LinkedPaths(const std::string& path,
                                                 std::string_view name) const {
  const std::string directory(DirectoryOf(path));
  std::vector<std::string> paths = {Format("{}/{}", directory, name),
                                    Format("{}/.debug/{}", directory, name)};
  for (const std::string& debug : options_.debug_directories) {
    paths.push_back(Format("{}{}/{}", debug, directory, name));
    paths.push_back(Format("{}/{}", debug, name));
  }
  return paths;
}

FileSearch FileFinder::Debug(const std::string& path, std::string_view build_id,
                             const ElfImage* program) const {
  FileSearch search;
  for (const std::string& candidate : TreePaths(build_id, ".debug")) {
    KeepWorse(search, Try(candidate, build_id));
    if (search.found) return search;
  }
  const DebugLink link = program == nullptr ? DebugLink{} : DebugLinkOf(*program);
  if (!link.name.empty()) {
    for (const std::string& candidate : LinkedPaths(path, link.name)) {
      FileSearch next = Try(candidate, build_id);
      // Without a build-id the checksum tells builds apart; it reads the whole file.
      if (next.found && build_id.empty()) {
        if (Checksum(candidate) != link.checksum) continue;
      }
      KeepWorse(search, std::move(next));
      if (search.found) return search;
    }
  }
  const std::string downloaded = Ask("debuginfo", build_id, path);
  if (!downloaded.empty()) KeepWorse(search, Try(downloaded, build_id));
  // Most files have no debug file: that is no problem.
  if (search.problem == FileProblem::kMissing) search = {};
  return search;
}

std::string FileFinder::Alternate(const FoundFile& debug) const {
  const std::string_view section = AsText(debug.file.image().Section(".gnu_debugaltlink").bytes);
  const size_t end = section.find('\0');
  if (end == std::string_view::npos || end == 0) return {};
  const std::string name(section.substr(0, end));
  const std::string_view build_id = section.substr(end + 1);
  if (build_id.empty()) return {};

  std::vector<std::string> paths;
  if (name.starts_with('/')) {
    if (!options_.symfs.empty()) paths.push_back(options_.symfs + name);
    paths.push_back(name);
  } else {
    paths.push_back(Format("{}/{}", DirectoryOf(debug.path), name));
  }
  if (const size_t dwz = name.rfind(kDwzDirectory); dwz != std::string::npos) {
    for (const std::string& directory : options_.debug_directories) {
      paths.push_back(directory + name.substr(dwz));
    }
  }
  for (std::string& more : TreePaths(build_id, ".debug")) paths.push_back(std::move(more));
  for (const std::string& candidate : paths) {
    if (Try(candidate, build_id).found) return candidate;
  }
  const std::string downloaded = Ask("debuginfo", build_id, name);
  return !downloaded.empty() && Try(downloaded, build_id).found ? downloaded : std::string();
}

}  // namespace xpu

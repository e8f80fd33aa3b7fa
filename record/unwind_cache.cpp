#include "record/unwind_cache.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "symbolize/elf/unwind_table.h"

namespace xpu {
namespace {

constexpr uint32_t kMagic = 0x43555058;  // "XPUC"
constexpr uint32_t kVersion = 1;
constexpr size_t kShortestBuildId = 4, kLongestBuildId = 64;
constexpr char kTemporaryPrefix[] = ".new-";
constexpr int64_t kStaleSeconds = 3600;
constexpr uint64_t kLargestTable =
    UnwindTable::Bytes(kMaxUnwindPages, kMaxUnwindRules, kMaxUnwindRows);

struct FileHeader {
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t table_bytes = 0;
  uint64_t checksum = 0;  // of the table
  uint64_t build_id_bytes = 0;
  std::array<char, kLongestBuildId> build_id{};  // zeros behind it
  friend bool operator==(const FileHeader&, const FileHeader&) = default;
};
static_assert(sizeof(FileHeader) == 96);

FileHeader HeaderOf(std::string_view build_id, std::span<const uint64_t> table) {
  FileHeader header;
  header.table_bytes = table.size_bytes();
  header.checksum = UnwindChecksum(table);
  header.build_id_bytes = build_id.size();
  std::copy(build_id.begin(), build_id.end(), header.build_id.begin());
  return header;
}

bool IsSane(std::string_view build_id) {
  return build_id.size() >= kShortestBuildId && build_id.size() <= kLongestBuildId;
}

bool IsName(std::string_view name) {
  return name.size() >= 2 * kShortestBuildId && name.size() <= 2 * kLongestBuildId &&
         name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string TemporaryName() {
  static std::atomic<uint64_t> count = 0;
  timespec now{};  // tells apart writers of the same pid in several pid namespaces
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return Format("{}{}-{}-{}", kTemporaryPrefix, ::getpid(), count.fetch_add(1), now.tv_nsec);
}

bool ReadExactly(int fd, void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t n = ::read(fd, at, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

// nullopt: not what was stored under this build-id.
std::optional<UnwindTableBytes> ReadTable(int fd, uint64_t file_bytes, std::string_view build_id) {
  FileHeader header;
  if (!ReadExactly(fd, &header, sizeof(header))) return std::nullopt;
  if (header.magic != kMagic || header.version != kVersion || header.table_bytes % 8 != 0 ||
      header.table_bytes > kLargestTable || header.table_bytes != file_bytes - sizeof(header)) {
    return std::nullopt;
  }
  std::vector<uint64_t> words(header.table_bytes / 8);
  if (!ReadExactly(fd, words.data(), header.table_bytes)) return std::nullopt;
  if (header != HeaderOf(build_id, words)) return std::nullopt;
  UnwindTable table;
  if (!table.Open(words.data(), header.table_bytes) || table.header->bytes != header.table_bytes ||
      !table.IsSound()) {
    return std::nullopt;
  }
  return UnwindTableBytes(std::move(words));
}

// A root who was given a user's HOME would leave folders there that shut the user out.
bool WouldShutOut(const std::string& parent) {
  struct stat info {};
  return ::geteuid() == 0 && ::stat(parent.c_str(), &info) == 0 && info.st_uid != 0;
}

Status MakeFolder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return Ok();
  if (errno != ENOENT) return SystemError(Format("{}: mkdir", folder), errno);
  const std::string parent = folder.substr(0, folder.find_last_of('/'));
  if (parent.empty()) return SystemError(Format("{}: mkdir", folder), ENOENT);
  XPU_RETURN_IF_ERROR(MakeFolder(parent));
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return Ok();
  return SystemError(Format("{}: mkdir", folder), errno);
}

std::string NearestFolder(std::string folder) {
  while (!folder.empty() && ::access(folder.c_str(), F_OK) != 0) {
    folder.resize(folder.find_last_of('/'));
  }
  return folder.empty() ? "/" : folder;
}

struct Kept {
  std::string name;
  uint64_t bytes = 0;
  timespec used{};
};

bool UsedBefore(const Kept& a, const Kept& b) {
  return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
}

}  // namespace

uint64_t UnwindChecksum(std::span<const uint64_t> words) {
  // Odd factors and rotations lose no bit, so a changed word changes its lane and the result. Four
  // lanes keep the multiplier busy: 8 GB/s.
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15, kOther = 0xd6e8feb86659fd93;
  std::array<uint64_t, 4> lanes{1, 2, 3, 4};
  size_t at = 0;
  for (; at + lanes.size() <= words.size(); at += lanes.size()) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      lanes[lane] = (std::rotl(lanes[lane], 27) ^ words[at + lane]) * kFactor;
    }
  }
  uint64_t sum = words.size();
  for (const uint64_t lane : lanes) sum = (std::rotl(sum, 31) ^ lane) * kOther;
  for (; at < words.size(); ++at) sum = (std::rotl(sum, 31) ^ words[at]) * kOther;
  return sum ^ (sum >> 32);
}

std::string UnwindCache::DefaultFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/xpu/unwind";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/.cache/xpu/unwind";
  }
  return {};
}

Result<UnwindCache> UnwindCache::Open(const std::string& folder, uint64_t limit_bytes) {
  const auto refused = [&](const char* why) {
    return Error{ErrorKind::kPermission, Format("{}: {}", folder, why), {}};
  };
  if (folder.empty() || folder.front() != '/') return refused("not an absolute path");
  if (const std::string parent = NearestFolder(folder); parent != folder && WouldShutOut(parent)) {
    return refused("not made by root in a folder of another user");
  }
  XPU_RETURN_IF_ERROR(MakeFolder(folder));
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return SystemError(Format("{}: open", folder), errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return SystemError(Format("{}: fstat", folder), errno);
  if (info.st_uid != ::geteuid()) return refused("belongs to another user");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return refused("others may write to it");
  return UnwindCache(std::move(fd), limit_bytes);
}

UnwindCache::UnwindCache(UnwindCache&& other) noexcept
    : folder_(std::move(other.folder_)),
      limit_bytes_(other.limit_bytes_),
      grew_(other.grew_.load()) {}

std::optional<UnwindTableBytes> UnwindCache::Load(std::string_view build_id) const {
  if (!IsSane(build_id)) return std::nullopt;
  const std::string name = ToHex(build_id);
  // Without O_NONBLOCK the opening of a pipe would wait.
  const UniqueFd fd(::openat(folder_.get(), name.c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  std::optional<UnwindTableBytes> table;
  if (S_ISREG(info.st_mode) && info.st_uid == ::geteuid()) {
    table = ReadTable(fd.get(), static_cast<uint64_t>(info.st_size), build_id);
  }
  if (table) {
    ::futimens(fd.get(), nullptr);  // used now, which Sweep goes by
  } else {
    ::unlinkat(folder_.get(), name.c_str(), 0);
  }
  return table;
}

bool UnwindCache::Store(std::string_view build_id, std::span<const std::byte> table) {
  if (!IsSane(build_id) || table.size() % 8 != 0 || table.size() > limit_bytes_) return false;
  const std::span<const uint64_t> words(reinterpret_cast<const uint64_t*>(table.data()),
                                        table.size() / 8);
  const FileHeader header = HeaderOf(build_id, words);
  const std::string temporary = TemporaryName(), name = ToHex(build_id);
  UniqueFd fd(::openat(folder_.get(), temporary.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return false;
  const auto chars = [](const void* data, size_t bytes) {
    return std::string_view(static_cast<const char*>(data), bytes);
  };
  // Not fsync: what a crash of the machine leaves has a wrong checksum.
  if (WriteAll(fd.get(), chars(&header, sizeof(header)), name).ok() &&
      WriteAll(fd.get(), chars(table.data(), table.size()), name).ok() &&
      ::renameat(folder_.get(), temporary.c_str(), folder_.get(), name.c_str()) == 0) {
    grew_ = true;
    return true;
  }
  ::unlinkat(folder_.get(), temporary.c_str(), 0);
  return false;
}

void UnwindCache::Sweep() const {
  // Another description of the folder: readdir moves the position that a duplicate would share.
  UniqueFd fd(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return;
  const Handle<DIR, ::closedir> folder(::fdopendir(fd.get()));
  if (!folder) return;
  fd.release();
  std::vector<Kept> files;
  uint64_t total = 0;
  const int64_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    const bool temporary = name.starts_with(kTemporaryPrefix);
    struct stat info {};
    if ((!temporary && !IsName(name)) ||
        ::fstatat(folder_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    const auto bytes = static_cast<uint64_t>(info.st_size);
    if (!temporary) {
      files.push_back({std::string(name), bytes, info.st_mtim});
      total += bytes;
    } else if (now - info.st_mtim.tv_sec > kStaleSeconds) {
      ::unlinkat(folder_.get(), entry->d_name, 0);
    }
  }
  std::sort(files.begin(), files.end(), UsedBefore);
  for (const Kept& file : files) {
    if (total <= limit_bytes_) break;
    if (::unlinkat(folder_.get(), file.name.c_str(), 0) == 0) total -= file.bytes;
  }
}

}  // namespace xpu

#include "record/unwind/unwind_cache.h"

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
#include "symbolize/unwind/unwind_table.h"

namespace xpu {
namespace {

constexpr uint32_t kMagic = 0x43555058;  // "XPUC"
constexpr uint32_t kVersion = 1;
constexpr size_t kShortestBuildId = 4, kLongestBuildId = 64;
constexpr char kRootDirectory[] = "/var/cache/xpu/unwind";
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
  std::array<char, kLongestBuildId> build_id{};  // padded with zeros
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
  timespec now{};  // distinguishes writers with equal pids in different pid namespaces
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return Format("{}{}-{}-{}", kTemporaryPrefix, ::getpid(), count.fetch_add(1), now.tv_nsec);
}

// nullopt if the file is not what was stored under this build-id.
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

Error Refused(const std::string& directory, const char* why) {
  return Error{ErrorKind::kPermission, Format("{}: {}", directory, why), {}};
}

// For a path that ends in cache/xpu/unwind: a user's cache directory is created, the system's is
// not.
bool MayBeMade(const std::string& directory, size_t end) {
  const auto below =
      std::count(directory.begin() + static_cast<ptrdiff_t>(end), directory.end(), '/');
  return below < (::geteuid() == 0 ? 2 : 3);
}

Result<UniqueFd> OpenOrMake(int parent, const std::string& name, int flags, bool may_make,
                            const std::string& path) {
  const auto open = [&] {
    return UniqueFd(::openat(parent, name.c_str(), flags | O_DIRECTORY | O_CLOEXEC));
  };
  UniqueFd fd = open();
  if (!fd && errno == ENOENT && may_make) {
    if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
      return SystemError(Format("{}: mkdir", path), errno);
    }
    fd = open();
  }
  if (!fd) return SystemError(Format("{}: open", path), errno);
  return fd;
}

// The files in this directory decide how stacks are read. So nobody else may own it or write to it,
// and root reaches it through no link and no directory that others could replace.
Status CheckDirectory(int fd, const std::string& path, bool is_last) {
  const bool is_root = ::geteuid() == 0;
  if (!is_last && !is_root) return Ok();
  struct stat info {};
  if (::fstat(fd, &info) != 0) return SystemError(Format("{}: fstat", path), errno);
  if (info.st_uid != ::geteuid()) return Refused(path, "belongs to another user");
  const bool others_write = (info.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool keeps_owners = !is_last && (info.st_mode & S_ISVTX) != 0;  // as in /tmp
  if (others_write && !keeps_owners) return Refused(path, "others may write to it");
  return Ok();
}

Result<UniqueFd> OpenDirectory(const std::string& directory) {
  UniqueFd at(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (size_t begin = 1; begin < directory.size();) {
    const size_t end = std::min(directory.find('/', begin), directory.size());
    const std::string path = directory.substr(0, end), name = directory.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    const bool is_last = end == directory.size();
    const int flags =
        (is_last ? O_RDONLY : O_PATH) | (is_last || ::geteuid() == 0 ? O_NOFOLLOW : 0);
    XPU_ASSIGN_OR_RETURN(at, OpenOrMake(at.get(), name, flags, MayBeMade(directory, end), path));
    XPU_RETURN_IF_ERROR(CheckDirectory(at.get(), path, is_last));
  }
  return at;
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

std::string UnwindCache::DefaultDirectory(uid_t user) {
  if (user == 0) return kRootDirectory;  // sudo may keep HOME
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && cache[0] == '/') {
    return std::string(cache) + "/xpu/unwind";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::string(home) + "/.cache/xpu/unwind";
  }
  return {};
}

Result<UnwindCache> UnwindCache::Open(const std::string& directory, uint64_t limit_bytes) {
  if (directory.size() < 2 || directory.front() != '/' || directory.back() == '/') {
    return Refused(directory, "not the absolute path of a directory");
  }
  XPU_ASSIGN_OR_RETURN(UniqueFd fd, OpenDirectory(directory));
  return UnwindCache(std::move(fd), limit_bytes);
}

UnwindCache::UnwindCache(UnwindCache&& other) noexcept
    : directory_(std::move(other.directory_)),
      limit_bytes_(other.limit_bytes_),
      grew_(other.grew_.load()) {}

std::optional<UnwindTableBytes> UnwindCache::Load(std::string_view build_id) const {
  if (!IsSane(build_id)) return std::nullopt;
  const std::string name = ToHex(build_id);
  // Without O_NONBLOCK opening a pipe would wait.
  const UniqueFd fd(::openat(directory_.get(), name.c_str(),
                             O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  std::optional<UnwindTableBytes> table;
  if (S_ISREG(info.st_mode) && info.st_uid == ::geteuid()) {
    table = ReadTable(fd.get(), static_cast<uint64_t>(info.st_size), build_id);
  }
  if (table) {
    ::futimens(fd.get(), nullptr);  // marks it as used, for Sweep
  } else {
    ::unlinkat(directory_.get(), name.c_str(), 0);
  }
  return table;
}

bool UnwindCache::Store(std::string_view build_id, std::span<const std::byte> table) {
  if (!IsSane(build_id) || table.size() % 8 != 0 || table.size() > limit_bytes_) return false;
  const std::span<const uint64_t> words(reinterpret_cast<const uint64_t*>(table.data()),
                                        table.size() / 8);
  const FileHeader header = HeaderOf(build_id, words);
  const std::string temporary = TemporaryName(), name = ToHex(build_id);
  UniqueFd fd(::openat(directory_.get(), temporary.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return false;
  const auto chars = [](const void* data, size_t bytes) {
    return std::string_view(static_cast<const char*>(data), bytes);
  };
  // Without fsync: a file that a crash of the machine leaves incomplete has a wrong checksum.
  if (WriteAll(fd.get(), chars(&header, sizeof(header)), name).ok() &&
      WriteAll(fd.get(), chars(table.data(), table.size()), name).ok() &&
      ::renameat(directory_.get(), temporary.c_str(), directory_.get(), name.c_str()) == 0) {
    grew_ = true;
    return true;
  }
  ::unlinkat(directory_.get(), temporary.c_str(), 0);
  return false;
}

void UnwindCache::Sweep() const {
  // Opened again: readdir moves the file position, which a duplicate would share.
  UniqueFd fd(::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return;
  const Handle<DIR, ::closedir> directory(::fdopendir(fd.get()));
  if (!directory) return;
  fd.release();
  std::vector<Kept> files;
  uint64_t total = 0;
  const int64_t now = ::time(nullptr);
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    const bool temporary = name.starts_with(kTemporaryPrefix);
    struct stat info {};
    if ((!temporary && !IsName(name)) ||
        ::fstatat(directory_.get(), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode)) {
      continue;
    }
    const auto bytes = static_cast<uint64_t>(info.st_size);
    if (!temporary) {
      files.push_back({std::string(name), bytes, info.st_mtim});
      total += bytes;
    } else if (now - info.st_mtim.tv_sec > kStaleSeconds) {
      ::unlinkat(directory_.get(), entry->d_name, 0);
    }
  }
  std::sort(files.begin(), files.end(), UsedBefore);
  for (const Kept& file : files) {
    if (total <= limit_bytes_) break;
    if (::unlinkat(directory_.get(), file.name.c_str(), 0) == 0) total -= file.bytes;
  }
}

}  // namespace xpu

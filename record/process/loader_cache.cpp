#include "record/process/loader_cache.h"

#include <cstdint>
#include <cstring>

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
  uint32_t name;  // of texts, from the header on
  uint32_t path;
  uint32_t os_version;
  uint64_t hwcap;  // 0: for every processor
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

}  // namespace xpu

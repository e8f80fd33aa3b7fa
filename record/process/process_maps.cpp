#include "record/process/process_maps.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <sys/mman.h>

#include "format/base/file.h"
#include "format/base/text.h"
#include "record/base/process_status.h"

namespace xpu {
namespace {

// Reads numbers and words from the start of a line.
class Line {
 public:
  explicit Line(std::string_view rest) : rest_(rest) {}

  uint64_t Number(int base, char behind) {
    uint64_t value = 0;
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    ok_ = ok_ && error == std::errc();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    Skip(behind);
    return value;
  }
  std::string_view Word(size_t length) {
    const std::string_view word = rest_.substr(0, length);
    ok_ = ok_ && word.size() == length;
    rest_.remove_prefix(word.size());
    Skip(' ');
    return word;
  }
  std::string_view Rest() const {
    const size_t begin = rest_.find_first_not_of(' ');
    return begin == std::string_view::npos ? std::string_view() : rest_.substr(begin);
  }
  bool ok() const { return ok_; }

 private:
  void Skip(char wanted) {
    if (!rest_.empty() && rest_.front() == wanted) {
      rest_.remove_prefix(1);
    } else {
      ok_ = ok_ && rest_.empty() && wanted == ' ';
    }
  }

  std::string_view rest_;
  bool ok_ = true;
};

// 7f5c0b600000-7f5c0b628000 r-xp 00028000 fe:00 1234    /usr/lib/x86_64-linux-gnu/libc.so.6
std::optional<ProcessMapping> ParseLine(std::string_view text) {
  Line line(text);
  ProcessMapping mapping;
  mapping.start_address = line.Number(16, '-');
  mapping.end_address = line.Number(16, ' ');
  const std::string_view access = line.Word(4);
  mapping.file_offset = line.Number(16, ' ');
  mapping.device_major = static_cast<uint32_t>(line.Number(16, ':'));
  mapping.device_minor = static_cast<uint32_t>(line.Number(16, ' '));
  mapping.inode = line.Number(10, ' ');
  if (!line.ok() || mapping.end_address <= mapping.start_address) return std::nullopt;
  if (access[0] == 'r') mapping.protection |= PROT_READ;
  if (access[1] == 'w') mapping.protection |= PROT_WRITE;
  if (access[2] == 'x') mapping.protection |= PROT_EXEC;
  mapping.flags = access[3] == 's' ? MAP_SHARED : MAP_PRIVATE;
  mapping.path = line.Rest();
  if (mapping.path.empty()) mapping.path = "//anon";
  return mapping;
}

}  // namespace

std::vector<ProcessMapping> ParseProcessMaps(std::string_view text) {
  std::vector<ProcessMapping> mappings;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (auto mapping = ParseLine(text.substr(0, end))) mappings.push_back(*std::move(mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return mappings;
}

Result<std::vector<ProcessMapping>> ReadProcessMaps(uint32_t pid) {
  // Large enough for the kernel's default limit of 65530 mappings with paths of usual length.
  constexpr size_t kMaxBytes = size_t{64} << 20;
  XPU_ASSIGN_OR_RETURN(const std::string text,
                       ReadFile(Format("/proc/{}/maps", LivingThread(pid)), kMaxBytes));
  return ParseProcessMaps(text);
}

Mapping MappingEventOf(uint32_t pid, uint64_t time_ns, const ProcessMapping& mapping) {
  Mapping event;
  event.time_ns = time_ns;
  event.pid = event.tid = pid;
  event.start_address = mapping.start_address;
  event.size_bytes = mapping.end_address - mapping.start_address;
  event.file_offset = mapping.file_offset;
  event.protection = mapping.protection;
  event.flags = mapping.flags;
  event.device_major = mapping.device_major;
  event.device_minor = mapping.device_minor;
  event.inode = mapping.inode;
  return event;
}

const ProcessMapping* FindMapping(const std::vector<ProcessMapping>& mappings, uint64_t address) {
  const auto after = std::upper_bound(
      mappings.begin(), mappings.end(), address,
      [](uint64_t value, const ProcessMapping& mapping) { return value < mapping.start_address; });
  if (after == mappings.begin() || address >= std::prev(after)->end_address) return nullptr;
  return &*std::prev(after);
}

}  // namespace xpu

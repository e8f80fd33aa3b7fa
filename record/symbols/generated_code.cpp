#include "record/symbols/generated_code.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/target/mapped_file.h"
#include "record/target/process_owner.h"
#include "record/target/target_file.h"

namespace xpu {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{256} << 20;
constexpr size_t kMaxNameBytes = 4096;

// Everybody can put a file there: a regular one of bounded size, of the right user, and not through
// a link.
std::string ReadBounded(const std::string& path, const ProcessOwner& owner) {
  auto file = OpenTargetFile(path, O_NOFOLLOW);
  if (!file.ok() || !MayTellOf(owner, file->info.st_uid)) return {};
  const auto bytes = static_cast<uint64_t>(file->info.st_size);
  std::string text(std::min(bytes, kMaxFileBytes), '\0');
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n =
        ::pread(file->fd.get(), text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  text.resize(done);
  return text;
}

bool TakeHex(std::string_view& text, uint64_t& value) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.starts_with(' ')) return false;
  text.remove_prefix(1);
  return true;
}

// ---- jitdump: a file header, then records, each with its size ----------------------------------

constexpr uint32_t kMagic = 0x4A695444;  // "JiTD"
constexpr uint64_t kArchClock = 1;       // flag: times are of the processor's own clock

struct DumpHeader {
  uint32_t magic, version, bytes, machine, padding, pid;
  uint64_t time_ns, flags;
};

struct RecordHeader {
  uint32_t kind, bytes;
  uint64_t time_ns;
};

enum RecordKind : uint32_t { kCodeLoad = 0, kCodeMove = 1 };

struct LoadRecord {
  uint32_t pid, tid;
  uint64_t link_address, address, size_bytes, number;
};

struct MoveRecord {
  uint32_t pid, tid;
  uint64_t link_address, old_address, address, size_bytes, number;
};

template <typename T>
bool Take(std::string_view& bytes, T& value) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return true;
}

bool Covers(const GeneratedCode& one, const std::vector<uint64_t>& addresses) {
  const auto at = std::lower_bound(addresses.begin(), addresses.end(), one.address);
  return at != addresses.end() && *at - one.address < one.size_bytes;
}

class JitDumpReader {
 public:
  explicit JitDumpReader(const std::vector<uint64_t>& addresses) : addresses_(addresses) {}

  std::vector<GeneratedCode> Read(std::string_view bytes);

 private:
  void TakeRecord(const RecordHeader& header, std::string_view body);
  void Keep(GeneratedCode one, std::string_view name);

  const std::vector<uint64_t>& addresses_;
  bool has_times_ = false;
  std::vector<GeneratedCode> code_;
  std::unordered_map<uint64_t, std::string_view> names_;  // by number
};

void JitDumpReader::Keep(GeneratedCode one, std::string_view name) {
  if (code_.size() >= kMaxGeneratedCode || !Covers(one, addresses_)) return;
  one.name = name;
  code_.push_back(std::move(one));
}

std::vector<GeneratedCode> JitDumpReader::Read(std::string_view bytes) {
  const std::string_view whole = bytes;
  DumpHeader file{};
  if (!Take(bytes, file) || file.magic != kMagic || file.bytes < sizeof(file) ||
      file.bytes > whole.size()) {
    return {};
  }
  has_times_ = (file.flags & kArchClock) == 0;
  bytes = whole.substr(file.bytes);
  RecordHeader header{};
  while (Take(bytes, header) && header.bytes >= sizeof(header) &&
         header.bytes - sizeof(header) <= bytes.size()) {
    TakeRecord(header, bytes.substr(0, header.bytes - sizeof(header)));
    bytes.remove_prefix(header.bytes - sizeof(header));
  }
  return std::move(code_);
}

void JitDumpReader::TakeRecord(const RecordHeader& header, std::string_view body) {
  const uint64_t time_ns = has_times_ ? header.time_ns : 0;
  LoadRecord load{};
  MoveRecord move{};
  if (header.kind == kCodeLoad && Take(body, load)) {
    const std::string_view name = body.substr(0, kMaxNameBytes);
    names_[load.number] = name.substr(0, name.find('\0'));
    Keep({time_ns, load.address, load.size_bytes, {}}, names_[load.number]);
  } else if (header.kind == kCodeMove && Take(body, move)) {
    const auto name = names_.find(move.number);
    if (name == names_.end()) return;
    Keep({time_ns, move.address, move.size_bytes, {}}, name->second);
  }
}

std::string ReadFirst(const std::vector<std::string>& paths, const ProcessOwner& owner) {
  for (const std::string& path : paths) {
    if (std::string text = ReadBounded(path, owner); !text.empty()) return text;
  }
  return {};
}

std::string PerfMapOf(uint32_t pid) { return Format("/tmp/perf-{}.map", pid); }

std::string ReadPerfMap(uint32_t pid, const ProcessOwner& owner) {
  const uint32_t own_pid = owner.own_pid == 0 ? pid : owner.own_pid;
  std::vector<std::string> paths = {Format("/proc/{}/root", pid) + PerfMapOf(own_pid)};
  // One that counts differently has another /tmp too.
  if (own_pid == pid) paths.push_back(PerfMapOf(pid));
  return ReadFirst(paths, owner);
}

std::string ReadJitDump(const HitCode& hit) {
  return ReadFirst(PathsOfMapping({.pid = hit.pid, .path = hit.dump_path}), hit.owner);
}

}  // namespace

std::vector<GeneratedCode> ParsePerfMap(std::string_view text,
                                        const std::vector<uint64_t>& addresses) {
  std::vector<GeneratedCode> code;
  while (!text.empty() && code.size() < kMaxGeneratedCode) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    GeneratedCode one;
    if (!TakeHex(line, one.address) || !TakeHex(line, one.size_bytes) || line.empty()) continue;
    if (!Covers(one, addresses)) continue;
    one.name = line.substr(0, kMaxNameBytes);
    code.push_back(std::move(one));
  }
  return code;
}

std::vector<GeneratedCode> ParseJitDump(std::string_view bytes,
                                        const std::vector<uint64_t>& addresses) {
  return JitDumpReader(addresses).Read(bytes);
}

void WriteGeneratedSymbols(const std::vector<HitCode>& hits, EventSink& sink) {
  for (const HitCode& hit : hits) {
    std::vector<GeneratedCode> code = ParsePerfMap(ReadPerfMap(hit.pid, hit.owner), hit.addresses);
    if (!hit.dump_path.empty()) {
      const std::string dump = ReadJitDump(hit);
      for (GeneratedCode& one : ParseJitDump(dump, hit.addresses)) {
        code.push_back(std::move(one));
      }
    }
    for (const GeneratedCode& one : code) {
      GeneratedSymbol symbol;
      symbol.time_ns = one.time_ns;
      symbol.pid = hit.pid;
      symbol.address = one.address;
      symbol.size_bytes = one.size_bytes;
      symbol.name = sink.Intern(one.name);
      sink.Write(symbol);
    }
  }
}

}  // namespace xpu

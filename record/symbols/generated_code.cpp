#include "record/symbols/generated_code.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_status.h"
#include "record/process/mapped_file.h"
#include "record/process/target_file.h"

namespace xpu {
namespace {

constexpr size_t kMaxNameBytes = 1024;
constexpr uint64_t kMaxFileBytes = uint64_t{128} << 20;
constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr uint64_t kSymbolBytes = 48;  // estimated for one symbol in a capture, without its name

enum class Holes {
  kSkip,  // at the end of a line
  kEnd,   // at the end of the file: a record of zeros ends a jitdump
};

struct FileText {
  std::string text;
  bool is_cut = false;
  bool is_outdated = false;  // written before the program began
};

// Appends the file's data from `at` to `end`. Returns false if the budget is exhausted.
bool AppendData(int fd, off_t at, off_t end, ReadBudget& budget, std::string& text) {
  while (at < end) {
    const uint64_t allowed = std::min(budget.Left(), kMaxFileBytes - text.size());
    if (allowed == 0) return false;
    const size_t begin = text.size();
    const uint64_t wanted =
        std::min({allowed, uint64_t{kChunkBytes}, static_cast<uint64_t>(end - at)});
    text.resize(begin + wanted);
    const ssize_t n = ::pread(fd, text.data() + begin, wanted, at);
    text.resize(begin + static_cast<size_t>(std::max<ssize_t>(n, 0)));
    if (n <= 0) return true;  // truncated meanwhile
    budget.Spend(static_cast<uint64_t>(n));
    at += n;
  }
  return true;
}

// Reads up to the current size, so that a growing file ends too. A file system without holes
// reports that everything is data.
FileText ReadData(int fd, off_t size, Holes holes, ReadBudget& budget) {
  FileText file;
  off_t at = 0;
  while (at < size) {
    if (budget.Left() == 0 || file.text.size() >= kMaxFileBytes) {
      file.is_cut = true;
      return file;
    }
    const off_t data = ::lseek(fd, at, SEEK_DATA);
    if (data < 0 || data >= size) return file;  // ENXIO: only a hole is left
    if (data > at && holes == Holes::kEnd) return file;
    if (data > at && !file.text.empty()) file.text += '\n';
    const off_t hole = ::lseek(fd, data, SEEK_HOLE);
    const off_t end = hole < 0 ? size : std::min(hole, size);
    if (end <= data) return file;  // truncated meanwhile
    file.is_cut = !AppendData(fd, data, end, budget, file.text);
    if (file.is_cut) return file;
    at = end;
  }
  return file;
}

// Anybody can create such a file, so only a regular file of bounded size and of the right user is
// read, never through a link.
FileText ReadBounded(const std::string& path, const ProcessOwner& owner, Holes holes,
                     ReadBudget& budget) {
  auto file = OpenTargetFile(path, O_NOFOLLOW);
  if (!file.ok() || !MayDescribe(owner, file->info.st_uid)) return {};
  FileText text = ReadData(file->fd.get(), file->info.st_size, holes, budget);
  // File times may be 10 ms too early, and some file systems store whole seconds.
  const timespec& written = file->info.st_mtim;
  const uint64_t tolerance_ns = written.tv_nsec == 0 ? 1'000'000'000 : 20'000'000;
  text.is_outdated = static_cast<uint64_t>(written.tv_sec) * 1'000'000'000 +
                         static_cast<uint64_t>(written.tv_nsec) + tolerance_ns <
                     owner.began_unix_ns;
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
constexpr uint64_t kArchClock = 1;       // flag: times are of the processor's clock

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
  size_t name_bytes_ = 0;                                 // for code_
  std::unordered_map<uint64_t, std::string_view> names_;  // indexed by number
};

void JitDumpReader::Keep(GeneratedCode one, std::string_view name) {
  if (code_.size() >= kMaxGeneratedCode || !Covers(one, addresses_)) return;
  // Each move repeats a name, so that a small file could need much memory.
  if (name.size() > kMaxGeneratedNameBytes - name_bytes_) return;
  name_bytes_ += name.size();
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

// The first file that exists and is not empty.
FileText ReadFirst(const std::vector<std::string>& paths, const ProcessOwner& owner, Holes holes,
                   ReadBudget& budget) {
  for (const std::string& path : paths) {
    FileText file = ReadBounded(path, owner, holes, budget);
    if (!file.text.empty() || file.is_cut) return file;
  }
  return {};
}

// The path of the perf map, as the process names it.
std::string PerfMapOf(const HitCode& hit) {
  return Format("/tmp/perf-{}.map", hit.owner.own_pid == 0 ? hit.pid : hit.owner.own_pid);
}

FileText ReadPerfMap(const HitCode& hit, ReadBudget& budget) {
  const std::string map = PerfMapOf(hit);
  std::vector<std::string> paths = {Format("/proc/{}/root", LivingThread(hit.pid)) + map};
  // A process in another pid namespace also has another /tmp.
  if (hit.owner.own_pid == 0 || hit.owner.own_pid == hit.pid) paths.push_back(map);
  return ReadFirst(paths, hit.owner, Holes::kSkip, budget);
}

FileText ReadJitDump(const HitCode& hit, ReadBudget& budget) {
  return ReadFirst(PathsOfMapping({.pid = hit.pid, .path = hit.dump_path}), hit.owner, Holes::kEnd,
                   budget);
}

// The code that the files of a process describe. `cut`: the number of files not read to the end.
// `outdated`: the number of names in a map that an earlier program left.
std::vector<GeneratedCode> ReadCode(const HitCode& hit, ReadBudget& budget, uint64_t& cut,
                                    uint64_t& outdated) {
  std::vector<GeneratedCode> code;
  {
    const FileText map = ReadPerfMap(hit, budget);
    cut += map.is_cut ? 1 : 0;
    // In a truncated text the last line may contain half a name.
    const size_t whole = map.is_cut ? map.text.rfind('\n') + 1 : map.text.size();
    code = ParsePerfMap(std::string_view(map.text).substr(0, whole), hit.addresses);
    if (map.is_outdated) outdated = std::exchange(code, {}).size();
  }
  cut += code.size() >= kMaxGeneratedCode ? 1 : 0;
  if (hit.dump_path.empty()) return code;
  const FileText dump = ReadJitDump(hit, budget);
  cut += dump.is_cut ? 1 : 0;
  for (GeneratedCode& one : ParseJitDump(dump.text, hit.addresses)) code.push_back(std::move(one));
  return code;
}

// The recorder blocks these signals and reads them between two steps.
bool IsAskedToEnd() {
  sigset_t pending;
  if (::sigpending(&pending) != 0) return false;
  return std::ranges::any_of(std::array{SIGINT, SIGTERM, SIGHUP, SIGQUIT},
                             [&](int signal) { return sigismember(&pending, signal) == 1; });
}

}  // namespace

uint64_t ReadBudget::Left() const {
  const uint64_t since_ns = MonotonicNs() - begin_ns_;
  if (since_ns >= kMaxNs || (since_ns >= patience_ns_ && IsAskedToEnd())) return 0;
  return left_;
}

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

void WriteGeneratedSymbols(const std::vector<HitCode>& hits, uint64_t max_bytes, EventSink& sink) {
  ReadBudget budget;
  uint64_t left = max_bytes;
  for (const HitCode& hit : hits) {
    uint64_t cut = 0, outdated = 0;
    const std::vector<GeneratedCode> code = ReadCode(hit, budget, cut, outdated);
    for (const GeneratedCode& one : code) {
      const uint64_t bytes = kSymbolBytes + one.name.size();
      if (bytes > left) {
        cut = std::max<uint64_t>(cut, 1);
        break;
      }
      left -= bytes;
      GeneratedSymbol symbol;
      symbol.time_ns = one.time_ns;
      symbol.pid = hit.pid;
      symbol.address = one.address;
      symbol.size_bytes = one.size_bytes;
      symbol.name = sink.Intern(one.name);
      sink.Write(symbol);
    }
    if (cut != 0) sink.losses().Add(LossKind::kGeneratedCodeCut, cut, hit.pid);
    sink.losses().Add(LossKind::kGeneratedCodeOutdated, outdated, hit.pid, {}, PerfMapOf(hit));
  }
}

}  // namespace xpu

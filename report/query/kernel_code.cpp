#include "report/query/kernel_code.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/handle.h"
#include "format/base/open_file.h"
#include "format/base/saturated.h"
#include "format/base/source_name.h"
#include "format/base/split.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr uint64_t kLargestSource = uint64_t{16} << 20;

constexpr rlim_t kDisassemblySeconds = 10;
constexpr rlim_t kDisassemblyMemory = rlim_t{4} << 30;
constexpr size_t kMostDisassembly = size_t{64} << 20;
constexpr uid_t kNobody = 65534;

// In the child of a process with threads: nothing but system calls.
[[noreturn]] void ExecDisassembler(const char* path, char* const* arguments, int code, int output) {
  char* const environment[] = {nullptr};
  const rlimit seconds{kDisassemblySeconds, kDisassemblySeconds};
  const rlimit memory{kDisassemblyMemory, kDisassemblyMemory};
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CPU, &seconds);
  setrlimit(RLIMIT_AS, &memory);
  setrlimit(RLIMIT_CORE, &none);
  setrlimit(RLIMIT_FSIZE, &none);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (geteuid() == 0 &&
      (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0)) {
    _exit(126);
  }
  // 0: the code, 1: what it prints.
  if (dup2(code, 0) < 0 || dup2(output, 1) < 0) _exit(126);
  const int nothing = open("/dev/null", O_RDWR);
  if (nothing < 0 || dup2(nothing, 2) < 0) _exit(126);
  close_range(3, ~0U, 0);
  execve(path, arguments, environment);
  _exit(127);
}

// Until its end, or as much as is taken and as long as it may take.
std::string ReadOutput(int fd) {
  using std::chrono::steady_clock;
  const auto deadline = steady_clock::now() + std::chrono::seconds(2 * kDisassemblySeconds);
  std::string text;
  char bytes[16384];
  while (text.size() < kMostDisassembly) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd place{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&place, 1, static_cast<int>(left.count())) <= 0) break;
    const ssize_t n = ::read(fd, bytes, sizeof(bytes));
    if (n <= 0) break;
    text.append(bytes, static_cast<size_t>(n));
  }
  return text;
}

// Instructions without samples are shown only within four instructions of one that has some.
constexpr uint64_t kNearBytes = 4 * 16;

// 90 of a compute capability of 9.0; 0: it is not known.
uint32_t ArchitectureOf(const Model& model, InstanceId instance) {
  for (const Device& device : model.events.devices) {
    if (device.instance != instance) continue;
    return device.compute_capability_major * 10 + device.compute_capability_minor;
  }
  return 0;
}

}  // namespace

SourceLines::SourceLines(const SourceParts& sources) {
  for (const SourcePart& part : sources.parts) {
    std::map<uint32_t, std::string_view>& lines = stored_[part.path];
    uint32_t number = part.first_line;
    ForEachLine(part.text, [&](std::string_view line) { lines.try_emplace(number++, line); });
  }
}

std::string_view SourceLines::StoredLine(std::string_view file, uint32_t line) const {
  const auto lines = stored_.find(file);
  if (lines == stored_.end()) return {};
  const auto found = lines->second.find(line);
  return found == lines->second.end() ? std::string_view() : found->second;
}

std::string_view SourceLines::Line(std::string_view file, uint32_t line) {
  if (stored_.contains(file)) return StoredLine(file, line);
  auto here = here_.find(file);
  if (here == here_.end()) {
    here = here_.try_emplace(std::string(file), LinesHere(std::string(file))).first;
    if (here->second.empty()) unknown_.insert(here->first);
  }
  const std::vector<std::string>& lines = here->second;
  return line == 0 || line > lines.size() ? std::string_view() : lines[line - 1];
}

std::vector<std::string> SourceLines::LinesHere(const std::string& path) {
  std::vector<std::string> lines;
  if (!IsSourceName(path)) return lines;
  auto opened = OpenRegularFile(path);
  if (!opened.ok() || static_cast<uint64_t>(opened->info.st_size) > kLargestSource) return lines;
  std::string text(static_cast<size_t>(opened->info.st_size), '\0');
  if (!ReadExactly(opened->fd.get(), text.data(), text.size())) return lines;
  ForEachLine(text, [&](std::string_view line) { lines.emplace_back(line); });
  return lines;
}

std::optional<Disassembler> Disassembler::Find() {
  std::vector<std::string> directories;
  if (const char* path = std::getenv("PATH")) {
    for (const std::string_view directory : Split(path, ":")) directories.emplace_back(directory);
  }
  if (const char* home = std::getenv("CUDA_HOME")) directories.push_back(Format("{}/bin", home));
  directories.emplace_back("/usr/local/cuda/bin");
  for (const std::string& directory : directories) {
    if (!directory.starts_with('/')) continue;
    std::string path = directory + "/nvdisasm";
    if (::access(path.c_str(), X_OK) == 0) return Disassembler(std::move(path));
  }
  return std::nullopt;
}

std::map<uint64_t, std::string> ParseDisassembly(std::string_view text) {
  std::map<uint64_t, std::string> texts;
  for (std::string_view line : Split(text, "\n")) {
    const size_t begin = line.find("/*");
    if (begin == line.npos) continue;
    const size_t end = line.find("*/", begin);
    if (end == line.npos) continue;
    uint64_t offset = 0;
    const char* digits_end = line.data() + end;
    const auto [stop, error] = std::from_chars(line.data() + begin + 2, digits_end, offset, 16);
    if (error != std::errc() || stop != digits_end) continue;
    line.remove_prefix(end + 2);
    line = line.substr(0, line.find(';'));
    const size_t first = line.find_first_not_of(" \t");
    if (first == line.npos) continue;
    line.remove_prefix(first);
    line = line.substr(0, line.find_last_not_of(" \t") + 1);
    if (!line.starts_with("/*")) texts.try_emplace(offset, line);
  }
  return texts;
}

std::map<uint64_t, std::string> Disassembler::Texts(std::span<const std::byte> code,
                                                    uint32_t architecture) const {
  if (code.empty()) return {};
  const UniqueFd file(::memfd_create("gpu-code", MFD_CLOEXEC));
  const std::string_view bytes(reinterpret_cast<const char*>(code.data()), code.size());
  if (!file || !WriteAll(file.get(), bytes, "memfd").ok()) return {};
  // Whoever it runs as opens it anew.
  ::fchmod(file.get(), 0444);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  std::string chip = Format("SM{}", architecture);
  std::string binary = "--binary";
  std::string name = "/proc/self/fd/0";
  std::string program = path_;
  char* arguments[] = {program.data(), binary.data(), chip.data(), name.data(), nullptr};
  const pid_t child = ::fork();
  if (child == 0) ExecDisassembler(path_.c_str(), arguments, file.get(), to.get());
  to.reset();
  if (child < 0) return {};
  const std::string text = ReadOutput(from.get());
  ::kill(child, SIGKILL);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ParseDisassembly(text);
}

void AddStalls(const SampledInstruction& at, StallSums& sums) {
  for (const auto& [stall, count] : at.stalls) {
    sums[stall] = AddSaturated(sums[stall], count.samples);
  }
}

uint64_t SumOf(const StallSums& stalls) {
  uint64_t sum = 0;
  for (const auto& [stall, samples] : stalls) sum = AddSaturated(sum, samples);
  return sum;
}

std::vector<std::pair<std::string, uint64_t>> SortedStalls(const StallSums& stalls) {
  std::vector<std::pair<std::string, uint64_t>> sorted(stalls.begin(), stalls.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

CodeLines LinesOf(const SampledFunction& function) {
  CodeLines lines;
  for (const SampledInstruction& at : function.instructions) {
    if (at.lines.empty() || at.lines.front().file.empty()) continue;
    const SourceFrame& frame = at.lines.front();
    AddStalls(at, lines[{frame.file, frame.line}]);
  }
  return lines;
}

std::vector<CodeInstruction> InstructionsOf(const Model& model, const SampledFunction& function,
                                            GpuCode& code,
                                            const std::optional<Disassembler>& disassembler) {
  std::map<uint64_t, std::string> texts;
  const uint32_t architecture = ArchitectureOf(model, function.instance);
  if (disassembler && architecture != 0) {
    texts = disassembler->Texts(code.CodeOf({function.instance, function.cubin_crc, function.name}),
                                architecture);
  }
  std::map<uint64_t, const SampledInstruction*> all;
  for (const SampledInstruction& at : function.instructions) all[at.offset] = &at;
  for (const auto& [offset, text] : texts) all.try_emplace(offset, nullptr);
  std::vector<CodeInstruction> instructions;
  for (const auto& [offset, at] : all) {
    const auto from = all.lower_bound(offset - std::min(offset, kNearBytes));
    const auto to = all.upper_bound(AddSaturated(offset, kNearBytes));
    const bool is_near =
        std::any_of(from, to, [](const auto& each) { return each.second != nullptr; });
    if (!is_near) continue;
    const auto text = texts.find(offset);
    instructions.push_back({offset, text == texts.end() ? std::string() : text->second, at});
  }
  return instructions;
}

}  // namespace xpu

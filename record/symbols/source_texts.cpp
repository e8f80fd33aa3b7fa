#include "record/symbols/source_texts.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <vector>

#include "format/base/source_name.h"
#include "format/base/text.h"
#include "format/fused_calls.h"
#include "format/python_lines.h"
#include "record/base/background_threads.h"
#include "symbolize/text_reader.h"

namespace xpu {
namespace {

constexpr size_t kMaxSeen = size_t{1} << 20;
constexpr size_t kMaxGpuProcesses = 1024;
constexpr size_t kMaxCodes = size_t{1} << 18;
constexpr size_t kMaxPythonFrames = 4096;
// A process whose files could not be read: its file system does not answer.
constexpr int kMaxFailures = 3;
// The end of a recording waits no longer for file systems that do not answer.
constexpr std::chrono::seconds kEndPatience{20};
// Below the limit of a text in a capture, whatever the lines are.
constexpr size_t kMaxRunBytes = 48 << 10;
// Of GPU code: what waits to be read, what is remembered of it, and how many damaged line tables
// are tried, each of which may take a second.
constexpr uint64_t kMaxGpuCodeBytes = uint64_t{64} << 20;
constexpr size_t kMaxGpuLines = size_t{1} << 20;
constexpr size_t kMaxGpuFailures = 8;

// The texts of line `first` (from 1) up to `last`, as far as there are so many.
std::string_view LinesOf(std::string_view text, uint32_t first, uint32_t last) {
  size_t begin = 0;
  for (uint32_t line = 1; line < first; ++line) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return {};
    begin = end + 1;
  }
  size_t end = begin;
  for (uint32_t line = first; line <= last && end < text.size(); ++line) {
    const size_t feed = text.find('\n', end);
    end = feed == std::string_view::npos ? text.size() : feed + 1;
  }
  return text.substr(begin, end - begin);
}

// Inductor writes above each kernel of the file that calls it which operators of the model it
// fuses.
void AddKernelLines(std::string_view text, std::set<uint32_t>& lines) {
  constexpr std::string_view kComment = "# kernel path: ";
  constexpr uint32_t kCommentLines = 16;
  constexpr size_t kMaxKernels = 1000;
  uint32_t line = 1;
  size_t counted = 0;
  size_t kernels = 0;
  for (size_t at = text.find(kComment); at != std::string_view::npos && ++kernels <= kMaxKernels;
       at = text.find(kComment, at + 1)) {
    line += static_cast<uint32_t>(std::count(text.begin() + static_cast<ptrdiff_t>(counted),
                                             text.begin() + static_cast<ptrdiff_t>(at), '\n'));
    counted = at;
    lines.insert(line + kCommentLines);
  }
}

}  // namespace

SourceTexts::SourceTexts(SourcePlaces* places)
    : places_(places), thread_(StartWithoutSignals([this] { ReadFiles(); })) {}

SourceTexts::~SourceTexts() {
  {
    const std::lock_guard hold(lock_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SourceTexts::Observe(const PythonCode& code, std::string_view path,
                          std::string_view line_table) {
  if (codes_.size() >= kMaxCodes || !IsSourceName(path)) return;
  codes_.try_emplace(code.code, Code{std::string(path), std::string(line_table), code.first_line});
}

void SourceTexts::ObservePythonStack(uint32_t pid, StackId stack, uint64_t time_ns,
                                     const NodeOf& node_of) {
  auto& recent = recent_[stack.value % recent_.size()];
  if (std::exchange(recent, {pid, stack}) == std::pair(pid, stack)) return;
  for (size_t depth = 0; stack && depth < kMaxPythonFrames; ++depth) {
    const StackNode node = node_of(stack);
    stack = node.caller;
    if (node.frame.kind != FrameKind::kPython) return;
    const PythonFrame frame = PythonFrame::OfBits(node.frame.address);
    if (seen_.size() >= kMaxSeen) seen_.clear();
    const PythonFrame without_entry{.code = frame.code, .offset = frame.offset};
    if (seen_.insert(without_entry.Bits()).second) AddLine(pid, time_ns, frame);
  }
}

void SourceTexts::AddLine(uint32_t pid, uint64_t time_ns, const PythonFrame& frame) {
  const auto code = codes_.find(frame.code);
  if (code == codes_.end()) return;
  const PythonLines lines(code->second.line_table);
  const int64_t line = code->second.first_line + lines.At(frame.offset).value_or(0);
  if (line <= 0 || line > INT32_MAX) return;
  std::set<uint32_t> wanted{static_cast<uint32_t>(line)};
  // With the head of the function: what it is called, what a compiler says of it.
  if (code->second.first_line > 0) wanted.insert(code->second.first_line);
  const std::string& path = code->second.path;
  std::unique_lock hold(lock_);
  SourceNamer namer;
  if (!files_.contains(path)) {  // only then it matters, and looking at /proc takes a while
    hold.unlock();
    namer = places_->At(pid, time_ns);
    hold.lock();
  }
  AddLines(path, wanted, namer);
}

void SourceTexts::AddLines(const std::string& path, const std::set<uint32_t>& lines,
                           const SourceNamer& namer) {
  if (!IsSourceName(path)) return;
  auto file = files_.find(path);
  if (file == files_.end()) {
    if (files_.size() >= kMaxFiles) {
      ++refused_;
      return;
    }
    file = files_.try_emplace(path).first;
    file->second.namer = namer;
    Ask(path, file->second);
  }
  file->second.lines.insert(lines.begin(), lines.end());
}

void SourceTexts::Observe(const GpuProcess& process) {
  if (gpu_processes_.contains(process.instance)) return;
  // The newest ones count.
  if (gpu_processes_.size() >= kMaxGpuProcesses) gpu_processes_.erase(gpu_processes_.begin());
  gpu_processes_[process.instance] = places_->At(process.pid, process.time_ns);
}

void SourceTexts::Observe(const GpuSample& sample) {
  const Module module{sample.instance, sample.cubin_crc};
  if (std::exchange(last_sampled_, module) == module || !sampled_.insert(module).second) return;
  const std::lock_guard hold(lock_);
  const auto known = gpu_lines_.find(module);
  if (known == gpu_lines_.end()) return;
  for (const FileLines& files : known->second) {
    for (const auto& [path, lines] : files) AddLines(path, lines, gpu_processes_[module.first]);
  }
}

void SourceTexts::Observe(const CubinSlice& slice, std::string_view bytes) {
  // The recorder itself makes slices, and writes all parts of one at once.
  if (slice.part == 0) gpu_code_.clear();
  gpu_code_ += bytes;
  if (slice.part + 1 != slice.part_count) return;
  Request request{.path = Format("GPU module {:x}", slice.cubin_crc),
                  .opened_path = {},
                  .namer = gpu_processes_[slice.instance],
                  .gpu_code = std::exchange(gpu_code_, {}),
                  .module = {slice.instance, slice.cubin_crc}};
  const std::lock_guard hold(lock_);
  if (gpu_code_bytes_ + request.gpu_code.size() > kMaxGpuCodeBytes) {
    unreadable_.push_back(Format("of {}: too much code at a time", request.path));
    return;
  }
  gpu_code_bytes_ += request.gpu_code.size();
  Push(std::move(request));
}

void SourceTexts::Add(const FileLines& lines, const SourceNamer& namer) {
  const std::lock_guard hold(lock_);
  for (const auto& [path, numbers] : lines) {
    if (path.starts_with('/')) AddLines(path, numbers, namer);
  }
}

void SourceTexts::Ask(const std::string& path, File& file) {
  const SourcePlace* place =
      file.namer.access == nullptr ? nullptr : file.namer.access->place().get();
  std::string opened = path;
  if (place != nullptr && !path.starts_with('/')) {
    opened = place->directory.empty() ? std::string() : place->directory + "/" + path;
  }
  if (place == nullptr || opened.empty() || !thread_.joinable()) {
    file.is_read = true;
    file.failure = place == nullptr ? "the process had ended" : "its directory is not known";
    return;
  }
  Push({.path = path,
        .opened_path = std::move(opened),
        .namer = file.namer,
        .gpu_code = {},
        .module = {}});
}

void SourceTexts::Push(Request request) {
  requests_.push_back(std::move(request));
  ++unanswered_;
  changed_.notify_all();
}

class SourceTexts::Reader {
 public:
  Result<std::string> Read(const Request& request) {
    if (place_ != request.namer.access->place()) {
      place_ = request.namer.access->place();
      own_.reset();
      callers_.reset();
      failures_ = 0;
    }
    Result<std::string> text = ReadAs(place_->user, place_->group, own_, request.opened_path);
    if (!text.ok() && text.error().kind == ErrorKind::kPermission && place_->caller) {
      text = ReadAs(place_->caller->user, place_->caller->group, callers_, request.opened_path);
    }
    if (text.ok() && bytes_ + text->size() > kMaxBytes) {
      return Error{ErrorKind::kSystem, Format("{}: no room", request.path), {}};
    }
    if (text.ok()) bytes_ += text->size();
    return text;
  }

 private:
  Result<std::string> ReadAs(uid_t user, gid_t group, std::optional<TextReader>& reader,
                             const std::string& path) {
    if (!reader) {
      if (failures_ >= kMaxFailures) {
        return Error{ErrorKind::kSystem, "no file of its process could be read", {}};
      }
      reader.emplace(place_->root.get(), user, group);
    }
    Result<std::string> text = reader->Read(path);
    if (reader->has_failed()) {
      ++failures_;
      reader.reset();
    }
    return text;
  }

  std::shared_ptr<const SourcePlace> place_;
  std::optional<TextReader> own_;      // as the user of the process
  std::optional<TextReader> callers_;  // as the user who called sudo
  int failures_ = 0;
  uint64_t bytes_ = 0;
};

void SourceTexts::ReadText(const Request& request, Reader& reader) {
  Result<std::string> text = reader.Read(request);
  const std::lock_guard hold(lock_);
  File& file = files_[request.path];
  file.is_read = true;
  if (text.ok()) {
    file.text = *std::move(text);
  } else {
    file.failure = text.error().message;
  }
}

void SourceTexts::ReadGpuLines(const Request& request, size_t& failures) {
  Result<FileLines> lines =
      failures < kMaxGpuFailures
          ? LinesOfGpuCode(request.gpu_code, request.path, DebugReading::kConfined)
          : Error{ErrorKind::kInvalid, "too many lines of GPU code are damaged", {}};
  const std::lock_guard hold(lock_);
  gpu_code_bytes_ -= request.gpu_code.size();
  if (!lines.ok()) {
    ++failures;
    unreadable_.push_back(lines.error().message);
    return;
  }
  size_t count = 0;
  for (const auto& [path, numbers] : *lines) {
    AddLines(path, numbers, request.namer);
    count += numbers.size();
  }
  // What has no room is in this part of the recording alone.
  if (gpu_lines_count_ + count > kMaxGpuLines) return;
  gpu_lines_count_ += count;
  gpu_lines_[request.module].push_back(*std::move(lines));
}

void SourceTexts::ReadFiles() {
  Reader reader;
  size_t gpu_failures = 0;
  while (true) {
    Request request;
    {
      std::unique_lock hold(lock_);
      changed_.wait(hold, [this] { return ends_ || !requests_.empty(); });
      if (ends_) return;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    if (request.gpu_code.empty()) {
      ReadText(request, reader);
    } else {
      ReadGpuLines(request, gpu_failures);
    }
    const std::lock_guard hold(lock_);
    --unanswered_;
    changed_.notify_all();
  }
}

// Compiled code names variables of the model. Which lines assign them can only be said where the
// whole file is known.
void SourceTexts::AddCompiledFiles() {
  std::unordered_set<std::string_view> names;
  for (const auto& [path, file] : files_) {
    if (file.lines.empty()) continue;
    for (const FusedCall& call : FusedCallsOf(file.text, 1)) {
      names.insert(call.nodes.begin(), call.nodes.end());
    }
  }
  if (names.empty()) return;
  for (auto& [path, file] : files_) {
    if (file.lines.empty() || !path.ends_with(".py") || IsInstalledPython(path)) continue;
    const auto bindings = BindingsOf(file.text);
    const bool assigns = std::any_of(bindings.begin(), bindings.end(), [&](const auto& binding) {
      return names.contains(binding.first);
    });
    const auto count = std::count(file.text.begin(), file.text.end(), '\n') + 1;
    for (uint32_t line = 1; assigns && line <= count; line += kLinesAround) {
      file.lines.insert(file.lines.end(), line);
    }
  }
}

void SourceTexts::WriteFile(const std::string& path, File& file, EventSink& sink) {
  if (file.lines.empty()) return;
  AddKernelLines(file.text, file.lines);
  for (auto line = file.lines.begin(); line != file.lines.end();) {
    const uint32_t first = *line - std::min(*line - 1, kLinesAround);
    uint32_t last = *line + kLinesAround;
    for (++line; line != file.lines.end() && *line <= last + kLinesAround; ++line) {
      last = *line + kLinesAround;
    }
    std::string_view text = LinesOf(file.text, first, last);
    uint32_t number = first;
    while (!text.empty()) {
      std::string_view run = text.substr(0, kMaxRunBytes);
      const size_t feed = run.rfind('\n');
      if (run.size() < text.size() && feed != std::string_view::npos) run = run.substr(0, feed + 1);
      SourceText event;
      event.path = sink.Intern(path);
      event.first_line = number;
      event.text = sink.Intern(run);
      sink.Write(event);
      number += static_cast<uint32_t>(std::count(run.begin(), run.end(), '\n'));
      text.remove_prefix(run.size());
    }
  }
  file.lines.clear();
}

void SourceTexts::Write(EventSink& sink, Waits waits) {
  std::unique_lock hold(lock_);
  if (waits == Waits::kYes) {
    changed_.wait_for(hold, kEndPatience, [this] { return unanswered_ == 0; });
  }
  AddCompiledFiles();
  for (auto& [path, file] : files_) {
    if (!file.is_read) {
      if (waits == Waits::kYes) {
        sink.losses().Add(LossKind::kSourcesNotStored, 1, 0, {}, Format("{}: not read yet", path));
      }
      continue;
    }
    if (file.namer.access != nullptr && !file.namer.MayRead()) {
      file = File();
      file.is_read = true;
      file.failure = Format("{}: named by a program that had ended", path);
    }
    if (!file.failure.empty()) {
      sink.losses().Add(LossKind::kSourcesNotStored, 1, 0, {}, std::exchange(file.failure, {}));
    }
    WriteFile(path, file, sink);
  }
  sink.losses().Add(LossKind::kSourcesNotStored, std::exchange(refused_, 0), 0, {},
                    "there are too many files");
  for (std::string& why : std::exchange(unreadable_, {})) {
    sink.losses().Add(LossKind::kSourcesNotStored, 1, 0, {}, std::move(why));
  }
  // Stacks of the next part of the recording say again what occurs in it.
  seen_.clear();
  recent_ = {};
  sampled_.clear();
  last_sampled_ = {};
}

}  // namespace xpu

#include "symbolize/symbolizer.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>

#include "format/base/check.h"

namespace xpu {

// A file and what was found out about its addresses. The texts are its own, so that the file can
// be forgotten.
class Symbolizer::NamedModule {
 public:
  NamedModule(std::string_view path, std::string_view build_id)
      : file_{.path = std::string(path),
              .build_id = std::string(build_id),
              .slice = {},
              .older_slices = {}} {}

  void Want(uint64_t file_offset) { wanted_.push_back(file_offset); }
  size_t wanted_count() const { return wanted_.size(); }
  std::vector<uint64_t> Wanted() const;
  // Thread-safe for different modules.
  void ResolveRequested(const FileFinder& finder, ModuleSymbols::Detail detail);
  std::span<const CodeFrame> FramesAt(uint64_t file_offset, const FileFinder& finder,
                                      ModuleSymbols::Detail detail);

  RecordedFile& file() { return file_; }
  const RecordedFile& file() const { return file_; }
  FileProblem problem() const { return problem_; }
  const std::string& problem_text() const { return problem_text_; }
  bool has_no_lines() const { return has_no_lines_; }

 private:
  struct Answer {
    uint32_t first = 0;
    uint32_t count = 0;
  };

  Answer LookUp(ModuleSymbols& symbols, uint64_t file_offset);
  void NoteProblem(const ModuleSymbols& symbols);
  std::string_view Keep(std::string_view text) {
    return text.empty() ? text : std::string_view(*texts_.emplace(text).first);
  }

  RecordedFile file_;
  std::vector<uint64_t> wanted_;
  std::unordered_map<uint64_t, Answer> answers_;  // by file offset
  std::vector<CodeFrame> frames_;
  std::unordered_set<std::string> texts_;
  std::unique_ptr<ModuleSymbols> open_;  // once something was asked for that was not wanted before
  FileProblem problem_ = FileProblem::kNone;
  std::string problem_text_;
  bool has_no_lines_ = false;
};

Symbolizer::NamedModule::Answer Symbolizer::NamedModule::LookUp(ModuleSymbols& symbols,
                                                                uint64_t file_offset) {
  Answer answer{.first = static_cast<uint32_t>(frames_.size())};
  for (CodeFrame frame : symbols.At(file_offset)) {
    frame.function = Keep(frame.function);
    frame.file = Keep(frame.file);
    frames_.push_back(frame);
    ++answer.count;
  }
  return answer;
}

void Symbolizer::NamedModule::NoteProblem(const ModuleSymbols& symbols) {
  problem_ = symbols.problem();
  problem_text_ = symbols.problem_text();
  has_no_lines_ = symbols.has_no_lines();
}

std::vector<uint64_t> Symbolizer::NamedModule::Wanted() const {
  std::vector<uint64_t> wanted = wanted_;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  return wanted;
}

void Symbolizer::NamedModule::ResolveRequested(const FileFinder& finder,
                                               ModuleSymbols::Detail detail) {
  std::vector<uint64_t> wanted = Wanted();
  wanted_ = {};
  std::erase_if(wanted, [this](uint64_t file_offset) { return answers_.contains(file_offset); });
  std::unique_ptr<ModuleSymbols> symbols = std::move(open_);
  if (!wanted.empty() && !symbols) {
    symbols = std::make_unique<ModuleSymbols>(file_, finder, detail);
  }
  if (!wanted.empty()) symbols->Prepare(wanted);
  for (const uint64_t file_offset : wanted) {
    answers_.emplace(file_offset, LookUp(*symbols, file_offset));
  }
  if (symbols) NoteProblem(*symbols);
}

std::span<const CodeFrame> Symbolizer::NamedModule::FramesAt(uint64_t file_offset,
                                                             const FileFinder& finder,
                                                             ModuleSymbols::Detail detail) {
  const auto [at, is_new] = answers_.try_emplace(file_offset);
  if (is_new) {
    if (!open_) open_ = std::make_unique<ModuleSymbols>(file_, finder, detail);
    at->second = LookUp(*open_, file_offset);
    NoteProblem(*open_);
  }
  return std::span(frames_).subspan(at->second.first, at->second.count);
}

Symbolizer::Symbolizer(Options options)
    : finder_(std::move(options.files)), detail_(options.detail), threads_(options.threads) {
  if (threads_ == 0) threads_ = std::max(1u, std::thread::hardware_concurrency());
}

Symbolizer::~Symbolizer() = default;

ModuleId Symbolizer::Module(std::string_view path, std::string_view build_id) {
  std::string key(path);
  key += '\0';
  key += build_id;
  const auto [at, is_new] = ids_.try_emplace(std::move(key));
  if (is_new) {
    modules_.push_back(std::make_unique<NamedModule>(path, build_id));
    at->second = ModuleId{static_cast<uint32_t>(modules_.size())};
  }
  return at->second;
}

void Symbolizer::SetSlice(ModuleId module, RecordedFile::SliceParts parts,
                          std::vector<RecordedFile::SliceParts> older) {
  RecordedFile& file = modules_.at(module.value - 1)->file();
  file.slice = std::move(parts);
  file.older_slices = std::move(older);
}

void Symbolizer::Want(ModuleId module, uint64_t file_offset) {
  modules_.at(module.value - 1)->Want(file_offset);
}

std::vector<uint64_t> Symbolizer::Wanted(ModuleId module) const {
  return modules_.at(module.value - 1)->Wanted();
}

void Symbolizer::ResolveRequested() {
  std::vector<NamedModule*> todo;
  for (const auto& module : modules_) {
    if (module->wanted_count() > 0) todo.push_back(module.get());
  }
  // The largest first, so that no thread begins it when the others are done.
  std::stable_sort(todo.begin(), todo.end(), [](const NamedModule* a, const NamedModule* b) {
    return a->wanted_count() > b->wanted_count();
  });
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < todo.size(); i = next++)
      todo[i]->ResolveRequested(finder_, detail_);
  };
  std::vector<std::jthread> others;
  try {
    for (size_t i = 1; i < std::min<size_t>(threads_, todo.size()); ++i) others.emplace_back(work);
  } catch (const std::system_error&) {
    // At the limit of processes: with fewer threads.
  }
  work();
}

std::span<const CodeFrame> Symbolizer::FramesAt(ModuleId module, uint64_t file_offset) {
  return modules_.at(module.value - 1)->FramesAt(file_offset, finder_, detail_);
}

std::optional<std::string_view> Symbolizer::FunctionAt(ModuleId module, uint64_t file_offset) {
  const std::span<const CodeFrame> frames = FramesAt(module, file_offset);
  if (frames.empty() || frames.back().function.empty()) return std::nullopt;
  return frames.back().function;
}

std::vector<Symbolizer::Problem> Symbolizer::problems() const {
  std::vector<Problem> problems;
  for (uint32_t i = 0; i < modules_.size(); ++i) {
    const NamedModule& module = *modules_[i];
    if (module.problem() == FileProblem::kNone) continue;
    problems.push_back(
        {module.problem(), ModuleId{i + 1}, module.file().path, module.problem_text()});
  }
  return problems;
}

size_t Symbolizer::files_without_lines() const {
  return static_cast<size_t>(std::count_if(
      modules_.begin(), modules_.end(), [](const auto& module) { return module->has_no_lines(); }));
}

const RecordedFile& Symbolizer::operator[](ModuleId module) const {
  return modules_.at(module.value - 1)->file();
}

}  // namespace xpu

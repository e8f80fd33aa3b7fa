#include "record/unwind/unwind_expected.h"

#include <array>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <unistd.h>

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/split.h"
#include "record/base/environment.h"
#include "record/process/loader.h"
#include "symbolize/elf/elf_needs.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;
using Directories = std::vector<std::string>;

constexpr size_t kMaxFiles = 512;
constexpr size_t kScriptLineBytes = 255;  // the kernel reads no more
constexpr const char* kDefaultDirectories[] = {"/lib/x86_64-linux-gnu",
                                               "/usr/lib/x86_64-linux-gnu",
                                               "/lib64",
                                               "/usr/lib64",
                                               "/lib",
                                               "/usr/lib",
                                               "/usr/local/lib"};

// The words of "#!/usr/bin/env -S python3 -u"; empty if the file is not a script.
std::vector<std::string> ScriptCommand(const std::string& path) {
  auto file = OpenRegularFile(path);
  if (!file.ok()) return {};
  std::array<char, kScriptLineBytes> line{};
  const ssize_t n = ::read(file->fd.get(), line.data(), line.size());
  if (n < 2) return {};
  std::string_view text(line.data(), static_cast<size_t>(n));
  if (!text.starts_with("#!")) return {};
  text = text.substr(2, text.find('\n') - 2);
  const auto words = Split(text, " \t\r");
  return {words.begin(), words.end()};
}

// The program that env runs: the first word that is neither an option nor a variable.
std::string ProgramOfEnv(const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i) {
    if (!command[i].starts_with('-') && command[i].find('=') == std::string::npos) {
      return command[i];
    }
  }
  return {};
}

class Search {
 public:
  explicit Search(const std::vector<std::string>& environment)
      : path_(FindVariable(environment, "PATH").value_or("/bin:/usr/bin")),
        preload_(FindVariable(environment, "LD_PRELOAD").value_or("")),
        library_path_(FindVariable(environment, "LD_LIBRARY_PATH").value_or("")) {
    if (auto cache = ReadFile(kLoaderCache); cache.ok()) {
      cache_ = std::move(*cache);
      cached_ = LibrariesOfLoaderCache(cache_);
    }
  }

  void AddProgram(const std::string& name) {
    const std::string path = FindProgram(name, path_);
    if (path.empty()) return;
    const std::vector<std::string> command = ScriptCommand(path);
    if (command.empty()) return AddExecutable(path);
    AddExecutable(command.front());
    if (fs::path(command.front()).filename() != "env") return;
    AddExecutable(FindProgram(ProgramOfEnv(command), path_));
  }

  std::vector<std::string> Take() { return std::move(files_); }

 private:
  // A file whose libraries must be found.
  struct Object {
    std::string origin;
    Directories old_run_paths;  // DT_RPATH of this file, then of the files that led to it
    Directories run_path;       // DT_RUNPATH, for the file's own needs, which replaces DT_RPATH
  };

  void AddExecutable(const std::string& path) {
    names_.clear();  // another process has another set of libraries
    const std::optional<Object> program = Load(path, {});
    if (!program) return;
    for (std::string_view name : Split(preload_, " :")) Need(std::string(name), *program);
    while (!queue_.empty()) {
      const auto [object, needs] = std::move(queue_.front());
      queue_.pop_front();
      for (const std::string& name : needs) Need(name, object);
    }
  }

  // Adds the file to the list and its needs to the queue; nullopt if it is not an ELF file or is
  // known.
  std::optional<Object> Load(const std::string& path, const Directories& inherited) {
    std::error_code failed;
    const fs::path real = fs::canonical(path, failed);
    if (failed || files_.size() == kMaxFiles) return std::nullopt;
    auto needs = ReadElfNeeds(real.native());
    if (!needs.ok()) return std::nullopt;
    if (seen_.insert(real.native()).second) files_.push_back(real.native());

    Object object{real.parent_path().native(), {}, {}};
    object.run_path = DirectoriesOf(needs->run_path, object.origin);
    if (needs->run_path.empty()) {
      object.old_run_paths = DirectoriesOf(needs->old_run_path, object.origin);
    }
    object.old_run_paths.insert(object.old_run_paths.end(), inherited.begin(), inherited.end());
    std::vector<std::string> names = std::move(needs->libraries);
    if (!needs->interpreter.empty()) names.insert(names.begin(), needs->interpreter);
    queue_.emplace_back(object, std::move(names));
    return object;
  }

  void Need(const std::string& name, const Object& by) {
    if (!names_.insert(name).second || files_.size() == kMaxFiles) return;
    if (name.find('/') != std::string::npos) {
      for (const std::string& path : DirectoriesOf(name, by.origin)) Load(path, by.old_run_paths);
      return;
    }
    // A file for another machine is skipped, as the loader does.
    const auto in = [&](const Directories& directories) {
      for (const std::string& directory : directories) {
        // The second + appends to what the first made.
        if (Load(directory + "/" + name, by.old_run_paths)) return true;  // NOLINT(performance-*)
      }
      return false;
    };
    if (by.run_path.empty() && in(by.old_run_paths)) return;
    if (in(DirectoriesOf(library_path_, by.origin)) || in(by.run_path)) return;
    const auto cached = cached_.find(name);
    if (cached != cached_.end() && Load(std::string(cached->second), by.old_run_paths)) return;
    in(Directories(std::begin(kDefaultDirectories), std::end(kDefaultDirectories)));
  }

  std::string path_, preload_, library_path_;
  std::string cache_;  // owns the text that cached_ refers to
  std::unordered_map<std::string_view, std::string_view> cached_;
  std::set<std::string> names_;  // searched already: the loader maps each once
  std::set<std::string> seen_;
  std::deque<std::pair<Object, std::vector<std::string>>> queue_;
  std::vector<std::string> files_;
};

}  // namespace

std::vector<std::string> ExpectedFiles(const std::string& program,
                                       const std::vector<std::string>& environment) {
  Search search(environment);
  search.AddProgram(program);
  return search.Take();
}

}  // namespace xpu

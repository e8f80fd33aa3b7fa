// Debug information from a debuginfod server, by the `debuginfod-find` program of elfutils. Used
// only when the user asks for it: a server that does not answer costs the whole time limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace xpu {

class Debuginfod {
 public:
  struct Options {
    std::string program = "debuginfod-find";       // on PATH unless it is a path
    std::chrono::milliseconds time_limit{30'000};  // for all questions together
    // Of a file. A server may send without end, and the cache is the user's disk.
    uint64_t most_bytes = uint64_t{8} << 30;
    // Lines of text; may be empty. `problem`: why no more is asked for, once.
    std::function<void(std::string_view)> progress = {};
    std::function<void(std::string_view)> problem = {};
  };

  Debuginfod() = default;
  explicit Debuginfod(Options options) : options_(std::move(options)) {}

  // `what`: "debuginfo" or "executable". The path of the file in debuginfod's cache; empty: it has
  // none, or the time is up. One question at a time; any thread.
  std::string Find(std::string_view what, std::string_view build_id, std::string_view name);

 private:
  // nullopt: the program cannot be run.
  std::optional<std::string> Ask(const std::string& what, const std::string& build_id,
                                 std::chrono::milliseconds limit) const;

  Options options_;
  std::mutex mutex_;
  std::chrono::milliseconds used_{0};
  bool gave_up_ = false;
};

}  // namespace xpu

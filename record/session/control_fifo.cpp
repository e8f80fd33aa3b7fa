#include "record/session/control_fifo.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Opens both ends: opening then does not wait, and there is no end of file when a writer leaves.
Result<UniqueFd> OpenFifo(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd) return SystemError(Format("--control: {}", path), errno, "create one with mkfifo");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return Error{ErrorKind::kUsage, Format("--control: {} is not a FIFO", path),
                 "create one with mkfifo"};
  }
  return fd;
}

ControlFifo::Command CommandOf(std::string_view text) {
  using Command = ControlFifo::Command;
  if (text == "enable") return Command::kEnable;
  if (text == "disable") return Command::kDisable;
  if (text == "ping") return Command::kPing;
  return text == "stop" ? Command::kStop : Command::kUnknown;
}

}  // namespace

Result<ControlFifo> ControlFifo::Open(const std::string& path, const std::string& ack_path) {
  ControlFifo fifo;
  XPU_ASSIGN_OR_RETURN(fifo.commands_, OpenFifo(path));
  if (!ack_path.empty()) {
    XPU_ASSIGN_OR_RETURN(fifo.acks_, OpenFifo(ack_path));
  }
  return fifo;
}

std::vector<ControlFifo::Line> ControlFifo::Read() {
  std::vector<Line> lines;
  char bytes[4096];
  const ssize_t n = ::read(commands_.get(), bytes, sizeof(bytes));
  for (ssize_t i = 0; i < n; ++i) {
    if (bytes[i] != '\n') {
      const bool is_printable = bytes[i] >= ' ' && bytes[i] <= '~';
      if (begun_.size() < kMaxBytes) begun_ += is_printable ? bytes[i] : '?';
      continue;
    }
    std::string text = std::exchange(begun_, {});
    if (!text.empty()) lines.push_back({CommandOf(text), std::move(text)});
  }
  return lines;
}

void ControlFifo::Acknowledge() const {
  constexpr std::string_view kAck = "ack\n";
  if (!acks_) return;
  const ssize_t written = ::write(acks_.get(), kAck.data(), kAck.size());
  static_cast<void>(written);
}

}  // namespace xpu

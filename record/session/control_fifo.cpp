#include "record/session/control_fifo.h"

#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/base/output_location.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// Opens both ends: opening then does not wait, and there is no end of file when a writer leaves.
// A file that another user may have put there is examined before it is opened: opening a device can
// do something, and the writer of a FIFO can end the recording.
Result<UniqueFd> OpenFifo(const std::string& path) {
  constexpr char kHint[] = "create one with mkfifo";
  auto found = FindOutputLocation(path, "--control");
  if (!found.ok()) {
    Error error = std::move(found).error();
    if (error.hint.empty()) error.hint = kHint;
    return error;
  }
  const OutputLocation place = *std::move(found);
  if (!place.entry) return SystemError(Format("{}: --control", path), ENOENT, kHint);
  if (!S_ISFIFO(place.info.st_mode)) {
    return Error{ErrorKind::kUsage, Format("--control: {} is not a FIFO", path), kHint};
  }
  if (!MayBeMeant(place)) {
    return Error{ErrorKind::kPermission,
                 Format("--control: {}: user {} created this FIFO in another user's directory",
                        path, place.info.st_uid),
                 "root is controlled only by its own FIFOs and those of the directory's owner"};
  }
  UniqueFd fd = OpenEntry(place, O_RDWR | O_NONBLOCK);
  if (!fd) return SystemError(Format("{}: --control", path), errno);
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

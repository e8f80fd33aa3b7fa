#include "report/base/output.h"

#include <array>
#include <cerrno>
#include <cstdlib>

#include <unistd.h>
#include <zlib.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/base/output_location.h"
#include "format/base/text.h"

namespace xpu {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

}  // namespace

class Output::Gzip {
 public:
  Gzip() {
    constexpr int kWindowBits = 15 + 16;  // 16: a gzip header
    // Level 3 compresses a trace to a twelfth at 255 MB/s; the default of 6 to a fifteenth at 85
    // MB/s, so that compressing took most of the time.
    constexpr int kLevel = 3;
    const int result =
        deflateInit2(&stream_, kLevel, Z_DEFLATED, kWindowBits, 8, Z_DEFAULT_STRATEGY);
    XPU_CHECK(result == Z_OK);
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  // Calls write(bytes) for what comes out.
  template <typename Write>
  void Compress(std::string_view text, bool last, Write&& write) {
    std::array<char, 65536> out;
    // zlib does not write through next_in, its type is only old.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_.avail_in = static_cast<uInt>(text.size());
    int result = Z_OK;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out.data());
      stream_.avail_out = static_cast<uInt>(out.size());
      result = deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      XPU_CHECK(result != Z_STREAM_ERROR);
      write(std::string_view(out.data(), out.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
};

Result<Output> Output::Open(const std::string& path) {
  if (path.empty() || path == "-") return Output(STDOUT_FILENO, "standard output");
  XPU_ASSIGN_OR_RETURN(UniqueFd fd, CreateOrReplace(path));
  Output output(fd.get(), path);
  output.owned_ = std::move(fd);
  if (path.ends_with(".gz")) output.gzip_ = std::make_unique<Gzip>();
  return output;
}

Output::Output(int fd, std::string name)
    : fd_(fd), is_terminal_(::isatty(fd) == 1), name_(std::move(name)) {
  buffer_.reserve(kBufferBytes);
}
Output::Output(Output&&) noexcept = default;
Output& Output::operator=(Output&&) noexcept = default;
Output::~Output() = default;

void Output::SetShare(uint64_t done, uint64_t all) {
  constexpr uint64_t kEvery = 4096;
  if (progress_ == nullptr || done == 0 || done % kEvery != 0) return;
  const double expected =
      static_cast<double>(text_bytes_) / static_cast<double>(done) * static_cast<double>(all);
  progress_->Begin(Format("writing {} of about {}", HumanBytes(text_bytes_),
                          HumanBytes(static_cast<uint64_t>(expected))));
  progress_->Set(done, all);
}

void Output::WriteBytes(std::string_view text) {
  text_bytes_ += text.size();
  if (buffer_.size() + text.size() >= kBufferBytes) Flush();
  if (text.size() >= kBufferBytes) return Send(text);
  buffer_ += text;
}

void Output::Flush() {
  Send(buffer_);
  buffer_.clear();
}

void Output::Send(std::string_view bytes) {
  if (gzip_) {
    gzip_->Compress(bytes, false, [&](std::string_view packed) { WriteThrough(packed); });
  } else {
    WriteThrough(bytes);
  }
}

void Output::WriteThrough(std::string_view bytes) {
  const int fd = pager_ ? pager_->FdFor(bytes) : fd_;
  while (!bytes.empty() && status_.ok()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      closed_by_reader_ = errno == EPIPE;
      status_ = SystemError(Format("{}: write", name_), errno, WriteHint(errno));
      return;
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

Status Output::Close() {
  Flush();
  if (gzip_) gzip_->Compress({}, true, [&](std::string_view bytes) { WriteThrough(bytes); });
  gzip_.reset();
  if (pager_ && !pager_->Finish()) {
    closed_by_reader_ = false;
    status_ = Error{ErrorKind::kNotFound, Format("{}: cannot run the pager", pager_->command()),
                    "set PAGER, or use --no-pager"};
  }
  if (owned_ && ::close(owned_.release()) != 0 && status_.ok()) {
    status_ = SystemError(Format("{}: close", name_), errno, WriteHint(errno));
  }
  return status_;
}

Colors ColorsOf(const Output& output) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool can = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return Colors(output.is_terminal() && can && !refused);
}

ShownText Colors::Paint(Literal code, std::string_view text) const {
  if (!on_) return ShownText::Line(text);
  return ShownText(Format("\x1b[{}m{}\x1b[0m", code.text, ForOneLine(text)));
}

}  // namespace xpu

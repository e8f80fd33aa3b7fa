// The destination of a view: standard output or a file, gzipped if its name ends in ".gz". The only
// user of zlib for that.
//
// An existing file is replaced only where the user may do that: paths through links of other users
// are refused. The first error is kept, so that views need not check each write.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/handle.h"
#include "format/base/result.h"
#include "report/base/json_writer.h"
#include "report/base/terminal.h"
#include "report/base/text.h"

namespace xpu {

class Output {
 public:
  // Empty or "-": standard output. An existing file is replaced.
  static Result<Output> Open(const std::string& path);

  Output(Output&&) noexcept;
  Output& operator=(Output&&) noexcept;
  ~Output();

  // Buffered. The first error sticks: later writes do nothing, Close returns it. Only escaped text
  // goes out: what programs call their functions must not steer a terminal or add to a document.
  void Write(const ShownText& text) { WriteBytes(text.text()); }
  void Write(const JsonWriter& json) { WriteBytes(json.view()); }
  void Write(Literal text) { WriteBytes(text); }
  // Text of ours, or parts of a binary format, whose writers escape each text when they take it.
  void WriteBytes(std::string_view bytes);
  Status Close();

  // Text that does not fit on the screen is shown by `pager`, when there is one.
  void PageTo(std::optional<Pager> pager) { pager_ = std::move(pager); }
  bool is_terminal() const { return is_terminal_; }

  // Which share of a long output was written is shown there, and what it will come to.
  void ShowOn(Progress& progress) { progress_ = &progress; }
  // `done` of `all` lines. Cheap enough for each of them.
  void SetShare(uint64_t done, uint64_t all);

  bool failed() const { return !status_.ok(); }
  // The reader of the pipe went away, which is no error: `xpu-report --dump | head`.
  bool closed_by_reader() const { return closed_by_reader_; }

 private:
  class Gzip;
  Output(int fd, std::string name);
  void Flush();
  void Send(std::string_view bytes);
  void WriteThrough(std::string_view bytes);

  UniqueFd owned_;
  int fd_;
  bool is_terminal_ = false;
  std::string name_;
  std::string buffer_;
  std::unique_ptr<Gzip> gzip_;
  std::optional<Pager> pager_;
  Progress* progress_ = nullptr;
  uint64_t text_bytes_ = 0;  // before they are compressed
  Status status_ = Ok();
  bool closed_by_reader_ = false;
};

// Colors for a terminal. Without them the texts are only shown, so that nothing but a terminal sees
// an escape.
class Colors {
 public:
  explicit Colors(bool on) : on_(on) {}

  ShownText Title(std::string_view text) const { return Paint("1", text); }
  ShownText Faint(std::string_view text) const { return Paint("2", text); }
  ShownText Good(std::string_view text) const { return Paint("32", text); }
  ShownText Warning(std::string_view text) const { return Paint("33", text); }
  ShownText Bad(std::string_view text) const { return Paint("31", text); }
  ShownText Gpu(std::string_view text) const { return Paint("36", text); }

  bool on() const { return on_; }

 private:
  ShownText Paint(Literal code, std::string_view text) const;

  bool on_;
};

// On for a terminal, but not when NO_COLOR has a value (no-color.org) or TERM is "dumb".
Colors ColorsOf(const Output& output);

}  // namespace xpu

// Owns the files that one recording is written to: a single one, or with rotation a sequence of
// parts, of which the oldest are removed.
//
// The parts of capture.xpu are capture.0001.xpu, capture.0002.xpu, ... Like an earlier capture,
// parts of an earlier recording are kept: each is renamed to its name with .old, and those that
// were kept that way before are removed, so that two recordings are never mixed. Whatever a path
// leads to later, only files that this recording created are removed or renamed back.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/options/output_options.h"
#include "record/output/output_file.h"

namespace xpu {

// "capture.0007.xpu" for "capture.xpu": the number precedes the last extension.
std::string PartPath(const std::string& path, uint32_t part);
// The part number of a file in the directory of `path`; nullopt if it is not a part.
std::optional<uint32_t> PartNumberOf(const std::string& path, std::string_view file_name);

class OutputParts {
 public:
  // Moves earlier files away. Nothing is written yet. Returns kBusy if another recorder writes to
  // files of that name.
  static Result<OutputParts> Prepare(const std::string& path, const OutputOptions& options);

  bool rotates() const { return options_.rotate_bytes != 0; }
  struct Opened {
    UniqueFd fd;
    std::string name;  // for messages
  };
  // Opens the next file, and first removes the oldest part if there would be too many.
  Result<Opened> OpenNext();
  // Called if nothing can be written to the last opened part, a second or later one: removes it.
  // The recording goes on in the one before, which would soon be the oldest.
  void TakeBack();
  // The number of the last opened part, from 1; 0 without rotation.
  uint32_t part() const { return part_; }

  // Called if the recording does not happen: removes the opened files and restores earlier ones.
  void Discard();

  // For messages: "capture.xpu", or "capture.0003.xpu to capture.0007.xpu" and what was removed.
  std::string Text() const;
  // Which earlier files were kept, for messages; empty if there were none.
  const std::string& kept_text() const { return kept_text_; }

 private:
  Status KeepEarlierParts();

  std::string path_;
  OutputOptions options_;
  uint32_t part_ = 0;
  std::optional<OutputFile> only_;  // without rotation
  SharedDirectory directory_;       // with rotation
  std::string name_;                // in the directory
  UniqueFd turn_;                   // held until the first part exists
  std::deque<NamedFile> written_;   // parts that exist
  std::vector<RenamedFile> kept_;
  std::string kept_text_;
};

}  // namespace xpu

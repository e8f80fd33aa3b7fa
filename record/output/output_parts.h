// The files that one recording is written to: one, or with rotation one after the other, of which
// the oldest are removed.
//
// The parts of capture.xpu are capture.0001.xpu, capture.0002.xpu, ... Parts of an earlier
// recording are kept, as an earlier capture is: each is renamed to its name and .old; those that
// were kept so before are removed, so that two recordings are never mixed.
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

// "capture.0007.xpu" of "capture.xpu"; the number stands before the last extension of the name.
std::string PartPath(const std::string& path, uint32_t part);
// The number of the part of `path` that a file in its directory is; nullopt: it is not a part.
std::optional<uint32_t> PartNumberOf(const std::string& path, std::string_view file_name);

class OutputParts {
 public:
  // Makes room for the recording, in which nothing was written yet. kBusy: another recorder writes
  // to files of that name.
  static Result<OutputParts> Prepare(const std::string& path, const OutputOptions& options);

  bool rotates() const { return options_.rotate_bytes != 0; }
  struct Opened {
    UniqueFd fd;
    std::string name;  // what messages call it
  };
  // The next file; before, the oldest is removed if there would be too many.
  Result<Opened> OpenNext();
  // Of the file opened last; from 1. 0: there is only one file.
  uint32_t part() const { return part_; }

  // The recording did not happen: removes what was opened and puts earlier files back.
  void Discard();

  // For people: "capture.xpu", "capture.0003.xpu to capture.0007.xpu", what was removed.
  std::string Text() const;
  // Of earlier files, for people; empty: there were none.
  const std::string& kept_text() const { return kept_text_; }

 private:
  Status KeepEarlierParts();

  std::string path_;
  OutputOptions options_;
  uint32_t part_ = 0;
  std::optional<OutputFile> only_;  // of a recording without parts
  SharedDirectory directory_;       // of one with parts
  std::string name_;                // in there
  UniqueFd turn_;                   // until the first part is there
  std::deque<NamedFile> written_;   // parts that are there
  std::vector<RenamedFile> kept_;
  std::string kept_text_;
};

}  // namespace xpu

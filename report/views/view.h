// A view of a capture: what xpu-report can write, and what its command line has to know of it. Each
// is described at the end of its own NAME_view.cpp; cli/view_table.cpp lists them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "report/analysis/analysis.h"
#include "report/output/output.h"
#include "report/views/views.h"

namespace xpu {

struct ViewInput {
  const ViewOptions& options;
  Analysis& analysis;
  Analysis* before = nullptr;  // of the other capture, where the view compares two
  Output& output;
  std::string& notes;  // for standard error: sentences that end their lines
};

struct View {
  // Which CPU samples, where a capture has those of several events and none is asked for.
  enum class Events : uint8_t { kOne, kOneClockAndMoments, kAll };

  std::string_view option = {};  // "--folded"; empty: shown when no view is asked for
  std::string_view help = {};    // its line of --help, within 56 columns
  // Its option's value as --help calls it: a capture to compare with. Empty: it takes none.
  std::string_view other_capture = {};

  bool takes_filters = true;   // --pid, --time and what else shows a part of a capture
  bool takes_sample = false;   // --sample
  bool shows_paths = false;    // --mode, --by and what else says what a stack is
  bool shows_tables = false;   // --format, --rows, --table
  bool is_for_reading = true;  // a terminal gets it by the page
  bool shows_lines = false;    // of calls, though no --lines asks for them
  // How the names of files of its format end, where others would mistake one: ".html".
  std::string_view file_name_end = {};
  bool has_ledger = false;  // tells itself what was lost
  Events events = Events::kOne;

  void (*write)(const ViewInput& input) = nullptr;
};

}  // namespace xpu

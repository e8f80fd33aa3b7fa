// The files that frames have no names of: how much of the recording they hold, and why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/analysis/analysis.h"
#include "report/analysis/call_tree.h"

namespace xpu {

struct UnsymbolizedFile {
  ModuleId module;
  uint64_t samples = 0;   // CPU samples whose innermost frame is in it
  uint64_t gpu_work = 0;  // GPU operations that such a frame launched
  std::string path;
  std::string reason;  // "open: No such file or directory"
};

struct UnsymbolizedFiles {
  std::vector<UnsymbolizedFile> files;  // those with most samples first
  uint64_t samples = 0;                 // CPU samples whose innermost frame is in any of them
  uint64_t generated = 0;  // those in code without a file, which a compiler made at run time
  std::string generated_hint = {};  // how that program writes names for it
};

// Reads trees of CPU samples and of GPU time.
UnsymbolizedFiles FindUnsymbolizedFiles(const Analysis& analysis, const CallTree& cpu,
                                        const CallTree& gpu);

}  // namespace xpu

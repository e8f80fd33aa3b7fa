// Pass 6: stacks of addresses to stacks of named frames. Each (address space, address) is looked
// up once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/api_names.h"
#include "report/flat_map.h"
#include "report/frames.h"
#include "report/kernel_symbols.h"
#include "report/model.h"
#include "report/process_table.h"
#include "symbolize/symbolizer.h"

namespace xpu {

struct ResolvedStack {
  std::vector<FrameId> frames;  // innermost first
  bool at_any_time = true;      // the same for every time, so that it may be kept
};

class StackResolver {
 public:
  // All must outlive the resolver.
  StackResolver(const Model& model, const ProcessTable& processes, const ApiNames& api_names,
                Symbolizer& symbolizer, FrameTable& frames);

  ResolvedStack Resolve(StackId stack, SpaceId space, uint64_t time_ns);
  // The linkage name of the function of the process at `address`, none when it has none.
  std::optional<std::string_view> SymbolAt(uint64_t address, SpaceId space, uint64_t time_ns);

 private:
  struct ResolvedFrame {
    FrameId frame;
    bool at_any_time = true;
  };
  // `exact`: the address is an instruction that ran, not one to return to.
  ResolvedFrame ResolveUser(uint64_t address, bool exact, SpaceId space, uint64_t time_ns);
  FrameId NameUser(const Mapping* mapping, uint64_t address, bool exact);
  FrameId NameInFile(const Mapping& mapping, uint64_t file_offset, bool exact);
  FrameId ResolveKernel(uint64_t address, bool exact);

  const Model& model_;
  const ProcessTable& processes_;
  const ApiNames& api_names_;
  Symbolizer& symbolizer_;
  FrameTable& frames_;
  KernelSymbols kernel_symbols_;
  // Frames by address, or file offset, and `exact`.
  std::vector<FlatMap<FrameId>> user_frames_;  // by space - 1; what is the same at any time
  std::vector<FlatMap<FrameId>> file_frames_;  // by module - 1
  FlatMap<FrameId> kernel_frames_;
  FrameId unknown_;
  FrameId lost_;
};

// The file name at the end of a path: "libfoo.so" of "/usr/lib/libfoo.so (deleted)".
std::string ModuleName(std::string_view path);

}  // namespace xpu

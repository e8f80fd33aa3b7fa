// Turns stacks of addresses into stacks of named frames, when a view needs them.
//
// Each (address space, address) is looked up once, and wanted stacks are announced first, so that
// the symbolizer opens each file once for all its addresses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/events.h"
#include "report/base/flat_map.h"
#include "report/base/intervals.h"
#include "report/model/model.h"
#include "report/model/process_history.h"
#include "report/stacks/frames.h"
#include "report/trace/api_names.h"
#include "symbolize/symbolizer.h"

namespace xpu {

// Names of code that was made in the running program: (address space, address, time) to a symbol.
class GeneratedSymbols {
 public:
  // `model` in order of time; both must outlive this.
  GeneratedSymbols(const Model& model, const ProcessHistory& processes);

  struct Found {
    const GeneratedSymbol* symbol = nullptr;  // nullptr: no name
    bool at_any_time = true;                  // the answer is the same for every time
  };
  // The newest symbol over `address` that is not later than `time_ns`, of the space or those it is
  // a copy of. The only one that was usual there counts at any time: notes of compilers may come a
  // little after the code runs.
  Found Find(SpaceId space, uint64_t address, uint64_t time_ns) const;
  // The times from which symbols of the space itself count.
  void AddChangesOf(SpaceId space, std::vector<uint64_t>& times) const;

 private:
  struct Space {
    std::vector<const GeneratedSymbol*> by_start;  // then by time
    IntervalIndex index;                           // of by_start
  };

  // Calls visit(symbol) for each symbol over `address`, the last one of the file first.
  template <typename Visit>
  static void ForEachOver(const Space& space, uint64_t address, Visit&& visit);
  void Add(SpaceId space, const GeneratedSymbol& symbol);

  const ProcessHistory& processes_;
  std::vector<Space> spaces_;  // by id - 1; empty: there are no symbols at all
};

// Names of kernel addresses, from the capture alone.
class KernelSymbols {
 public:
  // `symbols` in any order; must outlive this.
  explicit KernelSymbols(const std::vector<KernelSymbol>& symbols);
  // nullptr: no name.
  const KernelSymbol* Find(uint64_t address) const;

 private:
  std::vector<const KernelSymbol*> by_address_;
};

struct ResolvedStack {
  std::vector<FrameId> frames;  // innermost first
  bool at_any_time = true;      // the same for every time, so that it may be kept
};

class StackResolver {
 public:
  // All must outlive the resolver.
  StackResolver(const Model& model, const ProcessHistory& processes, const ApiNames& api_names,
                Symbolizer& symbolizer, FrameTable& frames, FramePlaces places);

  // Says that Resolve will be called for the stack: symbolizer.ResolveRequested() then looks up its
  // addresses together with those of all others.
  void Want(StackId stack, SpaceId space, uint64_t time_ns);
  ResolvedStack Resolve(StackId stack, SpaceId space, uint64_t time_ns);
  // The frames of one address, which hold until the next call.
  struct FramesAt {
    std::span<const FrameId> innermost_first;
    bool at_any_time = true;
  };
  FramesAt At(const Frame& frame, bool exact, SpaceId space, uint64_t time_ns);
  // Instead of frames whose definition is lost.
  FrameId lost() const { return lost_; }
  // Frames and what was looked through on the way to their names.
  uint64_t work() const { return frames_resolved_ + processes_.spaces().steps(); }
  void CountFrames(uint64_t count) { frames_resolved_ += count; }
  // Between two changes of what lies in the space each answer is the same: counts those that are
  // not later than `time_ns`. nullopt: it is not known.
  std::optional<uint32_t> EpochAt(SpaceId space, uint64_t time_ns);
  // The linkage name of the function of the process at `address`, none when it has none.
  std::optional<std::string_view> SymbolAt(uint64_t address, SpaceId space, uint64_t time_ns);
  // Which file's byte is at `address`; nullopt: none that could have symbols.
  struct InFile {
    ModuleId module;
    uint64_t file_offset = 0;
  };
  std::optional<InFile> FileAt(uint64_t address, SpaceId space, uint64_t time_ns);

 private:
  // The frames at one address, innermost first: more than one where functions are inlined.
  using Frames = std::vector<FrameId>;
  using FramesId = Id<struct FramesTag, uint32_t>;
  struct ResolvedAddress {
    FramesId frames;
    bool at_any_time = true;
  };
  // `exact`: the address is an instruction that ran, not one to return to.
  ResolvedAddress ResolveUser(uint64_t address, bool exact, SpaceId space, uint64_t time_ns);
  ResolvedAddress NameUser(uint64_t address, bool exact, SpaceId space, uint64_t time_ns);
  std::optional<InFile> FileOf(const Mapping* mapping, uint64_t address);
  FramesId NameInFile(const Mapping& mapping, const InFile& place, bool exact);
  FramesId NameGenerated(const GeneratedSymbol& symbol, uint64_t address, bool exact);
  FrameId NameFunction(const CodeFrame& function, NamedFrame frame, const InFile& place,
                       bool exact);
  FrameId ResolveKernel(uint64_t address, bool exact);
  FramesId Keep(Frames frames);
  // Each frame once: the same address may be resolved at many times.
  FramesId KeepOne(FrameId frame);

  const Model& model_;
  const ProcessHistory& processes_;
  const ApiNames& api_names_;
  Symbolizer& symbolizer_;
  FrameTable& frames_;
  const FramePlaces places_;
  KernelSymbols kernel_symbols_;
  GeneratedSymbols generated_;
  std::vector<Frames> kept_;  // by id - 1
  FlatMap<FramesId> single_;  // lists of one frame, by the frame
  // The key is the address, or file offset, and `exact`.
  std::vector<FlatMap<FramesId>> user_frames_;  // by space - 1; what is the same at any time
  size_t user_frame_count_ = 0;                 // in all spaces
  std::vector<FlatMap<FramesId>> file_frames_;  // by module - 1
  FlatMap<FrameId> kernel_frames_;
  std::vector<std::optional<std::vector<uint64_t>>> changes_;  // by space - 1
  uint64_t frames_resolved_ = 0;
  FlatMap<SpaceId> wanted_stacks_;   // by stack and space
  FlatMap<SpaceId> wanted_callers_;  // by node and space
  FrameId unknown_;
  FrameId lost_;
  FramesId unknown_frames_;
};

// The file name at the end of a path: "libfoo.so" of "/usr/lib/libfoo.so (deleted)".
std::string ModuleName(std::string_view path);

}  // namespace xpu

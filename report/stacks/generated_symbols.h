// Names of code that was made in the running program: (address space, address, time) to a symbol.
#pragma once

#include <cstdint>
#include <vector>

#include "report/model/intervals.h"
#include "report/model/model.h"
#include "report/model/process_history.h"

namespace xpu {

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

}  // namespace xpu

// Which line of the program made a call: the arguments of its slice.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "report/analysis/analysis.h"
#include "report/stacks/mixed_stacks.h"
#include "report/stacks/stack_resolver.h"

namespace xpu {

class TraceCallers {
 public:
  // Must outlive this.
  explicit TraceCallers(Analysis& analysis);

  // Quoted, with file and line where these are known, else with the library: "gelu Blas.cpp:12",
  // "gelu (libtorch.so)", "linear.py:Linear.forward:134".
  struct Callers {
    std::string innermost;  // the function that made the call
    std::string python;     // the innermost one in Python; empty: there is none
    // The innermost one in Python of no installed package; empty: there is none, or it is `python`.
    std::string script;
  };
  // Holds until the next call.
  const Callers& Of(const Launch& launch);

 private:
  Callers Find(const ResolvedStack& stack) const;

  Analysis& analysis_;
  StackResolver native_;
  MixedStacks stacks_;
  std::map<SpaceId, std::unordered_map<uint64_t, Callers>> known_;  // by both stacks
  Callers other_;
};

}  // namespace xpu

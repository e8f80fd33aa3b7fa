// Names of kernel addresses. They can be had only while recording: the kernel moves with each boot.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/sink/event_sink.h"

namespace xpu {

struct KernelSymbolText {
  uint64_t address = 0;
  uint64_t size_bytes = 0;  // to the next symbol
  std::string name;
  std::string module;  // empty: the kernel proper
};

struct KernelSymbolLookup {
  std::vector<KernelSymbolText> symbols;  // by address, each once
  uint64_t unnamed = 0;                   // addresses without a symbol
  bool hidden = false;                    // the kernel shows zeros instead of addresses
};

// Finds the text symbols around `addresses` (any order) in the content of /proc/kallsyms.
KernelSymbolLookup FindKernelSymbols(std::string_view kallsyms, std::vector<uint64_t> addresses);

// Writes the symbols of these kernel addresses; what stays unnamed goes to the ledger.
void WriteKernelSymbols(std::vector<uint64_t> addresses, EventSink& sink);

}  // namespace xpu

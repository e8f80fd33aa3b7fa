// Names of kernel addresses. They must be read while recording, because the kernel's addresses
// change with each boot.
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
  uint64_t size_bytes = 0;  // up to the next symbol
  std::string name;
  std::string module;  // empty: the kernel itself
};

struct KernelSymbolLookup {
  std::vector<KernelSymbolText> symbols;  // ordered by address, without duplicates
  uint64_t unnamed = 0;                   // addresses without a symbol
  bool hidden = false;                    // the kernel shows zeros instead of addresses
  std::string why_hidden;                 // empty: that
  uint64_t addresses = 0;                 // that were looked for
};

// Finds the text symbols for `addresses` (any order) in the text of /proc/kallsyms.
KernelSymbolLookup FindKernelSymbols(std::string_view kallsyms, std::vector<uint64_t> addresses);

// The addresses of a function from its first one to the next symbol; zeros if it is not there, or
// if the kernel hides addresses.
struct KernelFunction {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool Contains(uint64_t address) const { return address >= begin && address < end; }
};
KernelFunction FindKernelFunction(std::string_view kallsyms, std::string_view name);

// The symbols that the kernel has now: those of a BPF program until it is unloaded.
KernelSymbolLookup ReadKernelSymbols(std::vector<uint64_t> addresses);
// Counts addresses that are hidden.
void WriteKernelSymbols(const KernelSymbolLookup& lookup, EventSink& sink);

}  // namespace xpu

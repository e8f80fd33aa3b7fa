#include "report/stacks/kernel_symbols.h"

#include <algorithm>

namespace xpu {

KernelSymbols::KernelSymbols(const std::vector<KernelSymbol>& symbols) {
  by_address_.reserve(symbols.size());
  for (const KernelSymbol& symbol : symbols) by_address_.push_back(&symbol);
  std::stable_sort(
      by_address_.begin(), by_address_.end(),
      [](const KernelSymbol* a, const KernelSymbol* b) { return a->address < b->address; });
}

const KernelSymbol* KernelSymbols::Find(uint64_t address) const {
  const auto after = std::upper_bound(
      by_address_.begin(), by_address_.end(), address,
      [](uint64_t value, const KernelSymbol* symbol) { return value < symbol->address; });
  if (after == by_address_.begin()) return nullptr;
  const KernelSymbol* symbol = *std::prev(after);
  return address - symbol->address < symbol->size_bytes ? symbol : nullptr;
}

}  // namespace xpu

// Names of kernel addresses, from the capture alone.
#pragma once

#include <cstdint>
#include <vector>

#include "format/events.h"

namespace xpu {

class KernelSymbols {
 public:
  // `symbols` in any order; must outlive this.
  explicit KernelSymbols(const std::vector<KernelSymbol>& symbols);
  // nullptr: no name.
  const KernelSymbol* Find(uint64_t address) const;

 private:
  std::vector<const KernelSymbol*> by_address_;
};

}  // namespace xpu

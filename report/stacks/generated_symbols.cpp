#include "report/stacks/generated_symbols.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace xpu {
namespace {

// Symbols before an address that are looked at: a hostile file may pile up any number of them.
constexpr int kMaxSteps = 256;

uint64_t EndOf(const GeneratedSymbol& symbol) {
  const uint64_t end = symbol.address + symbol.size_bytes;
  return end < symbol.address ? std::numeric_limits<uint64_t>::max() : end;
}

}  // namespace

GeneratedSymbols::GeneratedSymbols(const Model& model, const ProcessHistory& processes)
    : processes_(processes) {
  const auto& symbols = model.events.generated_symbols;
  if (symbols.empty()) return;
  spaces_.resize(processes.spaces().size());
  std::unordered_map<uint32_t, std::vector<SpaceId>> of_pid;
  for (uint32_t i = 1; i <= processes.size(); ++i) {
    const ProcessHistory::Process& process = processes[ProcessId{i}];
    for (const auto& [since, space] : process.spaces) of_pid[process.pid].push_back(space);
  }
  for (const GeneratedSymbol& symbol : symbols) {
    if (symbol.time_ns == 0) {
      // A perf-PID.map says nothing of when: it is every life's of the pid.
      for (const SpaceId space : of_pid[symbol.pid]) Add(space, symbol);
    } else if (const ProcessId process = processes.At(symbol.pid, symbol.time_ns)) {
      Add(processes.SpaceAt(process, symbol.time_ns), symbol);
    }
  }
  for (Space& space : spaces_) {
    std::stable_sort(
        space.by_start.begin(), space.by_start.end(),
        [](const GeneratedSymbol* a, const GeneratedSymbol* b) { return a->address < b->address; });
    space.index.Set(space.by_start.size(), [&](size_t i) { return EndOf(*space.by_start[i]); });
  }
}

void GeneratedSymbols::Add(SpaceId space, const GeneratedSymbol& symbol) {
  if (space) spaces_.at(space.value - 1).by_start.push_back(&symbol);
}

void GeneratedSymbols::AddChangesOf(SpaceId space, std::vector<uint64_t>& times) const {
  if (spaces_.empty()) return;
  for (const GeneratedSymbol* symbol : spaces_.at(space.value - 1).by_start) {
    times.push_back(symbol->time_ns);
  }
}

template <typename Visit>
void GeneratedSymbols::ForEachOver(const Space& space, uint64_t address, Visit&& visit) {
  const auto after = std::upper_bound(
      space.by_start.begin(), space.by_start.end(), address,
      [](uint64_t value, const GeneratedSymbol* symbol) { return value < symbol->address; });
  int steps = 0;
  space.index.ForEachDown(static_cast<size_t>(after - space.by_start.begin()), address,
                          [&](size_t i) {
                            if (steps++ >= kMaxSteps) return false;
                            const GeneratedSymbol& symbol = *space.by_start[i];
                            if (EndOf(symbol) > address) visit(symbol);
                            return true;
                          });
}

GeneratedSymbols::Found GeneratedSymbols::Find(SpaceId id, uint64_t address,
                                               uint64_t time_ns) const {
  const AddressSpaces& spaces = processes_.spaces();
  const GeneratedSymbol* newest = nullptr;
  const GeneratedSymbol* any = nullptr;
  int seen = 0;
  bool always = true;
  // What a parent made after the copy is not in the copy.
  uint64_t copied_ns = std::numeric_limits<uint64_t>::max();
  for (int steps = 0; id && !spaces_.empty() && steps < kMaxSteps; id = spaces.ParentOf(id)) {
    ++steps;
    const bool decided = newest != nullptr;
    bool covered = false;
    ForEachOver(spaces_[id.value - 1], address, [&](const GeneratedSymbol& symbol) {
      if (symbol.time_ns > copied_ns) return;
      ++seen;
      any = &symbol;
      always = always && symbol.time_ns == 0;
      covered = covered || symbol.time_ns == 0;
      if (decided || symbol.time_ns > time_ns) return;
      // Of two of one time the later one in the file, visited first, counts.
      if (newest == nullptr || symbol.time_ns > newest->time_ns) newest = &symbol;
    });
    if (covered) break;  // at every time: the parents' are never seen
    copied_ns = std::min(copied_ns, spaces.CopiedNs(id));
  }
  if (seen <= 1) return {any, true};
  return {newest, always};
}

}  // namespace xpu

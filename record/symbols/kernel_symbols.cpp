#include "record/symbols/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "format/base/file.h"
#include "format/base/text.h"

namespace xpu {
namespace {

// One line: "ffffffff81000000 T _stext" or "ffffffffc0000000 t name	[module]".
struct Line {
  uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;
};

bool ParseLine(std::string_view text, Line& line) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), line.address, 16);
  const auto at = static_cast<size_t>(end - text.data());
  if (error != std::errc() || text.size() < at + 4 || text[at] != ' ' || text[at + 2] != ' ') {
    return false;
  }
  line.type = text[at + 1];
  line.name = text.substr(at + 3);
  line.module = {};
  if (const size_t tab = line.name.find('\t'); tab != std::string_view::npos) {
    line.module = line.name.substr(tab + 1);
    line.name = line.name.substr(0, tab);
    if (line.module.size() >= 2 && line.module.front() == '[') {
      line.module = line.module.substr(1, line.module.size() - 2);
    }
  }
  return true;
}

// Text symbols only, ordered by address; of several at one address the first.
std::vector<Line> ParseText(std::string_view kallsyms, bool& hidden) {
  std::vector<Line> lines;
  size_t zeros = 0;
  while (!kallsyms.empty()) {
    const size_t end = std::min(kallsyms.find('\n'), kallsyms.size());
    Line line;
    if (ParseLine(kallsyms.substr(0, end), line) && std::strchr("tTwW", line.type) != nullptr) {
      if (line.address == 0) {
        ++zeros;
      } else {
        lines.push_back(line);
      }
    }
    kallsyms.remove_prefix(std::min(end + 1, kallsyms.size()));
  }
  hidden = lines.empty() && zeros > 0;
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.address < b.address; });
  return lines;
}

}  // namespace

KernelSymbolLookup FindKernelSymbols(std::string_view kallsyms, std::vector<uint64_t> addresses) {
  // Otherwise the last symbol before a gap (end of the kernel, of a module) would name all of it.
  constexpr uint64_t kLargestSymbol = uint64_t{1} << 20;
  KernelSymbolLookup lookup;
  const std::vector<Line> lines = ParseText(kallsyms, lookup.hidden);
  std::sort(addresses.begin(), addresses.end());
  auto line = lines.begin();
  for (uint64_t address : addresses) {
    if (!lookup.symbols.empty() &&
        address - lookup.symbols.back().address < lookup.symbols.back().size_bytes) {
      continue;
    }
    line = std::upper_bound(line, lines.end(), address, [](uint64_t value, const Line& candidate) {
      return value < candidate.address;
    });
    const uint64_t next = line == lines.end() ? UINT64_MAX : line->address;
    auto first = line;
    while (first != lines.begin() &&
           (first == line || std::prev(first)->address == first->address)) {
      --first;
    }
    if (first == line || address - first->address >= kLargestSymbol) {
      ++lookup.unnamed;
      continue;
    }
    lookup.symbols.push_back({first->address, std::min(next - first->address, kLargestSymbol),
                              std::string(first->name), std::string(first->module)});
  }
  return lookup;
}

KernelFunction FindKernelFunction(std::string_view kallsyms, std::string_view name) {
  const std::string wanted = Format(" {}\n", name);
  const size_t found = kallsyms.find(wanted);
  if (found == std::string_view::npos) return {};
  const size_t begin = kallsyms.rfind('\n', found) + 1;  // 0 in the first line
  const auto address_at = [&](size_t line) {
    uint64_t address = 0;
    std::from_chars(kallsyms.data() + line, kallsyms.data() + kallsyms.size(), address, 16);
    return address;
  };
  KernelFunction function{.begin = address_at(begin)};
  // Several symbols may be at one address.
  for (size_t line = found; function.end <= function.begin; ++line) {
    line = kallsyms.find('\n', line);
    if (line == std::string_view::npos) return {};
    function.end = address_at(line + 1);
  }
  return function;
}

KernelSymbolLookup ReadKernelSymbols(std::vector<uint64_t> addresses) {
  if (addresses.empty()) return {};
  const size_t count = addresses.size();
  auto kallsyms = ReadFile("/proc/kallsyms");
  KernelSymbolLookup lookup;
  if (kallsyms.ok()) {
    lookup = FindKernelSymbols(*kallsyms, std::move(addresses));
  } else {
    lookup.hidden = true;
    lookup.why_hidden = kallsyms.error().message;
  }
  lookup.addresses = count;
  return lookup;
}

void WriteKernelSymbols(const KernelSymbolLookup& lookup, EventSink& sink) {
  for (const KernelSymbolText& text : lookup.symbols) {
    KernelSymbol symbol;
    symbol.address = text.address;
    symbol.size_bytes = text.size_bytes;
    symbol.name = sink.Intern(text.name);
    symbol.module = sink.Intern(text.module);
    sink.Write(symbol);
  }
  // Single addresses outside all symbols (a freed BPF program) are not counted; hidden addresses
  // are.
  if (!lookup.hidden) return;
  sink.losses().Add(LossKind::kKernelSymbolsHidden, lookup.addresses, 0, {}, lookup.why_hidden);
}

}  // namespace xpu

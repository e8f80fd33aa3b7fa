// Addresses of a file to functions and lines: what they are, for comparing, or how long it takes.
//
//   symbolize_bench FILE < ADDRESSES              the frames, as addr2line -a -f -i prints them
//   symbolize_bench --time FILE < ADDRESSES       the times; --names: of names alone
//   symbolize_bench --slice FILE < ADDRESSES      the slice that holds these functions
//   symbolize_bench --confined FILE < ADDRESSES   the frames, read in a process of its own
//
// Addresses are link addresses, one a line, hexadecimal.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "format/base/file.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/dwarf/debug_reader.h"
#include "symbolize/dwarf/debug_writer.h"
#include "symbolize/elf/elf_image.h"
#include "symbolize/elf/symbol_slice.h"
#include "symbolize/elf/symbol_table.h"

namespace xpu {
namespace {

// Of CPU time: others may be at work.
double NowMicroseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

std::vector<uint64_t> ReadAddresses() {
  std::vector<uint64_t> addresses;
  char line[64];
  while (std::fgets(line, sizeof(line), stdin) != nullptr) {
    addresses.push_back(std::strtoull(line, nullptr, 16));
  }
  return addresses;
}

std::string_view OrUnknown(std::string_view text) { return text.empty() ? "??" : text; }

void Print(DebugInfo& info, const std::vector<uint64_t>& addresses) {
  for (const uint64_t address : addresses) {
    std::printf("0x%llx\n", static_cast<unsigned long long>(address));
    for (const SourceFrame& frame : info.At(address)) {
      const std::string_view function = OrUnknown(frame.function);
      const std::string_view file = OrUnknown(frame.file);
      std::printf("%.*s\n%.*s:%u\n", static_cast<int>(function.size()), function.data(),
                  static_cast<int>(file.size()), file.data(), frame.line);
    }
  }
}

// Microseconds for all the addresses: opening included, then once more.
template <typename Open, typename LookUp>
void Time(const char* what, const std::vector<uint64_t>& addresses, Open open, LookUp look_up) {
  const double begin = NowMicroseconds();
  auto opened = open();
  const double open_end = NowMicroseconds();
  size_t found = 0;
  for (const uint64_t address : addresses) found += look_up(opened, address);
  const double cold_end = NowMicroseconds();
  for (const uint64_t address : addresses) found += look_up(opened, address);
  const double warm_end = NowMicroseconds();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto count = static_cast<double>(addresses.size());
  std::printf("%s: open %.1f ms, cold %.2f us, warm %.3f us, %.2f frames an address, %ld MB\n",
              what, (open_end - begin) / 1e3, (cold_end - begin) / count,
              (warm_end - cold_end) / count, static_cast<double>(found) / 2 / count,
              usage.ru_maxrss / 1024);
}

void TimeNames(const std::string& path, const std::vector<uint64_t>& addresses) {
  const auto file = ElfFile::Open(path);
  if (!file.ok()) return;
  Time(
      "names", addresses, [&] { return SymbolTable(file.value().image().CodeSymbols()); },
      [](const SymbolTable& table, uint64_t address) {
        return static_cast<size_t>(table.Find(address) != nullptr);
      });
}

int WriteSlice(DebugInfo& info, const std::string& path, const std::vector<uint64_t>& addresses) {
  const auto file = ElfFile::Open(path);
  if (!file.ok()) return 1;
  const auto sections = WriteDebugSections(info.FunctionsAt(addresses));
  std::vector<SliceSection> more;
  for (const auto& section : sections) more.push_back({section.name, section.bytes});
  const SymbolTable symbols(file.value().image().CodeSymbols());
  const std::string slice = WriteSymbolSlice(file.value().image(), symbols, addresses, more);
  return WriteAll(STDOUT_FILENO, slice, "standard output").ok() ? 0 : 1;
}

int Run(int argc, char** argv) {
  const bool time = argc > 2 && std::strcmp(argv[1], "--time") == 0;
  const bool names = argc > 2 && std::strcmp(argv[1], "--names") == 0;
  const std::string path = argv[argc - 1];
  DebugInfo::Options options;
  if (argc > 2 && std::strcmp(argv[1], "--confined") == 0)
    options.reading = DebugReading::kConfined;
  if (const char* alternate = std::getenv("ALTERNATE")) options.alternate_path = alternate;
  const std::vector<uint64_t> addresses = ReadAddresses();
  if (names) {
    TimeNames(path, addresses);
    return 0;
  }
  auto info = DebugInfo::Open(path, options);
  if (!info.ok()) {
    std::fprintf(stderr, "%s\n", info.error().ToString().c_str());
    return 1;
  }
  if (argc > 2 && std::strcmp(argv[1], "--slice") == 0) {
    return WriteSlice(info.value(), path, addresses);
  }
  if (!time) {
    info->Prepare(addresses);
    Print(info.value(), addresses);
    if (!info->failure().empty()) std::fprintf(stderr, "%s\n", info->failure().c_str());
    return 0;
  }
  Time(
      "inlines", addresses, [&] { return DebugInfo::Open(path, options).value(); },
      [](DebugInfo& opened, uint64_t address) { return opened.At(address).size(); });
  return 0;
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (xpu::IsDebugReader(argc, argv)) return xpu::RunDebugReader();
  if (argc < 2) {
    std::fprintf(stderr, "usage: symbolize_bench [--time|--names|--slice] FILE < ADDRESSES\n");
    return 2;
  }
  return xpu::Run(argc, argv);
}

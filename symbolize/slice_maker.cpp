#include "symbolize/slice_maker.h"

#include <optional>
#include <utility>
#include <vector>

#include "format/base/path.h"
#include "format/base/text.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/dwarf/debug_writer.h"
#include "symbolize/elf/elf_image.h"
#include "symbolize/elf/symbol_slice.h"
#include "symbolize/file_finder.h"
#include "symbolize/file_symbols.h"

namespace xpu {
namespace {

constexpr size_t kMostLines = 65536;

FileFinder FinderOf(const SliceOrder& order) {
  FileFinder::Options options;
  options.debug_directories.clear();
  options.reading = order.reading;
  if (!order.debug_directory.empty()) options.debug_directories.push_back(order.debug_directory);
  return FileFinder(std::move(options));
}

// The source lines and inlined functions of `link_addresses`, from the DWARF of `file`; nothing
// where it cannot be read, for the names are what matters.
std::vector<DebugSectionBytes> LinesOf(const FoundFile& file, const SliceOrder& order,
                                       const FileFinder& finder,
                                       std::span<const uint64_t> link_addresses, MadeSlice& slice) {
  auto info = DebugInfo::Open(
      file.path,
      {.alternate_path = finder.Alternate(file), .reading = finder.reading(), .name = order.name});
  if (!info.ok()) return {};
  std::vector<DebugSectionBytes> lines = WriteDebugSections(info->FunctionsAt(link_addresses));
  slice.has_lines = !lines.empty();
  if (slice.has_lines && order.wants_source_lines) {
    slice.source_lines = info->LinesAt(link_addresses, kMostLines);
  }
  slice.lines_failure = info->failure();
  return lines;
}

std::optional<FoundFile> FindDebugFile(const SliceOrder& order, const FileFinder& finder,
                                       const ElfImage& image) {
  // .gnu_debuglink leads to places beside the file: where its program sees it, or where it is
  // opened, as in /proc/PID/root.
  FileSearch search = finder.Debug(order.name, image.build_id(), &image);
  if (!search.found && order.path != order.name) {
    search = finder.Debug(order.path, image.build_id(), &image);
  }
  return std::move(search.found);
}

}  // namespace

Result<MadeSlice> MakeSymbolSlice(const SliceOrder& order, std::span<const uint64_t> file_offsets) {
  MadeSlice slice;
  XPU_ASSIGN_OR_RETURN(ElfFile opened, ElfFile::Open(order.path, order.name));
  const FoundFile file{order.path, std::move(opened)};
  const ElfImage& image = file.file.image();
  if (!order.build_id.empty() && image.build_id() != order.build_id) {
    return Error{
        ErrorKind::kNotFound,
        Format("{}: not the recorded file: build-id {}, recorded {}", order.name,
               image.build_id().empty() ? "none" : ToHex(image.build_id()), ToHex(order.build_id)),
        {}};
  }
  const FileFinder finder = FinderOf(order);
  const bool wants_lines = order.detail == SliceDetail::kLines;
  const bool has_lines = image.SectionWithoutBytes(".debug_info").exists;
  std::optional<FoundFile> debug;
  if (!image.has_symtab() || (wants_lines && !has_lines)) {
    debug = FindDebugFile(order, finder, image);
  }
  const std::vector<uint64_t> addresses = image.LinkAddressesOf(file_offsets);
  const FileSymbols symbols(image, debug ? &debug->file.image() : nullptr);
  std::vector<DebugSectionBytes> lines;
  if (wants_lines && (has_lines || debug)) {
    lines = LinesOf(has_lines ? file : *debug, order, finder, addresses, slice);
  }
  std::vector<SliceSection> more;
  more.reserve(lines.size());
  for (const DebugSectionBytes& section : lines) more.push_back({section.name, section.bytes});
  const std::vector<ElfSymbol> nameless = symbols.NamelessAt(addresses);
  slice.bytes = nameless.empty()
                    ? WriteSymbolSlice(image, symbols.table(), addresses, more)
                    : WriteSymbolSlice(image, symbols.table().With(nameless), addresses, more);
  return slice;
}

}  // namespace xpu

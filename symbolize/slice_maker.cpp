#include "symbolize/slice_maker.h"

#include <optional>
#include <utility>
#include <vector>

#include "format/base/text.h"
#include "symbolize/elf/elf_image.h"
#include "symbolize/elf/file_symbols.h"
#include "symbolize/elf/symbol_slice.h"
#include "symbolize/file_finder.h"

namespace xpu {
namespace {

// Sections that a slice has beside its symbols.
struct MoreSections {
  std::vector<std::pair<std::string, std::string>> contents;  // by name

  std::vector<SliceSection> List() const {
    std::vector<SliceSection> list;
    for (const auto& [name, bytes] : contents) list.push_back({name, bytes});
    return list;
  }
};

// The source lines and inlined functions of `link_addresses`, from the DWARF of the file at `path`.
// Not written yet: SliceDetail::kLines gives what kNames gives.
void AppendLines(const std::string& /*path*/, std::span<const uint64_t> /*link_addresses*/,
                 MoreSections& /*more*/) {}

std::optional<FoundFile> FindDebugFile(const SliceOrder& order, const ElfImage& image) {
  FileFinder::Options options;
  options.debug_folders.clear();
  if (!order.debug_folder.empty()) options.debug_folders.push_back(order.debug_folder);
  const FileFinder finder(std::move(options));
  // .gnu_debuglink leads to places beside the file: where its program sees it, or where it is
  // opened, as in /proc/PID/root.
  FileSearch search = finder.Debug(order.name, image.build_id(), &image);
  if (!search.found && order.path != order.name) {
    search = finder.Debug(order.path, image.build_id(), &image);
  }
  return std::move(search.found);
}

std::vector<uint64_t> LinkAddresses(const ElfImage& image, std::span<const uint64_t> file_offsets) {
  std::vector<uint64_t> addresses;
  addresses.reserve(file_offsets.size());
  for (const uint64_t offset : file_offsets) {
    if (const auto address = image.LinkAddressOf(offset)) addresses.push_back(*address);
  }
  return addresses;
}

}  // namespace

Result<std::string> MakeSymbolSlice(const SliceOrder& order,
                                    std::span<const uint64_t> file_offsets) {
  XPU_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(order.path, order.name));
  const ElfImage& image = file.image();
  if (!order.build_id.empty() && image.build_id() != order.build_id) {
    return Error{
        ErrorKind::kInvalid,
        Format("{}: is not the recorded file: build-id {}, recorded {}", order.name,
               image.build_id().empty() ? "none" : ToHex(image.build_id()), ToHex(order.build_id)),
        {}};
  }
  const bool wants_lines = order.detail == SliceDetail::kLines;
  const bool has_lines = image.Section(".debug_info").exists;
  std::optional<FoundFile> debug;
  if (!image.has_symtab() || (wants_lines && !has_lines)) debug = FindDebugFile(order, image);

  const std::vector<uint64_t> addresses = LinkAddresses(image, file_offsets);
  const FileSymbols symbols(image, debug ? &debug->file.image() : nullptr);
  MoreSections more;
  if (wants_lines && (has_lines || debug)) {
    AppendLines(has_lines ? order.path : debug->path, addresses, more);
  }
  return WriteSymbolSlice(image, symbols.table(), addresses, more.List());
}

}  // namespace xpu

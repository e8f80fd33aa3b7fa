#include "symbolize/dwarf/debug_info.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "format/base/file.h"
#include "format/base/open_file.h"
#include "format/base/text.h"
#include "symbolize/dwarf/dwarf_file.h"
#include "symbolize/dwarf/file_source.h"
#include "symbolize/dwarf/reader_process.h"
#include "symbolize/elf/cubin.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

using Source = std::unique_ptr<dwarf::DebugSource>;

Error NoDebugInfo(std::string_view name) {
  return Error{ErrorKind::kNotFound, Format("{}: no debug information", name), {}};
}

Result<Source> ReadHere(std::unique_ptr<dwarf::DwarfFile> file,
                        std::unique_ptr<dwarf::DwarfFile> alternate, std::string_view name) {
  auto source = std::make_unique<dwarf::FileSource>(std::move(file), std::move(alternate));
  if (source->empty()) return NoDebugInfo(name);
  return Source(std::move(source));
}

std::unique_ptr<dwarf::DwarfFile> OpenAlternate(const std::string& path) {
  if (!path.empty()) {
    auto opened = OpenRegularFile(path);
    if (opened.ok()) {
      auto file = dwarf::DwarfFile::Open(std::move(opened).value(), path);
      if (file.ok()) return std::move(file).value();
    }
  }
  return dwarf::DwarfFile::Empty();
}

bool HasDebugInfo(const ElfImage& image) {
  return image.SectionWithoutBytes(".debug_info").exists ||
         image.SectionWithoutBytes(".zdebug_info").exists ||
         (image.machine() == kCubinMachine && image.SectionWithoutBytes(".debug_line").exists);
}

// A process costs more than to see that it would find nothing.
Result<Source> ReadConfined(RegularFile file, int alternate, std::string_view name) {
  RegularFile seen;
  seen.info = file.info;
  seen.fd = UniqueFd(::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0));
  XPU_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Of(std::move(seen), name));
  if (!HasDebugInfo(elf.image())) return NoDebugInfo(name);
  return Source(dwarf::ReaderProcess::Start(file, alternate, std::string(name)));
}

// As a file that a process can be handed.
Result<RegularFile> FileOf(std::string_view bytes, std::string_view name) {
  RegularFile file;
  file.fd = UniqueFd(::memfd_create("debug-info", MFD_CLOEXEC));
  if (!file.fd) return SystemError(Format("{}: memfd_create", name), errno);
  XPU_RETURN_IF_ERROR(WriteAll(file.fd.get(), bytes, std::string(name)));
  if (::fstat(file.fd.get(), &file.info) != 0) return SystemError("fstat", errno);
  return file;
}

}  // namespace

Result<DebugInfo> DebugInfo::Open(const std::string& path, const Options& options) {
  const std::string& name = options.name.empty() ? path : options.name;
  XPU_ASSIGN_OR_RETURN(RegularFile opened, OpenRegularFile(path, 0, name));
  if (options.reading == DebugReading::kConfined) {
    UniqueFd alternate;
    if (!options.alternate_path.empty()) {
      auto other = OpenRegularFile(options.alternate_path);
      if (other.ok()) alternate = std::move(other->fd);
    }
    XPU_ASSIGN_OR_RETURN(auto source, ReadConfined(std::move(opened), alternate.get(), name));
    return DebugInfo(std::move(source));
  }
  XPU_ASSIGN_OR_RETURN(auto file, dwarf::DwarfFile::Open(std::move(opened), name));
  XPU_ASSIGN_OR_RETURN(auto source,
                       ReadHere(std::move(file), OpenAlternate(options.alternate_path), name));
  return DebugInfo(std::move(source));
}

Result<DebugInfo> DebugInfo::Parse(std::string_view bytes, std::string_view name,
                                   DebugReading reading) {
  if (reading == DebugReading::kConfined) {
    XPU_ASSIGN_OR_RETURN(RegularFile file, FileOf(bytes, name));
    XPU_ASSIGN_OR_RETURN(auto source, ReadConfined(std::move(file), -1, name));
    return DebugInfo(std::move(source));
  }
  XPU_ASSIGN_OR_RETURN(auto file, dwarf::DwarfFile::Parse(bytes, name));
  XPU_ASSIGN_OR_RETURN(auto source, ReadHere(std::move(file), dwarf::DwarfFile::Empty(), name));
  return DebugInfo(std::move(source));
}

void DebugInfo::Prepare(std::span<const uint64_t> link_addresses) {
  std::vector<uint64_t> missing;
  for (const uint64_t link_address : link_addresses) {
    if (answers_.try_emplace(link_address).second) missing.push_back(link_address);
  }
  if (missing.empty()) return;
  auto found = source_->FramesAt(missing);
  for (size_t i = 0; i < missing.size(); ++i) answers_[missing[i]] = std::move(found[i]);
}

const std::vector<SourceFrame>& DebugInfo::At(uint64_t link_address) {
  const auto known = answers_.find(link_address);
  if (known != answers_.end()) return known->second;
  Prepare({&link_address, 1});
  return answers_[link_address];
}

FileLines DebugInfo::LinesAt(std::span<const uint64_t> link_addresses, size_t most) {
  FileLines lines;
  size_t count = 0;
  Prepare(link_addresses);
  for (const uint64_t address : link_addresses) {
    for (const SourceFrame& frame : At(address)) {
      if (frame.file.empty() || frame.file == dwarf::kUnknownFile || frame.line == 0) continue;
      if (count >= most) return lines;
      if (lines[std::string(frame.file)].insert(frame.line).second) ++count;
    }
  }
  return lines;
}

std::vector<SourceFunction> DebugInfo::FunctionsAt(std::span<const uint64_t> link_addresses) {
  return source_->FunctionsAt(link_addresses);
}

}  // namespace xpu

#include "symbolize/dwarf/debug_info.h"

#include <unordered_map>
#include <unordered_set>

#include "format/base/open_file.h"
#include "format/base/text.h"
#include "symbolize/dwarf/code_index.h"
#include "symbolize/dwarf/dwarf_file.h"
#include "symbolize/dwarf/function_copy.h"

namespace xpu {
namespace {

std::unique_ptr<dwarf::DwarfFile> OpenAlternate(const std::string& path, dwarf::Access access) {
  if (!path.empty()) {
    auto opened = OpenRegularFile(path);
    if (opened.ok()) {
      auto file = dwarf::DwarfFile::Open(std::move(opened).value(), path, access);
      if (file.ok()) return std::move(file).value();
    }
  }
  return dwarf::DwarfFile::Empty();
}

}  // namespace

class DebugInfo::Impl {
 public:
  Impl(std::unique_ptr<dwarf::DwarfFile> file, std::unique_ptr<dwarf::DwarfFile> alternate)
      : file_(std::move(file)), alternate_(std::move(alternate)), index_(*file_, *alternate_) {}

  bool empty() const { return index_.empty(); }

  const std::vector<SourceFrame>& At(uint64_t link_address) {
    const auto [found, is_new] = answers_.try_emplace(link_address);
    if (is_new) found->second = Read(link_address);
    return found->second;
  }

  std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> link_addresses) {
    std::vector<SourceFunction> functions;
    std::unordered_set<const void*> seen;
    for (const uint64_t link_address : link_addresses) {
      const dwarf::CodePlace place = index_.Find(link_address);
      if (place.function == nullptr || !seen.insert(place.function).second) continue;
      functions.push_back(dwarf::CopyFunction(place, index_));
    }
    return functions;
  }

 private:
  std::vector<SourceFrame> Read(uint64_t link_address) {
    std::vector<SourceFrame> frames;
    const dwarf::CodePlace place = index_.Find(link_address);
    if (place.lines == nullptr) return frames;
    const dwarf::LineTable::Place row = place.lines->Find(link_address);
    SourceFrame frame;
    frame.file = row.file;
    frame.line = row.line;
    if (place.function == nullptr) {
      if (row.exists) frames.push_back(frame);
      return frames;
    }
    uint32_t call = place.inlined->map.Find(link_address);
    while (call != dwarf::RangeMap::kNone) {
      const dwarf::InlinedCall& inlined = place.inlined->calls[call];
      frame.function = index_.NameOf(inlined.entry);
      frame.is_inlined = true;
      frames.push_back(frame);
      frame.file = place.lines->File(inlined.call_file);
      frame.line = inlined.call_line;
      call = inlined.parent;
    }
    frame.function = index_.NameOf(place.function->entry);
    frame.is_inlined = false;
    frames.push_back(frame);
    return frames;
  }

  // Those that die first use the ones above.
  std::unique_ptr<dwarf::DwarfFile> file_;
  std::unique_ptr<dwarf::DwarfFile> alternate_;
  dwarf::CodeIndex index_;
  std::unordered_map<uint64_t, std::vector<SourceFrame>> answers_;
};

DebugInfo::DebugInfo(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;
DebugInfo::~DebugInfo() = default;

Result<DebugInfo> DebugInfo::Of(std::unique_ptr<Impl> impl, std::string_view name) {
  if (impl->empty()) {
    return Error{ErrorKind::kNotFound, Format("{}: no debug information", name), {}};
  }
  return DebugInfo(std::move(impl));
}

Result<DebugInfo> DebugInfo::Open(const std::string& path, const Options& options) {
  const auto access = options.copied ? dwarf::Access::kCopied : dwarf::Access::kMapped;
  XPU_ASSIGN_OR_RETURN(RegularFile opened, OpenRegularFile(path));
  XPU_ASSIGN_OR_RETURN(auto file, dwarf::DwarfFile::Open(std::move(opened), path, access));
  auto impl =
      std::make_unique<Impl>(std::move(file), OpenAlternate(options.alternate_path, access));
  return Of(std::move(impl), path);
}

Result<DebugInfo> DebugInfo::Parse(std::string_view bytes, std::string_view name) {
  XPU_ASSIGN_OR_RETURN(auto file, dwarf::DwarfFile::Parse(bytes, name));
  return Of(std::make_unique<Impl>(std::move(file), dwarf::DwarfFile::Empty()), name);
}

const std::vector<SourceFrame>& DebugInfo::At(uint64_t link_address) {
  return impl_->At(link_address);
}

std::vector<SourceFunction> DebugInfo::FunctionsAt(std::span<const uint64_t> link_addresses) {
  return impl_->FunctionsAt(link_addresses);
}

}  // namespace xpu

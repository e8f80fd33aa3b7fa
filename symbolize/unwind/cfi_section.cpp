#include "symbolize/unwind/cfi_section.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "format/base/text.h"
#include "symbolize/elf/compressed_section.h"

namespace xpu {
namespace {

constexpr std::string_view kDebugFrames[] = {".debug_frame", ".zdebug_frame"};
// Those of compilers shrink to a quarter.
constexpr InflateLimits kLimits{.bytes = uint64_t{256} << 20, .ratio = 100};

// An entry as its header gives it.
struct CfiEntry {
  uint64_t offset = 0;
  bool is_cie = false;
  uint64_t cie_offset = 0;  // of an FDE's CIE
  CfiCursor content;        // after the header
};

// Walks the headers. A length that leads out of the section ends the walk: where the next entry
// would begin is not known.
class EntryWalk {
 public:
  explicit EntryWalk(const CfiSection& section, uint64_t offset = 0)
      : section_(section), cursor_(section.bytes, section.link_address) {
    cursor_.Skip(offset);
  }

  bool Next(CfiEntry& entry) {
    while (cursor_.left() >= sizeof(uint32_t)) {
      entry.offset = cursor_.offset();
      uint64_t length = cursor_.Read<uint32_t>();
      // Linkers concatenate sections that end with a zero each.
      if (length == 0 && section_.ends_at_zero) return false;
      if (length == 0) continue;
      const bool wide = length == 0xffffffff;
      if (wide) length = cursor_.Read<uint64_t>();
      const uint64_t id_offset = cursor_.offset();
      entry.content = cursor_.Take(length);
      if (cursor_.failed()) return false;
      if (ReadId(wide, id_offset, entry)) return true;
      ++skipped_;
    }
    return false;
  }
  bool failed() const { return cursor_.failed(); }
  uint64_t skipped() const { return skipped_; }

 private:
  bool ReadId(bool wide, uint64_t id_offset, CfiEntry& entry) const {
    // The id of .eh_frame has 4 bytes also where the length has 8.
    const bool wide_id = wide && !section_.is_eh_frame;
    const uint64_t id = wide_id ? entry.content.Read<uint64_t>() : entry.content.Read<uint32_t>();
    if (entry.content.failed()) return false;
    if (section_.is_eh_frame) {
      entry.is_cie = id == 0;
      entry.cie_offset = id_offset - id;
    } else {
      entry.is_cie = id == (wide_id ? ~uint64_t{0} : uint64_t{0xffffffff});
      entry.cie_offset = id;
    }
    return true;
  }

  const CfiSection& section_;
  CfiCursor cursor_;
  uint64_t skipped_ = 0;
};

// What the letters of an augmentation say. Those that are not known end it: 'z' gives the size of
// all, so that the instructions are found nevertheless.
bool ReadAugmentation(const char* letters, CfiCursor& content, Cie& cie) {
  if (letters[0] == 0) return true;
  if (letters[0] != 'z') return false;
  cie.has_augmentation_data = true;
  CfiCursor data = content.Take(content.Uleb128());
  for (const char* letter = letters + 1; *letter != 0; ++letter) {
    switch (*letter) {
      case 'R':
        cie.pointer_encoding = data.Read<uint8_t>();
        break;
      case 'P': {
        const auto encoding = data.Read<uint8_t>();
        if (encoding != kEhOmit) data.PointerValue(encoding);
        break;
      }
      case 'L':
        data.Read<uint8_t>();
        break;
      case 'S':
        cie.is_signal_frame = true;
        break;
      case 'B':  // keys and tags of aarch64
      case 'G':
        break;
      default:
        return true;
    }
  }
  return !data.failed();
}

bool ReadCie(const CfiEntry& entry, Cie& cie) {
  CfiCursor content = entry.content;
  cie.offset = entry.offset;
  const auto version = content.Read<uint8_t>();
  if (version != 1 && version != 3 && version != 4) return false;
  const char* augmentation = content.Text();
  if (version == 4) {
    const auto address_bytes = content.Read<uint8_t>();
    const auto segment_bytes = content.Read<uint8_t>();
    if (address_bytes != 8 || segment_bytes != 0) return false;
  }
  cie.code_alignment = content.Uleb128();
  cie.data_alignment = content.Sleb128();
  cie.return_register = version == 1 ? content.Read<uint8_t>() : content.Uleb128();
  if (!ReadAugmentation(augmentation, content, cie) || content.failed()) return false;
  cie.instructions = content;
  return true;
}

bool ReadFde(const CfiEntry& entry, const Cie& cie, Fde& fde) {
  CfiCursor content = entry.content;
  fde.begin = content.Pointer(cie.pointer_encoding);
  fde.end = fde.begin + content.PointerValue(cie.pointer_encoding & 0x07);
  if (cie.has_augmentation_data) content.Skip(content.Uleb128());
  if (content.failed() || fde.end <= fde.begin) return false;
  fde.instructions = content;
  return true;
}

// Only at the beginning of an entry that was read: a hostile section could else name each of its
// bytes, and each would cost the reading of a CIE.
std::optional<uint32_t> FindCie(const std::vector<Cie>& cies, uint64_t offset, uint32_t guess) {
  if (guess < cies.size() && cies[guess].offset == offset) return guess;
  const auto found =
      std::lower_bound(cies.begin(), cies.end(), offset,
                       [](const Cie& cie, uint64_t wanted) { return cie.offset < wanted; });
  if (found == cies.end() || found->offset != offset) return std::nullopt;
  return static_cast<uint32_t>(found - cies.begin());
}

// Where .eh_frame begins, by .eh_frame_hdr: version, encodings of the pointer, the count and the
// table, then the pointer. It reaches to the end of its segment at most.
std::optional<CfiSection> ThroughHeader(const ElfImage& image) {
  const ElfSection header = image.eh_frame_header();
  CfiCursor cursor(header.bytes, header.link_address);
  const auto version = cursor.Read<uint8_t>();
  const auto encoding = cursor.Read<uint8_t>();
  cursor.Skip(2);
  const uint64_t address = cursor.Pointer(encoding, header.link_address);
  if (cursor.failed() || version != 1) return std::nullopt;
  for (const ElfSegment& segment : image.segments()) {
    if (address < segment.link_address || address - segment.link_address >= segment.file_bytes) {
      continue;
    }
    const uint64_t skipped = address - segment.link_address;
    const auto bytes = image.BytesAt(segment.file_offset + skipped, segment.file_bytes - skipped);
    if (bytes.empty()) return std::nullopt;
    return CfiSection{
        .bytes = bytes, .link_address = address, .is_eh_frame = true, .ends_at_zero = true};
  }
  return std::nullopt;
}

}  // namespace

std::optional<CfiSection> FindEhFrame(const ElfImage& image) {
  const ElfSection section = image.Section(".eh_frame");
  if (section.bytes.empty()) return section.exists ? std::nullopt : ThroughHeader(image);
  return CfiSection{.bytes = section.bytes, .link_address = section.link_address};
}

bool HasDebugFrame(const ElfImage& image) {
  return std::ranges::any_of(
      kDebugFrames, [&](std::string_view name) { return image.SectionWithoutBytes(name).exists; });
}

std::unique_ptr<CallFrames> FindCallFrames(const ElfImage& image, const ElfImage* debug) {
  auto frames = std::make_unique<CallFrames>();
  if (const auto eh_frame = FindEhFrame(image)) frames->sections.push_back(*eh_frame);
  const ElfImage& holder = debug != nullptr && !HasDebugFrame(image) ? *debug : image;
  for (const std::string_view name : kDebugFrames) {
    const ElfSection section = holder.Section(name);
    if (section.bytes.empty()) continue;
    std::span<const std::byte> bytes = section.bytes;
    if (section.is_compressed || name != kDebugFrames[0]) {
      auto inflated = InflateSection(section, kLimits);
      if (!inflated) {
        frames->problem = Format("{} is compressed and cannot be inflated", name);
        continue;
      }
      frames->inflated = *std::move(inflated);
      bytes = std::as_bytes(std::span(frames->inflated));
    }
    frames->sections.push_back(
        {.bytes = bytes, .link_address = section.link_address, .is_eh_frame = false});
    break;
  }
  return frames;
}

CfiEntries ReadEntries(const CfiSection& section) {
  CfiEntries entries;
  CfiEntry entry;
  // CIEs first: .debug_frame may have them after their FDEs.
  EntryWalk cies(section);
  while (cies.Next(entry)) {
    Cie cie;
    if (!entry.is_cie) continue;
    if (ReadCie(entry, cie)) {
      entries.cies.push_back(cie);
    } else {
      ++entries.invalid;
    }
  }
  EntryWalk fdes(section);
  uint32_t last = 0;
  while (fdes.Next(entry)) {
    if (entry.is_cie) continue;
    Fde fde;
    const auto cie = FindCie(entries.cies, entry.cie_offset, last);
    if (cie && ReadFde(entry, entries.cies[*cie], fde)) {
      fde.cie = last = *cie;
      entries.fdes.push_back(fde);
    } else {
      ++entries.invalid;
    }
  }
  entries.invalid += fdes.skipped() + (fdes.failed() ? 1 : 0);
  return entries;
}

std::optional<Fde> ReadFdeAt(const CfiSection& section, uint64_t offset) {
  CfiEntry entry;
  CfiEntry common;
  Cie cie;
  Fde fde;
  EntryWalk at_fde(section, offset);
  if (!at_fde.Next(entry) || entry.offset != offset || entry.is_cie) return std::nullopt;
  EntryWalk at_cie(section, entry.cie_offset);
  if (!at_cie.Next(common) || common.offset != entry.cie_offset || !common.is_cie) {
    return std::nullopt;
  }
  if (!ReadCie(common, cie) || !ReadFde(entry, cie, fde)) return std::nullopt;
  return fde;
}

}  // namespace xpu

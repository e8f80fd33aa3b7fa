#include "symbolize/elf/plt_entries.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>

#include <elf.h>

#include "symbolize/elf/elf_bytes.h"
#include "symbolize/elf/symbol_table.h"

namespace xpu {
namespace {

constexpr std::string_view kSuffix = "@plt";
constexpr uint64_t kEntryBytes = 16;
constexpr uint64_t kShortEntryBytes = 8;  // of .plt.got without CET
// libtorch_cpu has some 10 MB of these names, nothing has more.
constexpr size_t kMaxNameBytes = size_t{64} << 20;
// Searched for entries in a file without section headers.
constexpr uint64_t kMaxSearchedBytes = uint64_t{64} << 20;

struct Entry {
  uint64_t link_address = 0;
  uint64_t size_bytes = kEntryBytes;
  // Address of the slot it jumps through; of one that only pushes the number of its relocation
  // (the lazy half of an entry with CET), that number.
  uint64_t slot = 0;
  bool is_numbered = false;
  uint64_t resolver = 0;  // of a function that is chosen when the program starts (IFUNC)
  std::string_view function = {};
};

// The code of one entry.
class Code {
 public:
  explicit Code(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool Skip(std::initializer_list<uint8_t> pattern) {
    if (bytes_.size() - at_ < pattern.size()) return false;
    size_t at = at_;
    for (const uint8_t byte : pattern) {
      if (static_cast<uint8_t>(bytes_[at++]) != byte) return false;
    }
    at_ = at;
    return true;
  }
  bool SkipNumber(uint32_t& number) {
    if (!ReadAt(bytes_, at_, number)) return false;
    at_ += sizeof(number);
    return true;
  }
  uint64_t at() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
};

// What linkers put after the jump: GNU ld, lld, gold (lazy: push and jump; else padding), mold.
bool EndsLikeAnEntry(Code code) {
  uint32_t number = 0;
  if (code.Skip({0x68})) return code.SkipNumber(number) && code.Skip({0xe9});
  return code.Skip({0x0f, 0x1f, 0x44, 0x00, 0x00}) || code.Skip({0x66, 0x0f, 0x1f, 0x44}) ||
         code.Skip({0x66, 0x90}) || code.Skip({0xcc, 0xcc});
}

// endbr64? (mov $number, %r11d)? bnd? jmp *slot(%rip)
bool Decode(std::span<const std::byte> bytes, uint64_t link_address, bool whole, Entry& entry) {
  Code code(bytes);
  uint32_t number = 0;
  const bool has_landing = code.Skip({0xf3, 0x0f, 0x1e, 0xfa});
  entry = {.link_address = link_address};
  if (Code push = code; !whole && push.Skip({0x68}) && push.SkipNumber(number) &&
                        (push.Skip({0xf2, 0xe9}) || (has_landing && push.Skip({0xe9})))) {
    entry.slot = number;
    entry.is_numbered = true;
    return true;
  }
  if (code.Skip({0x41, 0xbb}) && !code.SkipNumber(number)) return false;
  code.Skip({0xf2});
  if (!code.Skip({0xff, 0x25}) || !code.SkipNumber(number)) return false;
  entry.slot = link_address + code.at() + static_cast<uint64_t>(static_cast<int32_t>(number));
  if (!has_landing && Code(code).Skip({0x66, 0x90})) entry.size_bytes = kShortEntryBytes;
  return !whole || code.at() == kEntryBytes || EndsLikeAnEntry(code);
}

// `whole`: nothing but the form of the code says that it is an entry.
void FindEntries(std::span<const std::byte> code, uint64_t link_address, bool whole,
                 std::vector<Entry>& entries) {
  Entry entry;
  for (uint64_t at = 0; at < code.size();) {
    const bool found = Decode(Inside(code, at, kEntryBytes), link_address + at, whole, entry);
    if (found) entries.push_back(entry);
    at += found ? entry.size_bytes : kShortEntryBytes;
  }
}

bool IsCode(const ElfImage& file, const ElfSection& section) {
  return std::ranges::any_of(file.segments(), [&](const ElfSegment& segment) {
    if (!segment.executable || section.link_address < segment.link_address) return false;
    const uint64_t offset = section.link_address - segment.link_address;
    return offset < segment.memory_bytes && section.bytes.size() <= segment.memory_bytes - offset;
  });
}

std::vector<Entry> FindEntries(const ElfImage& file) {
  std::vector<Entry> entries;
  for (const std::string_view name : {".plt", ".plt.sec", ".plt.got"}) {
    const ElfSection section = file.Section(name);
    if (!section.is_compressed && IsCode(file, section)) {
      FindEntries(section.bytes, section.link_address, false, entries);
    }
  }
  if (file.has_section_names()) return entries;
  uint64_t left = kMaxSearchedBytes;
  for (const ElfSegment& segment : file.segments()) {
    if (!segment.executable) continue;
    const auto code = file.BytesAt(segment.file_offset,
                                   std::min({segment.file_bytes, segment.memory_bytes, left}));
    FindEntries(code, segment.link_address, true, entries);
    left -= code.size();
  }
  return entries;
}

// The pieces that PT_DYNAMIC leads to; they are there without section headers too.
struct Dynamic {
  explicit Dynamic(const ElfImage& image) : file(image) {
    std::array<uint64_t, DT_NUM> values{};
    Elf64_Dyn entry;
    for (uint64_t at = 0; ReadAt(file.dynamic(), at, entry) && entry.d_tag != DT_NULL;
         at += sizeof(entry)) {
      if (entry.d_tag > 0 && entry.d_tag < DT_NUM) {
        values[static_cast<size_t>(entry.d_tag)] = entry.d_un.d_val;
      }
    }
    const auto part = [&](size_t address, uint64_t bytes) {
      return values[address] == 0 ? std::span<const std::byte>{}
                                  : file.BytesAtLinkAddress(values[address], bytes);
    };
    plt_relocations = part(DT_JMPREL, values[DT_PLTRELSZ]);
    // Programs that are linked statically have no dynamic segment.
    if (plt_relocations.empty()) plt_relocations = file.Section(".rela.plt").bytes;
    relocations = part(DT_RELA, values[DT_RELASZ]);
    symbols_address = values[DT_SYMTAB];
    names = AsChars(part(DT_STRTAB, values[DT_STRSZ]));
  }

  // Empty: it has none.
  std::string_view FunctionOf(const Elf64_Rela& relocation) const {
    const uint64_t index = ELF64_R_SYM(relocation.r_info);
    Elf64_Sym symbol;
    // One by one: nothing says how long the table is, and reading to the end of the segment could
    // be reading most of the file.
    const uint64_t address = symbols_address + index * sizeof(symbol);
    if (index == 0 || symbols_address == 0) return {};
    if (!ReadAt(file.BytesAtLinkAddress(address, sizeof(symbol)), 0, symbol)) return {};
    const std::string_view name = TextAt(names, symbol.st_name);
    return name.size() + kSuffix.size() < kMaxElfNameBytes ? name : std::string_view{};
  }

  std::span<const std::byte> plt_relocations;
  std::span<const std::byte> relocations;
  const ElfImage& file;
  uint64_t symbols_address = 0;
  std::span<const char> names;
};

bool IsOfSlot(const Elf64_Rela& relocation) {
  const auto type = ELF64_R_TYPE(relocation.r_info);
  return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
}

// `entries` ascending by slot. Relocations are many (a million in libtorch), entries are few.
void NameBySlot(const Dynamic& dynamic, std::span<const std::byte> relocations,
                std::span<Entry> entries) {
  Elf64_Rela relocation;
  for (uint64_t at = 0; ReadAt(relocations, at, relocation); at += sizeof(relocation)) {
    const bool has_resolver = ELF64_R_TYPE(relocation.r_info) == R_X86_64_IRELATIVE;
    if (!has_resolver && !IsOfSlot(relocation)) continue;
    const auto first = std::ranges::lower_bound(entries, relocation.r_offset, {}, &Entry::slot);
    if (first == entries.end() || first->slot != relocation.r_offset) continue;
    if (first->resolver != 0 || !first->function.empty()) continue;
    Entry found;
    if (has_resolver) {
      found.resolver = static_cast<uint64_t>(relocation.r_addend);
    } else {
      found.function = dynamic.FunctionOf(relocation);
    }
    if (found.resolver == 0 && found.function.empty()) continue;
    for (auto same = first; same != entries.end() && same->slot == first->slot; ++same) {
      same->resolver = found.resolver;
      same->function = found.function;
    }
  }
}

// The symbol of such a function is at its resolver.
void NameByResolver(std::span<const ElfSymbol> symbols, std::span<Entry> entries) {
  std::vector<uint64_t> resolvers;
  for (const Entry& entry : entries) {
    if (entry.resolver != 0) resolvers.push_back(entry.resolver);
  }
  if (resolvers.empty()) return;
  std::ranges::sort(resolvers);
  std::vector<ElfSymbol> functions;
  std::ranges::copy_if(symbols, std::back_inserter(functions), [&](const ElfSymbol& symbol) {
    return std::ranges::binary_search(resolvers, symbol.link_address);
  });
  const SymbolTable table(functions);
  for (Entry& entry : entries) {
    if (entry.resolver == 0) continue;
    const ElfSymbol* function = table.Find(entry.resolver);
    if (function == nullptr || function->link_address != entry.resolver) continue;
    entry.function = function->name;
  }
}

void NameByNumber(const Dynamic& dynamic, std::span<Entry> entries) {
  Elf64_Rela relocation;
  for (Entry& entry : entries) {
    if (!ReadAt(dynamic.plt_relocations, entry.slot * sizeof(relocation), relocation)) continue;
    if (IsOfSlot(relocation)) entry.function = dynamic.FunctionOf(relocation);
  }
}

std::vector<ElfSymbol> ToSymbols(std::span<const Entry> entries, std::string& names) {
  size_t bytes = 0;
  for (const Entry& entry : entries) bytes += entry.function.size() + kSuffix.size();
  names.reserve(std::min(bytes, kMaxNameBytes));
  std::vector<ElfSymbol> symbols;
  for (const Entry& entry : entries) {
    const std::string_view function = entry.function.substr(0, entry.function.find('@', 1));
    if (function.empty()) continue;
    if (names.capacity() - names.size() < function.size() + kSuffix.size()) break;
    const size_t begin = names.size();
    names.append(function).append(kSuffix);
    symbols.push_back({.link_address = entry.link_address,
                       .size_bytes = entry.size_bytes,
                       .name = std::string_view(names).substr(begin),
                       .binding = ElfBinding::kLocal,
                       .is_function = true});
  }
  return symbols;
}

}  // namespace

std::vector<ElfSymbol> ReadPltEntries(const ElfImage& file, std::span<const ElfSymbol> symbols,
                                      std::string& names) {
  if (file.machine() != EM_X86_64) return {};
  std::vector<Entry> entries = FindEntries(file);
  const auto numbered = std::partition(entries.begin(), entries.end(),
                                       [](const Entry& entry) { return !entry.is_numbered; });
  const std::span<Entry> jumps(entries.begin(), numbered);
  std::ranges::sort(jumps, {}, &Entry::slot);
  const Dynamic dynamic(file);
  NameBySlot(dynamic, dynamic.plt_relocations, jumps);
  NameBySlot(dynamic, dynamic.relocations, jumps);
  NameByNumber(dynamic, std::span<Entry>(numbered, entries.end()));

  NameByResolver(symbols, entries);
  return ToSymbols(entries, names);
}

}  // namespace xpu

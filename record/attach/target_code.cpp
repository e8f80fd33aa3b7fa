#include "record/attach/target_code.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/base/path.h"
#include "format/base/text.h"
#include "record/base/clock.h"
#include "record/base/process_memory.h"
#include "record/base/process_status.h"
#include "record/process/mapped_file.h"
#include "record/process/target_file.h"
#include "record/process/unwind_file.h"
#include "record/unwind/unwind_cache.h"
#include "symbolize/elf/data_symbol.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

constexpr char kAllocator[] = "in the memory allocator";
constexpr char kLoader[] = "in the dynamic loader";
constexpr char kThreads[] = "starting or ending a thread or process";

// What pthread_create takes locks for: memory, the list of stacks, thread-local storage.
constexpr std::string_view kAllocatorNames[] = {
    "malloc",   "calloc",        "realloc",        "reallocarray", "free",        "cfree",
    "memalign", "aligned_alloc", "posix_memalign", "valloc",       "pvalloc",     "malloc_trim",
    "mallopt",  "mallinfo",      "mallinfo2",      "malloc_info",  "malloc_stats"};
constexpr std::string_view kLoaderNames[] = {
    "dlopen",  "dlmopen", "dlclose", "dlsym",           "dlvsym",          "dladdr",
    "dladdr1", "dlinfo",  "dlerror", "dl_iterate_phdr", "_dl_find_object", "__libc_dlopen_mode"};
constexpr std::string_view kThreadNames[] = {"pthread_attr_setstack",
                                             "pthread_getattr_np",
                                             "pthread_create",
                                             "pthread_exit",
                                             "posix_spawnp",
                                             "posix_spawn",
                                             "quick_exit",
                                             "vfork",
                                             "clone",
                                             "_exit",
                                             "abort",
                                             "fork",
                                             "exit"};
constexpr std::string_view kUserNames[] = {"setuid",    "setgid",    "setreuid", "setregid",
                                           "setresuid", "setresgid", "setgroups"};
// C++'s operators new and delete call malloc, but an allocator may define them itself.
constexpr std::string_view kUnsafePrefixes[] = {"_Znw", "_Zna", "_Zdl", "_Zda"};
constexpr std::string_view kAllocatorFiles[] = {"libjemalloc", "libtcmalloc", "libmimalloc"};

template <size_t kCount>
bool Has(const std::string_view (&names)[kCount], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const char* WhyUnsafeName(std::string_view name) {
  if (name.starts_with("__libc_") && name != "__libc_dlopen_mode") name.remove_prefix(7);
  if (Has(kAllocatorNames, name)) return kAllocator;
  if (Has(kLoaderNames, name)) return kLoader;
  if (Has(kThreadNames, name) || Has(kUserNames, name)) return kThreads;
  for (const std::string_view prefix : kUnsafePrefixes) {
    if (name.starts_with(prefix)) return kAllocator;
  }
  return nullptr;
}

bool IsLibc(std::string_view path) {
  const std::string_view name = FileNameOf(path);
  return name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
}

bool IsLoader(std::string_view path) {
  const std::string_view name = FileNameOf(path);
  return name.starts_with("ld-linux") || (name.starts_with("ld-2.") && name.ends_with(".so"));
}

bool IsAllocatorFile(std::string_view path) {
  const std::string_view name = FileNameOf(path);
  return std::any_of(std::begin(kAllocatorFiles), std::end(kAllocatorFiles),
                     [&](std::string_view file) { return name.starts_with(file); });
}

std::string_view WithoutVersion(std::string_view name) { return name.substr(0, name.find('@')); }

MappedFile FileOf(pid_t pid, const ProcessMapping& mapping) {
  MappedFile file;
  file.device = PackedDevice(mapping.device_major, mapping.device_minor);
  file.inode = mapping.inode;
  if (mapping.path == kVdso) {
    file.paths = {kVdso};
  } else if (mapping.inode != 0) {
    file.paths = PathsOfMapping({static_cast<uint32_t>(pid), mapping.start_address,
                                 mapping.end_address - mapping.start_address, mapping.path});
  }
  return file;
}

Result<ElfFile> OpenMapped(pid_t pid, const ProcessMapping& mapping) {
  const MappedFile file = FileOf(pid, mapping);
  XPU_ASSIGN_OR_RETURN(const UnwindFile found,
                       FindUnwindFile(file.paths, {}, {file.device, file.inode}));
  return found.Reopen();
}

UnwindTables::Options TableOptions() {
  return {.cache_directory = UnwindCache::DefaultDirectory(::geteuid())};
}

Error NoGlibc() {
  return Error{ErrorKind::kUnsupported,
               "the program does not use the GNU C library 2.34 or newer as a shared library",
               "start the program under xpu-record"};
}

}  // namespace

TargetCode::TargetCode(pid_t pid) : pid_(pid), tables_(TableOptions()) {}

Status TargetCode::Refresh() {
  XPU_ASSIGN_OR_RETURN(mappings_, ReadProcessMaps(static_cast<uint32_t>(pid_)));
  return Ok();
}

TargetCode::FileKey TargetCode::KeyOf(const ProcessMapping& mapping) {
  return {PackedDevice(mapping.device_major, mapping.device_minor), mapping.inode};
}

Result<TargetFunctions> TargetCode::FindFunctions() const {
  const auto is_libc = [](const ProcessMapping& mapping) {
    return (mapping.protection & PROT_EXEC) != 0 && IsLibc(mapping.path);
  };
  const auto libc = std::find_if(mappings_.begin(), mappings_.end(), is_libc);
  if (libc == mappings_.end()) return NoGlibc();
  XPU_ASSIGN_OR_RETURN(const ElfFile file, OpenMapped(pid_, *libc));
  const ElfImage& image = file.image();
  if (image.machine() != EM_X86_64) return NoGlibc();
  const uint64_t bytes = libc->end_address - libc->start_address;
  // The program says what it maps, and how much: a sparse file may have terabytes.
  constexpr uint64_t kMostBytes = uint64_t{64} << 20;
  if (bytes > kMostBytes) return NoGlibc();
  const auto link = LinkAddressOfCodeMapping(image.segments(), libc->file_offset, bytes);
  if (!link) return NoGlibc();
  const uint64_t bias = libc->start_address - *link;
  TargetFunctions functions;
  const std::pair<uint64_t*, const char*> wanted[] = {{&functions.mmap, "mmap"},
                                                      {&functions.munmap, "munmap"},
                                                      {&functions.pthread_create, "pthread_create"},
                                                      {&functions.pthread_self, "pthread_self"},
                                                      {&functions.pthread_detach, "pthread_detach"},
                                                      {&functions.dlopen, "dlopen"},
                                                      {&functions.dlsym, "dlsym"},
                                                      {&functions.dlerror, "dlerror"}};
  for (const auto& [address, name] : wanted) {
    const auto symbol = FindSymbolAddress(image, name);
    if (!symbol || *symbol + bias - libc->start_address >= bytes) return NoGlibc();
    *address = *symbol + bias;
  }
  constexpr std::array<uint8_t, 9> kRestorer = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
  std::vector<uint8_t> code(bytes);
  code.resize(
      ProcessMemory(LivingThread(pid_)).ReadSome(libc->start_address, code.data(), code.size()));
  const auto at = std::search(code.begin(), code.end(), kRestorer.begin(), kRestorer.end());
  if (at == code.end()) return NoGlibc();
  functions.restorer = libc->start_address + static_cast<uint64_t>(at - code.begin());
  return functions;
}

uint64_t TargetCode::FindInLibrary(const std::string& build_id, const char* symbol) const {
  for (const ProcessMapping& mapping : mappings_) {
    if ((mapping.protection & PROT_EXEC) == 0 || mapping.inode == 0) continue;
    if (mapping.path.find("xpu_inject") == std::string::npos) continue;
    auto file = OpenMapped(pid_, mapping);
    if (!file.ok() || file->image().build_id() != build_id) continue;
    const auto link = LinkAddressOfCodeMapping(file->image().segments(), mapping.file_offset,
                                               mapping.end_address - mapping.start_address);
    const auto address = FindSymbolAddress(file->image(), symbol);
    if (link && address) return *address - *link + mapping.start_address;
  }
  return 0;
}

std::optional<uint64_t> TargetCode::LinkAddress(const ProcessMapping& mapping,
                                                uint64_t address) const {
  const auto file = files_.find(KeyOf(mapping));
  if (file == files_.end() || tables_.state(file->second.table) != UnwindTables::State::kReady) {
    return std::nullopt;
  }
  const auto link = tables_.LinkAddressOfMapping(file->second.table, mapping.file_offset,
                                                 mapping.end_address - mapping.start_address);
  if (!link) return std::nullopt;
  return address - mapping.start_address + *link;
}

CodeKind TargetCode::FindRule(uint64_t address, UnwindRule* rule) {
  const ProcessMapping* mapping = Find(address);
  if (mapping == nullptr || (mapping->protection & PROT_EXEC) == 0) return CodeKind::kNotCode;
  if (mapping->inode == 0 && mapping->path != kVdso) return CodeKind::kNoTable;
  const auto file = files_.find(KeyOf(*mapping));
  if (file == files_.end()) {
    missing_.push_back(address);
    return CodeKind::kNotReady;
  }
  const auto link = LinkAddress(*mapping, address);
  if (!link) return CodeKind::kNoTable;
  *rule = tables_.table(file->second.table).Find(*link);
  return CodeKind::kRule;
}

void TargetCode::Load(const ProcessMapping& mapping) {
  const auto [at, is_new] = files_.try_emplace(KeyOf(mapping));
  if (!is_new) return;
  File& file = at->second;
  file.table = tables_.Request(FileOf(pid_, mapping));
  auto elf = OpenMapped(pid_, mapping);
  if (!elf.ok()) return;
  for (const ElfSymbol& symbol : elf->image().CodeSymbols()) {
    const char* why = WhyUnsafeName(WithoutVersion(symbol.name));
    if (why == nullptr) continue;
    const uint64_t size = std::max<uint64_t>(symbol.size_bytes, 1);
    file.unsafe[symbol.link_address] = {symbol.link_address + size, why};
  }
}

bool TargetCode::LoadMissing() {
  constexpr uint64_t kPatienceNs = 5'000'000'000;
  if (missing_.empty()) return false;
  for (const uint64_t address : missing_) {
    const ProcessMapping* mapping = Find(address);
    if (mapping != nullptr) Load(*mapping);
  }
  missing_.clear();
  tables_.WaitUntil(MonotonicNs() + kPatienceNs);
  tables_.TakeFinished();
  return true;
}

const char* TargetCode::WhyUnsafe(uint64_t address) const {
  const ProcessMapping* mapping = Find(address);
  if (mapping == nullptr) return "in unknown code";
  if (IsLoader(mapping->path)) return kLoader;
  if (IsAllocatorFile(mapping->path)) return kAllocator;
  const auto file = files_.find(KeyOf(*mapping));
  const auto link = LinkAddress(*mapping, address);
  if (file == files_.end() || !link) return nullptr;
  const auto after = file->second.unsafe.upper_bound(*link);
  if (after == file->second.unsafe.begin()) return nullptr;
  const UnsafeRange& range = std::prev(after)->second;
  return *link < range.end ? range.why : nullptr;
}

bool TargetCode::IsInLibc(uint64_t address) const {
  const ProcessMapping* mapping = Find(address);
  return mapping != nullptr && IsLibc(mapping->path);
}

}  // namespace xpu

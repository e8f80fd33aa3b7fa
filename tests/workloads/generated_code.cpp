// Runs code that it has made itself, and says so as just-in-time compilers do.
//   --say map    in /tmp/perf-PID.map
//   --say dump   in a jitdump file in the working directory
//   --say nothing
//   --memory anonymous, memfd, shared (as /dev/zero)
//                where the code is
//   --ms M       CPU time in each of three functions
// Functions, in turn: JitOuter calls JitFirst; then JitFirst's place is given to JitSecond (with a
// dump only, which has times); then JitMoved, made at another place and moved.
#include <cstdio>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "json_line.h"
#include "puppet.h"

namespace {

// push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret
constexpr unsigned char kOuter[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8,
                                    0x48, 0x89, 0xf7, 0xff, 0xd0, 0x5d, 0xc3};
// push rbp; mov rbp, rsp; again: dec rdi; jnz again; pop rbp; ret
constexpr unsigned char kLeaf[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
                                   0xcf, 0x75, 0xfb, 0x5d, 0xc3};
constexpr size_t kPage = 4096;

struct DumpHeader {
  uint32_t magic = 0x4A695444, version = 1, bytes = 40, machine = 62, padding = 0, pid = 0;
  uint64_t time_ns = 0, flags = 0;
};
struct RecordHeader {
  uint32_t kind = 0, bytes = 0;
  uint64_t time_ns = 0;
};

class Teller {
 public:
  explicit Teller(const std::string& way) {
    const std::string pid = std::to_string(getpid());
    if (way == "map") file_ = std::fopen(("/tmp/perf-" + pid + ".map").c_str(), "w");
    if (way != "dump") return;
    dump_ = file_ = std::fopen(("jit-" + pid + ".dump").c_str(), "w+");
    DumpHeader header;
    header.pid = static_cast<uint32_t>(getpid());
    std::fwrite(&header, sizeof(header), 1, file_);
    std::fflush(file_);
    // What records is to see that there is a dump.
    mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(file_), 0);
  }
  ~Teller() {
    if (file_ != nullptr) std::fclose(file_);
  }

  void Made(const void* code, size_t bytes, const char* name, uint64_t number) {
    const auto address = reinterpret_cast<uint64_t>(code);
    if (file_ != nullptr && dump_ == nullptr) {
      std::fprintf(file_, "%llx %zx %s\n", static_cast<unsigned long long>(address), bytes, name);
    }
    if (dump_ == nullptr) return;
    const uint64_t ids[] = {address, address, bytes, number};
    Record(0, 8 + sizeof(ids) + std::strlen(name) + 1 + bytes);
    Threads();
    std::fwrite(ids, sizeof(ids), 1, dump_);
    std::fwrite(name, std::strlen(name) + 1, 1, dump_);
    std::fwrite(code, bytes, 1, dump_);
  }
  void Moved(const void* from, const void* to, size_t bytes, uint64_t number) {
    if (dump_ == nullptr) return;
    const uint64_t ids[] = {reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from),
                            reinterpret_cast<uint64_t>(to), bytes, number};
    Record(1, 8 + sizeof(ids));
    Threads();
    std::fwrite(ids, sizeof(ids), 1, dump_);
  }
  bool has_times() const { return dump_ != nullptr; }

 private:
  void Record(uint32_t kind, size_t body_bytes) {
    const RecordHeader header{kind, static_cast<uint32_t>(sizeof(RecordHeader) + body_bytes),
                              workload::ClockNs(CLOCK_MONOTONIC)};
    std::fwrite(&header, sizeof(header), 1, dump_);
  }
  void Threads() {
    const uint32_t ids[] = {static_cast<uint32_t>(getpid()), static_cast<uint32_t>(getpid())};
    std::fwrite(ids, sizeof(ids), 1, dump_);
  }

  std::FILE* file_ = nullptr;
  std::FILE* dump_ = nullptr;
};

char* MapPages(const std::string& memory, size_t bytes) {
  int flags = memory == "anonymous" ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED | MAP_ANONYMOUS;
  int fd = -1;
  if (memory == "memfd") {
    flags = MAP_SHARED;
    fd = memfd_create("doublemapper", MFD_CLOEXEC);
    if (ftruncate(fd, static_cast<off_t>(bytes)) != 0) return nullptr;
  }
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE | PROT_EXEC, flags, fd, 0);
  if (pages == MAP_FAILED) return nullptr;
  // As PHP does: the mapping is another one by the time that anybody looks for its file.
  mprotect(static_cast<char*>(pages) + bytes - kPage, kPage, PROT_READ);
  return static_cast<char*>(pages);
}

}  // namespace

XPU_FRAME void RunGenerated(char* outer, char* leaf, uint64_t milliseconds) {
  const uint64_t begin = workload::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  while (workload::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin < milliseconds * 1'000'000) {
    reinterpret_cast<void (*)(char*, uint64_t)>(outer)(leaf, 1'000'000);
  }
}

int main(int argc, char** argv) {
  const uint64_t ms = workload::OptionNumber(argc, argv, "--ms", 100);
  const std::string way = workload::OptionString(argc, argv, "--say", "map");
  const std::string memory = workload::OptionString(argc, argv, "--memory", "anonymous");
  char* const pages = MapPages(memory, 5 * kPage);
  if (pages == nullptr) return 1;
  char* const outer = pages;
  char* const first = pages + kPage;
  char* const moved = pages + 3 * kPage;
  Teller teller(way);
  std::memcpy(outer, kOuter, sizeof(kOuter));
  std::memcpy(first, kLeaf, sizeof(kLeaf));
  teller.Made(outer, sizeof(kOuter), "JitOuter", 1);
  teller.Made(first, sizeof(kLeaf), "JitFirst", 2);
  RunGenerated(outer, first, ms);
  if (teller.has_times()) {
    teller.Made(first, sizeof(kLeaf), "JitSecond", 3);
    RunGenerated(outer, first, ms);
    teller.Made(pages + 2 * kPage, sizeof(kLeaf), "JitMoved", 4);
    std::memcpy(moved, kLeaf, sizeof(kLeaf));
    teller.Moved(pages + 2 * kPage, moved, sizeof(kLeaf), 4);
    RunGenerated(outer, moved, ms);
  }
  workload::JsonLine json;
  json.Add("pid", static_cast<uint64_t>(getpid()));
  workload::PrintLine(json.Finish());
  return 0;
}

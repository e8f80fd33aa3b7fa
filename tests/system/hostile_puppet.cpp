// What record_hostile_target_test.py records: a program that does to the recorder what it can.
//   hostile_puppet cut LIBRARY        works in it, leaves a child that cuts and grows the file
//   hostile_puppet replace LIBRARY TARGET
//                                     works in it while its path is a link to TARGET; "fifo": a
//                                     pipe
//   hostile_puppet grow LIBRARY       works in it while the file says to have 1 TB
//   hostile_puppet names              gives itself and its code names that steer terminals
//   hostile_puppet code KIND [PATH]   runs code of its own whose /tmp/perf-PID.map is a "link" to
//                                     PATH, a "fifo", of the user PATH ("user"), of "many" names,
//                                     after a "hole", or good ("file")
//   hostile_puppet wire KIND          is an injected library that lies: "garbage", "flood", "many",
//                                     "twins", or 17: "crowd"
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cupti_inject/handshake.h"
#include "cupti_inject/ring_producer.h"
#include "cupti_inject/wire_stacks.h"

namespace {

using namespace xpu;

constexpr double kSeconds = 0.5;

double Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

[[noreturn]] void Fail(const char* what) {
  std::perror(what);
  std::exit(9);
}

using Work = int (*)(const int* values, int count);

Work LoadWork(const char* library) {
  void* handle = ::dlopen(library, RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    std::exit(9);
  }
  return reinterpret_cast<Work>(::dlsym(handle, "Work"));
}

void RunWork(Work work) {
  const std::vector<int> values(100'000, 3);
  int sum = 0;
  for (const double end = Now() + kSeconds; Now() < end;) {
    sum += work(values.data(), static_cast<int>(values.size()));
  }
  if (sum == 42) std::puts("42");
}

// Until it is killed. The start of the file is restored each time, so that it looks complete.
void CutForEver(const char* library) {
  const int fd = ::open(library, O_RDWR | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) Fail(library);
  std::vector<char> begin(65536);
  const ssize_t bytes = ::pread(fd, begin.data(), begin.size(), 0);
  const double end = Now() + 30;  // should nobody do so
  while (Now() < end) {
    if (::ftruncate(fd, 4096) != 0 || ::ftruncate(fd, info.st_size) != 0) Fail("ftruncate");
    if (::pwrite(fd, begin.data(), static_cast<size_t>(bytes), 0) != bytes) Fail("pwrite");
    ::usleep(200);
  }
}

int Cut(const char* library) {
  RunWork(LoadWork(library));
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();
    ::close(STDOUT_FILENO);
    ::close(STDERR_FILENO);
    CutForEver(library);
    ::_exit(0);
  }
  std::printf("%d\n", child);
  return 0;
}

int Replace(const char* library, const char* target) {
  const Work work = LoadWork(library);
  if (::unlink(library) != 0) Fail("unlink");
  const bool is_pipe = std::string_view(target) == "fifo";
  if ((is_pipe ? ::mkfifo(library, 0600) : ::symlink(target, library)) != 0) Fail(library);
  RunWork(work);
  return 0;
}

int Grow(const char* library) {
  const Work work = LoadWork(library);
  if (::truncate(library, off_t{1} << 40) != 0) Fail("truncate");
  RunWork(work);
  return 0;
}

// A loop, and back.
using Code = void (*)();
Code MakeCode() {
  constexpr unsigned char kCode[] = {0xb9, 0x00, 0x00, 0x10, 0x00,  // mov ecx, 1 << 20
                                     0xff, 0xc9,                    // dec ecx
                                     0x75, 0xfc,                    // jnz to it
                                     0xc3};                         // ret
  void* memory =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Fail("mmap");
  std::memcpy(memory, kCode, sizeof(kCode));
  return reinterpret_cast<Code>(memory);
}

void WriteMap(const std::string& path, Code code, const char* name) {
  FILE* map = std::fopen(path.c_str(), "we");
  if (map == nullptr) Fail(path.c_str());
  std::fprintf(map, "%lx 1000 %s\n", reinterpret_cast<unsigned long>(code), name);
  std::fclose(map);
}

void RunCode(Code code) {
  for (const double end = Now() + kSeconds; Now() < end;) code();
}

// Names of one kilobyte, all different, for the one function.
void WriteManyNames(const std::string& map, Code code) {
  WriteMap(map, code, "own_function");
  FILE* file = std::fopen(map.c_str(), "ae");
  if (file == nullptr) Fail("fopen");
  std::string name(1000, 'n');
  uint64_t random = 1;
  for (int i = 0; i < 40'000; ++i) {
    for (char& letter : name) {
      random = random * 6364136223846793005 + 1442695040888963407;
      letter = static_cast<char>('!' + (random >> 33) % 90);
    }
    std::fprintf(file, "%lx 1000 %s\n", reinterpret_cast<unsigned long>(code), name.c_str());
  }
  std::fclose(file);
}

// The name lies beyond a hole of a terabyte.
void WriteBeyondHole(const std::string& map, Code code) {
  const std::string plain = map + ".plain";
  WriteMap(plain, code, "own_function");
  char text[256];
  const int from = ::open(plain.c_str(), O_RDONLY | O_CLOEXEC);
  const int to = ::open(map.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const ssize_t n = ::read(from, text, sizeof(text));
  if (n <= 0 || ::pwrite(to, text, static_cast<size_t>(n), off_t{1} << 40) != n) Fail("pwrite");
  ::close(from);
  ::close(to);
  ::unlink(plain.c_str());
}

int RunOwnCode(const std::string& kind, const char* path) {
  const Code code = MakeCode();
  const std::string map = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  if (kind == "fifo") {
    if (::mkfifo(map.c_str(), 0600) != 0) Fail("mkfifo");
  } else if (kind == "link") {
    WriteMap(path, code, "secret_function");
    if (::symlink(path, map.c_str()) != 0) Fail("symlink");
  } else if (kind == "many") {
    WriteManyNames(map, code);
  } else if (kind == "hole") {
    WriteBeyondHole(map, code);
  } else {
    WriteMap(map, code, "own_function");
    if (kind == "user" && ::chown(map.c_str(), static_cast<uid_t>(std::atoi(path)), 0) != 0) {
      Fail("chown");
    }
  }
  RunCode(code);
  std::printf("%s\n", map.c_str());
  return 0;
}

int HaveNames() {
  ::prctl(PR_SET_NAME, "\x1b[2Jred\x07");
  const Code code = MakeCode();
  const std::string map = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
  WriteMap(map, code,
           "\x1b]0;title\x07\xc2\x9b"
           "2Jname");
  RunCode(code);
  std::printf("%s\n", map.c_str());
  return 0;
}

inject::MappedRing Connect(uint64_t instance) {
  inject::ConnectionString connection{};
  inject::MappedRing ring;
  if (!inject::ParseConnectionString(std::getenv(wire::kEnvironmentVariable), &connection))
    Fail("invited");
  if (!inject::Connect(connection, instance, 5'000'000'000, &ring)) ring.header = nullptr;
  return ring;
}

// Messages that promise more than they hold, then a ring that is none.
void SendGarbage() {
  const inject::MappedRing ring = Connect(1);
  inject::RingProducer producer;
  producer.Attach(ring.header, ring.capacity_bytes);
  producer.SetState(wire::State::kActive);
  for (uint32_t kind = 0; kind < 40; ++kind) {
    wire::ActivityMessage message{};
    std::memset(reinterpret_cast<char*>(&message) + sizeof(wire::MessageHeader), 0xff,
                sizeof(message) - sizeof(wire::MessageHeader));
    producer.Send(static_cast<wire::MessageKind>(kind), message);
  }
  ring.header->other_code_count = UINT32_MAX;
  for (auto& counter : ring.header->counters) counter[0] = UINT64_MAX;
  ::usleep(300'000);
  ring.header->capacity_bytes = UINT64_MAX;
  ring.header->tail = 12345;
  ring.header->head.fetch_add((uint64_t{1} << 63) + 1);
  ::usleep(100'000);
}

// What costs the recorder memory, as fast as it is taken: stacks without frames, threads, files.
void Flood() {
  const inject::MappedRing ring = Connect(1);
  inject::RingProducer producer;
  producer.Attach(ring.header, ring.capacity_bytes);
  producer.SetState(wire::State::kActive);
  uint32_t number = 0;
  for (const double end = Now() + 2; Now() < end;) {
    ++number;
    wire::StackMessage stack{{}, number % wire::kFirstSingleStack, 0, 0, 0};
    producer.Send(wire::MessageKind::kStack, stack);
    wire::LaunchMessage launch{{},
                               {1, number, 1u << wire::kDomainShift | 307, number, 0, 0, 0},
                               number % wire::kFirstSingleStack,
                               0};
    producer.Send(wire::MessageKind::kLaunch, launch);
    wire::CallbackNameMessage name{{}, 1, number, 14, 0};
    producer.Send(wire::MessageKind::kCallbackName, name, "cuLaunchKernel", 14);
    wire::CodeFileMessage file{};
    file.file = number % wire::kMaxCodeFiles;
    file.start_address = uint64_t{number} << 16;
    file.end_address = file.start_address + 4096;
    producer.Send(wire::MessageKind::kCodeFile, file);
  }
}

void ConnectMany() {
  int welcome = 0;
  for (uint64_t i = 1; i <= 100; ++i) welcome += Connect(i).header != nullptr ? 1 : 0;
  std::printf("%d\n", welcome);
}

// A child that says to be its parent.
void BeTwins() {
  const bool first = Connect(7).header != nullptr;
  std::fflush(stdout);
  const pid_t child = ::fork();
  const bool again = Connect(7).header != nullptr;
  if (child == 0) ::_exit(again ? 1 : 0);
  std::printf("%d %d\n", first, again);
}

// Waits for room, as a library never does.
template <typename Message>
void SendSurely(inject::RingProducer& producer, wire::MessageKind kind, const Message& message,
                const void* payload = nullptr, size_t payload_bytes = 0) {
  while (!producer.Send(kind, message, payload, payload_bytes)) ::usleep(200);
}

void SendStack(inject::RingProducer& producer, uint32_t number, uint32_t frame_count) {
  uint64_t frames[wire::kMaxFrames];
  for (uint32_t i = 0; i < frame_count; ++i) frames[i] = uint64_t{number} << 16 | i;
  wire::StackMessage stack{{}, number, frame_count, 0, 0};
  SendSurely(producer, wire::MessageKind::kStack, stack, frames, frame_count * sizeof(uint64_t));
}

// Everything with a text or a length that a process may send, each time another one.
void FillMemory(uint64_t instance) {
  const inject::MappedRing ring = Connect(instance);
  if (ring.header == nullptr) Fail("no ring");
  inject::RingProducer producer;
  producer.Attach(ring.header, ring.capacity_bytes);
  producer.SetState(wire::State::kActive);
  std::string text(30'000, 'x');
  const auto bytes = static_cast<uint32_t>(text.size());
  for (uint32_t number = 1; number <= 4000; ++number) {
    std::memcpy(text.data(), &number, sizeof(number));
    std::memcpy(text.data() + sizeof(number), &instance, sizeof(instance));
    wire::NameMessage name{};
    name.name_id = number;
    name.text_bytes = bytes;
    SendSurely(producer, wire::MessageKind::kName, name, text.data(), bytes);
    SendStack(producer, number, wire::kMaxFrames);
    if (number % 40 != 0) continue;  // those are written too
    wire::CallbackNameMessage callback{};
    callback.domain = 1;
    callback.callback_id = number;
    callback.text_bytes = bytes;
    SendSurely(producer, wire::MessageKind::kCallbackName, callback, text.data(), bytes);
    wire::NvtxMessage range{};
    range.kind = wire::NvtxKind::kPush;
    range.tid = 1;
    range.text_bytes = bytes;
    SendSurely(producer, wire::MessageKind::kNvtx, range, text.data(), bytes);
  }
  while (producer.IsHalfFull()) ::usleep(1000);
}

// 16 processes that fill the recorder's memory, and keep it filled, while one launches 100 kernels.
void BeCrowd() {
  int done[2];
  int end[2];
  if (::pipe(done) != 0 || ::pipe(end) != 0) Fail("pipe");
  for (uint64_t instance = 1; instance <= 16; ++instance) {
    if (::fork() != 0) continue;
    ::close(end[1]);
    FillMemory(instance);
    char byte = 0;
    if (::write(done[1], &byte, 1) != 1) Fail("write");
    std::exit(::read(end[0], &byte, 1) == 0 ? 0 : 1);  // until the parent ends
  }
  for (int i = 0; i < 16; ++i) {
    char byte = 0;
    if (::read(done[0], &byte, 1) != 1) Fail("read");
  }
  const inject::MappedRing ring = Connect(100);
  inject::RingProducer producer;
  producer.Attach(ring.header, ring.capacity_bytes);
  producer.SetState(wire::State::kActive);
  for (uint32_t number = 1; number <= 100; ++number) {
    SendStack(producer, number, 100);
    const auto tid = static_cast<uint32_t>(::getpid());
    const wire::LaunchMessage launch{
        {}, {1, number, 1u << wire::kDomainShift | 307, tid, 0, 0, 0}, number, 0};
    SendSurely(producer, wire::MessageKind::kLaunch, launch);
  }
}

int LieOnTheWire(const std::string& kind) {
  if (kind == "garbage") SendGarbage();
  if (kind == "flood") Flood();
  if (kind == "many") ConnectMany();
  if (kind == "twins") BeTwins();
  if (kind == "crowd") BeCrowd();
  return 3;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "cut" && argc == 3) return Cut(argv[2]);
  if (mode == "replace" && argc == 4) return Replace(argv[2], argv[3]);
  if (mode == "grow" && argc == 3) return Grow(argv[2]);
  if (mode == "names") return HaveNames();
  if (mode == "code" && argc >= 3) return RunOwnCode(argv[2], argc > 3 ? argv[3] : "");
  if (mode == "wire" && argc == 3) return LieOnTheWire(argv[2]);
  std::fprintf(stderr, "usage: at the top of hostile_puppet.cpp\n");
  return 2;
}

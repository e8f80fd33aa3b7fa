// Writes a capture of CPU samples of a program, as xpu-record would, from its file alone: what
// names, lines and inlined functions of a large program cost a report.
//
//     make_samples CAPTURE PROGRAM [SAMPLES [ADDRESSES [STACKS]]]
//
// By default a million samples of 40,000 stacks of 20 frames over 7,000 addresses, the shape of a
// recording of PyTorch; the addresses are anywhere in the program's functions, so more of its units
// are hit than by a real recording. Stacks are the same in their outer half.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>

#include "format/base/check.h"
#include "format/base/handle.h"
#include "format/base/text.h"
#include "format/writer.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {
namespace {

struct Sizes {
  uint64_t samples = 1'000'000;
  uint64_t addresses = 7'000;
  uint64_t stacks = 40'000;
};

constexpr uint32_t kPid = 4711;
constexpr uint32_t kThreads = 16;
constexpr size_t kFrames = 20;
constexpr uint64_t kBase = 0x555500000000;
constexpr uint64_t kStartNs = 86'400'000'000'000;

std::vector<uint64_t> ChooseAddresses(const ElfImage& image, uint64_t count,
                                      std::mt19937_64& random) {
  const std::vector<ElfSymbol> functions = image.CodeSymbols();
  XPU_CHECK(!functions.empty());
  std::vector<uint64_t> addresses;
  while (addresses.size() < count) {
    const ElfSymbol& function = functions[random() % functions.size()];
    addresses.push_back(kBase + function.link_address +
                        random() % std::max<uint64_t>(function.size_bytes, 1));
  }
  return addresses;
}

Status WriteProgram(CaptureWriter& writer, const ElfImage& image, const std::string& path) {
  XPU_RETURN_IF_ERROR(writer.Write(RecordingInfo{.start_ns = kStartNs,
                                                 .cpu_count = kThreads,
                                                 .recorder_version = writer.InternString("bench"),
                                                 .host_name = {},
                                                 .kernel_release = {},
                                                 .machine = {},
                                                 .command_line = writer.InternString(path),
                                                 .settings = {},
                                                 .working_directory = {},
                                                 .boot_id = {}}));
  XPU_RETURN_IF_ERROR(writer.Write(SampleSource{.source = 1,
                                                .name = writer.InternString("cpu-clock"),
                                                .frequency_hz = 1000,
                                                .period = 1'000'000,
                                                .unit = writer.InternString("ns")}));
  for (uint32_t i = 0; i < kThreads; ++i) {
    XPU_RETURN_IF_ERROR(writer.Write(ProcessEvent{.time_ns = kStartNs,
                                                  .kind = ProcessEventKind::kExisting,
                                                  .pid = kPid,
                                                  .tid = kPid + i,
                                                  .name = writer.InternString("program")}));
  }
  for (const ElfSegment& segment : image.segments()) {
    if (!segment.executable) continue;
    const uint64_t before = segment.link_address % 4096;
    XPU_RETURN_IF_ERROR(writer.Write(Mapping{.time_ns = kStartNs,
                                             .pid = kPid,
                                             .tid = kPid,
                                             .start_address = kBase + segment.link_address - before,
                                             .size_bytes = segment.memory_bytes + before,
                                             .file_offset = segment.file_offset - before,
                                             .protection = PROT_READ | PROT_EXEC,
                                             .flags = MAP_PRIVATE,
                                             .path = writer.InternString(path),
                                             .build_id = writer.InternString(image.build_id())}));
  }
  return Ok();
}

Status WriteSamples(CaptureWriter& writer, const std::vector<uint64_t>& addresses, Sizes sizes,
                    std::mt19937_64& random) {
  std::vector<std::vector<Frame>> stacks(sizes.stacks);
  for (std::vector<Frame>& stack : stacks) {
    for (size_t i = 0; i < kFrames; ++i) {
      const uint64_t which = i < kFrames / 2 ? random() : i;
      stack.push_back({FrameKind::kUser, addresses[which % addresses.size()]});
    }
  }
  uint64_t now_ns = kStartNs;
  for (uint64_t i = 0; i < sizes.samples; ++i) {
    now_ns += 60'000 + random() % 5'000;
    XPU_RETURN_IF_ERROR(
        writer.Write(CpuSample{.time_ns = now_ns,
                               .source = 1,
                               .pid = kPid,
                               .tid = kPid + static_cast<uint32_t>(random() % kThreads),
                               .stack = writer.InternStack(stacks[random() % stacks.size()]),
                               .python_stack = {}}));
  }
  return writer.Write(RecordingEnd{.time_ns = now_ns});
}

Status Run(const std::string& capture, const std::string& program, Sizes sizes) {
  XPU_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::Open(program));
  UniqueFd fd(::open(capture.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd) return SystemError(Format("{}: cannot write", capture), errno);
  XPU_ASSIGN_OR_RETURN(CaptureWriter writer, CaptureWriter::Create(std::move(fd), capture));
  std::mt19937_64 random{1};
  const std::vector<uint64_t> addresses = ChooseAddresses(file.image(), sizes.addresses, random);
  XPU_RETURN_IF_ERROR(WriteProgram(writer, file.image(), program));
  XPU_RETURN_IF_ERROR(WriteSamples(writer, addresses, sizes, random));
  return writer.Close();
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (argc < 3 || argc > 6) return 2;
  xpu::Sizes sizes;
  if (argc > 3) sizes.samples = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) sizes.addresses = std::strtoull(argv[4], nullptr, 10);
  if (argc > 5) sizes.stacks = std::strtoull(argv[5], nullptr, 10);
  const xpu::Status status = xpu::Run(argv[1], argv[2], sizes);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return 1;
}

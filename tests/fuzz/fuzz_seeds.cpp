// fuzz_seeds DIR TESTS LIBRARY [DEBUG...]: writes DIR/TARGET/*, what the fuzz targets begin
// from: made here, taken from the real captures in TESTS/captures, the ELF file LIBRARY, and for
// fuzz_dwarf other files with debug information; of an object file that with its split DWARF.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/block.h"
#include "format/events.h"
#include "format/writer.h"
#include "symbolize/unwind/unwind_builder.h"
#include "tests/fuzz/wire_seeds.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;

// Larger ones are run less often.
constexpr size_t kMaxMessageBytes = size_t{64} << 10;
constexpr size_t kMaxReportBytes = size_t{40} << 10;
constexpr uintmax_t kMaxCaptureBytes = 16u << 10;

// Numbers that differ by field and row, texts and stacks that share a part.
template <typename Event>
Event Row(uint64_t row, CaptureWriter& writer) {
  Event event;
  uint64_t place = 0;
  VisitFields(event, [&]<typename T>(const char* name, T& field) {
    ++place;
    if constexpr (std::is_same_v<T, StringId>) {
      field = writer.InternString(name + std::to_string(row % 3));
    } else if constexpr (std::is_same_v<T, StackId>) {
      const Frame frames[] = {{FrameKind::kKernel, row}, {FrameKind::kUser, place}};
      field = writer.InternStack(frames);
    } else if constexpr (std::is_same_v<T, InstanceId>) {
      field = InstanceId{row % 2 + 1};
    } else {
      field = static_cast<T>(row * place * 1000 % 251);
    }
  });
  return event;
}

void WriteCapture(const fs::path& path, uint64_t rows, uint64_t flush_every) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  auto writer = CaptureWriter::Create(std::move(fd), path.string());
  XPU_CHECK(writer.ok());
  for (uint64_t row = 0; row < rows; ++row) {
    EventBatch kinds;
    VisitLists(kinds, [&]<typename Event>(const char*, std::vector<Event>&) {
      XPU_CHECK(writer->Write(Row<Event>(row, *writer)).ok());
    });
    if (row % flush_every == flush_every - 1) XPU_CHECK(writer->Flush().ok());
  }
  XPU_CHECK(writer->Close().ok());
}

void WriteBytes(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void Append(std::string& bytes, uint32_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// The messages of a capture: each as a file, and together as what fuzz_report reads.
void WriteMessages(const fs::path& capture, const fs::path& directory) {
  auto file = FileBytes::Open(capture.string());
  XPU_CHECK(file.ok());
  const auto bytes = file->bytes();
  const std::string capture_name = capture.filename().string();
  std::string together(3, '\0');
  BlockDecoder decoder;
  for (size_t at = FindBlockMagic(bytes, 0); at < bytes.size();
       at = FindBlockMagic(bytes, at + 1)) {
    const auto header = ParseBlockHeader(bytes.subspan(at));
    if (!header) continue;
    const auto message =
        decoder.Decode(*header, bytes.subspan(at + kBlockHeaderBytes, header->stored_bytes));
    XPU_CHECK(message.has_value());
    const std::string_view text(reinterpret_cast<const char*>(message->data()), message->size());
    if (text.size() > kMaxMessageBytes) continue;
    WriteBytes(directory / "message" / (capture_name + "." + std::to_string(header->sequence)),
               text);
    Append(together, static_cast<uint32_t>(text.size()));
    together += text;
  }
  if (together.size() > kMaxReportBytes) return;
  // Two ways to look at each.
  for (const char choice : {'\0', '\x5b'}) {
    std::fill_n(together.begin(), 3, choice);
    WriteBytes(directory / "report" / (capture_name + (choice == 0 ? "" : ".other")), together);
  }
}

void WriteMade(const fs::path& directory) {
  fs::create_directories(directory / "capture");
  const struct {
    const char* name;
    uint64_t rows;
    uint64_t flush_every;
  } kSeeds[] = {{"empty", 0, 1}, {"one", 1, 1}, {"two_blocks", 4, 2}, {"rows", 30, 30}};
  for (const auto& seed : kSeeds) {
    const fs::path path = directory / "capture" / seed.name;
    WriteCapture(path, seed.rows, seed.flush_every);
    WriteMessages(path, directory);
  }
}

void CopyCaptures(const fs::path& directory, const fs::path& captures) {
  for (const auto& entry : fs::directory_iterator(captures)) {
    if (entry.path().extension() != ".xpu") continue;
    WriteMessages(entry.path(), directory);
    if (entry.file_size() > kMaxCaptureBytes) continue;
    fs::copy_file(entry.path(), directory / "capture" / entry.path().filename(),
                  fs::copy_options::overwrite_existing);
  }
  for (const auto& entry : fs::directory_iterator(captures / "import")) {
    WriteBytes(directory / "import" / entry.path().filename(), ReadFile(entry.path()).value());
  }
}

// fuzz_process_files: each kind with its number before it.
void WriteProcessFiles(const fs::path& directory) {
  constexpr std::string_view kMaps =
      "55d0a0000000-55d0a0001000 r-xp 00001000 fe:01 4711                       /usr/bin/a b\n"
      "7f0000000000-7f0000001000 rwxs 00000000 00:00 0\n"
      "7ffc12345000-7ffc12347000 r-xp 00000000 00:00 0                          [vdso]\n";
  std::string dump = "\1";
  for (const uint32_t word : {0x4A695444u, 1u, 40u, 62u, 0u, 7u, 0u, 0u, 0u, 0u})
    Append(dump, word);
  for (const uint32_t kind : {0u, 1u}) {  // a function, and where it moved to
    Append(dump, kind);
    Append(dump, kind == 0 ? 16 + 40 + 4 : 16 + 48);
    for (const uint32_t word : {1u, 0u, 7u, 7u, 0u, 0u, 49u, 0u, 100u, 0u, 100u, 0u}) {
      Append(dump, word);
    }
    if (kind == 0) dump += "abc";
    if (kind == 0) dump += '\0';
  }
  WriteBytes(directory / "perf_map",
             std::string(1, '\0') + "1c0 40 one\n0x700 100 two three\nbad\n");
  WriteBytes(directory / "jitdump", dump);
  WriteBytes(directory / "maps", "\2" + std::string(kMaps));
  WriteBytes(directory / "stat",
             "\3"
             "7 (a) b) S 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 0\n");
  std::string cache = "\4glibc-ld.so.cache1.1";
  for (const uint32_t word : {1u, 20u, 0u, 0u, 0u, 0u, 0u}) Append(cache, word);
  for (const uint32_t word : {0x0303u, 72u, 83u, 0u, 0u, 0u}) Append(cache, word);
  cache += "libcuda.so" + std::string(1, '\0') + "/lib/libcuda.so" + std::string(1, '\0');
  WriteBytes(directory / "loader_cache", cache);
}

void WritePython(const fs::path& directory, const std::string& library) {
  WriteBytes(directory / "lines", std::string("\0\x80\x01\xf1\x02\x00\x81\xd9\x04\xe8\x02", 11));
  WriteBytes(directory / "text", "\1main.py\xff");
  WriteBytes(directory / "frames", "\2" + std::string(48, '\7') + std::string(16, '\0'));
  WriteBytes(directory / "interpreter", "\3" + library);
}

// A table with one page and one rule, in a right file and alone.
void WriteTables(const fs::path& directory, const std::string& library) {
  auto image = ElfImage::Parse(std::as_bytes(std::span(library)), "library");
  XPU_CHECK(image.ok());
  auto table = BuildUnwindTable(image.value());
  XPU_CHECK(table.ok());
  const auto bytes = table->bytes();
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  WriteBytes(directory / "table", std::string(1, '\0') + text);
  WriteBytes(directory / "file", std::string("\1XPUC\1\0\0\0", 9) + text);
}

void WriteElfFiles(const fs::path& directory, const std::string& library) {
  for (const char* target : {"unwind", "symbols", "dwarf"}) {
    WriteBytes(directory / target / "library", library);
  }
  auto image = ElfImage::Parse(std::as_bytes(std::span(library)), "library");
  XPU_CHECK(image.ok());
  const auto frames = image->Section(".eh_frame").bytes;
  WriteBytes(directory / "unwind" / "eh_frame",
             {reinterpret_cast<const char*>(frames.data()), frames.size()});
}

void WriteDebugFiles(const fs::path& directory, std::span<char* const> files) {
  for (fs::path path : files) {
    if (path.extension() == ".o") path.replace_extension(".dwo");
    WriteBytes(directory / path.filename(), ReadFile(path.string()).value());
  }
}

void WriteNames(const fs::path& directory) {
  for (const char* name :
       {"_ZN3foo3barIiSt6vectorIdSaIdEEEEvT_T0_",
        "_RNvMs0_NtCs5l0EXMQXRMU_8xpu_test4nameNtB5_3Foo3bar",
        "_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "_ZNK1AcvT_I1BEEv", "_ZN1AcvT_IT_IiEEEv",
        "_Z1fDpFv4pairI1AS0_ES_IS1_S1_ES_IS2_S2_ES_IS3_S3_EE",
        "_ZZ1fIiEvRT_ENKUlDpT_E_clIJiEEEDaS3_", "_RNvMINvC1a3genFGzz_TlhEEuEl3foo",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)"}) {
    WriteBytes(directory / std::to_string(std::hash<std::string_view>{}(name) % 1000), name);
  }
}

void WriteSeeds(const fs::path& directory, const fs::path& tests, const std::string& library) {
  WriteMade(directory);
  CopyCaptures(directory, tests / "captures");
  WriteBytes(directory / "cubin" / "inlines",
             ReadFile((tests / "captures" / "cubins" / "inlines.cubin").string()).value());
  for (const auto& [name, bytes] : fuzz::WireSeeds()) WriteBytes(directory / "wire" / name, bytes);
  WriteProcessFiles(directory / "process_files");
  WritePython(directory / "python", library);
  WriteTables(directory / "unwind_cache", library);
  WriteElfFiles(directory, library);
  WriteNames(directory / "names");
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: fuzz_seeds DIR TESTS LIBRARY [DEBUG...]\n");
    return 2;
  }
  xpu::WriteSeeds(argv[1], argv[2], xpu::ReadFile(argv[3]).value());
  const std::span<char* const> debug_files(argv + 4, static_cast<size_t>(argc - 4));
  xpu::WriteDebugFiles(std::filesystem::path(argv[1]) / "dwarf", debug_files);
  return 0;
}

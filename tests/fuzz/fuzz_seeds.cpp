// fuzz_seeds FOLDER: writes FOLDER/capture/* and FOLDER/message/*, what the fuzz targets begin
// from.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>

#include "format/base/check.h"
#include "format/base/file.h"
#include "format/block.h"
#include "format/fields.h"
#include "format/writer.h"

namespace xpu {
namespace {

namespace fs = std::filesystem;

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

// The messages of a capture, each as a file.
void WriteMessages(const fs::path& capture, const fs::path& folder) {
  auto file = FileBytes::Open(capture.string());
  XPU_CHECK(file.ok());
  const auto bytes = file->bytes();
  BlockDecoder decoder;
  for (size_t at = FindBlockMagic(bytes, 0); at < bytes.size();
       at = FindBlockMagic(bytes, at + 1)) {
    const auto header = ParseBlockHeader(bytes.subspan(at));
    if (!header) continue;
    const auto message =
        decoder.Decode(*header, bytes.subspan(at + kBlockHeaderBytes, header->stored_bytes));
    XPU_CHECK(message.has_value());
    const std::string name = capture.filename().string() + "." + std::to_string(header->sequence);
    std::ofstream(folder / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(message->data()),
               static_cast<std::streamsize>(message->size()));
  }
}

void WriteSeeds(const fs::path& folder) {
  fs::create_directories(folder / "capture");
  fs::create_directories(folder / "message");
  const struct {
    const char* name;
    uint64_t rows;
    uint64_t flush_every;
  } kSeeds[] = {{"empty", 0, 1}, {"one", 1, 1}, {"two_blocks", 4, 2}, {"rows", 30, 30}};
  for (const auto& seed : kSeeds) {
    const fs::path path = folder / "capture" / seed.name;
    WriteCapture(path, seed.rows, seed.flush_every);
    WriteMessages(path, folder / "message");
  }
}

}  // namespace
}  // namespace xpu

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  xpu::WriteSeeds(argv[1]);
  return 0;
}

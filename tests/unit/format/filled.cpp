#include "filled.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/base/check.h"

namespace xpu::test {

uint64_t NumberOf(std::string_view field, uint32_t row) {
  uint64_t hash = row + 1;
  for (char c : field) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash * 0x9e3779b97f4a7c15;
}

std::string TextOf(std::string_view field, uint32_t row) {
  // Not only ASCII: build-ids and record tails are bytes.
  return Format("{}#{}\xff", field, row);
}

std::vector<Frame> FramesOf(uint32_t row) {
  std::vector<Frame> frames;
  for (uint32_t depth = 1; depth <= 2 + row % 5; ++depth) {
    const bool kernel = depth == 1 && row % 2 == 0;
    const uint64_t address = NumberOf("address", row / depth) >> 17;
    frames.push_back({kernel ? FrameKind::kKernel : FrameKind::kUser,
                      kernel ? address | 0xffff800000000000 : address});
  }
  return frames;
}

std::string FramesText(std::span<const Frame> frames) {
  std::string text;
  for (const Frame& frame : frames) {
    AppendFormat(text, "{}{:x};", frame.kind == FrameKind::kKernel ? "k" : "u", frame.address);
  }
  return text;
}

std::string StackText(const CaptureReader& reader, StackId id) {
  std::string text = FramesText(reader.Stack(id));
  while (id && !reader.IsLost(id)) id = reader.Node(id).caller;
  return id ? text + "[lost]" : text;
}

MemoryFile::MemoryFile() : fd_(::memfd_create("capture", MFD_CLOEXEC)) { XPU_CHECK(fd_); }

UniqueFd MemoryFile::Writer() const { return UniqueFd(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0)); }

std::vector<std::byte> MemoryFile::Bytes() const {
  const off_t size = ::lseek(fd_.get(), 0, SEEK_END);
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  XPU_CHECK(::pread(fd_.get(), bytes.data(), bytes.size(), 0) == size);
  return bytes;
}

void WriteRows(CaptureWriter& writer, uint32_t begin, uint32_t end) {
  for (uint32_t row = begin; row < end; ++row) {
    EventBatch kinds;
    VisitLists(kinds, [&]<typename Event>(const char*, std::vector<Event>&) {
      XPU_CHECK(writer.Write(Filled<Event>(row, writer)).ok());
    });
  }
}

std::vector<std::string> ExpectedRows(uint32_t begin, uint32_t end) {
  std::vector<std::string> lines;
  EventBatch kinds;
  VisitLists(kinds, [&]<typename Event>(const char* name, std::vector<Event>&) {
    for (uint32_t row = begin; row < end; ++row) lines.push_back(ExpectedLine<Event>(name, row));
  });
  return lines;
}

FilledFile FilledCapture(uint32_t blocks, uint32_t rows) {
  const MemoryFile file;
  auto writer = CaptureWriter::Create(file.Writer(), "test");
  XPU_CHECK(writer.ok());
  FilledFile filled;
  filled.ends.push_back(writer->bytes_written());
  for (uint32_t block = 0; block < blocks; ++block) {
    WriteRows(*writer, block * rows, (block + 1) * rows);
    XPU_CHECK(writer->Flush().ok());
    filled.ends.push_back(writer->bytes_written());
  }
  XPU_CHECK(writer->Close().ok());
  filled.bytes = file.Bytes();
  return filled;
}

CaptureReader MustRead(std::span<const std::byte> bytes) {
  auto reader = CaptureReader::FromBytes(bytes, "test");
  if (!reader.ok()) ADD_FAILURE() << reader.error().ToString();
  return std::move(reader).value();
}

ReadBack ReadLines(std::span<const std::byte> bytes) {
  CaptureReader reader = MustRead(bytes);
  return ReadLines(reader);
}

ReadBack ReadLines(CaptureReader& reader) {
  ReadBack back;
  while (const auto batch = reader.Next()) {
    auto& lines = back.blocks.emplace_back();
    VisitLists(*batch, [&](const char* name, const auto& list) {
      for (const auto& event : list) lines.push_back(LineOf(name, event, reader));
    });
  }
  back.problems = reader.problems();
  return back;
}

}  // namespace xpu::test

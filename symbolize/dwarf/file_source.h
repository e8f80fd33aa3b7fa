// The answers of one file, by libdw in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "symbolize/dwarf/code_index.h"
#include "symbolize/dwarf/debug_source.h"
#include "symbolize/dwarf/device_lines.h"
#include "symbolize/dwarf/dwarf_file.h"

namespace xpu::dwarf {

class FileSource final : public DebugSource {
 public:
  FileSource(std::unique_ptr<DwarfFile> file, std::unique_ptr<DwarfFile> alternate)
      : file_(std::move(file)),
        alternate_(std::move(alternate)),
        index_(*file_, *alternate_),
        device_lines_(*file_) {}

  bool empty() const { return index_.empty() && device_lines_.empty(); }
  std::vector<std::vector<SourceFrame>> FramesAt(std::span<const uint64_t> addresses) override;
  std::vector<SourceFunction> FunctionsAt(std::span<const uint64_t> addresses) override;
  const std::string& failure() const override { return failure_; }

 private:
  std::vector<SourceFrame> Read(uint64_t link_address);

  // Those that die first use the ones above.
  std::unique_ptr<DwarfFile> file_;
  std::unique_ptr<DwarfFile> alternate_;
  CodeIndex index_;
  DeviceLines device_lines_;
  std::string failure_;
};

}  // namespace xpu::dwarf

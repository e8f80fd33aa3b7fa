// The code of kernels that a capture carries: machine instructions, source lines, inlined
// functions.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/model/model.h"
#include "symbolize/dwarf/debug_info.h"
#include "symbolize/elf/elf_image.h"

namespace xpu {

class GpuCode {
 public:
  // `model` must outlive this. `reading`: where the line tables are read.
  GpuCode(const Model& model, DebugReading reading);

  // A function of a module, as samples name it.
  struct Function {
    InstanceId instance;
    uint64_t cubin_crc = 0;
    std::string_view name;  // mangled
  };

  // The function's lines at these offsets, innermost first as in DebugInfo::At; the last frame is
  // the function itself, whose name is empty. An empty list: nothing is known.
  std::vector<std::vector<SourceFrame>> LinesOf(const Function& function,
                                                std::span<const uint64_t> offsets);
  // Its instructions; empty: the capture has none of it.
  std::span<const std::byte> CodeOf(const Function& function);
  // Lines that could not be read, one sentence each.
  std::vector<std::string> failures() const;

 private:
  struct Slice {
    std::vector<std::string_view> parts;
    std::string joined;  // of several parts
    std::optional<ElfImage> image;
    bool lines_tried = false;
    std::optional<DebugInfo> lines;
  };

  struct Found {
    Slice* slice = nullptr;
    uint64_t link_address = 0;
    uint64_t size_bytes = 0;
  };
  struct Code {
    std::vector<std::unique_ptr<Slice>> slices;
    size_t opened = 0;                            // so many of them, for there may be many
    std::map<std::string_view, Found> functions;  // of these; what does not parse has none
  };
  // The slice's lines; nullptr: it has none.
  DebugInfo* LinesOf(Slice& slice, uint64_t cubin_crc);
  Found Find(const Function& function);
  static void OpenNext(Code& code);

  const DebugReading reading_;
  using Module = std::pair<uint64_t, uint64_t>;  // instance, checksum
  std::map<Module, Code> modules_;
  size_t tables_ = 0;  // of lines, opened so far
  size_t failures_ = 0;
};

}  // namespace xpu

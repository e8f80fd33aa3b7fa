// GPU machine code as text, by the CUDA Toolkit's nvdisasm where it is installed. xpu has no
// disassembler of its own: NVIDIA documents no encodings.
//
// The code comes from a capture, so nvdisasm runs as nobody where xpu-report runs as root, with
// limits on time, memory and output, and reads a file that has no name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace xpu {

class Disassembler {
 public:
  // The one in $PATH, $CUDA_HOME/bin or /usr/local/cuda/bin; nullopt: there is none.
  static std::optional<Disassembler> Find();
  explicit Disassembler(std::string path) : path_(std::move(path)) {}

  // `architecture`: 90 of a compute capability of 9.0. By offset, "FFMA R2, R2, R3, R4". Empty: it
  // failed.
  std::map<uint64_t, std::string> Texts(std::span<const std::byte> code,
                                        uint32_t architecture) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What nvdisasm prints, which is "/*0010*/   MOV R1, R2 ;" in some lines.
std::map<uint64_t, std::string> ParseDisassembly(std::string_view text);

}  // namespace xpu

// Files that tests have built, read.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "format/base/result.h"
#include "symbolize/elf/elf_image.h"

namespace xpu::test {

inline ElfImage ParsedElf(const std::string& file) {
  auto image = ElfImage::Parse(std::as_bytes(std::span(file)), "file");
  XPU_CHECK(image.ok());
  return std::move(image).value();
}

}  // namespace xpu::test

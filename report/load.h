// Pass 1: the whole capture into memory, lists in the order of the file.
#pragma once

#include <string>

#include "format/base/result.h"
#include "report/model.h"

namespace xpu {

Result<Model> LoadCapture(const std::string& path);
Result<Model> LoadCapture(CaptureReader reader, std::string path);

}  // namespace xpu

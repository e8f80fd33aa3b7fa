#include "record/gpu/cupti_support.h"

#include "cupti_inject/cupti_versions.h"
#include "format/base/text.h"

namespace xpu {

std::string CudaVersionText(uint32_t cuda) {
  return Format("{}.{}", cuda / 1000, cuda % 1000 / 10);
}

std::string TestedText(uint32_t cuda, uint32_t driver) {
  switch (cupti::SupportOf(cuda)) {
    case cupti::Support::kNotSupported:
      return Format("not supported, CUDA {} is the oldest that is",
                    CudaVersionText(cupti::kOldestCuda));
    case cupti::Support::kTested:
      if (driver == cupti::kTestedDriver) return "tested on GPUs";
      if (driver != 0) {
        return Format("expected to work, tested with a driver of CUDA {}",
                      CudaVersionText(cupti::kTestedDriver));
      }
      return "tested on GPUs, with a driver of CUDA " + CudaVersionText(cupti::kTestedDriver);
    case cupti::Support::kSimulated:
      return "expected to work, tested on a simulated GPU only";
    case cupti::Support::kExpected:
      break;
  }
  return "expected to work, not tested";
}

std::string LacksText(uint32_t cuda) {
  std::string text;
  for (const cupti::Lack& lack : cupti::kLacks) {
    if (cuda < lack.since) AppendFormat(text, "{}{}", text.empty() ? "" : "; ", lack.what);
  }
  return text;
}

std::optional<std::string> OldCuptiText(uint32_t api_version, uint32_t driver) {
  const uint32_t cuda = cupti::CudaVersionOfCupti(api_version);
  const std::string lacks = cuda == 0 ? "" : LacksText(cuda);
  if (lacks.empty()) return std::nullopt;
  const std::string with =
      driver == 0 ? "" : Format(" with a driver of CUDA {}", CudaVersionText(driver));
  return Format("CUPTI of CUDA {}{} ({}): {}", CudaVersionText(cuda), with,
                TestedText(cuda, driver), lacks);
}

}  // namespace xpu

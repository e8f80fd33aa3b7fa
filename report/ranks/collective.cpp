#include "report/ranks/collective.h"

#include <algorithm>
#include <array>

#include "format/base/saturated.h"

namespace xpu {
namespace {

constexpr std::array<std::string_view, 8> kOperations = {"AllReduce", "AllGather", "ReduceScatter",
                                                         "Broadcast", "Reduce",    "AlltoAll",
                                                         "Gather",    "Scatter"};

}  // namespace

bool Collective::is_grouped() const {
  return std::any_of(parts.begin(), parts.end(),
                     [](const CollectivePart& part) { return part.is_grouped; });
}

uint64_t Collective::waited_ns() const {
  uint64_t waited = 0;
  for (const CollectivePart& part : parts) {
    if (part.has_times()) waited = AddSaturated(waited, last_arrival_ns - part.arrived_ns);
  }
  return waited;
}

std::string_view OperationOfCall(std::string_view function) {
  for (const std::string_view prefix : {"nccl", "pnccl", "rccl"}) {
    if (!function.starts_with(prefix)) continue;
    const std::string_view rest = function.substr(prefix.size());
    for (const std::string_view operation : kOperations) {
      if (rest == operation) return operation;
    }
    if (rest == "Bcast") return "Broadcast";
    if (rest == "AllToAll") return "AlltoAll";
  }
  return {};
}

bool IsNcclKernel(std::string_view kernel) {
  const size_t at = kernel.find("nccl");
  return at != std::string_view::npos && kernel.find("Kernel", at) != std::string_view::npos;
}

std::string_view OperationOfKernel(std::string_view kernel) {
  // Reduce is the beginning of ReduceScatter, and the end of AllReduce.
  for (const std::string_view operation :
       {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "AlltoAll", "SendRecv", "Reduce"}) {
    if (kernel.find(operation) != std::string_view::npos) return operation;
  }
  return "Group";
}

Bandwidth BandwidthOf(std::string_view operation, uint64_t bytes, uint32_t ranks, double ns) {
  if (bytes == 0 || ranks == 0 || ns <= 0) return {};
  const auto n = static_cast<double>(ranks);
  auto size = static_cast<double>(bytes);
  double factor = 1;
  if (operation == "AllReduce") {
    factor = 2 * (n - 1) / n;
  } else if (operation != "Broadcast" && operation != "Reduce") {
    size *= n;  // what the program passes is the share of one rank
    factor = (n - 1) / n;
  }
  return {.algorithm = size / ns, .bus = size / ns * factor};
}

}  // namespace xpu

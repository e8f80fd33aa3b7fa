// Writes a capture with very many different stacks: many_stacks FILE STACKS.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "tests/unit/report/model_builder.h"

namespace xpu::test {
namespace {

constexpr uint64_t kPeriod = 1'000'000;
constexpr uint64_t kKernelText = 0xffffffff81000000;
constexpr uint64_t kLevels = 12;
constexpr uint64_t kChoices = 3;  // functions that a level chooses from
constexpr uint64_t kFunctionBytes = 0x10;

uint64_t FunctionOf(uint64_t level, uint64_t choice) {
  return kKernelText + (level * kChoices + choice) * kFunctionBytes;
}

// A function of each level: outer frames are shared by many stacks, inner ones by few.
void AddStacks(ModelBuilder& builder, uint64_t count) {
  std::mt19937_64 random(6);
  const auto frame = [&](uint64_t level) { return FunctionOf(level, random() % kChoices) + 8; };
  for (uint64_t i = 0; i < count; ++i) {
    builder.Sample((i + 1) * kPeriod, 100, 100,
                   builder.Stack({frame(0), frame(1), frame(2), frame(3), frame(4), frame(5),
                                  frame(6), frame(7), frame(8), frame(9), frame(10), frame(11)}));
  }
}

void NameFrames(ModelBuilder& builder) {
  for (uint64_t level = 0; level < kLevels; ++level) {
    for (uint64_t i = 0; i < kChoices; ++i) {
      builder.events.kernel_symbols.push_back(
          {.address = FunctionOf(level, i),
           .size_bytes = kFunctionBytes,
           .name = builder.Text("level" + std::to_string(level) + "_" + std::to_string(i)),
           .module = {}});
    }
  }
}

}  // namespace
}  // namespace xpu::test

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  xpu::test::ModelBuilder builder;
  builder.Process(xpu::ProcessEventKind::kExisting, 1, 100, 100, "many");
  builder.Source(xpu::test::kPeriod);
  xpu::test::NameFrames(builder);
  xpu::test::AddStacks(builder, std::strtoull(argv[2], nullptr, 10));
  const xpu::Status status = builder.WriteCapture(argv[1]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.error().ToString().c_str());
  return 1;
}

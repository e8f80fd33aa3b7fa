// A switch for tests: lose every n-th event of a kind, to show that the others do not move. It is
// no option of users; what it drops is in the ledger as test_dropped.
#pragma once

#include <cstdint>
#include <string_view>

namespace xpu {

class TestDrop {
 public:
  TestDrop() = default;
  explicit TestDrop(uint64_t every) : every_(every) {}

  // XPU_TEST_DROP="stack:7", "activity:7" or "probe:7": the number for `kind`; drops nothing when
  // it is not set.
  static TestDrop FromEnvironment(std::string_view kind);
  static TestDrop Parse(std::string_view text, std::string_view kind);

  // True for every n-th call.
  bool Next() { return every_ != 0 && ++seen_ % every_ == 0; }

 private:
  uint64_t every_ = 0;
  uint64_t seen_ = 0;
};

}  // namespace xpu

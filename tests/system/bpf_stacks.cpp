// The stack that our BPF programs need at most, as kernels up to 6.12 add it up: that of a program
// and of the deepest chain of its functions, each rounded up to 32 bytes, may be 512 bytes. Later
// kernels have more, and would not tell. A line of JSON for each program.
#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <bpf/libbpf.h>
#include <cpu_sample.skel.h>
#include <launch_probe.skel.h>
#include <launch_stack.skel.h>
#include <off_cpu.skel.h>

namespace {

constexpr int kStatistics = 4;  // the verifier's log_level
constexpr size_t kLogBytes = size_t{1} << 20;

// The place of the function that an instruction calls or hands over; -1: it does neither.
int64_t Callee(const bpf_insn* instructions, size_t place) {
  const bpf_insn& instruction = instructions[place];
  const bool calls =
      instruction.code == (BPF_JMP | BPF_CALL) && instruction.src_reg == BPF_PSEUDO_CALL;
  const bool hands_over =
      instruction.code == (BPF_LD | BPF_IMM | BPF_DW) && instruction.src_reg == BPF_PSEUDO_FUNC;
  return calls || hands_over ? static_cast<int64_t>(place) + instruction.imm + 1 : -1;
}

class Functions {
 public:
  // `depths`: "stack depth 112+192+0" of the log, in the order of the functions.
  Functions(const bpf_program* program, const std::string& log)
      : instructions_(bpf_program__insns(program)), count_(bpf_program__insn_cnt(program)) {
    std::set<size_t> starts = {0};
    for (size_t place = 0; place < count_; ++place) {
      const int64_t callee = Callee(instructions_, place);
      if (callee >= 0) starts.insert(static_cast<size_t>(callee));
    }
    starts_.assign(starts.begin(), starts.end());
    const char* at = std::strstr(log.c_str(), "stack depth ");
    if (at == nullptr) return;
    at += std::strlen("stack depth");
    do {
      char* end = nullptr;
      depths_.push_back(std::strtoull(at + 1, &end, 10));
      at = end;
    } while (*at == '+');
  }

  bool are_known() const { return depths_.size() == starts_.size(); }

  // NOLINTNEXTLINE(misc-no-recursion): the verifier allows 8 frames
  uint64_t DeepestFrom(size_t function) const {
    const size_t end = function + 1 < starts_.size() ? starts_[function + 1] : count_;
    uint64_t deepest = 0;
    for (size_t place = starts_[function]; place < end; ++place) {
      const int64_t callee = Callee(instructions_, place);
      if (callee < 0) continue;
      const auto found = std::lower_bound(starts_.begin(), starts_.end(), callee);
      deepest = std::max(deepest, DeepestFrom(static_cast<size_t>(found - starts_.begin())));
    }
    return (std::max<uint64_t>(depths_[function], 1) + 31) / 32 * 32 + deepest;
  }

 private:
  const bpf_insn* instructions_;
  size_t count_;
  std::vector<size_t> starts_;
  std::vector<uint64_t> depths_;
};

// With all that can be asked for: what is left out needs no stack.
template <typename Skeleton>
bool Print(Skeleton* skeleton) {
  if (skeleton == nullptr) return false;
  skeleton->rodata->walk_by_tables = true;
  skeleton->rodata->walk_python = true;
  skeleton->rodata->may_read_map_tree = true;
  std::vector<std::pair<bpf_program*, std::string>> logs;
  bpf_program* program = nullptr;
  while ((program = bpf_object__next_program(skeleton->obj, program)) != nullptr) {
    logs.emplace_back(program, std::string(kLogBytes, '\0'));
  }
  for (auto& [logged, log] : logs) {
    bpf_program__set_log_level(logged, kStatistics);
    bpf_program__set_log_buf(logged, log.data(), log.size());
  }
  if (bpf_object__load(skeleton->obj) != 0) return false;
  for (const auto& [logged, log] : logs) {
    const Functions functions(logged, log);
    if (!functions.are_known()) return false;
    std::printf("{\"program\": \"%s\", \"bytes\": %" PRIu64 "}\n", bpf_program__name(logged),
                functions.DeepestFrom(0));
  }
  return true;
}

}  // namespace

int main() {
  const bool all = Print(cpu_sample_bpf::open()) && Print(launch_stack_bpf::open()) &&
                   Print(launch_probe_bpf::open()) && Print(off_cpu_bpf::open());
  return all ? 0 : 1;
}

#include "record/gpu/marker_timing.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_inject/wire.h"
#include "format/base/file.h"
#include "record/base/clock.h"
#include "record/gpu/inject_library.h"

namespace xpu {
namespace {

// The least of a few rounds: what disturbs a round only makes it longer.
double TimeHits(MarkerFunction marker) {
  constexpr int kRounds = 12;
  constexpr int kHits = 64;
  constexpr double kSlowNs = 3000;  // single-stepped: no need to know it exactly
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t before_ns = MonotonicNs();
    for (int hit = 0; hit < kHits; ++hit) marker(0, 0, 0, 0);
    const double hit_ns = static_cast<double>(MonotonicNs() - before_ns) / kHits;
    // Not the first round: its hits let the kernel replace the breakpoint by something faster.
    if (round == 1 || (round > 1 && hit_ns < best)) best = hit_ns;
    if (round >= 1 && best > kSlowNs) break;
  }
  return best;
}

// The nops from `offset` on and the return: the probes before it are not in the way.
MarkerFunction Behind(MarkerFunction marker, uint64_t offset) {
  return reinterpret_cast<MarkerFunction>(reinterpret_cast<uintptr_t>(marker) + offset);
}

// Where the first place (nop5) costs what the last (nop) does, it is emulated like that one, and
// the middle one (nop10) may be what this kernel optimises. Else there is nothing to gain there,
// and an offset that the kernel refuses takes it 50 ms.
bool IsWorthTiming(uint64_t offset, const std::vector<MarkerTiming>& timed) {
  if (offset != wire::kMarkerOffsets[1] || timed.size() != 2) return true;
  return timed[0].hit_ns > 0.9 * timed[1].hit_ns;
}

// Does not return: the probes are removed while the process ends, for nobody to wait for. It must
// not hold the recorder's standard output open meanwhile.
[[noreturn]] void TimeInHelper(const bpf_program* program, const MarkerPlace& place, int results) {
  static_assert(std::size(wire::kMarkerOffsets) == 3);
  constexpr uint64_t kOrder[] = {wire::kMarkerOffsets[0], wire::kMarkerOffsets[2],
                                 wire::kMarkerOffsets[1]};
  std::vector<PlacedProbes> links;
  std::vector<MarkerTiming> timed;
  for (uint64_t offset : kOrder) {
    if (!IsWorthTiming(offset, timed)) continue;
    auto link = AttachToMarker(program, place, offset, kThisProcess);
    if (!link.ok()) continue;
    timed.push_back({offset, TimeHits(Behind(place.marker.call, offset))});
    if (::write(results, &timed.back(), sizeof(MarkerTiming)) < 0) break;
    links.push_back(*std::move(link));
  }
  ::close(results);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);
  ::_exit(0);
}

}  // namespace

Result<PlacedProbes> AttachToMarker(const bpf_program* program, const MarkerPlace& place,
                                    uint64_t offset, int process) {
  const ProbePoint point{place.marker.file_offset + offset, 0};
  return PlacedProbes::Place(program, place.library, {&point, 1}, false, process);
}

Result<std::vector<MarkerTiming>> TimeMarker(const bpf_program* program, const MarkerPlace& place) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe", errno);
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  // Twice: the helper becomes a child of init, the recorder need not reap it.
  const pid_t child = ::fork();
  if (child < 0) return SystemError("fork", errno);
  if (child == 0) {
    if (::fork() == 0) TimeInHelper(program, place, write_end.get());
    ::_exit(0);
  }
  write_end.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::vector<MarkerTiming> timings;
  MarkerTiming timing;
  ssize_t n;
  while ((n = ::read(read_end.get(), &timing, sizeof(timing))) != 0) {
    if (n == static_cast<ssize_t>(sizeof(timing))) timings.push_back(timing);
    if (n < 0 && errno != EINTR) break;
  }
  return timings;
}

}  // namespace xpu

"""What a CPU sample costs in the kernel, by the depth of its stack: by unwind tables and by frame
pointers, side by side.

    kernel_walk_bench.py BUILD_DIR

As root: the kernel's own statistics of BPF programs (kernel.bpf_stats_enabled) are switched on for
the time of the run. Needs g++.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

DEPTHS = [4, 16, 64, 128, 240]
FREQUENCY = 5000
SOURCE = """
#include <cstdlib>
#include <ctime>
volatile long sink;
__attribute__((noinline)) long Leaf(time_t end) {
  while (time(nullptr) < end) for (int i = 0; i < 100000; ++i) sink = sink + i;
  return sink;
}
__attribute__((noinline)) long Deeper(int depth, time_t end) {
  long result = depth > 0 ? Deeper(depth - 1, end) : Leaf(end);
  asm volatile("" : "+r"(result));
  return result + 1;
}
int main(int, char** arguments) { return Deeper(std::atoi(arguments[1]), time(nullptr) + 4) == 0; }
"""
PERF_EVENT_PROGRAM = "7"  # BPF_PROG_TYPE_PERF_EVENT
STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


def totals(recorder):
    """Nanoseconds and runs of the recorder's program for samples, from its open descriptors."""
    found = (0, 0)
    for info in pathlib.Path(f"/proc/{recorder}/fdinfo").iterdir():
        fields = dict(line.split(":\t", 1) for line in info.read_text().splitlines()
                      if ":\t" in line)
        if fields.get("prog_type") == PERF_EVENT_PROGRAM:
            found = max(found, (int(fields["run_time_ns"]), int(fields["run_cnt"])))
    return found


def ns_per_sample(recorder, program, depth, mode, directory):
    recording = subprocess.Popen([recorder, "-q", "--cpu-only", "-F", str(FREQUENCY),
                                  f"--call-graph={mode}", "-o", f"{directory}/bench.xpu", program,
                                  str(depth)])
    time.sleep(1)
    time_before, count_before = totals(recording.pid)
    time.sleep(2)
    time_after, count_after = totals(recording.pid)
    recording.wait()
    return (time_after - time_before) / (count_after - count_before)


def main():
    recorder = f"{sys.argv[1]}/record/xpu-record"
    before = STATISTICS.read_text()
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(f"{directory}/depth.cpp").write_text(SOURCE)
        program = f"{directory}/depth"
        results = {}
        try:
            STATISTICS.write_text("1")
            for mode, flag in (("eh", "-fomit-frame-pointer"), ("fp", "-fno-omit-frame-pointer")):
                subprocess.run(["g++", "-O2", flag, f"{directory}/depth.cpp", "-o", program],
                               check=True)
                for depth in DEPTHS:
                    results[mode, depth] = ns_per_sample(recorder, program, depth, mode, directory)
        finally:
            STATISTICS.write_text(before)
    print("frames below main   tables ns   frame pointers ns   ratio")
    for depth in DEPTHS:
        tables, pointers = results["eh", depth], results["fp", depth]
        print(f"{depth:17}   {tables:9.0f}   {pointers:17.0f}   {tables / pointers:5.2f}")
    for mode in ("eh", "fp"):
        slope = (results[mode, DEPTHS[-2]] - results[mode, DEPTHS[0]]) / (DEPTHS[-2] - DEPTHS[0])
        print(f"{mode}: {slope:.1f} ns a frame")


if __name__ == "__main__":
    main()

"""What reports cost, by the number of events: seconds of CPU time and memory of xpu-report's views,
from 10^4 to 10^7 events, and how straight the line is; and the same stacks through perf.

    XPU_BUILD_DIR=build/release python3 tests/bench/report/report_bench.py [MOST_EVENTS]

CPU time, so that other load on the machine counts less; the least of three runs. Of 7 events 2 are
GPU work, 2 the calls that made it, 2 their stacks, 1 a CPU sample. perf is compared on a recording
of its own, of a program that is sampled by both at once: needs root and `perf`, else it is left
out.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(os.environ.get("XPU_BUILD_DIR", "build/release")).resolve()
REPORT = BUILD / "report/xpu-report"
VIEWS = {"--folded": ["--folded"], "--top": ["--top"], "--flamegraph": ["--flamegraph"],
         "--chrome-trace": ["--chrome-trace"],
         "--table critical_path_sum": ["--table", "critical_path_sum"],
         "--what-if": ["--what-if", "kernel:a=0.5"]}
RUNS = 3


def measure(arguments):
    """Seconds of CPU time and bytes of memory of the cheapest run."""
    best = None
    for _ in range(RUNS):
        process = subprocess.Popen([str(a) for a in arguments], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            raise SystemExit(f"{arguments}: status {status}")
        run = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
        best = min(best, run) if best else run
    return best


def make_capture(directory, events):
    capture = directory / f"{events}.xpu"
    subprocess.run([BUILD / "tests/bench/report/make_capture", capture, str(events)], check=True)
    return capture


def scaling(directory, most):
    print("| events | view | CPU s | us an event | bytes of memory an event |")
    print("|---:|---|---:|---:|---:|")
    events = 10_000
    while events <= most:
        capture = make_capture(directory, events)
        for view, arguments in VIEWS.items():
            seconds, memory = measure([REPORT, *arguments, "-o", "/dev/null", capture])
            print(f"| {events} | {view} | {seconds:.2f} | {seconds / events * 1e6:.2f} | "
                  f"{memory / events:.0f} |", flush=True)
        capture.unlink()
        events *= 10


def record_both(directory, seconds):
    """The same program sampled by perf and by xpu-record, both 999 times a second."""
    program = BUILD / "tests/workloads/unwind/calls-gcc-O2-full"
    target = subprocess.Popen([program, str(seconds * 1000 // 8)], stdout=subprocess.DEVNULL)
    both = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for command in (
                ["perf", "record", "-N", "-q", "-F", "999", "--call-graph", "fp", "-p",
                 str(target.pid), "-o", directory / "perf.data"],
                [BUILD / "record/xpu-record", "--cpu-only", "-F", "999", "-p", str(target.pid),
                 "-o", directory / "both.xpu"])]
    target.wait()
    for recorder in both:
        recorder.wait()


def samples_of(directory):
    script = subprocess.run(["perf", "script", "-i", directory / "perf.data", "-F", "pid"],
                            capture_output=True, text=True, check=True).stdout
    dump = subprocess.run([REPORT, "--folded", "--unit", "samples", directory / "both.xpu"],
                          capture_output=True, text=True, check=True).stdout
    return (sum(1 for line in script.splitlines() if line.strip()),
            sum(int(line.rsplit(" ", 1)[1]) for line in dump.splitlines()))


def compare(directory):
    if os.geteuid() != 0 or not shutil.which("perf"):
        print("perf: left out, it takes root and perf")
        return
    record_both(directory, 40)
    of_perf, of_xpu = samples_of(directory)
    print("| report | samples | CPU s | us a sample | memory, MB |")
    print("|---|---:|---:|---:|---:|")
    perf = ["-i", directory / "perf.data"]
    for name, arguments, samples in (
            ("perf script", ["perf", "script", *perf], of_perf),
            ("perf report --stdio", ["perf", "report", "--stdio", *perf], of_perf),
            ("xpu-report --script", [REPORT, "--script", directory / "both.xpu"], of_xpu),
            ("xpu-report --folded", [REPORT, "--folded", directory / "both.xpu"], of_xpu),
            ("xpu-report --top", [REPORT, "--top", directory / "both.xpu"], of_xpu)):
        seconds, memory = measure(arguments)
        print(f"| {name} | {samples} | {seconds:.2f} | {seconds / samples * 1e6:.1f} | "
              f"{memory / 1e6:.0f} |", flush=True)


def main():
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    shared = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        print(time.strftime("%Y-%m-%d"), os.uname().release, os.cpu_count(), "CPUs")
        scaling(pathlib.Path(directory), most)
        compare(pathlib.Path(directory))


if __name__ == "__main__":
    main()

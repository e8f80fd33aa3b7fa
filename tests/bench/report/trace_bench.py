"""MB/s of output of --chrome-trace, plain and compressed, seconds of --folded, and the memory of
each, on a capture of a million events.

    XPU_BUILD_DIR=build/release python3 tests/bench/report/trace_bench.py [EVENTS]

CPU time, so that other load on the machine counts less; once with and once without what is spent
before the first slices are written, which --max-events 1 shows.
"""

import os
import pathlib
import subprocess
import sys
import tempfile


def measure(arguments):
    """Seconds of CPU time and bytes of memory."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{arguments}: status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    build = pathlib.Path(os.environ["XPU_BUILD_DIR"])
    report = build / "report/xpu-report"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        capture = pathlib.Path(folder) / "bench.xpu"
        subprocess.run([build / "tests/bench/report/make_capture", capture, str(events)], check=True)
        before, _ = measure([report, "--chrome-trace", "--max-events", "1", capture])
        print(f"reading and matching {events} events: {before:.2f} s", flush=True)
        seconds, memory = min(measure([report, "--folded", "-o", pathlib.Path(folder) / "folded",
                                       capture]) for _ in range(3))
        print(f"--folded: {seconds:.2f} s; {memory / events:.0f} bytes of memory an event",
              flush=True)
        for name in ("trace.json", "trace.json.gz"):
            output = pathlib.Path(folder) / name
            seconds, memory = min(measure([report, "--chrome-trace", "-o", output, capture])
                                  for _ in range(3))
            size = output.stat().st_size
            if name == "trace.json":
                written = size
            print(f"{name}: {size / 1e6:.0f} MB in {seconds:.2f} s: "
                  f"{written / seconds / 1e6:.0f} MB/s of JSON, "
                  f"{written / (seconds - before) / 1e6:.0f} MB/s without the reading; "
                  f"{memory / events:.0f} bytes of memory an event", flush=True)


if __name__ == "__main__":
    main()

"""MB/s of output of --chrome-trace, plain and compressed, and its memory, on a capture of a million
events.

    XPU_BUILD_DIR=build/release python3 tests/bench/report/trace_bench.py [EVENTS]

CPU time, so that other load on the machine counts less; once with and once without what is spent
before the first slices are written, which --max-events 1 shows.
"""

import pathlib
import sys
import tempfile

from report_bench import REPORT, make_capture, measure


def main():
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        capture = make_capture(pathlib.Path(directory), events)
        before, _ = measure([REPORT, "--chrome-trace", "--max-events", "1", capture])
        print(f"reading and matching {events} events: {before:.2f} s", flush=True)
        for name in ("trace.json", "trace.json.gz"):
            output = pathlib.Path(directory) / name
            seconds, memory = measure([REPORT, "--chrome-trace", "-o", output, capture])
            size = output.stat().st_size
            if name == "trace.json":
                written = size
            print(f"{name}: {size / 1e6:.0f} MB in {seconds:.2f} s: "
                  f"{written / seconds / 1e6:.0f} MB/s of JSON, "
                  f"{written / (seconds - before) / 1e6:.0f} MB/s without the reading; "
                  f"{memory / events:.0f} bytes of memory an event", flush=True)


if __name__ == "__main__":
    main()

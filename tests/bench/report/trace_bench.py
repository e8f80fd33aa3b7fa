"""MB/s, size and memory of --chrome-trace, plain and compressed, and --perfetto on a capture of a
million events.

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
        for name in ("trace.json", "trace.json.gz", "trace.pftrace"):
            output = pathlib.Path(directory) / name
            view = "--perfetto" if name.endswith(".pftrace") else "--chrome-trace"
            seconds, memory = measure([REPORT, view, "-o", output, capture])
            size = output.stat().st_size
            output.unlink()
            if name == "trace.json":
                written, of_json = size, seconds - before
            print(f"{name}: {size / 1e6:.0f} MB ({100 * size / written:.1f} % of the JSON) in "
                  f"{seconds:.2f} s: {written / seconds / 1e6:.0f} MB/s of JSON; "
                  f"without the reading {seconds - before:.2f} s "
                  f"({100 * (seconds - before) / of_json:.0f} %); "
                  f"{memory / events:.0f} bytes of memory an event", flush=True)


if __name__ == "__main__":
    main()

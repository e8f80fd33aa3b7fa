#!/usr/bin/env python3
"""Reads captures with many of each countable thing (write_costs.cpp) in views of all kinds.

costs_test.py                        what CI runs
costs_test.py --rows 2000 --pairs --views ALL
costs_test.py --rows N --things a,b --views summary,top --report XPU_REPORT
costs_test.py --table ...            prints seconds, megabytes and bytes written of every run

A view whose time or memory grows with the square of a count exceeds the limits at this number of
rows: they are several times what others need, in CPU time and not in time that passes, so that a
loaded machine does not matter. A page may have fifty times the decompressed bytes of the capture,
and its own code.
"""

import argparse
import itertools
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import xpu_testing

# By name; a view that writes to a file gets its place as OUT.
VIEWS = {
    "summary": [],
    "folded": ["--folded"],
    "folded_idle": ["--folded", "--mode", "idle"],
    "folded_off": ["--folded", "--mode", "off"],
    "folded_wall": ["--folded", "--mode", "wall"],
    "folded_critical": ["--folded", "--mode", "critical"],
    "folded_memory": ["--folded", "--mode", "memory"],
    "folded_thread": ["--folded", "--by", "thread", "--nvtx-frames"],
    "flamegraph": ["--flamegraph", "--lines"],
    "flamegraph_nvtx": ["--flamegraph", "--by", "thread", "--nvtx-frames"],
    "slow_steps": ["--slow-steps", "--top"],
    "step_range": ["--step-range", "1-", "--top"],
    "step_nvtx": ["--step", "nvtx:step", "--step-range", "0-", "--top"],
    "nvtx_filter": ["--nvtx", "step|range", "--top"],
    "perfetto": ["--perfetto"],
    "chrome_trace": ["--chrome-trace"],
    "top": ["--top"],
    "tables": ["--table", "ALL"],
    "what_if": ["--what-if", "kernel:gemm=0.5"],
    "diff": ["--diff", "CAPTURE", "--by", "operator"],
    "diff_path": ["--diff", "CAPTURE"],
    "script": ["--script"],
    "dump": ["--dump"],
    "export": ["--export", "ndjson", "-o", "OUT"],
    "pprof": ["--pprof"],
    "annotate": ["--annotate", "."],
}
CI_VIEWS = "summary,top,slow_steps,flamegraph"
# Each GPU has steps of another process; each process has deep stacks of its own, in two captures.
COMBINED = {"devices,processes,pauses": "summary,step_nvtx", "processes,depth": "diff_path"}
PAGE_BYTES = 4 << 20
# Memory for each MiB of decompressed blocks, and for the program and what any capture may have.
MIB_MEGABYTES = 300
FREE_MEGABYTES = 64


def run_view(arguments, capture, options, directory):
    """Seconds of CPU time, megabytes, bytes written and what is wrong."""
    out = directory / "out"
    arguments = [str(capture) if a == "CAPTURE" else str(out) if a == "OUT" else a
                 for a in arguments]

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds + 5))
        if options.megabytes:
            resource.setrlimit(resource.RLIMIT_AS, (options.megabytes << 20,) * 2)

    with tempfile.TemporaryFile(dir=directory) as output:
        process = subprocess.Popen([options.report, *arguments, str(capture)], stdout=output,
                                   stderr=subprocess.PIPE, preexec_fn=limit)
        errors = process.stderr.read().decode(errors="replace")
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        written = output.seek(0, os.SEEK_END)
    code = os.waitstatus_to_exitcode(status)
    wrong = None
    if code < 0:
        wrong = f"ended by signal {-code}"
    elif code != 0 and "no steps" not in errors and "--slow-steps" not in errors:
        wrong = f"exit status {code}: {errors[-300:]}"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, written, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=500 if is_sanitized() else 20000)
    parser.add_argument("--seconds", type=int, default=60 if is_sanitized() else 15)
    parser.add_argument("--megabytes", type=int, default=0 if is_sanitized() else 2000)
    parser.add_argument("--things", default="")
    parser.add_argument("--views", default=CI_VIEWS)
    parser.add_argument("--report", default="")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.report = options.report or str(xpu_testing.find("report/xpu-report"))
    writer = str(pathlib.Path(os.environ["XPU_BUILD_DIR"]) / "tests/fuzz/write_costs")
    things = subprocess.run([writer], capture_output=True, text=True, check=True).stdout.split()
    wanted = [(thing, options.rows, options.views) for thing in things]
    wanted += [(thing, options.rows // 4, views) for thing, views in COMBINED.items()]
    if options.pairs:
        wanted += [(",".join(pair), options.rows, options.views)
                   for pair in itertools.combinations(things, 2)]
    if options.things:
        wanted = [(options.things, options.rows, options.views)]
    tables = subprocess.run([options.report, "--list-tables"], capture_output=True, text=True,
                            check=True).stdout.splitlines()
    VIEWS["tables"][1] = ",".join(line.split()[0] for line in tables if "--what-if" not in line)
    failures = 0
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        capture = directory / "capture.xpu"
        for thing, rows, views in wanted:
            raw = int(subprocess.run([writer, thing, str(rows), str(capture)],
                                     capture_output=True, check=True).stdout)
            for view in list(VIEWS) if views == "ALL" else views.split(","):
                seconds, megabytes, written, wrong = run_view(VIEWS[view], capture, options,
                                                              directory)
                if not wrong and view.startswith("flamegraph") and written > 50 * raw + PAGE_BYTES:
                    wrong = f"a page of {written} bytes, of {raw}"
                captures = 1 + VIEWS[view].count("CAPTURE")
                most = FREE_MEGABYTES + MIB_MEGABYTES * captures * raw / 2**20
                if not wrong and options.megabytes and megabytes > most:
                    wrong = f"more than {most:.0f} MB"
                failures += wrong is not None
                if wrong or options.table:
                    print(f"{thing:24} {rows:7} {raw:9} {view:16} {seconds:7.2f} s "
                          f"{megabytes:6.0f} MB {written:10} {wrong or ''}", flush=True)
    return 1 if failures else 0


def is_sanitized():
    """Sanitizers reserve terabytes of addresses, and take several times as long."""
    cache = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / "CMakeCache.txt"
    return any(line.startswith("XPU_SANITIZE:") and not line.rstrip().endswith("=")
               for line in cache.read_text().splitlines())


if __name__ == "__main__":
    sys.exit(main())

"""Runs two builds of xpu-report over captures, with all views and many filters, and names each
output, message and exit status that differs: whoever changes the report's structure, and nothing
of what it says, needs an empty list. With -v, the first lines that differ, too.

Usage: compare_reports.py [-v] OLD_REPORT NEW_REPORT [CAPTURE...]   (default: those of the tests)
"""

import argparse
import collections
import concurrent.futures
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
VIEWS = {
    "summary": [],
    "folded": ["--folded"],
    **{f"folded {mode}": ["--folded", "--mode", mode, "--unit", "ns"]
       for mode in ("gpu", "cpu", "idle", "off", "wall", "critical", "probe")},
    **{f"folded by {what}": ["--folded", "--by", what]
       for what in ("thread", "process", "stream", "device", "rank", "host")},
    "flame graph": ["--flamegraph"],
    "perfetto": ["--perfetto", "-o", "{out}.pftrace"],
    "chrome trace": ["--chrome-trace"],
    "top": ["--top"],
    "top csv": ["--top", "--format", "csv"],
    "top json": ["--top", "--format", "json", "-n", "0"],
    "diff": ["--diff", "{capture}"],
    "script": ["--script"],
    "dump": ["--dump"],
    "sqlite": ["--export", "sqlite", "-o", "{out}.sqlite"],
    "csv": ["--export", "csv", "-o", "{out}"],
    "pprof": ["--pprof", "-o", "{out}.pb.gz"],
    "annotate": ["--annotate", "."],
    "slow steps": ["--slow-steps"],
}
FILTERED_VIEWS = ("summary", "folded", "folded idle", "top csv", "chrome trace", "script")
# The numbers of processes and threads are put in that have the most and the fewest records.
FILTERS = [
    ["--pid", "{pid}"], ["--pid", "{last_pid}"], ["--pid", "1"], ["--pid", "{pid},{last_pid}"],
    ["--tid", "{tid}"], ["--tid", "{last_tid}"], ["--tid", "{pid},{tid}"],
    ["--comm", "python"], ["--comm", "python3"], ["--comm", "two_kernels,pt_main_thread"],
    ["--rank", "0"], ["--rank", "1"], ["--rank", "0,1"], ["--host", "vm"], ["--container", "x"],
    ["--device", "0"], ["--device", "1"], ["--stream", "7"], ["--stream", "13,14,17"],
    ["--kernel", "gemm"], ["--kernel", "elementwise|nccl"], ["--kernel", "^$"], ["--kernel", "."],
    ["--api", "LaunchKernel"], ["--api", "Memcpy"], ["--api", "Synchronize"], ["--api", "^cu[A-Z]"],
    ["--time", "0s-10ms"], ["--time", "100ms-"], ["--time", "4s-5s"],
    ["--step-range", "1"], ["--step-range", "2-5"], ["--step", "nvtx:.", "--step-range", "0-2"],
    ["--nvtx", "."], ["--nvtx", "forward"], ["--kernel", ".", "--time", "1s-"],
    ["--device", "0", "--stream", "7"], ["--pid", "{pid}", "--api", "Launch"],
    ["--nvtx", ".", "--kernel", "."], ["--sample", "1/3"],
]


def cases(report, capture):
    for name, view in VIEWS.items():
        yield name, [capture if part == "{capture}" else part for part in view]
    numbers = numbers_of(report, capture)
    for name in FILTERED_VIEWS:
        for each in FILTERS:
            options = [part.format(**numbers) for part in each]
            yield f"{name} {' '.join(options)}", [*VIEWS[name], *options]


def numbers_of(report, capture):
    """Processes and threads with the most and the fewest records."""
    dump = subprocess.run([report, "--dump", capture], capture_output=True, check=False).stdout
    found = {}
    for name in ("pid", "tid"):
        counts = collections.Counter(re.findall(rf"\b{name}=(\d+)", dump.decode(errors="replace")))
        ordered = [number for number, _ in counts.most_common()] or ["1"]
        found |= {name: ordered[0], f"last_{name}": ordered[-1]}
    return found


def output_of(report, capture, arguments, directory):
    """Status, output, messages and written files; they do not depend on where they are written."""
    fill = {"out": f"{directory}/out"}
    done = subprocess.run([report, *(a.format(**fill) if "{out}" in a else a for a in arguments),
                           capture], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                          cwd=directory, env={**os.environ, "NO_COLOR": "1"})
    parts = {"status": str(done.returncode).encode(), "output": done.stdout, "messages": done.stderr}
    for path in sorted(pathlib.Path(directory).rglob("*")):
        if path.is_file():
            parts[path.name] = path.read_bytes()
            path.unlink()
    return {name: part.replace(directory.encode(), b"") for name, part in parts.items()}


def compare(old, new, capture, name, arguments):
    """The names of what differs, with the first differing lines."""
    with tempfile.TemporaryDirectory() as directory:
        before = output_of(old, capture, arguments, directory)
        after = output_of(new, capture, arguments, directory)
    differences = []
    for part in sorted(before.keys() | after.keys()):
        texts = [side.get(part, b"").decode(errors="replace").splitlines()
                 for side in (before, after)]
        if before.get(part) != after.get(part):
            lines = difflib.unified_diff(*texts, "old", "new", n=0, lineterm="")
            differences.append((f"{capture}: {name}: {part}",
                                [line[:200] for line, _ in zip(lines, range(12))]))
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("captures", nargs="*")
    options = parser.parse_args()
    old, new = (str(pathlib.Path(path).resolve()) for path in (options.old, options.new))
    captures = [str(pathlib.Path(path).resolve())
                for path in options.captures or sorted(CAPTURES.rglob("*.xpu"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [pool.submit(compare, old, new, capture, *case)
                for capture in captures for case in cases(old, capture)]
        found = [difference for job in jobs for difference in job.result()]
    for what, lines in found:
        print(what, *(lines if options.verbose else []), sep="\n    ")
    print(f"{len(jobs)} reports of {len(captures)} captures, {len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

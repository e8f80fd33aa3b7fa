"""Time and memory of --export parquet --each over the number of captures.

    XPU_BUILD_DIR=build/release python3 tests/bench/report/fleet_bench.py [MOST_CAPTURES]

Copies of the real captures in tests/captures; one in fifty is damaged so that half of it is left,
one in fifty is not a capture. Memory is that of all processes together, looked at every few
milliseconds (proportional set size, so that what they share counts once).
"""

import glob
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from report_bench import REPORT

CAPTURES = pathlib.Path(__file__).resolve().parents[2] / "captures"
LARGEST = "pytorch_loader.xpu"  # ten times the others


def make_captures(directory, count):
    sources = [path for path in sorted(CAPTURES.glob("*.xpu")) if path.name != LARGEST]
    paths = []
    for i in range(count):
        path = directory / f"{i:05}.xpu"
        source = sources[i % len(sources)]
        if i % 50 == 7:
            data = source.read_bytes()
            path.write_bytes(data[:len(data) // 2])
        elif i % 50 == 8:
            path.write_text("no capture")
        else:
            path.symlink_to(source)
        paths.append(path)
    return paths


def memory_of(pid):
    """Bytes of a process and its children."""
    total = 0
    children = " ".join(pathlib.Path(path).read_text() for path in
                        glob.glob(f"/proc/{pid}/task/*/children"))
    for each in [str(pid), *children.split()]:
        try:
            text = pathlib.Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue  # it has ended
        total += sum(int(line.split()[1]) << 10 for line in text.splitlines()
                     if line.startswith("Pss:"))
    return total


def run(paths, output):
    start = time.monotonic()
    process = subprocess.Popen([REPORT, *paths, "--export", "parquet", "--each", "-o", output],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    most = 0
    while True:
        most = max(most, memory_of(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            break
        time.sleep(0.005)
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, most, process.stderr.read()


def main():
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print("| captures | left out | s | CPU s | ms of CPU a capture | MB of memory |")
    print("|---:|---:|---:|---:|---:|---:|")
    count = 10
    while count <= most:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            paths = make_captures(pathlib.Path(directory), count)
            seconds, cpu, memory, said = run(paths, f"{directory}/tables")
            print(f"| {count} | {said.count('left out: ')} | {seconds:.1f} | {cpu:.1f} | "
                  f"{cpu / count * 1e3:.0f} | {memory / 1e6:.0f} |", flush=True)
        count *= 10


if __name__ == "__main__":
    main()

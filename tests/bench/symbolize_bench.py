"""Microseconds of CPU time for each of 10 000 random addresses of a file: names alone, names with
lines and inlined functions, next to llvm-symbolizer and addr2line.

    XPU_BUILD_DIR=build/release python3 tests/bench/symbolize_bench.py FILE...

Cold: opening the file and building what is looked up in are part of it; the file is in the page
cache. Warm: the same addresses again in the same process.
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

COUNT = 10000


def text_addresses(path):
    listing = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True)
    for line in listing.stdout.splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] == ".text":
            begin, size = int(fields[3], 16), int(fields[5], 16)
            return random.Random(1).sample(range(begin, begin + size), min(COUNT, size))
    raise SystemExit(f"{path}: no .text")


def cost(command, addresses):
    """Seconds of CPU time and megabytes of memory."""
    with tempfile.TemporaryFile("w+") as file:
        file.write(addresses)
        file.seek(0)
        process = subprocess.Popen(command, stdin=file, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command}: status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def measure(path):
    addresses = text_addresses(path)
    text = "\n".join(map(hex, addresses))
    own = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / "tests/bench/symbolize_bench"
    print(f"{path}: {len(addresses)} addresses", flush=True)
    for option in ("--names", "--time"):
        subprocess.run([own, option, path], check=True, input=text, text=True)
    others = {
        "ours, with printing": [own, path],
        "ours, read in a process of its own": [own, "--confined", path],
        "llvm-symbolizer, inlines": ["llvm-symbolizer", "--inlines", f"--obj={path}"],
        "llvm-symbolizer, no inlines": ["llvm-symbolizer", "--no-inlines", f"--obj={path}"],
        "addr2line, inlines": ["addr2line", "-f", "-i", "-e", path],
        "addr2line, no inlines": ["addr2line", "-f", "-e", path],
    }
    for what, command in others.items():
        if shutil.which(command[0]):
            seconds, megabytes = min(cost(command, text) for _ in range(3))
            print(f"{what}: cold {seconds * 1e6 / len(addresses):.2f} us, {megabytes} MB",
                  flush=True)


if __name__ == "__main__":
    for file in sys.argv[1:]:
        measure(file)

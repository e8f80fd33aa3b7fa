"""Bytes in the file: per CPU sample next to perf record -z, per kernel launch with all that belongs
to it.

    sudo python3 tests/bench/record/bytes_bench.py [SECONDS]

CPU samples: 999 a second of a Python program and of compiler runs, both until about SECONDS of CPU
time are used (default 20), so that stacks repeat as they do in a recording of minutes at 99 Hz.
"stacks" is what defines the frames of stacks; "whole file" counts names, mappings and symbols too,
which perf.data does not hold. Launches: tests/workloads/paced_launches on the simulated device, 60
call sites with stacks of 16 to 40 frames and kernels whose durations vary.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

import bench_tools as tools
import sampling_bench

PART = re.compile(r"^(\S+|\(.*?\))\s+(\d+)\s+(-?\d+) bytes")


def parts(capture):
    """{kind: (events, bytes)} of a capture."""
    text = subprocess.run([tools.built("tests/bench/record/capture_bytes"), capture], check=True,
                          capture_output=True, text=True).stdout
    found = (PART.match(line) for line in text.splitlines())
    return {m.group(1): (int(m.group(2)), int(m.group(3))) for m in found if m}


def repeated(program, directory, seconds):
    usage = tools.OwnUsage(directory)
    tools.Run([*usage.prefix(), *program], cwd=directory)
    times = max(1, round(seconds / usage.take()["cpu"]))
    script = 'i=0; while [ $i -lt "$0" ]; do "$@" >/dev/null; i=$((i + 1)); done'
    return ["sh", "-c", script, str(times), *program]


def xpu_row(directory, program):
    output = f"{directory}/out.xpu"
    tools.Run([tools.RECORDER, "-q", "--cpu-only", "-F", "999", "-o", output, "--", *program],
              cwd=directory)
    of = parts(output)
    samples, bytes_of_samples = of["cpu_samples"]
    each = [bytes_of_samples, of["(stack nodes)"][1], os.path.getsize(output)]
    return ["xpu-record", f"{samples:,}", *(f"{size / samples:.2f}" for size in each)]


def perf_row(directory, program, mode):
    output = f"{directory}/out.perf"
    # -B: some versions fail on the names of BPF programs.
    run = tools.Run(["perf", "record", "-B", "-N", "-z", "-e", "cpu-clock", "-F", "999",
                     "--call-graph", mode, "-o", output, "--", *program], cwd=directory)
    dump = subprocess.run(["perf", "report", "-i", output, "--stats"], check=False,
                          capture_output=True, text=True).stdout
    match = (re.search(r"\((\d+) samples\)", run.stderr) or
             re.search(r"SAMPLE events:\s+(\d+)", dump))
    if not match:
        return [f"perf record -z --call-graph {mode}", "?", "", "", ""]
    samples = int(match.group(1))
    return [f"perf record -z --call-graph {mode}", f"{samples:,}", "", "",
            f"{os.path.getsize(output) / samples:.2f}"]


def print_launches(directory, seconds):
    output = f"{directory}/out.xpu"
    tools.Run([tools.RECORDER, "-q", "-o", output, "--",
               tools.built("tests/workloads/paced_launches"), "--rate", "100000", "--seconds",
               str(seconds)])
    of = parts(output)
    kernels = of["kernels"][0]
    rows = []
    for kind in ("kernels", "launch_stacks", "(stack nodes)", "api_calls"):
        events, size = of[kind]
        rows.append([kind, f"{events:,}", f"{size / kernels:.3f}"])
    rows.append(["whole file", "", f"{os.path.getsize(output) / kernels:.3f}"])
    tools.print_table("Kernel launches", ["what", "how many", "bytes for each kernel"], rows)


def main():
    tools.require_root()
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    print(tools.machine(), flush=True)
    with tempfile.TemporaryDirectory() as directory:
        for name, program in sampling_bench.programs(directory).items():
            command = repeated(program, directory, seconds)
            rows = [xpu_row(directory, command)]
            if shutil.which("perf"):
                rows += [perf_row(directory, command, mode) for mode in ("fp", "dwarf")]
            tools.print_table(f"CPU samples of {name}",
                              ["recorder", "samples", "bytes a sample", "stacks, bytes a sample",
                               "whole file, bytes a sample"], rows)
        print_launches(directory, 10)


if __name__ == "__main__":
    main()

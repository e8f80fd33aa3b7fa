"""What a program pays that makes the kernel write many records, next to perf record: new names of a
thread, code that is mapped and unmapped, code that stays mapped.

    sudo python3 tests/bench/record/kernel_records_bench.py [ROUNDS [XPU-RECORD...]]

A cell is the time of the program's own work over that of the same round without a recorder. What
found no room is in brackets, in records of all rounds (of xpu-record alone).
"""

import re
import shutil
import subprocess
import sys
import tempfile

import bench_tools as tools

WORKS = {"400,000 names": ("names", 400000), "300,000 mappings, unmapped": ("churn", 300000),
         "60,000 mappings, kept": ("keep", 60000)}


def recorders(directory, binaries):
    cases = {"nothing": []}
    for binary in binaries:
        name = "xpu-record --cpu-only" if len(binaries) == 1 else binary
        cases[name] = [binary, "--cpu-only", "-o", f"{directory}/out.xpu", "--"]
    if shutil.which("perf"):
        cases["perf record -g"] = ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-F", "99",
                                   "-o", f"{directory}/out.perf", "--"]
    return cases


def measure(recorder, work):
    kind, count = WORKS[work]
    program = tools.built("tests/bench/record/kernel_records")
    run = subprocess.run([*recorder, program, kind, str(count)], check=True, capture_output=True,
                         text=True)
    lost = re.search(r"perf_records_lost: ([\d,]+)", run.stderr)
    return float(run.stdout.split()[0]), int(lost[1].replace(",", "")) if lost else 0


def cell(measured, baseline):
    lost = sum(lost for _, lost in measured)
    times = tools.ratios([time for time, _ in measured], [time for time, _ in baseline])
    return tools.cell(times) + (f" [{lost}]" if lost else "")


def main():
    tools.require_root()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{tools.machine()}; {rounds} rounds", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        cases = recorders(directory, sys.argv[2:] or [tools.RECORDER])
        columns = {work: tools.interleave(list(cases), rounds,
                                          lambda case, work=work: measure(cases[case], work))
                   for work in WORKS}
        tools.print_table("Time of the program, over that without a recorder",
                          ["recorder", *WORKS],
                          [[case, *(cell(columns[work][case], columns[work]["nothing"])
                                    for work in WORKS)]
                           for case in cases if case != "nothing"])


if __name__ == "__main__":
    main()

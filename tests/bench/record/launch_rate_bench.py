"""What the recorder needs while a program launches 100,000 and 300,000 kernels a second.

    sudo python3 tests/bench/record/launch_rate_bench.py [ROUNDS [SECONDS [XPU-RECORD...]]]

The program (tests/workloads/paced_launches) keeps the rate on the simulated device of
tests/fake_cuda: the records, callbacks and stacks are those of a real one. (Return probes that
others set on the simulated libcudart meanwhile, as tests do, end its stacks: they show as lost.) The recorder's CPU time
is that of xpu-record without the program's, per second of the program; the memory is the most that
xpu-record held, the rings that it shares with programs included. With further paths of xpu-record,
all are measured in the same rounds.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

import bench_tools as tools

RATES = (100_000, 300_000)


def ledger(path):
    """What was lost, without notes; also printed on the standard error."""
    text = subprocess.run([tools.REPORT, "--dump", path], check=True, capture_output=True,
                          text=True).stdout
    lost = 0
    for line in text.splitlines():
        if line.startswith("ledger ") and "severity=note" not in line:
            lost += int(re.search(r"\bcount=(\d+)", line).group(1))
            print(line, file=sys.stderr)
    return lost


def measure(directory, recorder, rate, seconds):
    usage = tools.OwnUsage(directory)
    output = f"{directory}/out.xpu"
    program = [tools.built("tests/workloads/paced_launches"), "--rate", str(rate), "--seconds",
               str(seconds)]
    run = tools.Run([recorder, "-o", output, "--", *usage.prefix(), *program],
                    stdout=subprocess.PIPE, watch=True)
    told = json.loads(run.stdout.splitlines()[-1])
    own = usage.take()
    launches = told["launches"]
    recording = run.cpu - own["cpu"] - own["own"]
    return {"recorder": 100 * recording * rate / launches,
            "ns": recording * 1e9 / launches,
            "program": own["cpu"] * 1e9 / launches,
            "memory": run.peak_bytes / 1e6,
            "lost": ledger(output),
            "bytes": os.path.getsize(output) / launches,
            "late": told["late_ns"] / 1e6}


COLUMNS = {"recorder": ("recorder, % of a core at the rate", "{:.1f}"),
           "ns": ("recorder, ns of CPU a launch", "{:.0f}"),
           "program": ("program, ns of CPU a launch", "{:.0f}"),
           "memory": ("most memory, MB", "{:.0f}"), "lost": ("lost", "{:.0f}"),
           "bytes": ("bytes in the file a launch", "{:.2f}"),
           "late": ("program late at its end, ms", "{:.0f}")}


def main():
    tools.require_root()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    recorders = sys.argv[3:] or [tools.RECORDER]
    print(f"{tools.machine()}; {rounds} rounds of {seconds} s", flush=True)
    cases = [(recorder, rate) for rate in RATES for recorder in recorders]
    with tempfile.TemporaryDirectory() as directory:
        results = tools.interleave(cases, rounds,
                                   lambda case: measure(directory, *case, seconds))
    rows = []
    for (recorder, rate), measured in results.items():
        which = f"{rate:,}" if len(recorders) == 1 else f"{rate:,}, {recorder}"
        rows.append([which] + [tools.cell([m[field] for m in measured], form)
                               for field, (_, form) in COLUMNS.items()])
    tools.print_table("xpu-record with everything that is on by default",
                      ["launches a second", *(name for name, _ in COLUMNS.values())], rows)


if __name__ == "__main__":
    main()

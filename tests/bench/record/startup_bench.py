"""How long the program waits for the recorder, and the user for the capture.

    sudo python3 tests/bench/record/startup_bench.py [--rounds N] [--real-time] [XPU-RECORD...]

Start: from the exec of the recorder to the first output of the program (`date`, which costs the
same in each row). The cold unwind cache is an empty directory in a mount namespace of its own. End:
from the last thing that a program does, which for 10 s was busy in four threads and launched
100,000 kernels a second (tests/fake_cuda), to the end of xpu-record. Wall time: on a machine that
others use, look at the least; --real-time measures the start with a priority above theirs (chrt).
Of several xpu-record the starts are measured in the same rounds.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile

import bench_tools as tools

CACHE = "/var/cache/xpu/unwind"
NOW = ["date", "+%s%N"]


def starts(directory, recorders, prefix):
    cases = {"nothing": ("", prefix)}
    for recorder in recorders:
        name = "xpu-record" if len(recorders) == 1 else recorder
        xpu = [*prefix, recorder, "-q", "-o", f"{directory}/out.xpu"]
        cases |= {
            name: ("", xpu),
            f"{name}, cold unwind cache": (f"mkdir -p {CACHE} && mount -t tmpfs none {CACHE} && ",
                                           xpu),
            f"{name} --cpu-only": ("", [*xpu, "--cpu-only"]),
            f"{name} --gpu-only": ("", [*xpu, "--gpu-only"]),
        }
    if shutil.which("perf"):
        cases["perf record -g"] = ("", [*prefix, "perf", "record", "-q", "-g", "-e", "cpu-clock",
                                        "-o", f"{directory}/out.perf"])
    return cases


def measure_start(before, recorder, program):
    script = f'{before}date +%s%N && exec "$@"'
    run = tools.Run(["unshare", "-m", "sh", "-c", script, "sh", *recorder, *program],
                    stdout=subprocess.PIPE)
    begin, ready = map(int, run.stdout.split()[:2])
    return {"start": (ready - begin) / 1e6, "all": run.wall * 1e3, "cpu": run.cpu * 1e3}


def print_starts(cases, what, program, rounds):
    results = tools.interleave(list(cases), rounds,
                               lambda case: measure_start(*cases[case], program))
    rows = [[case] + [tools.cell([m[field] for m in measured], "{:.0f}")
                      for field in ("start", "all", "cpu")]
            for case, measured in results.items()]
    tools.print_table(f"A short program: {what}",
                      ["recorder", "start, ms", "from exec to exit, ms", "CPU in all, ms"], rows)


def measure_end(recorder):
    program = [tools.built("tests/workloads/paced_launches"), "--rate", "100000", "--seconds", "10",
               "--threads", "4", "--burn"]
    run = tools.Run([*recorder, *program], stdout=subprocess.PIPE, watch=True)
    told = json.loads(run.stdout.splitlines()[-1])
    return {"end": run.end * 1e3 - told["end_ns"] / 1e6, "launches": told["launches"]}


def print_ends(directory, rounds):
    cases = {"nothing": [], "xpu-record": [tools.RECORDER, "-q", "-o", f"{directory}/out.xpu"]}
    if shutil.which("perf"):
        cases["perf record -g"] = ["perf", "record", "-q", "-g", "-e", "cpu-clock", "-o",
                                   f"{directory}/out.perf"]
    results = tools.interleave(list(cases), rounds, lambda case: measure_end(cases[case]))
    rows = [[case, tools.cell([m["end"] for m in measured], "{:.0f}"),
             tools.cell([m["launches"] for m in measured], "{:.0f}")]
            for case, measured in results.items()]
    tools.print_table("End of the program to the end of the recorder, after 10 s",
                      ["recorder", "end, ms", "launches"], rows)


def main():
    tools.require_root()
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--real-time", action="store_true")
    parser.add_argument("recorders", nargs="*", default=[tools.RECORDER])
    arguments = parser.parse_args()
    rounds = arguments.rounds
    prefix = ["chrt", "-f", "10"] if arguments.real_time else []
    print(f"{tools.machine()}; {rounds} rounds{', real-time' if prefix else ''}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        cases = starts(directory, arguments.recorders, prefix)
        print_starts(cases, "date", NOW, rounds)
        print_starts(cases, "date, started by Python",
                     [sys.executable, "-c", "import json, re, subprocess; "
                      "subprocess.run(['date', '+%s%N'])"], rounds)
        print_ends(directory, max(rounds // 3, 1))


if __name__ == "__main__":
    main()

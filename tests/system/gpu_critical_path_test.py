"""What decides how long a step takes, and what it would take if that were faster, against the same
program with the faster part: with XPU_TEST_GPU=1 and XPU_TEST_PYTHON, a Python with PyTorch, on a
real GPU."""

import json
import os
import pathlib
import statistics
import subprocess

import xpu_testing
from gpu_programs import REAL, prepare
from xpu_testing import PATIENCE_S, Workspace, expect, recorder, table_rows

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "critical_steps.py"
AMOUNTS = {"loader": 14_000, "workers": 40_000, "kernel": 8_000, "launch": 200}
# What takes the time, as a user would ask for it. One who makes half as many launches halves all
# that the function does.
SPEEDUPS = {"loader": "function:decode_batch", "workers": "function:decode_batch",
            "kernel": "kernel:spin_kernel", "launch": "function:launch_many"}
NEAR = 0.10
# Whatever recurs within a step: these are what the program measures.
STEPS = ("--step", "nvtx:step")


TURNS, STEPS_OF_TURN = 9, 40


def program(bottleneck, amount, *arguments):
    return [os.environ["XPU_TEST_PYTHON"], str(SCRIPT), bottleneck, "--amount", str(amount),
            *arguments]


def record(work, command):
    result = work.record("--off-cpu", "--", *command, timeout=PATIENCE_S)
    expect(f"status ({result.stderr})", result.returncode, 0)


def step_times(work, *commands):
    """How long a step takes in each of the programs, all recorded at once, which take turns: a machine
    is not as fast from one moment to the next."""
    running = [subprocess.Popen([recorder(), "-q", "--off-cpu", "-o", work.path / f"turns{i}.xpu",
                                 "--", *command, "--turns", "--steps", str(STEPS_OF_TURN)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for i, command in enumerate(commands)]
    times = [[] for _ in commands]
    for _ in range(TURNS):
        for process, of_program in zip(running, times):
            process.stdin.write("\n")
            process.stdin.flush()
            of_program.append(json.loads(process.stdout.readline())["step_ns"])
    for process in running:
        process.communicate(timeout=PATIENCE_S)
    return [statistics.median(of_program) for of_program in times]


def largest(path):
    """What takes most of the path: its kind, thread, name and call path."""
    rows = table_rows(path, "critical_path_sum", *STEPS)
    total = sum(row["Total Time (ns)"] for row in rows)
    assumed = sum(row["Assumed (ns)"] for row in rows)
    return rows[0], total, assumed / total


def check(bottleneck, named):
    """`named(row)`: whether the largest row of the path is the bottleneck."""
    if not REAL or "XPU_TEST_PYTHON" not in os.environ:
        raise xpu_testing.Skip("XPU_TEST_GPU is not 1, or XPU_TEST_PYTHON names no Python with "
                               "PyTorch")
    amount = AMOUNTS[bottleneck]
    speedup = SPEEDUPS[bottleneck]
    with Workspace() as work:
        record(work, program(bottleneck, amount))
        path = work.path / "capture.xpu"
        row, total_ns, assumed = largest(path)
        [predicted] = table_rows(path, "what_if", "--what-if", f"{speedup}=0.5", *STEPS)
        [steps] = table_rows(path, "step_sum", *STEPS)
        candidates = table_rows(path, "what_if", *STEPS)
        if "OUT" in os.environ:
            os.replace(path, pathlib.Path(os.environ["OUT"]) / f"{bottleneck}.xpu")
        before_ns, after_ns = step_times(work, program(bottleneck, amount),
                                         program(bottleneck, amount // 2))
    ratio = predicted["Predicted (ns)"] / predicted["Measured (ns)"]
    error = ratio * before_ns / after_ns - 1
    print(f"        {bottleneck}: step {before_ns:.0f} ns ({predicted['Measured (ns)']} found, "
          f"{steps['Steps']} steps), halved {after_ns:.0f} ns, predicted {ratio * before_ns:.0f} ns "
          f"({100 * error:+.1f} %); {predicted['On Path (%)']} % on the path, "
          f"{100 * assumed:.1f} % assumed; largest: {row['Time (%)']} % {row['Kind']} "
          f"{row['Thread']} {row['What']} {row['Path'][-80:]}; "
          f"best: {candidates[0]['What']} {candidates[0]['Shorter (%)']} %")
    expect("the path is as long as the steps", abs(total_ns / (steps["Total Time (ns)"] or 1) - 1)
           < 0.01, True)
    expect(f"the largest row ({row})", named(row), True)
    expect(f"the prediction is near ({100 * error:+.1f} %)", abs(error) <= NEAR, True)


def test_slow_loader():
    check("loader", lambda row: "decode_batch" in row["Path"])


def test_slow_loader_in_other_processes():
    check("workers", lambda row: "decode_batch" in row["Path"])


def test_slow_kernel():
    check("kernel", lambda row: row["Kind"] == "kernel" and "spin_kernel" in row["What"])


def test_launch_bound():
    check("launch", lambda row: "launch_many" in row["Path"])


if __name__ == "__main__":
    prepare()
    xpu_testing.main(globals())

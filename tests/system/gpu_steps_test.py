"""Steps that the report finds without help, against what the programs know of theirs: on the
simulated device, and with XPU_TEST_GPU=1 and XPU_TEST_PYTHON, a Python with PyTorch, on a real
GPU."""

import bisect
import json
import os
import pathlib
import statistics
import time

import xpu_testing
from attaching import Steps
from gpu_capture import GpuCapture
from gpu_programs import REAL, prepare, program
from xpu_testing import PATIENCE_S, Workspace, expect, recorder, table_rows

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "planted_steps.py"
# A sleep takes 5 ms, a wait for the GPU dozens; the launches of an ordinary step 1 to 3 ms.
SLOW_NS = 4_600_000
# Libraries are loaded and code is compiled in the first ones.
FIRST_STEADY = 10


def launch_times(capture):
    """When each call that starts GPU work began."""
    return sorted(int(call["start_ns"]) for call in capture.of("api_call")
                  if any(name in capture.call_name(call)
                         for name in ("LaunchKernel", "GraphLaunch", "Memcpy", "Memset")))


def check_borders(path, times):
    """The steps of the only process that has any are those that began at `times`, the last of which
    is the end: a step begins with the first launch after that time, or one before or after it."""
    capture = GpuCapture(path)
    [summary] = table_rows(path, "step_sum")
    trace = table_rows(path, "step_trace")
    expect(f"steps ({summary['Steps Are']})", summary["Steps"], len(times) - 1)
    [info] = capture.of("recording_info")
    launches = launch_times(capture)
    begins = [int(info["start_ns"]) + row["Start (ns)"] for row in trace]
    off = {step: launched for step, (begin, known) in enumerate(zip(begins, times))
           if abs(launched := bisect.bisect_left(launches, begin) -
                  bisect.bisect_left(launches, known)) > 1}
    expect("steps that begin at another launch, and how many launches later", off, {})
    return summary, trace


def slow_steps(trace):
    """The numbers of slow steps, by how they differ from the others."""
    trace = [row for row in trace if row["Step"] >= FIRST_STEADY]
    busy_ns = statistics.median(row["Busy (ns)"] for row in trace)
    kernels = statistics.median(row["Kernels"] for row in trace)
    return {
        "long": [row["Step"] for row in trace if row["Duration (ns)"] > SLOW_NS],
        "busy": [row["Step"] for row in trace
                   if row["Busy (ns)"] > busy_ns * 1.5 and row["Kernels"] > kernels],
        "others": [row["Step"] for row in trace if row["Launches"] == "others"],
    }


def check_planted(*arguments):
    if not REAL or "XPU_TEST_PYTHON" not in os.environ:
        raise xpu_testing.Skip("XPU_TEST_GPU is not 1, or XPU_TEST_PYTHON names no Python with "
                               "PyTorch")
    with Workspace() as work:
        result = work.record("--", os.environ["XPU_TEST_PYTHON"], str(SCRIPT), *arguments,
                             timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        account = json.loads(result.stdout.splitlines()[-1])
        summary, trace = check_borders(work.path / "capture.xpu", account["times_ns"])
    slow, planted = slow_steps(trace), account["planted"]
    print(f"        {arguments}: {summary['Steps Are']}; median {summary['Med (ns)']} ns, "
          f"GPU busy {summary['Busy Avg (ns)']} ns; slow {slow}")
    # The loader sleeps before the first launch of its step, which is where that begins.
    long = {*(step - 1 for step in planted["load"]), *planted["synchronize"]}
    expect("planted steps that are not slow", long - set(slow["long"]), set())
    # The machine and Python's garbage collector make a few of their own.
    expect("few steps are slow for another reason",
           len(slow["long"]) - len(long) <= len(trace) // 20, True)
    expect("steps with more GPU work", slow["busy"], planted["kernel"])
    expect("steps with other launches", slow["others"], planted["kernel"])


def test_planted_steps():
    check_planted()


def test_planted_steps_compiled():
    check_planted("--compile")


def test_planted_steps_of_a_graph():
    check_planted("--graph")


def test_steps_with_a_replay():
    with Workspace() as work:
        path = work.path / "capture.xpu"
        with Steps(work, [recorder(), "-o", path, "--", program("endless_steps"), "--graph",
                          "--sleep-us", 1000, "--launches", 7]) as steps:
            time.sleep(0.5)
            [(launches, *times)] = steps.end().values()
        expect("launches of a step", launches, 7)
        summary, _ = check_borders(path, times)
        expect("kernels and replays of a step", (summary["Kernels"], summary["Graphs"]), (7, 1))


if __name__ == "__main__":
    prepare()
    xpu_testing.main(globals())

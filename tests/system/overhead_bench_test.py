"""tests/bench/overhead on the simulated device: each available way of running gives a row, and
missing ones are reported instead of a failure. No time is looked at."""

import json
import os
import pathlib
import subprocess
import sys

from xpu_testing import Workspace, expect, expect_in, main, require_recording

BENCH = pathlib.Path(__file__).resolve().parent.parent / "bench/overhead"
sys.path.insert(0, str(BENCH))
import figures  # noqa: E402  pylint: disable=wrong-import-position,import-error


# Stand for PyTorch and Triton: what the script asks of them is looked at, not what they do.
TORCH = """
import sys
from unittest import mock

stub = mock.MagicMock()

def profile(activities, with_stack):
    print("profile", len(activities), with_stack)
    return mock.MagicMock()

stub.profiler.profile = profile
sys.modules[__name__] = stub
"""
PROTON = """
def start(name, *, context):
    print("proton", context)
    open(name + ".hatchet", "w").write(context)

def finalize():
    print("finalized")
"""


def run(work, *arguments):
    command = [sys.executable, BENCH / "overhead.py", "--simulated", os.environ["XPU_BUILD_DIR"],
               "--rounds", "1", "--run-seconds", "0.01", "--seconds", "5000",
               "--json", work.file("raw.json"), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=580, check=False,
                            env={**os.environ, "PATH": os.defpath, "PYTHONPATH": str(work.path)})
    expect(f"status ({result.stderr})", result.returncode, 0)
    return result.stdout, json.loads((work.path / "raw.json").read_text())["workloads"]


def test_each_workload_has_its_rows():
    require_recording()
    with Workspace() as work:
        table, raw = run(work, "--workload", "launches*,transformer,graph,copies,llm*")
        for workload, ways in raw.items():
            wanted = ["nothing", "xpu-record"]
            wanted += (["CUPTI alone, graphs", "CUPTI alone, nodes, late",
                        "xpu-record --cuda-graph-trace=node"]
                       if "graph" in workload else ["CUPTI alone", "CUPTI alone, late"])
            for way in wanted:
                # On a busy machine 10 ms may be over before a thread has looked for a context.
                if "late" in way and ways[way]["why"] == "failed: CUPTI did not start":
                    continue
                expect(f"{workload}: {way}: {ways[way]['why']}", len(ways[way]["times"]), 1)
            expect(f"{workload}: nsys", ways["nsys"]["why"], "not installed")
            expect("the capture's size", ways["xpu-record"]["file_bytes"][0] > 0, True)
            expect_in("in the table", f"### {workload}: ", table)
        for way in ("xpu-record --launch-stacks=uprobe",
                    "CUPTI, all callbacks, more kinds, flushed"):
            expect(f"{way}: {raw['launches_1'][way]['why']}",
                   len(raw["launches_1"][way]["times"]), 1)


def test_profilers_of_python():
    with Workspace() as work:
        work.file("torch.py", TORCH)
        (work.path / "triton").mkdir()
        work.file("triton/__init__.py", "")
        work.file("triton/profiler.py", PROTON)
        _, raw = run(work, "--workload", "pytorch*", "--way", "torch.profiler*;Proton*")
        for workload, ways in raw.items():
            for way in ("nothing", "torch.profiler, CPU and CUDA", "torch.profiler, with stacks",
                        "torch.profiler, CUDA only", "Proton, shadow", "Proton, python"):
                expect(f"{workload}: {way}: {ways[way]['why']}", len(ways[way]["times"]), 6)
            expect("what Proton wrote", ways["Proton, python"]["file_bytes"][0] > 0, True)


def test_a_way_that_fails_says_why_and_disturbs_no_other():
    with Workspace() as work:
        work.file("torch.py", TORCH.replace(
            "    print", '    if with_stack:\n        raise SystemExit("no stacks here")\n    print'))
        table, raw = run(work, "--workload", "pytorch_mlp", "--way", "torch.profiler*")
        ways = raw["pytorch_mlp"]
        expect("why", ways["torch.profiler, with stacks"]["why"],
               "failed: status 1: no stacks here")
        expect("the others", len(ways["torch.profiler, CUDA only"]["times"]), 6)
        expect_in("the row", "| torch.profiler, with stacks | failed: status 1", table)


def test_an_end_on_demand_loses_nothing():
    require_recording()
    with Workspace() as work:
        table, raw = run(work, "--seconds", "0", "--workload", "launches_1")
        expect("times", raw["launches_1"]["nothing"]["times"], {})
        expect_in("the row", "| nothing | not run |", table)


def test_ratios_are_of_adjacent_runs():
    # The machine becomes twice as slow between the rounds; one run of the second is missing.
    nothing = {0: 100, 1: 200}
    expect("ratio", figures.ratio({0: 110, 1: 220}, nothing), 1.1)
    expect("ratio of what both have", figures.ratio({1: 220}, nothing), 1.1)
    expect("nothing in common", figures.ratio({2: 220}, nothing), None)
    expect("added", figures.added_ns({0: 110, 1: 220}, nothing), 15)


def test_spread():
    expect("of few", figures.spread([90, 100, 130]), 0.2)
    expect("of one", figures.spread([100]), None)
    expect("of many, without the outer ones", figures.spread([1, 2, 3, *[100] * 7, 500, 900]), 0)


def test_ways_beyond_the_time_are_dropped_from_the_end():
    costs = {"a": 10, "b": 10, "c": 10}
    expect("all fit twice more", figures.next_round(costs, 1, 3, 60), ["a", "b", "c"])
    expect("two fit twice more", figures.next_round(costs, 1, 3, 59), ["a", "b"])
    expect("none", figures.next_round(costs, 1, 3, 5), [])
    expect("a further round is whole", figures.next_round(costs, 3, 3, 29), [])


if __name__ == "__main__":
    main(globals())

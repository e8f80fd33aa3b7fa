"""NVTX: every range and mark of a program, whichever of NVTX and CUDA comes first."""

import json
import os
import subprocess

from record_gpu_test import record, simulated
from xpu_testing import Workspace, expect, expect_in, find, main, require_recording, workload

DOMAIN, CATEGORY, MARK, PUSH, POP, START, END = 5, 6, 0, 1, 2, 3, 4


def report(*arguments):
    return subprocess.run([find("report/xpu-report"), *arguments], capture_output=True, text=True,
                          check=False)


def rows_of(work, table, *arguments):
    result = report(work.file("capture.xpu"), "--strict", "--top", "--table", table, "-n", "0",
                    "--format", "json", *arguments)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout)[table]


def run(work, *arguments, options=()):
    result = record(work, *options, workload("nvtx_ranges"), *arguments)
    return json.loads(result.stdout), work.capture()


def check_ranges(work, truth, capture):
    expect("losses", capture.losses(), {})
    kinds = [event["kind"] for event in capture.nvtx_events]
    expect("marks", kinds.count(MARK), truth["marks"])
    expect("pushes", kinds.count(PUSH), sum(truth["pushed"].values()))
    expect("pops", kinds.count(POP), sum(truth["pushed"].values()) - 1)
    expect("ends", kinds.count(END), sum(truth["started"].values()))
    rows = rows_of(work, "nvtx_sum")
    for style, wanted in (("PushPop", truth["pushed"]), ("StartEnd", truth["started"])):
        expect(style, {r["Range"]: r["Instances"] for r in rows if r["Style"] == style}, wanted)


def test_ranges_around_kernels():
    require_recording()
    with Workspace() as work:
        truth, capture = run(work, "--rounds", "200", "--threads", "3")
        check_ranges(work, truth, capture)
        kernels = {}
        for row in rows_of(work, "nvtx_kern_sum"):
            name = f"{row['NVTX Range']}/{row['Kernel Name'].split('(')[0]}"
            kernels[name] = kernels.get(name, 0) + row["Kern Inst"]
            expect("instances of " + name, row["NVTX Inst"] > 0, True)
        expect("kernels in ranges", kernels, truth["kernels"])
        forward = [e for e in capture.nvtx_events if e["kind"] == PUSH and e["domain"] == 1]
        expect("payloads", sorted(e["payload"] for e in forward),
               sorted(list(range(200)) * 3))
        expect("colors", {e["color"] for e in forward}, {0xff00ff00})
        expect("categories", {e["category"] for e in forward}, {7})


def test_without_cuda():
    require_recording()
    with Workspace() as work:
        truth, capture = run(work, "--no-gpu", "--rounds", "50")
        check_ranges(work, truth, capture)
        expect("kernels", len(capture.kernels), 0)
        summary = report(work.file("capture.xpu"), "--strict")
        expect(f"status ({summary.stderr})", summary.returncode, 0)


def test_filters_and_frames():
    require_recording()
    with Workspace() as work:
        truth, _ = run(work, "--rounds", "10", "--threads", "1")
        wanted = truth["kernels"]["model:forward/forward_kernel"]
        (row,) = rows_of(work, "cuda_gpu_kern_sum", "--nvtx", "^model:forward$")
        expect("kernels in a range", row["Instances"], wanted)
        folded = report(work.file("capture.xpu"), "--folded", "--mode", "gpu", "--nvtx-frames",
                        "--unit", "ns")
        lines = folded.stdout.splitlines()
        forward = [line for line in lines if "[GPU_Kernel]forward_kernel" in line]
        expect("paths", all(line.startswith("[NVTX]round;[NVTX]model:forward;")
                            for line in forward), True)
        expect_in("paths", "[GPU_Kernel]forward_kernel", folded.stdout)
        trace = json.loads(report(work.file("capture.xpu"), "--chrome-trace").stdout)
        slices = [e for e in trace["traceEvents"] if e.get("cat") == "nvtx"]
        expect("slices", len(slices), sum(truth["pushed"].values()) +
               sum(truth["started"].values()) + truth["marks"])
        (category,) = {e["args"]["category"] for e in slices if e["name"] == "model:forward"}
        expect("category", category, "layers")


def test_left_out():
    require_recording()
    with Workspace() as work:
        _, capture = run(work, "--rounds", "5", options=["--no-nvtx"])
        expect("events", len(capture.nvtx_events), 0)
        expect("kernels", len(capture.kernels), 5 * 2 * 3)


def test_another_tool_has_it():
    require_recording()
    with Workspace() as work:
        result = work.record(workload("nvtx_ranges"), "--rounds", "5",
                             env=simulated(NVTX_INJECTION64_PATH="/nonexistent/tool.so"))
        expect("status", result.returncode, 0)
        expect_in("note", "NVTX_INJECTION64_PATH is already set", result.stderr)
        expect("events", len(work.capture().nvtx_events), 0)


def test_each_is_there_or_counted():
    require_recording()
    with Workspace() as work:
        truth, capture = run(work, "--no-gpu", "--rounds", "50000", "--threads", "2")
        kinds = [event["kind"] for event in capture.nvtx_events]
        seen = len(kinds) - kinds.count(DOMAIN) - kinds.count(CATEGORY)
        happened = 2 * sum(truth["pushed"].values()) - 1 + truth["marks"] + 4
        lost = capture.losses().get("wire_ring_full", 0)
        expect("seen and lost", seen + lost, happened)


if __name__ == "__main__":
    os.environ.pop("NVTX_INJECTION64_PATH", None)
    main(globals())

"""NVTX: every range and mark of a program, whichever of NVTX and CUDA comes first."""

import json
import os

from simulated_gpu import record, simulated
from xpu_testing import (Workspace, expect, expect_in, folded, main, report, require_recording,
                         table_rows, workload)

DOMAIN, CATEGORY, MARK, PUSH, POP, START, END = 5, 6, 0, 1, 2, 3, 4


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
    rows = table_rows(work.file("capture.xpu"), "nvtx_sum", "--strict")
    for style, wanted in (("PushPop", truth["pushed"]), ("StartEnd", truth["started"])):
        expect(style, {r["Range"]: r["Instances"] for r in rows if r["Style"] == style}, wanted)


def test_ranges_around_kernels():
    require_recording()
    with Workspace() as work:
        truth, capture = run(work, "--rounds", "200", "--threads", "3")
        check_ranges(work, truth, capture)
        kernels = {}
        for row in table_rows(work.file("capture.xpu"), "nvtx_kern_sum", "--strict"):
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
        report(work.file("capture.xpu"), "--strict")


def test_filters_and_frames():
    require_recording()
    with Workspace() as work:
        truth, _ = run(work, "--rounds", "10", "--threads", "1")
        wanted = truth["kernels"]["model:forward/forward_kernel"]
        (row,) = table_rows(work.file("capture.xpu"), "cuda_gpu_kern_sum", "--strict", "--nvtx",
                            "^model:forward$")
        expect("kernels in a range", row["Instances"], wanted)
        stacks = folded("--mode", "gpu", "--nvtx-frames", "--unit", "ns", work.file("capture.xpu"))
        forward = [stack for stack in stacks if "[GPU_Kernel]forward_kernel" in stack]
        expect("paths", {stack.startswith("[NVTX]round;[NVTX]model:forward;") for stack in forward},
               {True})
        trace = json.loads(report(work.file("capture.xpu"), "--chrome-trace"))
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

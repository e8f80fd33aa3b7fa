"""--capture-range: only what lies in ranges of the program is recorded."""

import json

from control_testing import expect_samples_inside, switches
from simulated_gpu import record
from xpu_testing import Workspace, expect, expect_in, main, require_recording, workload


def kernels_of(capture):
    counts = {}
    for kernel in capture.kernels:
        name = next(n for n in ("first_inside_kernel", "first_outside_kernel", "outside_kernel",
                                "inside_kernel") if n in kernel["name"])
        counts[name] = counts.get(name, 0) + 1
    return counts


def check_capture_range(option, by, *more):
    require_recording()
    with Workspace() as work:
        result = record(work, "--capture-range", option, *more, workload("capture_ranges"),
                        "--by", by)
        truth = json.loads(result.stdout)["kernels"]
        capture = work.capture()
        expect("kernels", kernels_of(capture),
               {name: truth[name] for name in ("inside_kernel", "first_inside_kernel")})
        stacks = {(e["instance"], e["correlation_id"]) for e in capture.launch_stacks}
        without = [k for k in capture.kernels
                   if (k["instance"], k["correlation_id"]) not in stacks]
        expect("kernels without a stack", without, [])
        expect("losses", capture.losses(), {})
        expect("switches", [on for on, _ in switches(capture)], [False] + [True, False] * 3)
        expect_samples_inside(capture)


def test_profiler_api():
    check_capture_range("cudaProfilerApi", "profiler")


def test_profiler_api_with_the_marker():
    check_capture_range("cudaProfilerApi", "profiler", "--launch-stacks", "uprobe")


def test_nvtx_ranges():
    check_capture_range("nvtx:step@app", "push")
    check_capture_range("nvtx:step@*", "start")


def test_capture_range_that_never_opens():
    require_recording()
    with Workspace() as work:
        result = record(work, "--capture-range", "nvtx:step", workload("capture_ranges"), "--by",
                        "push")
        expect_in("message", "nothing was recorded: no NVTX range nvtx:step began", result.stderr)
        capture = work.capture()
        expect("kernels", len(capture.kernels), 0)
        expect("losses", capture.losses(), {})


if __name__ == "__main__":
    main(globals())

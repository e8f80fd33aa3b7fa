"""Recordings with older versions of CUPTI, as the simulated device plays them: their records, ids and
functions (XPU_FAKE_CUPTI_VERSION). What is recorded is what the newest records, less what the older
one cannot tell; that is named. gpu_truth_test runs with each of them too."""

import os
import re
import subprocess
from collections import Counter

import gpu_attach_test
from gpu_capture import GpuCapture
from gpu_programs import REAL, prepare, recorded
from simulated_gpu import simulated
import xpu_testing
from xpu_testing import Workspace, expect, expect_in, main, recorder

NEWEST = "13.0"
# Version -> bytes of a record of a kernel, memcpy, memset, graph launch and overhead.
SIZES = {"11.8": (200, 88, 88, 48, 40), "12.0": (208, 88, 88, 48, 40), "12.4": (208, 88, 88, 56, 56),
         "12.9": (208, 96, 88, 56, 56), NEWEST: (216, 96, 88, 56, 56)}
KINDS = ("kernel", "memcpy", "memset", "graph_launch", "overhead")
OLDER = [version for version in SIZES if version != NEWEST]
EVENTS = ("kernel", "memcpy", "memset", "graph_launch", "memory_operation", "api_call", "launch_stack",
          "jit_operation", "device")
UPDATES = "changes by cudaGraphExecUpdate are not followed"
SAMPLES = "no samples of GPU code (--gpu-samples)"
COUNTERS = "no hardware counters (--gpu-metrics)"
PARAMETERS = "new parameters of graph nodes are not followed"
NODES = ("with a newer driver it hides which code adds graph nodes, so launches captured into a graph "
         "count as pending")
LACKS = {"11.8": [NODES, UPDATES, SAMPLES, COUNTERS, PARAMETERS],
         "12.0": [UPDATES, SAMPLES, COUNTERS, PARAMETERS],
         "12.4": [COUNTERS, PARAMETERS], "12.9": [PARAMETERS], NEWEST: []}


def recorded_with(version, work, name, *arguments, options=()):
    _, capture = recorded(work, name, *arguments, options=options,
                          env={"XPU_FAKE_CUPTI_VERSION": version})
    return capture


def facts(capture):
    """What does not depend on the clock or on where the loader puts things."""
    events = [e for kind in EVENTS for e in capture.of(kind)]
    return {
        "counts": {kind: len(capture.of(kind)) for kind in EVENTS},
        "kernels": capture.kernels_by_name(),
        "calls": Counter(map(capture.call_name, capture.of("api_call"))),
        "without a valid time": [e for e in events if "end_ns" in e and
                                 not 0 < int(e["start_ns"]) <= int(e["end_ns"])],
        "stacks, calls and GPU time": capture.folded("--mode", "gpu", "--unit", "ns"),
        "losses": capture.losses(),
    }


def compare(name, *arguments, options=()):
    """Records with each version; by version, what differs from the newest."""
    found = {}
    about_stacks = {}
    for version in SIZES:
        with Workspace() as work:
            capture = recorded_with(version, work, name, *arguments, options=options)
            found[version] = facts(capture)
            about_stacks[version] = {e["name"]: e["count"] for e in capture.of("ledger")
                                     if e["name"] in xpu_testing.ABOUT_STACKS}
            sizes = {kind: {int(e["record_size_bytes"]) for e in capture.of(kind)}
                     for kind in KINDS if capture.of(kind)}
            expect(f"sizes of the records of {version}", sizes,
                   {kind: {size} for kind, size in zip(KINDS, SIZES[version]) if kind in sizes})
            expect(f"CUPTI's number with {version}",
                   {int(p["cupti_version"]) for p in capture.of("gpu_process")} - {0},
                   {{"11.8": 18, "12.0": 19, "12.4": 22, "12.9": 27, NEWEST: 130001}[version]})
    differences = {version: {what: (value, found[NEWEST][what]) for what, value in
                             found[version].items() if value != found[NEWEST][what]}
                   for version in OLDER}
    if any(differences.values()):
        print(f"        {name}: about stacks: {about_stacks}", flush=True)
    return differences


def same(name, *arguments, **options):
    for version, differences in compare(name, *arguments, **options).items():
        expect(f"{name}: {version} differs from {NEWEST}", differences, {})


def test_kernels_copies_and_waits():
    same("transformer", "--steps", 10)


def test_driver_api():
    same("driver_api")


def test_launch_entry_points():
    same("launch_entry_points", "--launches", 20)


def test_threads():
    same("two_kernels", "--mode=threads", "--launches", 200)


def test_graphs_as_a_whole():
    """11.8 does not say which launches are captured, nor of how many nodes a graph is."""
    for version, differences in compare("graph", "--nodes", 20, "--replays", 10).items():
        if version == "11.8":
            expect("losses", differences.pop("losses"), ({"launch_pending": 20}, {}))
            old, new = differences.pop("stacks, calls and GPU time")
            expect("time", sum(old.values()), sum(new.values()))
        expect(f"{version} differs from {NEWEST}", differences, {})


def test_copies_of_all_kinds():
    """cudaMemcpyBatchAsync came with 12.8: a CUPTI that is older has no id for its calls."""
    for version, differences in compare("copies", "--calls", 3).items():
        if version == "12.9":
            expect(f"{version} differs", differences, {})
            continue
        counts, newest = differences["counts"]
        for kind in ("memcpy", "memset", "kernel"):
            expect(f"{kind} with {version}", counts[kind], newest[kind])
        expect(f"losses with {version}", set(differences["losses"][0]), {"work_without_launch"})
        calls, newest = differences["calls"]
        expect(f"calls that {version} does not know",
               {re.sub("Async$", "", name) for name in newest - calls} -
               {"cudaMemcpyBatch", "cudaMemcpy3DBatch", "cuMemcpyBatch", "cuMemcpy3DBatch"}, set())


# Parts of graph_paths that need what old versions lack.
NEWER_PARTS = ("RunGeneric", "RunUpdate", "RunSetParams")


def made_by(capture):
    """The GPU time of nodes, by the code that made them."""
    lines = capture.folded("--mode", "gpu", "--graph-stacks=creation", "--unit", "ns")
    return {line: ns for line, ns in lines.items() if not any(part in line for part in NEWER_PARTS)
            and ";Run" in line}


def test_nodes_of_graphs():
    """Each is under the code that made it. Before 12.4 the executable graph of cudaGraphExecUpdate
    is not known, and cudaGraphAddNode (12.2) makes nodes without a call."""
    with Workspace() as work:
        newest = recorded_with(NEWEST, work, "graph_paths", "--replays", 5,
                               options=["--cuda-graph-trace=node"])
        made = made_by(newest)
    expect("parts", set(re.findall(r";Run(\w+)", "\n".join(made))) >=
           {"Capture", "Fork", "Explicit", "Child", "Clone"}, True)
    for version in OLDER:
        with Workspace() as work:
            capture = recorded_with(version, work, "graph_paths", "--replays", 5,
                                    options=["--cuda-graph-trace=node"])
            expect(f"kernels with {version}", capture.kernels_by_name(), newest.kernels_by_name())
            expect(f"nodes with {version}", made_by(capture), {} if version == "11.8" else made)
            unknown = capture.entry("graph_node_unknown")
            is_old = version in ("11.8", "12.0")
            expect(f"unknown with {version}", unknown is not None, is_old)
            if version == "12.0":
                expect_in("why", "updates of unidentified graphs: 1", str(unknown))


def test_attach_leaves_a_program_with_graphs_alive():
    """cuptiFinalize crashes such a program before 12.6: the simulated one aborts it."""
    for version in ("11.8", "12.4"):
        os.environ["XPU_FAKE_CUPTI_VERSION"] = version
        try:
            gpu_attach_test.test_graph_that_is_replayed_only_after_the_window()
            gpu_attach_test.test_every_launch_of_each_window()
        finally:
            del os.environ["XPU_FAKE_CUPTI_VERSION"]


def how_tested(version):
    return ("tested on GPUs" if version in ("11.8", "12.4", NEWEST)
            else "expected to work, tested on a simulated GPU only")


def test_the_capture_names_what_is_missing():
    for version, lacks in LACKS.items():
        with Workspace() as work:
            recorded_with(version, work, "vector_add")
            note = GpuCapture(work.path / "capture.xpu").entry("old_cupti")
            expect(f"note with {version}", note is not None, bool(lacks))
            if lacks:
                expect("severity", note["severity"], "note")
                expect_in("text", f"CUPTI of CUDA {version} with a driver of CUDA 13.0 "
                          f"({how_tested(version)}): {'; '.join(lacks)}", str(note))


def check_line(**variables):
    result = subprocess.run([recorder(), "--check", "--gpu-only"], env=simulated(**variables),
                            capture_output=True, text=True)
    [line] = [l for l in result.stdout.splitlines() if " libcupti: " in l]
    return line


def test_check_names_the_combination():
    for version, lacks in LACKS.items():
        line = check_line(XPU_FAKE_CUPTI_VERSION=version)
        how = how_tested(version)
        expect("state", line.split()[0], "ok")
        expect(f"combination with {version}", line.split("/libcupti.so.13, ")[1],
               "; ".join([f"CUDA {version} with a driver of CUDA 13.0: {how}", *lacks]))
    for version, how in (("12.2", "expected to work, not tested"),
                         ("13.1", "expected to work, not tested"),
                         ("11.6", "not supported, CUDA 11.8 is the oldest that is")):
        expect_in(version, f"CUDA {version} with a driver of CUDA 13.0: {how}",
                  check_line(XPU_FAKE_CUPTI_VERSION=version))
    expect_in("a newer driver", "CUDA 13.0 with a driver of CUDA 13.1: expected to work, tested with a "
              "driver of CUDA 13.0", check_line(XPU_FAKE_DRIVER_VERSION="13.1"))


def test_check_of_options_that_need_a_newer_cupti():
    for version, option, needs in (("11.8", "--gpu-samples", "12.4"), ("12.4", "--gpu-metrics", "12.6")):
        result = subprocess.run([recorder(), "--check", "--gpu-only", option],
                                env=simulated(XPU_FAKE_CUPTI_VERSION=version),
                                capture_output=True, text=True)
        expect(f"status with {version}", result.returncode, 1)
        expect_in("why", f"{option} needs CUPTI of CUDA {needs} or newer", result.stdout)


def test_an_older_driver():
    """The libcupti of its name is looked for, and a newer one is refused."""
    versions = {"XPU_FAKE_DRIVER_VERSION": "11.8", "XPU_FAKE_CUPTI_VERSION": "11.8"}
    expect_in("line", "/libcupti.so.11.8, CUDA 11.8 with a driver of CUDA 11.8: ",
              check_line(**versions))
    with Workspace() as work:
        account, capture = recorded(work, "vector_add", env=versions)
        expect("kernels", len(capture.of("kernel")), account["launches"])
        expect("losses", capture.losses(), {})
        expect("file", {os.path.basename(p["cupti_path"]) for p in capture.of("gpu_process")} - {""},
               {"libcupti.so.11.8"})
    line = check_line(XPU_FAKE_DRIVER_VERSION="12.4")
    expect("state", line.split()[0], "missing")
    expect_in("reason", "CUDA 13.0, is newer than the driver", line)


if __name__ == "__main__":
    if REAL:
        xpu_testing.skip("simulated", "these versions are those of the simulated device")
    prepare()
    main(globals())

"""Every GPU operation, attributed exactly: one scenario after the other, with the same assertions
on the simulated device and, with XPU_TEST_GPU=1 and XPU_WORKLOAD_DIR (made by
tests/workloads/build_gpu.sh), on a real GPU. XPU_TEST_PYTHON: a Python that has PyTorch. What a
scenario found is printed as one line of figures."""

import json
import os
import sys
from collections import Counter

import gpu_operations_graphs
import gpu_operations_processes
import gpu_operations_pytorch
import xpu_testing
from gpu_capture import GpuCapture, field, plain_name, stream_dump
from gpu_operations import (COPY_KINDS, SYNC_KINDS, Sites, check_all_matched,
                            check_one_stack_per_call, figures, leaf_sums, recorded_python)
from gpu_programs import REAL, prepare, program, recorded
from xpu_testing import ABOUT_STACKS, PATIENCE_S, Workspace, expect, report


def test_launch_entry_points():
    launches = 20
    with Workspace() as work:
        account, capture = recorded(work, "launch_entry_points", "--launches", launches)
        entry_points = {d["function"]: d for d in account["entry_points"]}
        refused = [d for d in entry_points.values() if d["launches"] < launches]
        expect("losses", capture.losses(), {})
        expect("kernels by name", capture.kernels_by_name(), account["kernels"])
        expect("kernels without a stack of their id", capture.unmatched(), [])
        check_one_stack_per_call(capture)
        sites = Sites(capture, "launch_entry_points")
        # Below an entry point may be the stub that nvcc makes for <<<>>>.
        paths = {sites.path_of(s): ";".join(sites.path_of(s).split(";")[:3])
                 for s in capture.of("launch_stack")}
        taken = Counter(paths[sites.path_of(s)] for s in capture.of("launch_stack"))
        for entry_point in entry_points.values():
            calls = entry_point["launches"] + (entry_point in refused)
            expect(f"stacks of {entry_point['function']}", taken[entry_point["path"]], calls)
        apis = {(paths[sites.path_of(s)], capture.call_name(s)) for s in capture.of("launch_stack")}
        expect("the call of each entry point",
               {(d["path"], d["api"]) for d in entry_points.values()} - apis, set())
        counts = check_all_matched(capture)
        expect("launches seen", counts["seen"], account["launches"])
        expect("launches that CUDA refused", counts["failed"], len(refused))
        leaves = {}
        for line in capture.folded("--mode", "gpu", "--unit", "ns"):
            *path, api, leaf = line.split(";")
            names = [f.split("(")[0] for f in path]
            leaves[names[names.index("RunEntryPoint") + 1]] = (
                api, plain_name(leaf.removeprefix("[GPU_Kernel]")))
        expect("folded: function, call and kernel", leaves,
               {d["function"]: (d["api"], d["kernel"]) for d in entry_points.values()
                if d["record"] and d["launches"]})
        host_functions = sum(d["launches"] for d in entry_points.values() if not d["record"])
        figures(f"{len(entry_points)} entry points, {account['launches']} kernels, "
                f"{host_functions} host functions, "
                f"refused by this driver: {[d['api'] for d in refused]}")


def records_by_function(capture, sites):
    """(function, what) -> (records, bytes). Waits that CUDA does on its own have no call."""
    found = {}
    for kind, names, field_name in (("memcpy", COPY_KINDS, "copy_kind"), ("memset", None, None),
                                    ("synchronization", SYNC_KINDS, "type")):
        for event in capture.of(kind):
            if kind == "synchronization" and capture.key(event) not in capture.stacks:
                continue
            what = names[event[field_name]] if names else "set"
            at = (sites.innermost(event), what)
            records, size = found.get(at, (0, 0))
            found[at] = (records + 1, size + int(event.get("size_bytes", 0)))
    return found


def test_copies():
    with Workspace() as work:
        account, capture = recorded(work, "copies", "--calls", 3)
        check_one_stack_per_call(capture)
        expect("losses", capture.losses(), {})
        transfers = capture.of("memcpy") + capture.of("memset")
        expect("copies and sets without a stack of their id",
               [t for t in transfers if capture.key(t) not in capture.stacks], [])
        found = records_by_function(capture, Sites(capture, "copies"))
        expected = {("RunCalls", "device sync"): (account["device_syncs_of_main"], 0)}
        for call in account["calls"]:
            kinds = call["kind"].split("+")
            each = call["calls"] * call["records_per_call"] // len(kinds)
            size = call["calls"] * call["bytes_per_call"] // len(kinds)
            for kind in kinds if each else ():
                expected[(call["function"], kind)] = (each, size)
        # A copy that returns when it is done may also have a record of the wait.
        waits = {at for at in found if at not in expected and at[1].endswith("sync")}
        expect("(function, kind): records, bytes",
               {at: n for at, n in found.items() if at not in waits}, expected)
        alone = [s for s in capture.of("synchronization")
                 if capture.key(s) not in capture.stacks]
        figures(f"{len(account['calls'])} functions, {len(transfers)} copies and sets, "
                f"{len(capture.of('synchronization'))} waits, {len(waits)} functions that also "
                f"wait, {len(alone)} waits of CUDA's own, refused by this driver: "
                f"{[c['function'] for c in account['calls'] if 'error' in c]}")


# ---- threads, devices ------------------------------------------------------------------------


def count_matches(path):
    """Of a large capture: ids of kernels, ids of stacks, the ledger without notes."""
    kernels, stacks, losses = Counter(), set(), {}
    for kind, line in stream_dump(path, "kernel", "launch_stack", "ledger"):
        if kind == "kernel":
            kernels[field(line, "correlation_id")] += 1
        elif kind == "launch_stack":
            stacks.add(field(line, "correlation_id"))
        elif "severity=note" not in line and '"file_' not in line:  # files are this machine's
            losses[line.split('"')[1]] = field(line, "count")
    return kernels, stacks, losses


def summary_counts(path):
    # The counts need the summary only, not what is in the capture.
    capture = GpuCapture.__new__(GpuCapture)
    capture.path = str(path)
    return capture.launch_counts()


def test_many_threads():
    each = 50000 if REAL else 2500
    arguments = ("--launches", str(each), "--threads", "8")
    with Workspace() as work:
        result = work.record("--", program("empty_launches"), *arguments, timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        account = json.loads(result.stdout.splitlines()[-1])
        path = work.path / "capture.xpu"
        kernels, stacks, losses = count_matches(path)
        counts = summary_counts(path)
        expect("launches seen = matched + pending + lost", counts["seen"],
               counts["matched"] + counts["pending"] + counts["lost"])
        expect("kernel records of one id", max(kernels.values()), 1)
        expect("launches with their kernel", counts["matched"], len(kernels))
        if not losses:
            expect("kernels", len(kernels), account["launches"])
            expect("kernels without a stack of their id", kernels.keys() - stacks, set())
            expect("launches", counts["matched"], account["launches"])
        else:
            lost = losses.get("wire_ring_full", 0) + losses.get("cupti_dropped", 0)
            expect(f"launches missed are in the ledger {losses}",
                   account["launches"] - len(kernels) <= lost, True)
            if not losses.get("launch_ring_full"):  # what has no call has its stack
                expect("launches seen, pending", (counts["seen"], counts["pending"]),
                       (account["launches"], 0))
            expect(f"stacks missed are in the ledger {losses}",
                   len(kernels.keys() - stacks) <= losses.get("launch_ring_full", 0), True)
        report("--strict", path, status=3 if set(losses) - ABOUT_STACKS else 0)
        slowest = max(w["ns_per_launch"] for w in account["workers"])
        figures(f"{account['launches']} launches on 8 threads, {counts['matched']} matched, losses "
                f"{losses}, {slowest / 8:.0f} ns per launch, "
                f"{os.path.getsize(path) / account['launches']:.1f} bytes each")


def test_lost_records_are_lost_launches():
    launches = 20000 if REAL else 5000
    with Workspace() as work:
        account, capture = recorded(work, "empty_launches", "--launches", launches,
                                    env={"XPU_TEST_DROP": "activity:1000"})
        losses, counts = capture.losses(), capture.launch_counts()
        missed = account["launches"] - len(capture.of("kernel"))
        expect("losses", set(losses), {"cupti_dropped"})
        expect(f"launches missed, of {losses} dropped", 0 < missed <= losses["cupti_dropped"], True)
        expect("seen, matched, pending, lost",
               [counts[n] for n in ("seen", "matched", "pending", "lost")],
               [account["launches"], len(capture.of("kernel")), 0, missed])
        report("--strict", work.path / "capture.xpu", status=3)
        figures(f"{account['launches']} launches = {counts['matched']} matched + 0 pending + "
                f"{missed} lost; records dropped: {losses['cupti_dropped']}")


def devices_by_instance(capture):
    return {(d["instance"], d["device_id"]): d["uuid"] for d in capture.of("device")}


def check_devices(capture, account):
    """Each kernel on the device that its process says, by UUID, under the process's own pid."""
    uuids, actors = devices_by_instance(capture), account["actors"]
    pids = {p["instance"]: int(p["pid"]) for p in capture.of("gpu_process")}
    found = Counter((pids[k["instance"]], capture.plain[k["name"]],
                     uuids[(k["instance"], k["device_id"])]) for k in capture.of("kernel"))
    expect("kernels by process, name and device", dict(found),
           {(actor["pid"], gpu["kernel"], gpu["uuid"]): actor["kernels"][gpu["kernel"]]
            for actor in actors for gpu in actor["gpus"]})
    expect("pids of the stacks", {int(capture.stacks[capture.key(k)]["pid"])
                                  for k in capture.of("kernel")}, {a["pid"] for a in actors})
    names = {(d["uuid"], d["name"]) for d in capture.of("device")}
    expect("names of the devices",
           {(g["uuid"], g["name"]) for a in actors for g in a["gpus"]} - names, set())


def recorded_peer(work, *arguments):
    account, capture = recorded(work, "peer", *arguments, env={"XPU_FAKE_DEVICES": "2"})
    if account["devices"] < 2:
        raise xpu_testing.Skip("this machine has one GPU")
    expect("losses", capture.losses(), {})
    check_all_matched(capture)
    return account, capture


def copied_between(capture, sites):
    """Bytes by function, source and destination. Between GPUs that do not see each other's memory
    the driver copies by way of the host: one record on each GPU, both of one call."""
    to_host, from_host = "2", "1"
    copied = Counter()
    halves = {}
    for copy in capture.of("memcpy"):
        size, function = int(copy["size_bytes"]), sites.innermost(copy)
        if copy["peer_to_peer"] == "1":
            copied[(function, int(copy["source_device_id"]),
                    int(copy["destination_device_id"]))] += size
            continue
        half = halves.setdefault((function, capture.key(copy)), {to_host: None, from_host: None})
        expect("a half of a copy by way of the host, once", half[copy["copy_kind"]], None)
        half[copy["copy_kind"]] = (int(copy["device_id"]), size)
    for (function, _), half in halves.items():
        expect(f"bytes of both halves of {half}", half[to_host][1], half[from_host][1])
        copied[(function, half[to_host][0], half[from_host][0])] += half[to_host][1]
    return dict(copied)


def test_two_devices():
    with Workspace() as work:
        for arguments in ((), ("--peer-access",)):
            account, capture = recorded_peer(work, *arguments)
            check_devices(capture, account)
            [actor] = account["actors"]
            sites = Sites(capture, "peer")
            expect("bytes by function, from, to", copied_between(capture, sites),
                   {(c["path"], c["from"], c["to"]): c["calls"] * c["bytes_per_call"]
                    for c in actor["peer_copies"]})
            leaves = leaf_sums(capture.folded("--mode", "gpu", "--unit", "ns", "--device-tags"))
            by_device = Counter()
            for kernel in capture.of("kernel"):
                by_device[f"[GPU{kernel['device_id']}_Kernel]"] += capture.duration(kernel)
            tagged = Counter()
            for leaf, ns in leaves.items():
                tagged[leaf[:leaf.index("]") + 1]] += ns
            expect("ns of kernels by device tag",
                   {t: ns for t, ns in tagged.items() if "Kernel" in t}, dict(by_device))
            figures(f"{arguments}: {len(capture.of('kernel'))} kernels on 2 devices, "
                    f"{len(capture.of('memcpy'))} copies between them")


def test_two_devices_two_processes():
    with Workspace() as work:
        account, capture = recorded_peer(work, "--processes", 2)
        check_devices(capture, account)
        figures(f"kernels by process: {[(a['pid'], a['launches']) for a in account['actors']]}")


# ---- CUDA that comes late, goes, or is not there ---------------------------------------------

LATE = """
import time
end = time.monotonic() + 0.4
while time.monotonic() < end: pass
work(25, 4096)
"""
RESET = """
work(25, 4096)
assert cudart.cudaDeviceReset() == 0
work(30, 8192)
"""


def check_sets(capture, expected):
    sizes = Counter(int(s["size_bytes"]) for s in capture.of("memset"))
    expect("bytes set: how often", dict(sizes), expected)
    expect("sets without a stack of their id",
           [s for s in capture.of("memset") if capture.key(s) not in capture.stacks], [])
    expect("losses", capture.losses(), {})


def test_cuda_loaded_late():
    with Workspace() as work:
        capture = recorded_python(work, LATE, options=("-F", "499"))
        check_sets(capture, {4096: 25})
        first = min(int(c["start_ns"]) for c in capture.of("api_call"))
        before = [s for s in capture.of("cpu_sample") if int(s["time_ns"]) < first]
        expect("CPU samples before CUDA", len(before) > 20, True)
        figures(f"25 sets after {len(before)} CPU samples without CUDA")


def test_device_reset():
    with Workspace() as work:
        capture = recorded_python(work, RESET)
        check_sets(capture, {4096: 25, 8192: 30})
        figures("25 sets before cudaDeviceReset, 30 after it")


NO_GPU = """
import ctypes
try:
    result = ctypes.CDLL("libcuda.so.1").cuInit(0)
except OSError:
    result = "no library"
print("cuInit:", result != 0)
"""


def test_no_gpu():
    """Simulated: no CUDA on the machine at all. Real: no device that the program may see."""
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    env.pop("LD_LIBRARY_PATH", None)
    with Workspace() as work:
        result = work.record("--", sys.executable, "-c", NO_GPU, env=env)
        expect(f"status, output ({result.stderr})", (result.returncode, result.stdout),
               (0, "cuInit: True\n"))
        capture = GpuCapture(work.path / "capture.xpu")
        if not REAL:
            expect("CUDA processes", capture.of("gpu_process"), [])
        expect("GPU records", capture.of("kernel") + capture.of("api_call"), [])
        expect("losses", capture.losses(), {})
        figures(f"{len(capture.of('gpu_process'))} CUDA processes, nothing lost")


if __name__ == "__main__":
    prepare()
    xpu_testing.main({**globals(), **gpu_operations_graphs.TESTS,
                      **gpu_operations_processes.TESTS, **gpu_operations_pytorch.TESTS})

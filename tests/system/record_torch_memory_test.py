"""Memory that a caching allocator hands out (--gpu-memory), of libraries with PyTorch's names: how
much at once and by which code, against the program's own account. However the libraries are linked,
when they are loaded, and what of them is not known."""

import json
import os
import re
import subprocess

from simulated_gpu import record, simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, folded, main, report,
                         require_recording, table_rows)

STEPS = 40
FUNCTION = re.compile(r"\b(MakeWeights|Forward|KeepLoss)\(")


def library(variant):
    find(f"tests/system/torch_{variant}/libc10.so")
    return find(f"tests/system/torch_{variant}/libc10_cuda.so")


def program(variant, mode, *arguments):
    return [find("tests/system/xpu_torch_memory"), library(variant), mode, *map(str, arguments)]


def account_of(result):
    return json.loads(result.stdout.splitlines()[-1])


def recorded(work, variant, mode, *arguments, options=()):
    result = record(work, "--gpu-memory", *options, "--", *program(variant, mode, *arguments))
    return account_of(result), work.file("capture.xpu")


def check_account(capture, account, reports=None):
    """Every block is recorded: the program's own sums, and its peak by code."""
    expect("losses", capture.losses(), {})
    events = capture.allocator_events
    expect("events", len(events), account["reports"] if reports is None else reports)
    expect("allocated at most", max(e["allocated_bytes"] for e in events), account["peak"])
    expect("reserved at most", max(e["reserved_bytes"] for e in events), account["reserved"])
    expect("handed out and not taken back", sum(e["size_bytes"] for e in events), account["left"])
    expect("handed out without a stack",
           [e for e in events if e["size_bytes"] > 0 and not e["stack"]], [])


def by_function(path, *arguments):
    """Bytes by the function of the program that asked for them."""
    bytes_of = {}
    for stack, value in folded("--mode", "memory", *arguments, path).items():
        frames = stack.split(";")
        if frames[-1] != "[GPU_Memory]PyTorch":
            continue
        name = (FUNCTION.findall(stack) or frames[-2:-1])[-1]
        bytes_of[name] = bytes_of.get(name, 0) + value
    return bytes_of


def test_peak_by_code():
    require_recording()
    with Workspace() as work:
        for variant in ("lazy", "now", "direct"):
            account, path = recorded(work, variant, "steady", STEPS)
            check_account(work.capture(), account)
            expect(f"{variant}: at the peak", by_function(path),
                   {"MakeWeights": account["weights"],
                    "Forward": account["peak"] - account["weights"]})
            expect(f"{variant}: left", by_function(path, "--memory", "left"), {})
        rows = [row for row in table_rows(path, "gpu_mem_alloc_sum") if row["Memory"] == "PyTorch"]
        expect("peak in the table", round(sum(row["Peak (MB)"] for row in rows), 3),
               round(account["peak"] / 1e6, 3))
        expect("blocks in the table", sum(row["Count"] for row in rows), 1 + 3 * STEPS)
        # What the allocator has from CUDA is not counted twice.
        kinds = {row["Memory"] for row in table_rows(path, "gpu_mem_alloc_sum")}
        expect("kinds", kinds, {"PyTorch", "PyTorch reserve", "device"})
        trace = json.loads(report("--chrome-trace", path))
        counters = {e["name"]: e["args"]["MB"] for e in trace["traceEvents"] if e["ph"] == "C" and
                    e["name"].startswith("PyTorch")}
        expect("counters", sorted(counters), ["PyTorch allocated", "PyTorch reserved"])


def test_leak_is_named_first():
    require_recording()
    with Workspace() as work:
        account, path = recorded(work, "lazy", "leak", STEPS)
        check_account(work.capture(), account)
        expect("left", by_function(path, "--memory", "left"), {"KeepLoss": account["left"]})
        expect("growth", by_function(path, "--memory", "growth"), {"KeepLoss": account["left"]})
        summary = report(path)
        first = summary[summary.index("What to look at next"):].replace("\n  ", " ")
        expect_in("first hint", "- A tensor per step leaks at KeepLoss(unsigned long): ", first.splitlines()[1])


def test_fragmentation_is_named():
    require_recording()
    with Workspace() as work:
        account, path = recorded(work, "lazy", "fragment", 20)
        check_account(work.capture(), account)
        summary = report(path).replace("\n  ", " ")
        expect_in("hint", "PyTorch's memory on GPU 0 is fragmented", summary)
        expect_in("where", "Forward(unsigned long). So", " ".join(summary.split()))


def test_steady_program_has_no_hint():
    require_recording()
    with Workspace() as work:
        _, path = recorded(work, "lazy", "steady", STEPS)
        summary = report(path)
        expect("leak", "leaks at" in summary, False)
        expect("fragmentation", "fragmented" in summary, False)
        expect_in("section", "Memory of PyTorch's allocator", summary)


def test_library_that_is_loaded_late():
    require_recording()
    with Workspace() as work:
        account, _ = recorded(work, "lazy", "steady", STEPS, "late")
        check_account(work.capture(), account)


def test_old_version_without_totals():
    require_recording()
    with Workspace() as work:
        account, path = recorded(work, "old", "steady", STEPS)
        capture = work.capture()
        expect("events", len(capture.allocator_events), account["reports"])
        expect("totals", {e["has_totals"] for e in capture.allocator_events}, {False})
        expect("at the peak", sum(by_function(path).values()), account["peak"])


def test_unknown_version_is_reported():
    require_recording()
    with Workspace() as work:
        account, _ = recorded(work, "unknown", "steady", STEPS)
        capture = work.capture()
        expect("events", capture.allocator_events, [])
        expect("reports", account["reports"] > 0, True)
        expect("losses", capture.losses(), {"allocator_unknown": 1})
        expect("which", capture.details("allocator_unknown"),
               ["_ZN3c1027reportMemoryUsageToProfilerEPvldNS_6DeviceE"])


def test_only_on_request():
    require_recording()
    with Workspace() as work:
        record(work, "--", *program("lazy", "steady", STEPS))
        expect("events", work.capture().allocator_events, [])


def test_running_program_gets_its_slot_back():
    require_recording()
    with Workspace() as work:
        process = subprocess.Popen(program("now", "endless"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, env=simulated(), text=True)
        try:
            expect("line", process.stdout.readline(), "running\n")
            before = slot_of(process.pid, library("now"))
            for turn in range(2):
                result = work.record("-p", str(process.pid), "-d", "300ms", "--gpu-memory",
                                     output=f"{turn}.xpu", env=simulated(), timeout=PATIENCE_S)
                expect(f"status ({result.stderr})", result.returncode, 0)
                expect("the slot", slot_of(process.pid, library("now")), before)
                events = work.capture(f"{turn}.xpu").allocator_events
                expect("blocks", len(events) > 10, True)
                at_peak = folded("--mode", "memory", work.file(f"{turn}.xpu"))
                earlier = [value for stack, value in at_peak.items()
                           if "[before the recording]" in stack]
                expect("peak", sum(at_peak.values()), max(e["allocated_bytes"] for e in events))
                expect("the weights are of before", earlier, [4000256])
            output, _ = process.communicate(timeout=PATIENCE_S)
            expect("status", process.returncode, 0)
            json.loads(output.splitlines()[-1])
        finally:
            process.kill()
            process.communicate()


def slot_of(pid, path):
    """What the library's slot for the function that it reports to holds."""
    relocations = subprocess.run(["readelf", "-rW", path], check=True, capture_output=True,
                                 text=True).stdout
    line = next(line for line in relocations.splitlines()
                if "reportMemoryUsageToProfiler" in line)
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        base = min(int(m.split("-")[0], 16) for m in maps if os.path.realpath(path) in m)
    with open(f"/proc/{pid}/mem", "rb") as memory:
        memory.seek(base + int(line.split()[0], 16))
        return int.from_bytes(memory.read(8), "little")


if __name__ == "__main__":
    main(globals())

"""What a user sees when CUPTI, the device or the program behave as real ones sometimes do: one test
per switch of the simulated device (tests/fake_cuda/README.md), from xpu-record to xpu-report."""

import json
import os
import re
import subprocess
import sys

import xpu_testing
from gpu_capture import GpuCapture
from gpu_programs import check_sites, program, recorded
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, report, table_rows

TRANSFORMER = ("transformer", "--requests", 4, "--layers", 2)
# CUpti_ActivityOverheadKind: CUPTI asks for a buffer, CUPTI flushes. The simulated device neither
# drops these records nor counts them when it drops others.
BUFFER_OVERHEADS = (str(7 << 16), str(1 << 16))
NOT_INITIALIZED = "15"  # CUPTI_ERROR_NOT_INITIALIZED
UNKNOWN_KIND = "200"
LAUNCHES = re.compile(r"^launches +([\d,]+): ([\d,]+) with their kernel, ([\d,]+) pending, "
                      r"([\d,]+) lost", re.M)
KERNELS = re.compile(r"^kernels +([\d,]+), ([\d,]+) without a launch$", re.M)
MARGIN = re.compile(r"shortest time from launch to kernel (-?\d+) ns$", re.M)


def summary(work):
    return report(work.path / "capture.xpu")


def numbers(pattern, text):
    match = pattern.search(text)
    expect(f"{pattern.pattern} in the summary {text}", match is not None, True)
    return [int(group.replace(",", "")) for group in match.groups()]


def is_timed(event):
    return int(event["start_ns"]) != 0 and int(event["end_ns"]) >= int(event["start_ns"])


def folded_kernel_ns(capture):
    return sum(ns for line, ns in capture.folded("--mode", "gpu", "--unit", "ns").items()
               if line.split(";")[-1].startswith("[GPU_Kernel]"))


def records_added(capture):
    """The activity records that the simulated device counts, by the events they became."""
    kinds = ("kernel", "memcpy", "memset", "graph_launch", "raw_activity")
    raw = [r for r in capture.of("raw_activity") if r["kind"] == UNKNOWN_KIND]
    overheads = [o for o in capture.of("overhead") if o["overhead_kind"] not in BUFFER_OVERHEADS]
    return sum(len(capture.of(kind)) for kind in kinds) - len(raw) + len(overheads)


def check_whole(work, account, capture, losses=None, timed=True):
    """Every launch that the program counts is there, by name, under its call path."""
    expect("kernels by name", capture.kernels_by_name(), account["kernels"])
    expect("kernels without a stack of their id", capture.unmatched(), [])
    expect("losses", capture.losses(), losses or {})
    expect("kernels, without their launch", numbers(KERNELS, summary(work)),
           [account["launches"], 0])
    seen, matched, pending, lost = numbers(LAUNCHES, summary(work))
    expect("pending, lost", (pending, lost), (0, 0))
    expect("launches with their kernel", matched, seen)
    if timed:
        check_sites("sites", capture, account, program(account["workload"]))
        expect("folded ns of kernels", folded_kernel_ns(capture), capture.kernel_ns())


def check_behaviour(workload=TRANSFORMER, **variables):
    """Records with these variables: the capture is as complete as without them."""
    with Workspace() as work:
        account, capture = recorded(work, *workload, env=variables)
        check_whole(work, account, capture)
        capture.summary = summary(work)
        return account, capture


def test_records_out_of_order():
    usual, capture = check_behaviour()
    durations = sorted((capture.plain[k["name"]], capture.duration(k))
                       for k in capture.of("kernel"))
    for order in ("reverse", "shuffle"):
        account, capture = check_behaviour(XPU_FAKE_ORDER=order)
        expect("account", account["sites"], usual["sites"])
        ids = [int(k["correlation_id"]) for k in capture.of("kernel")]
        expect(f"{order}: the device did as it was told", ids != sorted(ids), True)
        expect(f"{order}: durations by kernel",
               sorted((capture.plain[k["name"]], capture.duration(k))
                      for k in capture.of("kernel")), durations)


def check_invalid_times(variable, every):
    with Workspace() as work:
        account, capture = recorded(work, *TRANSFORMER, env={variable: str(every)})
        invalid = account["launches"] // every
        check_whole(work, account, capture, {"invalid_time": invalid}, timed=False)
        timed = [k for k in capture.of("kernel") if is_timed(k)]
        expect("kernels without a time", len(capture.of("kernel")) - len(timed), invalid)
        total = sum(capture.duration(k) for k in timed)
        expect("folded ns of kernels", folded_kernel_ns(capture), total)
        tables = json.loads(report("--top", "-n", "0", "--format", "json", capture.path))
        rows = tables["cuda_gpu_kern_sum"]
        expect("kernels in cuda_gpu_kern_sum", sum(r["Instances"] for r in rows), len(timed))
        expect("ns in cuda_gpu_kern_sum", sum(r["Total Time (ns)"] for r in rows), total)


def test_times_of_zero():
    check_invalid_times("XPU_FAKE_ZERO_TIMES_EVERY", 5)


def test_times_that_run_backward():
    check_invalid_times("XPU_FAKE_BACKWARD_TIMES_EVERY", 7)


def test_late_delivery():
    check_behaviour(XPU_FAKE_DELIVERY_DELAY_US="150000",
                    workload=(*TRANSFORMER, "--threads", 3))


def test_buffers_kept_back_by_a_long_kernel():
    account, capture = check_behaviour(workload=("long_kernel", "--long-ms", 900,
                                                 "--launches", 40))
    longest = max(capture.duration(k) for k in capture.of("kernel"))
    expect(f"the long kernel, {longest} ns", longest >= account["long_ns"], True)


def check_kept_back_and_lost(work, capture, launches):
    """What CUPTI still had is counted by the recorder, and explains the launches without a kernel."""
    lost = launches - len(capture.of("kernel"))
    expect("losses", capture.losses(),
           {"cupti_not_delivered": lost} if lost else {})
    expect("launches, with their kernel, pending, lost", numbers(LAUNCHES, summary(work)),
           [launches, launches - lost, 0, lost])
    pending = [line.split(";")[-2] for line in
               capture.folded("--mode", "merge", "--unit", "ns")
               if line.endswith(";[GPU_Launch_Pending]")]
    expect("calls before [GPU_Launch_Pending]", set(pending),
           {"cudaLaunchKernel"} if lost else set())
    return lost


def test_end_without_a_flush():
    for how, status in (("_exit", 0), ("sigkill", -9)):
        # Killed at once nothing has been delivered, after two flushes everything.
        for linger_ms, delivered in ((0, 0), (700, 60)):
            with Workspace() as work:
                result = work.record("--", program("exit_styles"), "--launches", "60",
                                     f"--how={how}", f"--linger-ms={linger_ms}")
                expect(f"{how}: status", result.returncode, status)
                expect(f"{how}: launches", json.loads(result.stdout)["launches"], 60)
                capture = GpuCapture(work.path / "capture.xpu")
                expect(f"{how}: kernels after {linger_ms} ms", len(capture.of("kernel")),
                       delivered)
                check_kept_back_and_lost(work, capture, 60)
                expect("told by the recorder", "cupti_not_delivered: 60 " in result.stderr,
                       delivered == 0)


def test_kill_while_buffers_are_kept_back():
    with Workspace() as work:
        result = work.record("--", "timeout", "-s", "KILL", "3", program("long_kernel"),
                             "--long-ms", "20000", "--launches", "50")
        expect("status", result.returncode in (137, -9), True)
        capture = GpuCapture(work.path / "capture.xpu")
        launches = len([s for s in capture.of("api_call") if s["return_value"] == "0"
                        and "Launch" in call_name(capture, s)])
        expect("launches before the kill", launches > 3, True)
        lost = check_kept_back_and_lost(work, capture, launches)
        expect(f"lost of {launches}", lost > 0, True)


def call_name(capture, call):
    return next(n["name"] for n in capture.of("callback_name")
                if (n["domain"], n["callback_id"]) == (call["domain"], call["callback_id"]))


def test_buffers_with_unfinished_records():
    """Not kept back, records of kernels that still run come without times, and never again."""
    with Workspace() as work:
        account, capture = recorded(work, "long_kernel", "--long-ms", 700, "--launches", 30,
                                    env={"XPU_FAKE_HOLD_BACK": "0"})
        untimed = [k for k in capture.of("kernel") if not is_timed(k)]
        expect("the long kernel has no time",
               "long_kernel" in {capture.plain[k["name"]] for k in untimed}, True)
        check_whole(work, account, capture, {"invalid_time": len(untimed)}, timed=False)
        expect("folded ns of kernels", folded_kernel_ns(capture),
               sum(capture.duration(k) for k in capture.of("kernel") if is_timed(k)))


def test_names_that_do_not_last():
    for names in ("poison", "keep"):
        _, capture = check_behaviour(XPU_FAKE_NAMES=names)
        expect("device", {d["name"] for d in capture.of("device")}, {"XPU simulated GPU"})


def test_one_buffer_for_all_threads():
    check_behaviour(XPU_FAKE_PER_THREAD="0", workload=(*TRANSFORMER, "--threads", 4))


def test_ids_that_wrap():
    account, capture = check_behaviour(
        workload=("transformer", "--requests", 24, "--layers", 6, "--threads", 2),
        XPU_FAKE_FIRST_CORRELATION_ID="4294966296")
    ids = [int(k["correlation_id"]) for k in capture.of("kernel")]
    expect("ids before the wrap", max(ids) > 0xffffff00, True)
    expect("ids behind the wrap", min(ids) < 1000, True)
    expect("ids that occur once", len(set(ids)), account["launches"])


def test_dropped_records():
    with Workspace() as work:
        account, capture = recorded(work, "vector_add", env={"XPU_FAKE_DROP_EVERY": "6"})
        losses = capture.losses()
        kept = records_added(capture)
        dropped = losses.pop("cupti_dropped", 0)
        expect("records dropped by CUPTI", dropped, (kept + dropped) // 6)
        expect("some are dropped", dropped > 0, True)
        seen, matched, pending, lost = numbers(LAUNCHES, summary(work))
        expect("launches", (matched + lost, pending), (seen, 0))
        expect("other losses than the dropped records", losses, {})
        expect("kernels that miss are lost",
               account["launches"] - len(capture.of("kernel")) <= lost <= dropped, True)


def test_code_compiled_just_in_time():
    compile_ns = 300_000_000  # most of the run, or the advice about waits comes first
    with Workspace() as work:
        account, capture = recorded(work, *TRANSFORMER, env={"XPU_FAKE_JIT_NS": str(compile_ns)})
        check_whole(work, account, capture)
        operations = capture.of("jit_operation")
        compiled = [o for o in operations if o["operation"] == "3"]
        expect("modules", len(compiled) > 0, True)
        expect("stored", len(operations), 2 * len(compiled))
        expect("fields of both", {(o["entry_kind"], o["cache_size_bytes"]) for o in operations},
               {("1", "4096")})
        expect("in the cache", {o["cache_path"].split("/")[0] for o in operations},
               {"ComputeCache"})
        rows = table_rows(work.path / "capture.xpu", "jit_sum")
        expect("times", {row["Operation"]: row["Total Time (ns)"] for row in rows},
               {"compile": compile_ns * len(compiled),
                "cache store": compile_ns // 10 * len(compiled)})
        expect_in("summary", "The driver compiled GPU code for", summary(work))


def test_records_of_unknown_kinds():
    with Workspace() as work:
        account, capture = recorded(work, *TRANSFORMER,
                                    env={"XPU_FAKE_UNKNOWN_KIND_EVERY": "4"})
        check_whole(work, account, capture)
        unknown = [r for r in capture.of("raw_activity") if r["kind"] == UNKNOWN_KIND]
        expect("how many", len(unknown), records_added(capture) // 4)
        expect("their 72 bytes", {r["bytes"] for r in unknown},
               {(bytes((200, 0, 0, 0)) + bytes(range(4, 72))).hex()})


def check_sizes(kernel_bytes, copy_bytes, kernel_tail, copy_tail, fields):
    _, capture = check_behaviour(
        XPU_FAKE_RECORD_BYTES=f"10:{kernel_bytes},1:{copy_bytes}")
    for kind, size, tail in (("kernel", kernel_bytes, kernel_tail),
                             ("memcpy", copy_bytes, copy_tail)):
        found = {(e["record_size_bytes"], e["tail"]) for e in capture.of(kind)}
        expect(f"{kind}: sizes and tails", found, {(str(size), tail)})
    for name, value in fields.items():
        expect(f"kernel: {name}", {k[name] for k in capture.of("kernel")}, {value})


def test_records_of_older_and_newer_versions():
    later = {"cluster_scheduling_policy": "1", "local_memory_total_bytes": str(0x09480000)}
    # As of CUDA 11.0: without channels and clusters, the total of local memory in 32 bits.
    as_of_11_0 = {"cluster_scheduling_policy": "0", "channel_id": "0", "graph_id": "0",
                          "local_memory_total_bytes": str(0x09480000)}
    check_sizes(160, 64, "", "", as_of_11_0)
    check_sizes(216, 96, "", "", later)
    check_sizes(240, 112, "a5" * 24, "a5" * 16, later)


def test_clocks_apart():
    """An hour off, and running at another rate: launches and kernels still fit."""
    kernel_ns = 200_000
    workload = ("transformer", "--requests", 25, "--layers", 5)
    for offset_ns, drift_ppm in ((-3_600_000_000_000, 0), (3_600_000_000_000, 300), (0, -300)):
        account, capture = check_behaviour(
            workload=workload, XPU_FAKE_KERNEL_NS=str(kernel_ns),
            XPU_FAKE_CLOCK_OFFSET_NS=str(offset_ns), XPU_FAKE_CLOCK_DRIFT_PPM=str(drift_ppm))
        for who, margin in (("test", capture.worst_margin_ns()),
                            ("report", numbers(MARGIN, capture.summary)[0])):
            expect(f"offset {offset_ns} drift {drift_ppm}: launch to kernel, by the {who}: "
                   f"{margin} ns", 0 <= margin < 200_000, True)
        total = account["launches"] * kernel_ns
        rounding = account["launches"] + total * abs(drift_ppm) // 1_000_000
        expect(f"total GPU time within {rounding} ns",
               abs(capture.kernel_ns() - total) <= rounding, True)


def test_no_timestamps_before_a_context():
    _, capture = check_behaviour(XPU_FAKE_TIMESTAMP_BEFORE_CONTEXT=NOT_INITIALIZED,
                                 XPU_FAKE_CONTEXT_MS="100")
    expect("clock pairs", len(capture.of("clock_pair")) >= 1, True)
    margin = capture.worst_margin_ns()
    expect(f"launch to kernel: {margin} ns", 0 <= margin < 1_000_000, True)


def without_ids_and_times(output):
    return [re.sub(r'"(pid|tid|timed_ns)":\d+', "", line) for line in output.splitlines()]


def check_dormant(reason, options=(), **variables):
    """The program runs as without us; the CPU side is there, and why the GPU side is not."""
    command = [program("transformer"), "--requests", "60", "--layers", "4"]
    plain = subprocess.run(command, capture_output=True, text=True,
                           env={**os.environ, **variables}, timeout=PATIENCE_S)
    with Workspace() as work:
        result = work.record("-F", "997", *[o.format(work=work.path) for o in options], "--",
                             *command, env={**os.environ, **variables})
        expect("status", result.returncode, plain.returncode)
        expect("output", without_ids_and_times(result.stdout), without_ids_and_times(plain.stdout))
        capture = GpuCapture(work.path / "capture.xpu")
        expect("losses", capture.losses(), {"inject_dormant": 1})
        process = capture.of("gpu_process")[-1]
        expect("state", process["state"], "dormant")
        expect_in("reason", reason, process["detail"])
        expect_in("reason, told by the recorder", reason.split("/")[0], result.stderr)
        expect_in("in the summary", "inject_dormant", summary(work))
        expect("CPU samples", len(capture.of("cpu_sample")) > 0, True)
        expect("GPU records", capture.of("kernel") + capture.of("launch_stack"), [])


def test_another_tool_holds_cupti():
    check_dormant("another tool in this program holds CUPTI: CUPTI for <not provided>",
                  XPU_FAKE_SUBSCRIBED="1")


def test_cupti_that_cannot_be_loaded():
    with Workspace() as other:
        broken = other.file("libcupti.so.13", "not a library\n")
        check_dormant("the chosen libcupti cannot be loaded: " + broken,
                      options=("--cupti-lib", broken))


# Sets memory, forks, and goes on to set memory in the parent only, as CUDA demands.
FORKING = """
import ctypes, os, sys
cudart = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
def work(count):
    for i in range(count):
        assert cudart.cudaMemsetAsync(memory, 0, ctypes.c_size_t(4096), None) == 0
assert cudart.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0
work(20)
child = os.fork()
if child == 0:
    print("child", flush=True)
    sys.exit(7)
print("status of the child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
work(30)
assert cudart.cudaDeviceSynchronize() == 0
"""


def test_fork_after_cuda_was_used():
    directory = os.path.dirname(xpu_testing.find("tests/fake_cuda/lib/libcuda.so.1"))
    env = {**os.environ, "LD_LIBRARY_PATH": directory}
    with Workspace() as work:
        result = work.record("--", sys.executable, "-c", FORKING, env=env)
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect("output", result.stdout, "child\nstatus of the child 7\n")
        capture = GpuCapture(work.path / "capture.xpu")
        expect("losses", capture.losses(), {})
        expect("sets", len(capture.of("memset")), 50)
        expect("instances", len({p["instance"] for p in capture.of("gpu_process")}), 1)
        expect("pids of the stacks", len({s["pid"] for s in capture.of("launch_stack")}), 1)


def test_output_of_the_program():
    for name, *arguments in (("vector_add",), ("graph",), ("exit_styles", "--how=exit"),
                             ("two_kernels", "--mode=exec")):
        plain = subprocess.run([program(name), *arguments], capture_output=True, text=True,
                               timeout=PATIENCE_S)
        with Workspace() as work:
            result = work.record("-q", "--", program(name), *arguments)
            expect(f"{name}: status", result.returncode, plain.returncode)
            expect(f"{name}: output", without_ids_and_times(result.stdout),
                   without_ids_and_times(plain.stdout))
            expect(f"{name}: messages", result.stderr, plain.stderr)


if __name__ == "__main__":
    xpu_testing.require_recording()
    xpu_testing.main(globals())

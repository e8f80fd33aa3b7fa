"""--gpu-samples on the simulated device: every sample with its line, time that adds up, refusals
that leave the rest of the recording as it is."""

import json
import os
import pathlib
import sys
import time

from attaching import Steps
from simulated_gpu import record, simulated
from xpu_testing import (Workspace, expect, expect_in, folded, main, program_of, recorder, report,
                         require_recording, resident_kb, run_report, table_rows, workload)

CUBINS = pathlib.Path(__file__).resolve().parent.parent / "captures" / "cubins"
LAUNCHES = 20
KERNELS = 6  # of the workload
PREFIX = "smsp__pcsamp_warps_issue_stalled_"
# Offset, reason (by number in tests/fake_cuda/cupti/pc_sampling.cpp), samples of each launch.
PLAN = {(0xc0, 1): 6, (0xc0, 2): 4, (0xf0, 3): 3, (0x10, 0): 1}
REASONS = {0: "selected", 1: "wait", 2: "wait_not_issued", 3: "long_scoreboard"}
SAMPLED = sum(count for (_, reason), count in PLAN.items() if reason != 2)
STALL_KERNELS = ("stall_kernels", "--launches", LAUNCHES, "--scale", 1)


def record_samples(work, *options, program=STALL_KERNELS, cubin=CUBINS / "inlines.cubin", **variables):
    """Returns what the program counts of itself."""
    plan = ",".join(f"{offset}:{reason}:{count}" for (offset, reason), count in PLAN.items())
    env = {"XPU_FAKE_SAMPLES": plan, **variables}
    if cubin is not None:
        env["XPU_FAKE_CUBIN"] = str(cubin)
    name, *arguments = map(str, program)
    result = record(work, "--gpu-samples", *options, "--", workload(name), *arguments,
                    env=simulated(**env))
    return json.loads(result.stdout.splitlines()[-1])


def kernel_ns(capture, name):
    return sum(k["end_ns"] - k["start_ns"] for k in capture.kernels if k["name"] == name)


def check_kernels(capture, account):
    expect("kernels", len(capture.kernels), account["launches"])


def test_every_sample_is_recorded():
    require_recording()
    with Workspace() as work:
        account = record_samples(work)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        check_kernels(capture, account)
        counts = {}
        for sample in capture.gpu_samples:
            key = sample["function"], sample["offset"], sample["stall_reason"]
            counts[key] = counts.get(key, 0) + sample["samples"]
        names = {k["name"] for k in capture.kernels}
        expect("functions", len(names), KERNELS)
        expect("samples", counts, {(name, offset, PREFIX + REASONS[reason]): count * LAUNCHES
                                   for name in names for (offset, reason), count in PLAN.items()})
        samplings = capture.gpu_samplings
        expect("of all reasons", sum(s["samples"] for s in samplings),
               sum(PLAN.values()) * LAUNCHES * KERNELS)
        expect("period and buffer", {(s["period"], s["buffer_bytes"]) for s in samplings},
               {(1 << 18, 64 << 20)})
        # Only what was hit of the code, and that once.
        [piece] = capture.cubin_slices
        expect("parts", piece["part_count"], 1)


def test_period_and_buffer():
    require_recording()
    with Workspace() as work:
        record_samples(work, "--gpu-sample-period", "4096", "--gpu-sample-buffer", "16M")
        expect("period and buffer", {(s["period"], s["buffer_bytes"])
                                     for s in work.capture().gpu_samplings}, {(4096, 16 << 20)})
        for period, hint in (("5000", "8192"), ("16", "32")):
            result = work.record("--gpu-samples", "--gpu-sample-period", period, "--", "true")
            expect("status", result.returncode, 125)
            expect_in("hint", f"hint: the next one is {hint}", result.stderr)


def test_time_below_a_kernel_adds_up():
    require_recording()
    with Workspace() as work:
        record_samples(work)
        capture = work.capture()
        below = {}
        for line, value in folded("--mode", "gpu", "--unit", "ns", work.file("capture.xpu")).items():
            path, _, inside = line.partition("[GPU_Kernel]")
            if inside.startswith("fma_chain("):
                below[inside] = below.get(inside, 0) + value
        expect("its time", sum(below.values()), kernel_ns(capture, "_Z9fma_chainPfi"))
        expect("lines", sorted(below), [
            "fma_chain(float*, int);Twice(float);Square(float);inlines.cu:4;[stall] wait",
            "fma_chain(float*, int);Twice(float);inlines.cu:7;[stall] long scoreboard",
            "fma_chain(float*, int);inlines.cu:14;[selected]"])
        [wait] = [value for line, value in below.items() if line.endswith("wait")]
        expect("its share of the samples", round(10 * wait / sum(below.values())), 6)


def test_tables():
    require_recording()
    with Workspace() as work:
        record_samples(work)
        path = work.file("capture.xpu")
        capture = work.capture()
        rows = [r for r in table_rows(path, "gpu_line_sum") if r["Kernel"].startswith("fma_chain")]
        expect("lines", {(r["Line"], r["Function"], r["Stall"], r["Samples"]) for r in rows}, {
            ("/app/inlines.cu:4", "Square(float)", "wait", 6 * LAUNCHES),
            ("/app/inlines.cu:7", "Twice(float)", "long scoreboard", 3 * LAUNCHES),
            ("/app/inlines.cu:14", "fma_chain(float*, int)", "selected", 1 * LAUNCHES)})
        expect("time", sum(r["Total Time (ns)"] for r in rows),
               kernel_ns(capture, "_Z9fma_chainPfi"))
        stalls = {r["Stall"]: r for r in table_rows(path, "gpu_stall_sum")}
        expect("samples", {name: r["Samples"] for name, r in stalls.items()}, {
            "wait": 6 * LAUNCHES * KERNELS, "long scoreboard": 3 * LAUNCHES * KERNELS,
            "selected": LAUNCHES * KERNELS})
        expect("not issued", stalls["wait"]["Not Issued (%)"], 66.7)
        functions = {r["Function"]: r for r in table_rows(path, "gpu_function_sum")
                     if r["Kernel"].startswith("fma_chain")}
        whole = kernel_ns(capture, "_Z9fma_chainPfi")
        expect("of all that is inlined", functions["fma_chain(float*, int)"]["Total Time (ns)"],
               whole)
        expect("with what is inlined into it", functions["Twice(float)"]["Total Time (ns)"],
               functions["Twice(float)"]["Self Time (ns)"] +
               functions["Square(float)"]["Self Time (ns)"])


def test_annotated_kernel():
    require_recording()
    with Workspace() as work:
        record_samples(work)
        path = work.file("capture.xpu")
        work.path.chmod(0o755)  # it runs as nobody
        work.file("nvdisasm", mode=0o755, text="""#!/bin/sh
[ "$1 $2" = "--binary SM90" ] && [ $(wc -c < $3) = 512 ] || exit 1
echo "        /*00b0*/                   FADD R1, R2, R3 ;"
echo "        /*00c0*/                   FFMA R4, R5, R6, R7 ;        /* 0x0 */"
""")
        text = report("--annotate", "FMA_chain", path,
                      env={**os.environ, "PATH": f"{work.path}:/usr/bin:/bin"})
        lines = text.splitlines()
        expect("kernel", lines[0], "fma_chain(float*, int)")
        [instruction] = [line for line in lines if "FFMA" in line]
        for part in (" 60.0 %", "0x00c0", "FFMA R4, R5, R6, R7", "inlines.cu:4", "wait 100%"):
            expect_in("instruction", part, instruction)
        expect_in("without samples", "FADD R1, R2, R3", text)
        expect_in("advice", "waits for a fixed time", text)
        without = run_report("--annotate", "fma_chain", path,
                             env={**os.environ, "PATH": "/usr/bin:/bin"})
        expect_in("hint", "nvdisasm is not installed", without.stderr)
        expect_in("offset", "0x00c0", without.stdout)
        none = run_report("--annotate", "nothing", path)
        expect_in("no kernel", "no kernel with samples matches 'nothing'", none.stderr)
        wrong = run_report("--annotate", "(", path)
        expect("status of a wrong expression", wrong.returncode, 2)


def test_without_the_code():
    require_recording()
    with Workspace() as work:
        account = record_samples(work, cubin=None)
        capture = work.capture()
        check_kernels(capture, account)
        expect("losses", set(capture.losses()), {"gpu_code_missing"})
        rows = table_rows(work.file("capture.xpu"), "gpu_line_sum")
        expect("samples", sum(r["Samples"] for r in rows), SAMPLED * LAUNCHES * KERNELS)
        expect("lines", {r["Line"] for r in rows}, {""})


def test_damaged_code():
    require_recording()
    with Workspace() as work:
        damaged = bytearray((CUBINS / "inlines.cubin").read_bytes())
        damaged[0x28:0x30] = b"\xff" * 8  # where its section headers are
        file = pathlib.Path(work.file("damaged.cubin", text=""))
        file.write_bytes(damaged)
        check_kernels_of = record_samples(work, cubin=file)
        capture = work.capture()
        check_kernels(capture, check_kernels_of)
        expect("losses", set(capture.losses()), {"gpu_code_missing"})
        expect("slices", capture.cubin_slices, [])


def check_not_sampled(why, **variables):
    """The kernels are recorded as without the option, and the capture says why there is no more."""
    require_recording()
    with Workspace() as work:
        account = record_samples(work, **variables)
        capture = work.capture()
        check_kernels(capture, account)
        expect("losses", capture.losses(), {"gpu_not_sampled": 1})
        [detail] = capture.details("gpu_not_sampled")
        expect_in("why", why, detail)
        expect("samples", capture.gpu_samples, [])


def test_missing_permission():
    check_not_sampled("NVreg_RestrictProfilingToAdminUsers", XPU_FAKE_SAMPLING_RESULT="35")


def test_another_tool_uses_the_counters():
    """CUPTI finds it out when it fetches, and crashes when records are switched off then."""
    check_not_sampled("another tool may use the counters of its GPU", XPU_FAKE_SAMPLES_FAIL="1")


def test_memory_after_samples_failed():
    """CUPTI cannot be left then: it asks for buffers until the program ends."""
    require_recording()
    with Workspace() as work:
        command = [recorder(), "--gpu-samples", "-d", "500ms", "-o", work.file("capture.xpu"), "--",
                   workload("endless_steps"), "--sleep-us", "200"]
        with Steps(work, command, env=simulated(XPU_FAKE_SAMPLES_FAIL="1")) as steps:
            program = program_of(steps.pid, workload("endless_steps"))
            time.sleep(2)
            before = resident_kb(program)
            time.sleep(2)
            growth = resident_kb(program) - before
            steps.end()
        expect("why", work.capture().losses(), {"gpu_not_sampled": 1})
        # 30 MB where nothing is freed.
        expect(f"{growth} KB more in 2 s", growth < 8192, True)


RESET = """
import ctypes, time
cudart = ctypes.CDLL("libcudart.so.13")

def work(sets):
    place = ctypes.c_void_p()
    assert cudart.cudaMalloc(ctypes.byref(place), 4096) == 0
    for _ in range(sets):
        assert cudart.cudaMemset(place, 0, 4096) == 0

work(5)
time.sleep(0.5)
assert cudart.cudaDeviceReset() == 0
work(7)
"""


def test_a_context_that_ends_during_a_fetch():
    """The program waits a second for the fetch, then CUPTI hears no more of the context."""
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-samples", "--", sys.executable, "-c", RESET,
               env=simulated(XPU_FAKE_SAMPLES_FETCH_MS="2000"))
        capture = work.capture()
        expect("sets", len(capture.memsets), 12)
        # None where the machine is so busy that the second is longer.
        expect("why", [detail for detail in capture.details("gpu_not_sampled") if
                       "the context ended while its samples were being fetched" not in detail], [])
        expect("losses", set(capture.losses()) <= {"gpu_not_sampled"}, True)


def test_counters_exclude_samples():
    require_recording()
    with Workspace() as work:
        result = work.record("--gpu-samples", "--gpu-metrics", "--", "true")
        expect("status", result.returncode, 125)
        expect_in("reason", "--gpu-samples excludes --gpu-metrics", result.stderr)


def test_older_versions_of_cupti():
    """Before 12.4 the records of samples have another size."""
    require_recording()
    for version, losses in (("11.8", {"gpu_not_sampled": 1, "old_cupti": 1}),
                            ("12.0", {"gpu_not_sampled": 1, "old_cupti": 1}),
                            ("12.4", {"old_cupti": 1}), ("12.9", {"old_cupti": 1})):
        with Workspace() as work:
            account = record_samples(work, XPU_FAKE_CUPTI_VERSION=version)
            capture = work.capture()
            check_kernels(capture, account)
            expect(f"losses with {version}", capture.losses(), losses)
            expect(f"samples with {version}", bool(capture.gpu_samples),
                   "gpu_not_sampled" not in losses)
            for detail in capture.details("gpu_not_sampled"):
                expect_in("reason", "samples of GPU code need CUPTI of CUDA 12.4 or newer", detail)


def test_dropped_by_the_hardware():
    require_recording()
    with Workspace() as work:
        record_samples(work, XPU_FAKE_SAMPLES_DROPPED="5")
        capture = work.capture()
        fetches = sum(1 for s in capture.gpu_samplings if s["dropped_samples"] > 0)
        expect("losses", capture.losses(), {"gpu_samples_dropped": 5 * fetches})


def test_one_program_at_a_time_on_a_gpu():
    require_recording()
    with Workspace() as work:
        record_samples(work, program=("two_kernels", "--mode=fork", "--launches", 50))
        capture = work.capture()
        check_kernels(capture, {"launches": 100})
        # The code that the device says it has is not that of these kernels.
        expect("losses", capture.losses(), {"gpu_not_sampled": 1, "gpu_code_missing": 1})
        expect_in("why", "another program is being sampled on its GPU",
                  capture.details("gpu_not_sampled")[0])
        expect("sampled programs", len({s["instance"] for s in capture.gpu_samples}), 1)


def test_not_in_a_running_process():
    with Workspace() as work:
        result = work.record("--gpu-samples", "-p", str(os.getpid()))
        expect("status", result.returncode, 125)
        expect_in("why", "--gpu-samples does not work in a process that is already running",
                  result.stderr)


if __name__ == "__main__":
    main(globals())

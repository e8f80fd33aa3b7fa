"""Samples of GPU code on a real GPU (XPU_TEST_GPU=1, XPU_WORKLOAD_DIR): kernels whose lines wait for
known reasons, how many samples there are, time that adds up, and two programs on one GPU."""

import csv
import json
import os
import pathlib
import shutil
import subprocess

import xpu_testing
from gpu_capture import GpuCapture
from gpu_operations import check_time_below_kernels
from gpu_programs import REAL, prepare, program
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, report, table_rows

WORKLOADS = pathlib.Path(__file__).resolve().parent.parent / "workloads"
SOURCE = WORKLOADS / "stall_kernels.cu"
PERIOD = 1 << 14
# Kernel -> (comment at its line, share of its samples in percent, reason, share of the line's).
# A warp that waits at a barrier is found at the instruction after it: the head of the loop.
KNOWN = {
    "two_loops": [("three quarters", 75, 3, "wait", 40), ("one quarter", 25, 3, "wait", 40)],
    "pointer_chase": [("pointer chase", 100, 5, "long scoreboard", 90)],
    "fma_chain": [("inlined function", 95, 5, "wait", 60)],
    "bank_conflicts": [("bank conflict", 100, 3, "short scoreboard", 90)],
    "slow_warp": [("rounds", 87, 8, "barrier", 90)],
    "divergence": [("even threads", 50, 3, "wait", 40), ("odd threads", 50, 3, "wait", 40)],
}


def require_gpu():
    prepare()
    if not REAL:
        xpu_testing.skip("gpu", "the simulated device executes no instructions")


def line_of(comment):
    [line] = [number for number, text in enumerate(SOURCE.read_text().splitlines(), 1)
              if text.endswith("// line: " + comment)]
    return line


def record(work, *options, launches=60):
    result = work.record("--gpu-samples", *options, "--", program("stall_kernels"), "--launches",
                         str(launches), timeout=PATIENCE_S)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout.splitlines()[-1])


def test_lines_wait_for_what_they_were_written_for():
    require_gpu()
    with Workspace() as work:
        account = record(work, "--gpu-sample-period", str(PERIOD))
        path = work.file("capture.xpu")
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("kernels", len(capture.kernels), account["launches"])
        rows = table_rows(path, "gpu_line_sum")
        for kernel, lines in KNOWN.items():
            of_kernel = [r for r in rows if r["Kernel"].startswith(kernel + "(")]
            whole = sum(r["Samples"] for r in of_kernel)
            for comment, share, tolerance, stall, least in lines:
                at = [r for r in of_kernel if r["Line"].endswith(f".cu:{line_of(comment)}")]
                samples = sum(r["Samples"] for r in at)
                print(f"{kernel}, {comment}: {100 * samples / whole:.1f} % of {whole} samples, "
                      f"{[(r['Stall'], r['Stall (%)']) for r in at]}")
                expect(f"{kernel}: share of {comment} ({100 * samples / whole:.1f} %)",
                       abs(100 * samples / whole - share) <= tolerance, True)
                main = max(at, key=lambda r: r["Samples"])
                expect(f"{kernel}: {comment}: reason", main["Stall"], stall)
                expect(f"{kernel}: {comment}: {stall} {main['Stall (%)']} %",
                       main["Stall (%)"] >= least, True)


def test_time_below_kernels_adds_up():
    require_gpu()
    with Workspace() as work:
        record(work)
        check_time_below_kernels(GpuCapture(work.path / "capture.xpu"))


def counted_by_ncu(command, *options):
    """By kernel: sm__cycles_active.sum, and the samples of each stall reason, of its third launch."""
    if shutil.which("ncu") is None:
        xpu_testing.skip("ncu", "ncu is not installed")
    result = subprocess.run(
        ["ncu", "--clock-control", "none", "--cache-control", "none", "--csv", "--print-units",
         "base", "--metrics", "regex:smsp__pcsamp_warps_issue_stalled_.*,sm__cycles_active.sum",
         *options, *command, "--launches", "3"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    rows = list(csv.reader(l for l in result.stdout.splitlines() if l.startswith('"')))
    name, metric, value = (rows[0].index(c) for c in ("Kernel Name", "Metric Name", "Metric Value"))
    counted = {}
    for row in rows[1:]:
        kernel = counted.setdefault(row[name].split("(")[0], {})
        kernel[row[metric]] = float(row[value].replace(",", ""))
    return counted


def check_reasons(samples, kernel, theirs, launches):
    """Returns how many samples there are for each period of active cycles."""
    ours = {}
    for sample in samples:
        reason = sample["stall_reason"]
        if kernel in sample["function"] and not reason.endswith("_not_issued"):
            ours[reason] = ours.get(reason, 0) + sample["samples"]
    ratio = sum(ours.values()) / launches / (theirs.pop("sm__cycles_active.sum") / PERIOD)
    print(f"{kernel}: {ratio:.3f} samples for each period of active cycles")
    theirs = {r: n for r, n in theirs.items() if not r.endswith("_not_issued")}
    for reason in theirs:
        share = 100 * theirs[reason] / sum(theirs.values())
        own = 100 * ours.get(reason, 0) / sum(ours.values())
        if max(share, own) > 5:
            print(f"{kernel}: {reason}: {own:.1f} %, ncu {share:.1f} %")
            expect(f"{kernel}: {reason} ({own} %, ncu {share} %)", abs(share - own) < 5, True)
    return ratio


def test_samples_are_those_of_ncu():
    """Each multiprocessor takes a sample a period while it has a warp: samples =
    sm__cycles_active.sum / period. The shares of stall reasons are those of ncu. How long loads
    take, and so the number of samples of pointer_chase, differs under ncu: the capture of
    tests/golden/gpu_code_captures.py has one for each period of its own time."""
    require_gpu()
    counted = counted_by_ncu([program("stall_kernels")])
    with Workspace() as work:
        launches = 60
        record(work, "--gpu-sample-period", str(PERIOD), launches=launches)
        samples = work.capture().gpu_samples
        for kernel, theirs in counted.items():
            ratio = check_reasons(samples, kernel, theirs, launches)
            if kernel != "pointer_chase":
                expect(f"{kernel}: samples for each period ({ratio})", abs(ratio - 1) < 0.05, True)


def require_python():
    require_gpu()
    if "XPU_TEST_PYTHON" not in os.environ:
        xpu_testing.skip("python", "XPU_TEST_PYTHON is not set: a Python with PyTorch")
    return os.environ["XPU_TEST_PYTHON"]


def lines_of(path):
    """By kernel: its samples, those with a line, and the names of the files."""
    found = {}
    for row in table_rows(path, "gpu_line_sum"):
        each = found.setdefault(row["Kernel"], [0, 0, set()])
        each[0] += row["Samples"]
        if row["Line"]:
            each[1] += row["Samples"]
            each[2].add(os.path.basename(row["Line"].rpartition(":")[0]))
    return found


def test_kernels_of_triton_and_cublas():
    command = [require_python(), str(WORKLOADS / "triton_kernels.py")]
    kernels = "regex:softmax_kernel|nvjet|gemm|xmma"
    counted = counted_by_ncu(command, "-k", kernels)
    expect(f"kernels that ncu saw: {list(counted)}", len(counted), 2)
    with Workspace() as work:
        launches = 100
        result = work.record("--gpu-samples", "--gpu-sample-period", str(PERIOD), "--", *command,
                             "--launches", str(launches), timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        samples = work.capture().gpu_samples
        for kernel, theirs in counted.items():
            check_reasons(samples, kernel, theirs, launches)
        lines = lines_of(work.file("capture.xpu"))
        (softmax,) = [each for name, each in lines.items() if "softmax_kernel" in name]
        expect(f"softmax: samples, with a line ({softmax})", softmax[1] >= 0.95 * softmax[0], True)
        expect_in("softmax: file", "triton_kernels.py", softmax[2])
        print(lines)


# Programs, and which of their kernels have lines.
FRAMEWORKS = {
    "PyTorch": (["pytorch_steps.py", "mlp", "--steps", "200"], None),
    "torch.compile": (["pytorch_steps.py", "mlp", "--steps", "200", "--warmup", "5", "--compile"],
                      "triton_"),
    "JAX": (["jax_steps.py", "--times", "/dev/null"], None),
}


def test_lines_of_frameworks():
    python = require_python()
    for name, (command, generated) in FRAMEWORKS.items():
        sizes = []
        for options in ((), ("--gpu-samples",)):
            with Workspace() as work:
                result = work.record("--no-python", *options, "--", python,
                                     str(WORKLOADS / command[0]), *command[1:], timeout=PATIENCE_S,
                                     stdin=subprocess.DEVNULL)
                expect(f"{name}: status ({result.stderr})", result.returncode, 0)
                path = work.file("capture.xpu")
                sizes.append(os.path.getsize(path))
                lines = lines_of(path) if options else {}
                loss = work.capture().losses()
        whole, with_line = (sum(each[i] for each in lines.values()) for i in (0, 1))
        print(f"        {name}: {100 * with_line / whole:.1f} % of {whole} samples have a line, "
              f"{sizes[1] - sizes[0]} bytes more, losses {loss}")
        for kernel, each in sorted(lines.items(), key=lambda item: -item[1][0])[:12]:
            print(f"          {each[0]:6} {100 * each[1] / each[0]:3.0f} % {kernel[:70]} {each[2]}")
        expect(f"{name}: bytes more", sizes[1] - sizes[0] < 1 << 20, True)
        if generated:
            own = [each for kernel, each in lines.items() if kernel.startswith(generated)]
            expect(f"{name}: kernels", len(own) > 0, True)
            expect(f"{name}: lines of {generated}", sum(each[1] for each in own) >=
                   0.95 * sum(each[0] for each in own), True)


def test_two_programs_on_one_gpu():
    require_gpu()
    with Workspace() as work:
        both = f"{program('stall_kernels')} --launches 40 & {program('stall_kernels')} --launches 40 & wait"
        result = work.record("--gpu-samples", "--", "sh", "-c", both, timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        expect("kernels of both", len(capture.kernels), 2 * 40 * len(KNOWN))
        expect("losses", capture.losses(), {"gpu_not_sampled": 1})


def test_annotated():
    require_gpu()
    with Workspace() as work:
        record(work, "--gpu-sample-period", str(PERIOD))
        text = report("--annotate", "pointer_chase", work.file("capture.xpu"))
        print(text)
        expect("loads of global memory", "LDG" in text or not os.path.exists(
            "/usr/local/cuda/bin/nvdisasm"), True)


if __name__ == "__main__":
    xpu_testing.main(globals())

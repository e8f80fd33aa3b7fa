"""Captures of GPU code, counters and an old CUPTI, recorded on a GPU machine: what the kernels were
written to wait for, what Triton's lines are, and what the program did while counters were read.

tests/captures/README.md says how each was recorded."""

from gpu_capture import GpuCapture
from gpu_operations import check_time_below_kernels
from xpu_testing import CAPTURES, expect, expect_in, main, report, run_report, table_rows

GPU_CODE = CAPTURES / "gpu_code"
# Of stall_kernels: kernel -> (line, percent of its samples, reason, percent of the line's).
KNOWN = {
    "two_loops": [(20, 76, "wait", 57), (23, 24, "wait", 57)],
    "pointer_chase": [(33, 99, "long scoreboard", 99)],
    "fma_chain": [(11, 96, "wait", 74)],
    "bank_conflicts": [(56, 100, "short scoreboard", 98)],
    "slow_warp": [(65, 87, "barrier", 100)],
    "divergence": [(82, 51, "wait", 57), (85, 49, "wait", 57)],
}


def path_of(name):
    return str(GPU_CODE / f"{name}.xpu")


def test_lines_and_reasons():
    rows = table_rows(path_of("stall_kernels"), "gpu_line_sum")
    for kernel, lines in KNOWN.items():
        of_kernel = [row for row in rows if row["Kernel"].startswith(kernel + "(")]
        whole = sum(row["Samples"] for row in of_kernel)
        for line, share, stall, of_line in lines:
            at = [row for row in of_kernel if row["Line"].endswith(f"stall_kernels.cu:{line}")]
            most = max(at, key=lambda row: row["Samples"])
            samples = sum(row["Samples"] for row in at)
            expect(f"{kernel}:{line}",
                   (round(100 * samples / whole), most["Stall"], round(most["Stall (%)"])),
                   (share, stall, of_line))


def test_samples_are_as_many_as_cycles():
    """Of kernels that keep all multiprocessors busy: a sample for each period of their clock."""
    per_us = 132 * 1980 / (1 << 18)
    rows = table_rows(path_of("stall_kernels"), "gpu_function_sum")
    times = {row["Name"]: row["Total Time (ns)"]
             for row in table_rows(path_of("stall_kernels"), "cuda_gpu_kern_sum")}
    # With the functions that are inlined into them, of which two have no other user.
    inlined = {"pointer_chase": "__ldcg", "fma_chain": "Polynomial"}
    for kernel in ("two_loops", "pointer_chase", "bank_conflicts", "fma_chain"):
        names = (kernel, inlined.get(kernel, kernel))
        samples = sum(row["Samples"] for row in rows
                      if any(name in row["Function"] for name in names))
        [time_ns] = [time for name, time in times.items() if name.startswith(kernel)]
        ratio = samples / (time_ns / 1000 * per_us)
        expect(f"{kernel}: samples for each period ({ratio:.4f})", abs(ratio - 1) < 0.02, True)


def test_steps_that_are_launched_ahead():
    expect_in("20 steps", "launched ahead: the GPU finished 102.7 ms after the last step",
              " ".join(report(path_of("stall_kernels")).split()))
    expect("steps of a model", "launched ahead" in report(path_of("compiled_model")), False)


def test_compiled_model():
    """What torch.compile has fused, by lines of the model, whose file is not here. Folded stacks
    have no number after a space."""
    folded = report("--folded", "--unit", "ns", "--python=only", path_of("compiled_model"))
    fused = {}
    for line in folded.splitlines():
        stack, _, _ = line.rpartition(" ")
        frames = stack.split(";")
        kernel = [frame for frame in frames if frame.startswith("[GPU_Kernel]triton")]
        if kernel:
            fused.setdefault(kernel[0].removeprefix("[GPU_Kernel]"), set()).update(
                frame for frame in frames if frame.startswith("[fused] compiled.py"))
    gate, scaled, residual, weights = (
        f"[fused] compiled.py:{line}" for line in (
            "14 gate = F.silu(self.up(hidden))", "15 scaled = gate * 0.5 +_1.0",
            "24 residual = tokens + self.block(tokens)",
            "25 weights = torch.softmax(residual, dim=-1)"))
    softmax = "triton_per_fused__softmax"
    expect("lines of kernels", fused, {
        "triton_poi_fused_add_mul_silu_0": {gate, scaled},
        f"{softmax}_add_exp_mul_prepare_softmax_online_sub_sum_1": {residual, weights},
        f"{softmax}_add_exp_mul_sub_sum_2": {residual, weights},
        f"{softmax}__softmax_backward_data_add_expand_mul_0": {residual, weights},
        "triton_per_fused_mul_silu_silu_backward_sum_2": {gate},
        "triton_per_fused_sum_1": set()})


def test_time_below_kernels_adds_up():
    check_time_below_kernels(GpuCapture(GPU_CODE / "stall_kernels.xpu"))


def test_triton():
    """Its kernel has lines of the program and of Triton's library, that of cuBLAS has none."""
    rows = table_rows(path_of("triton_kernels"), "gpu_line_sum")
    softmax = [row for row in rows if row["Kernel"] == "softmax_kernel"]
    expect("samples", sum(row["Samples"] for row in softmax), 3363)
    expect("samples without a line", [row for row in softmax if not row["Line"]], [])
    own = {int(row["Line"].rpartition(":")[2]) for row in softmax
           if row["Line"].rpartition(":")[0].endswith("triton_kernels.py")}
    expect("lines of the program", own, {20, 21, 22, 23, 24, 25})
    expect("lines of cuBLAS", {row["Line"] for row in rows if row["Kernel"].startswith("nvjet")},
           {""})
    shown = run_report("--annotate", "softmax", path_of("triton_kernels"))
    expect("status", shown.returncode, 0)
    expect_in("what it waits for", "40.6 %  long scoreboard", shown.stdout)


def test_counters():
    """Samples taken while the program spun, used tensor cores and did nothing."""
    path = path_of("gpu_counters")
    rows = {(row["Name"].split("(")[0], row["Metric"]): row
            for row in table_rows(path, "gpu_metric_sum")}
    expect("while it spins", rows["spin_kernel", "sm_active"]["Avg"], 100.0)
    expect("tensor cores", round(rows["tensor_kernel", "tensor_active"]["Avg"], 1), 95.9)
    expect("without them", rows["spin_kernel", "tensor_active"]["Avg"], 0)
    expect("samples", rows["[all]", "sm_active"]["Samples"], 2668)
    [loss] = [line for line in report(path).splitlines() if line.startswith("losses")]
    expect("losses", loss.split()[1], "none")


def test_cupti_11_8():
    """It does not say that launches are captured into a graph."""
    capture = GpuCapture(GPU_CODE / "graph_cupti_11.8.xpu")
    counts = capture.launch_counts()
    expect("launches", (counts["seen"], counts["matched"], counts["pending"], counts["lost"]),
           (250, 200, 50, 0))
    expect("replays", len(capture.of("graph_launch")), 200)
    expect_in("note", "CUPTI of CUDA 11.8 with a driver of CUDA 13.0",
              str(capture.entry("old_cupti")))


if __name__ == "__main__":
    main(globals())

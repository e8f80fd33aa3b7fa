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

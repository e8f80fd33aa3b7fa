"""Two ranks of PyTorch on two GPUs, with XPU_TEST_GPU=1 and XPU_TEST_PYTHON, a Python with PyTorch:
every collective is matched, its bandwidth is what the program measures, and the rank that is late
is named, with the function that made it late."""

import json
import os
import pathlib
import subprocess
import time

import xpu_testing
from gpu_capture import GpuCapture
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, report,
                         require_recording, table_rows)

WORKLOADS = pathlib.Path(__file__).resolve().parent.parent / "workloads"
SCRIPT = WORKLOADS / "nccl_collectives.py"
# Machines without NVLink multicast refuse these.
SETTINGS = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
            "NVSHMEM_DISABLE_NVLS": "1"}
RANKS = 2


def require_gpus():
    require_recording()
    if os.environ.get("XPU_TEST_GPU") != "1" or "XPU_TEST_PYTHON" not in os.environ:
        raise xpu_testing.Skip("XPU_TEST_GPU is not 1, or XPU_TEST_PYTHON names no Python with "
                               "PyTorch")
    count = subprocess.run([os.environ["XPU_TEST_PYTHON"], "-c",
                            "import torch; print(torch.cuda.device_count())"],
                           capture_output=True, text=True, check=False).stdout.strip()
    if int(count or 0) < RANKS:
        raise xpu_testing.Skip(f"there are {count} GPUs that PyTorch can use, not {RANKS}")


def run(work, *arguments):
    """Records each rank; returns what they print, and the directory of their captures."""
    captures = work.path / "run"
    python = os.environ["XPU_TEST_PYTHON"]
    result = subprocess.run(
        [python, "-m", "torch.distributed.run", "--nproc-per-node", str(RANKS), "--no-python",
         xpu_testing.recorder(), "-o", f"{captures}/", "--off-cpu", "--", python, str(SCRIPT),
         *arguments],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        env={**os.environ, **SETTINGS, "OMP_NUM_THREADS": "4"})
    expect(f"status ({result.stderr[-3000:]})", result.returncode, 0)
    accounts = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    expect("ranks", sorted(account["rank"] for account in accounts), list(range(RANKS)))
    print(result.stdout, flush=True)
    return accounts, captures


def show(captures):
    """For the log of a machine that is not at hand."""
    for table in ("collective_sum", "straggler_sum", "comm_overlap_sum"):
        print(subprocess.run([xpu_testing.find("report/xpu-report"), str(captures), "--table",
                              table, "-n", "12"], capture_output=True, text=True,
                             check=False).stdout, flush=True)


def check_bandwidths(accounts, captures):
    rows = table_rows(captures, "collective_sum")
    for truth in accounts[0]["timed"]:
        (row,) = [row for row in rows if row["Operation"] == truth["operation"] and
                  row["Bytes"] == truth["bytes"]]
        expect(f"{truth['operation']}: count, complete, ranks, how",
               (row["Count"], row["Complete"], row["Ranks"], row["Matched By"]),
               (truth["calls"], truth["calls"], RANKS, "NVTX"))
        # The program measures the time of all ranks, each on its own.
        bus = sum(t["bus"] for account in accounts for t in account["timed"]
                  if t["operation"] == truth["operation"]) / len(accounts)
        ratio = row["BusBW (GB/s)"] / bus
        print(f"{truth['operation']}: {row['BusBW (GB/s)']} GB/s, of the program's {ratio:.4f}")
        expect(f"{truth['operation']}: bandwidth {ratio:.4f}, within 5 %", abs(ratio - 1) <= 0.05,
               True)


def test_collectives_of_two_ranks():
    require_gpus()
    with Workspace() as work:
        accounts, captures = run(work)
        show(captures)
        check_bandwidths(accounts, captures)
        trace = table_rows(captures, "collective_trace")
        expect("incomplete", [row for row in trace if row["Arrived"] != RANKS], [])
        groups = [row for row in trace if "grouped" in row["Matched By"]]
        expect("grouped", len(groups), accounts[0]["grouped"])
        late = [row for row in trace if row["Bytes"] == accounts[0]["late_bytes"]]
        expect("late steps", len(late), accounts[0]["late_steps"])
        expect("last ranks", {row["Last Rank"] for row in late}, {RANKS - 1})
        least_ns = accounts[0]["late_ms"] * 1e6
        expect("skews", all(0.9 * least_ns < row["Skew (ns)"] < 1.5 * least_ns for row in late),
               True)
        # A wait whose Python frames could not be read has a path of its own.
        # Each rank is late by microseconds now and then.
        rows = [row for row in table_rows(captures, "straggler_sum")
                if row["Cause"] == "not running" and row["Waited (%)"] >= 1]
        expect("stragglers", {row["Rank"] for row in rows}, {RANKS - 1})
        expect("times", sum(row["Last Times"] for row in rows), accounts[0]["late_steps"])
        expect_in("the path", "load_slowly", rows[0]["Path"])
        ratio = sum(row["Delay (ns)"] for row in rows) / (least_ns * accounts[0]["late_steps"])
        expect(f"its delay is {ratio:.3f} of its sleep", 0.9 < ratio < 1.5, True)
        for row in table_rows(captures, "comm_overlap_sum"):
            expect(f"rank {row['Rank']} communicates", row["Communication (ns)"] > 0, True)


def rank_processes(parent):
    """The children of torchrun that have a communicator of NCCL."""
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    with_nccl = [pid for pid in children
                 if any("nccl" in comm.read_text().lower()
                        for comm in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"))]
    return sorted(map(int, with_nccl))


def test_attach_to_two_ranks():
    require_gpus()
    steps = 150_000
    with Workspace() as work:
        command = [os.environ["XPU_TEST_PYTHON"], "-m", "torch.distributed.run",
                   "--nproc-per-node", str(RANKS), str(WORKLOADS / "pytorch_ranks.py"),
                   "--steps", str(steps)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **SETTINGS, "OMP_NUM_THREADS": "4"}) as job:
            deadline = time.monotonic() + PATIENCE_S
            while len(pids := rank_processes(job.pid)) < RANKS and time.monotonic() < deadline:
                time.sleep(0.1)
            time.sleep(2)
            result = work.record("-p", ",".join(map(str, pids)), "-d", "500ms")
            expect("the ranks run", [os.path.exists(f"/proc/{pid}") for pid in pids],
                   [True] * RANKS)
            output, errors = job.communicate(timeout=PATIENCE_S)
        expect(f"status of xpu-record ({result.stderr})", result.returncode, 0)
        expect("GPU activity is recorded", "not recorded" in result.stderr, False)
        expect(f"status of the job ({errors[-2000:]})", job.returncode, 0)
        accounts = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        expect("steps of each rank", [account["steps"] for account in accounts], [steps] * RANKS)
        capture = GpuCapture(work.path / "capture.xpu")
        counts = capture.launch_counts()
        expect(f"launches lost {counts}", counts["lost"], 0)
        expect("losses", {k: v for k, v in capture.losses().items() if k != "launch_pending"}, {})
        instances = {p["instance"]: int(p["pid"]) for p in capture.of("gpu_process")}
        expect("processes", sorted(instances.values()), pids)
        starts = {}
        for kernel in capture.of("kernel"):
            if "AllReduce" in kernel["name"]:
                key = instances[kernel["instance"]], int(kernel["device_id"])
                starts.setdefault(key, []).append(int(kernel["start_ns"]))
        print(f"        {counts}; all-reduces by process and device: "
              f"{ {key: len(times) for key, times in starts.items()} }")
        expect("devices", sorted(device for _, device in starts), list(range(RANKS)))
        # Where both are recorded they make the same ones; one may have begun just before.
        begin, end = max(map(min, starts.values())), min(map(max, starts.values()))
        both = [sum(begin <= time_ns <= end for time_ns in times) for times in starts.values()]
        print(f"        while both are recorded: {both}")
        expect("all-reduces of the window", min(both) > 100, True)
        expect(f"as many of each rank: {both}", max(both) - min(both) <= 1, True)
        for pid in pids:
            lines = [line for line in capture.folded("--mode", "gpu", "--pid", str(pid))
                     if "pytorch_ranks.py:run" in line and "AllReduce" in line]
            expect(f"all-reduces of {pid} under the program's own function", len(lines) > 0, True)


def test_attach_to_one_rank_after_the_other():
    """The recordings begin at different collectives; each rank is late at times that it knows."""
    require_gpus()
    with Workspace() as work:
        command = [os.environ["XPU_TEST_PYTHON"], "-m", "torch.distributed.run",
                   "--nproc-per-node", str(RANKS), str(WORKLOADS / "late_ranks.py")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, **SETTINGS, "SECONDS": "20"}) as job:
            deadline = time.monotonic() + PATIENCE_S
            while len(pids := rank_processes(job.pid)) < RANKS and time.monotonic() < deadline:
                time.sleep(0.1)
            run = work.path / "run"
            run.mkdir()
            recorders = []
            for number, pid in enumerate(pids):
                recorders.append(subprocess.Popen(
                    [xpu_testing.recorder(), "-p", str(pid), "-d", "3s", "-o",
                     str(run / f"{number}.xpu")],
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
                time.sleep(0.5)
            for recorder in recorders:
                _, errors = recorder.communicate(timeout=PATIENCE_S)
                expect(f"status of xpu-record ({errors})", recorder.returncode, 0)
            output, errors = job.communicate(timeout=PATIENCE_S)
        expect(f"status of the job ({errors[-2000:]})", job.returncode, 0)
        show(run)
        late = {account["rank"]: account["late_ns"]
                for account in map(json.loads, filter(lambda line: line.startswith("{"),
                                                      output.splitlines()))}
        expect("ranks that were late", sorted(late), list(range(RANKS)))
        rows = {row["Rank"]: row for row in table_rows(run, "rank_sum")}
        # 40 ms in each fifth step, less 25 ms in each 35th; 25 ms in each seventh without these.
        ratio = rows[0]["Waited For (ns)"] / rows[1]["Waited For (ns)"]
        planted = (7 * 40 - 25) / (4 * 25)
        expect(f"rank 0 to rank 1: {ratio:.2f}, planted {planted:.2f}",
               abs(ratio / planted - 1) < 0.25, True)
        text = " ".join(report(run).split())
        for function in ("late_ranks.py:decode_images", "late_ranks.py:tokenize"):
            expect_in("the first finding", function, text)


if __name__ == "__main__":
    main(globals())

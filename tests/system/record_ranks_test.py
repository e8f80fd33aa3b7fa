"""Jobs of several processes on the simulated device: a stand-in for NCCL, whose calls, kernels and
late rank are known, recorded by one recorder per rank and by one around all; and the ranks that
launchers set."""

import json
import os
import shutil
import subprocess

import xpu_testing
from simulated_gpu import record, simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, report, require_recording,
                         run_report, table_rows, workload)

RANKS, STEPS, LATE = 2, 4, 1


def rank_variables(rank):
    return {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
            "GROUP_RANK": "0", "TORCHELASTIC_RUN_ID": "job7"}


def stand_in(work, *arguments):
    return [workload("nccl_stand_in"), "--meet", work.file("meet"), "--steps", str(STEPS),
            "--late", str(LATE), *arguments]


def run_job(work, *arguments, options=()):
    """A recorder for each rank, as torchrun --no-python starts them."""
    directory = work.path / "run"
    recorders = [
        subprocess.Popen([xpu_testing.recorder(), "-o", f"{directory}/", *options, "--",
                          *stand_in(work, *arguments)],
                         env=simulated(**rank_variables(rank)), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
        for rank in range(RANKS)]
    for recorder in recorders:
        _, errors = recorder.communicate(timeout=PATIENCE_S)
        expect(f"status ({errors})", recorder.returncode, 0)
    return directory


def check_collectives(directory, matched_by):
    """In each step an all-reduce, an all-gather, and two all-reduces in a group."""
    rows = table_rows(directory, "collective_trace")
    expect("collectives", len(rows), STEPS * 4)
    expect("incomplete", [row for row in rows if row["Arrived"] != RANKS], [])
    expect("matched by", {row["Matched By"] for row in rows},
           {matched_by, f"{matched_by}, grouped"})
    return rows


def test_two_ranks_on_one_clock():
    require_recording()
    with Workspace() as work:
        directory = run_job(work)
        names = sorted(path.name for path in directory.iterdir())
        for rank, name in enumerate(names):
            expect_in("the name of a capture", f".rank{rank}.pid", name)
        rows = check_collectives(directory, "NVTX")
        late = [row for row in rows if row["Bytes"] == 1 << 20]
        expect("all-reduces", len(late), STEPS)
        expect("last ranks", {row["Last Rank"] for row in late}, {LATE})
        expect("communicators", {row["Communicator"] for row in rows}, {"0x5eed0000c0ffee11"})
        sequences = [row["Seq"] for row in sorted(rows, key=lambda row: row["Seq"])]
        expect("sequence", sequences, list(range(STEPS * 4)))
        groups = [row for row in rows if row["Bytes"] in (1000, 2000)]
        expect("grouped", {row["Matched By"] for row in groups}, {"NVTX, grouped"})
        sums = {(row["Operation"], row["Bytes"]): row
                for row in table_rows(directory, "collective_sum")}
        expect("kinds", sorted(sums), [("AllGather", 4096), ("AllReduce", 1000),
                                       ("AllReduce", 2000), ("AllReduce", 1 << 20)])
        one = sums[("AllReduce", 1 << 20)]
        expect("sum", (one["Count"], one["Complete"], one["Ranks"], one["Reduction"]),
               (STEPS, STEPS, RANKS, "Sum"))
        # Twice (n - 1) / n of the size, per rank.
        expect("bandwidths", abs(one["BusBW (GB/s)"] / one["AlgBW (GB/s)"] - 1) < 0.01, True)


def test_the_late_rank_is_named():
    require_recording()
    with Workspace() as work:
        directory = run_job(work, options=["--off-cpu"])
        rows = table_rows(directory, "straggler_sum")
        expect("straggler", rows[0]["Rank"], LATE)
        # It has a row for each place in which it spent most of such a time.
        slow = [row for row in rows if "WaitAndLoadSlowly" in row["Path"]]
        expect("who was slow", {row["Rank"] for row in slow}, {LATE})
        expect(f"times last {rows}", sum(row["Last Times"] for row in slow) >= STEPS - 1, True)
        overlaps = table_rows(directory, "comm_overlap_sum")
        expect("ranks", [row["Rank"] for row in overlaps], [0, 1])
        expect("overlap", {row["Both (ns)"] for row in overlaps}, {0})


def test_one_recorder_around_all_ranks():
    require_recording()
    with Workspace() as work:
        starts = " & ".join(
            " ".join([*(f"{name}={value}" for name, value in rank_variables(rank).items()),
                      *stand_in(work)]) for rank in range(RANKS))
        record(work, "sh", "-c", f"{starts} & wait")
        capture = work.file("capture.xpu")
        check_collectives(capture, "NVTX")
        infos = work.capture().rank_infos
        expect("ranks", sorted(info["rank"] for info in infos), list(range(RANKS)))
        expect("jobs", {info["job_id"] for info in infos}, {"job7"})
        one = run_report(capture, "--top", "--table", "cuda_gpu_kern_sum", "--rank", "1")
        expect_in("a kernel of one rank", "ncclDevKernel_AllReduce", one.stdout)


def test_a_damaged_and_an_unreadable_capture():
    require_recording()
    with Workspace() as work:
        directory = run_job(work)
        (directory / "killed.xpu").write_bytes(b"")
        result = run_report(directory, "--top", "--table", "collective_trace")
        expect_in("what is left out", "killed.xpu: the file is empty", result.stderr)
        check_collectives(directory, "NVTX")


def test_open_mpi():
    require_recording()
    if shutil.which("mpirun") is None:
        raise xpu_testing.Skip("there is no mpirun; apt install openmpi-bin")
    with Workspace() as work:
        directory = work.path / "run"
        result = subprocess.run(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2",
             xpu_testing.recorder(), "--gpu-only", "-o", f"{directory}/", "--",
             workload("vector_add")],
            env=simulated(), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        expect(f"status ({result.stderr})", result.returncode, 0)
        found = {}
        for path in directory.iterdir():
            for info in xpu_testing.Capture(path).rank_infos:
                found[info["rank"]] = (info["local_rank"], info["world_size"], info["launcher"])
        expect("ranks", sorted(found.items()), [(0, (0, 2, 3)), (1, (1, 2, 3))])


if __name__ == "__main__":
    os.environ.pop("NVTX_INJECTION64_PATH", None)
    main(globals())

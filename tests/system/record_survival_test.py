"""xpu-record and the programs that it records, killed at random moments: the program lives on or its end is
reported, what was flushed is read, and what is missing is at the end.

XPU_TEST_TRIES is how often each of them is killed (default 4).
"""

import json
import os
import pathlib
import random
import signal
import subprocess
import time

import xpu_testing
from control_testing import wait_for
from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Capture, Workspace, expect, expect_in, report,
                         require_recording, workload)

TRIES = int(os.environ.get("XPU_TEST_TRIES", "4"))
PROGRAM = "empty_launches"
LAUNCHES = 30000
SEED = 9
# A flush a second, and CUPTI's buffers a little earlier; twice that on a machine with other work.
FLUSHED_AFTER_NS = 3e9
THREADS = 2
LAUNCH_KERNEL = 211  # of the runtime API


def start(work, *options, **arguments):
    environment = simulated(XPU_FAKE_OVERHEADS="0", XPU_FAKE_KERNEL_NS="100000")
    return subprocess.Popen(
        [xpu_testing.recorder(), "-o", work.file("capture.xpu"), *options, "--",
         workload(PROGRAM), "--launches", str(LAUNCHES), "--threads", str(THREADS)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **arguments)


def check_readable(path, is_cut):
    """Every view of what is there; the cut end is reported, and nothing else is wrong."""
    expect("its end is reported", "file_cut" in report(path), is_cut)
    capture = Capture(path)
    expect("what is wrong with the file",
           {name for name in capture.ledger() if name in ("block_damaged", "reference_lost")},
           set())
    for view in ("--folded", "--chrome-trace", "--top", "--dump"):
        report(view, path)
    return capture


def check_first_calls(what, capture, killed_ns):
    """Without a gap, up to the last flush before the kill, and with their kernels but for those that
    CUPTI had not delivered yet."""
    if not capture.api_calls:
        return
    calls = {call["correlation_id"]: call for call in capture.api_calls}
    gaps = max(calls) + 1 - min(calls) - len(calls)
    expect(f"{what}: calls that are missing ({gaps}), while another thread's later one is there",
           gaps < THREADS, True)
    last_ns = max(call["end_ns"] for call in calls.values())
    if len(calls) < THREADS * LAUNCHES:
        expect(f"{what}: {(killed_ns - last_ns) / 1e9:.3f} s are missing",
               killed_ns - last_ns < FLUSHED_AFTER_NS, True)
    kernels = {kernel["correlation_id"] for kernel in capture.kernels}
    late_ns = min(killed_ns, last_ns) - FLUSHED_AFTER_NS
    expect(f"{what}: earlier launches without their kernel",
           [number for number, call in calls.items() if call["callback_id"] == LAUNCH_KERNEL
            and call["end_ns"] < late_ns and number not in kernels], [])


def test_recorder_killed():
    """What is in the file are the first calls of each thread without a gap, up to the last flush,
    with their kernels; and the program does not notice."""
    require_recording()
    moments = random.Random(SEED)
    for attempt in range(TRIES):
        with Workspace() as work:
            run = start(work)
            moment_s = moments.uniform(0, 4)
            time.sleep(moment_s)
            killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            run.kill()
            output = run.stdout.read()  # until the program has ended
            what = f"try {attempt}, {moment_s:.3f} s"
            if run.wait() == 0:  # it was over already
                check_readable(work.path / "capture.xpu", False)
                continue
            expect(f"{what}: status", run.returncode, -signal.SIGKILL)
            path = work.path / "capture.xpu"
            if not output:  # not yet released: then it was never started
                expect(f"{what}: kernels", Capture(path).kernels if path.exists() else [], [])
                continue
            truth = json.loads(output.splitlines()[-1])
            expect(f"{what}: launches", truth["launches"], THREADS * LAUNCHES + 1)
            # The last moment: everything is written, and the recorder has not ended yet.
            is_whole = len(Capture(path).recording_end) > 0
            capture = check_readable(path, not is_whole)
            check_first_calls(what, capture, killed_ns)
            if is_whole:
                expect(f"{what}: kernels", len(capture.kernels), truth["launches"])


def memory_group(work):
    """A new control group with a limit of memory, its file of the limit and that of its counts."""
    if os.path.exists("/sys/fs/cgroup/cgroup.controllers"):
        parent, limit, counts = "/sys/fs/cgroup", "memory.max", "memory.events"
    else:
        parent, limit, counts = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"
    group = pathlib.Path(parent, f"xpu-test-{work.path.name}")
    try:
        group.mkdir()
    except OSError as error:
        xpu_testing.skip("a control group", str(error))
    if not (group / limit).exists():
        group.rmdir()
        xpu_testing.skip("a control group", f"{group} has no {limit}")
    return group, group / limit, group / counts


def test_recorder_out_of_memory():
    """The kernel ends the recorder alone: the program goes on, and what was flushed is read."""
    require_recording()
    with Workspace() as work:
        group, limit, counts = memory_group(work)
        run = start(work)
        try:
            path = work.path / "capture.xpu"
            wait_for(lambda: path.exists() and path.stat().st_size > 100_000, "a flush")
            (group / "cgroup.procs").write_text(str(run.pid))
            limit.write_text("4096")  # pages that it has stay in the group of before
            output = run.stdout.read()
            expect("status", run.wait(), -signal.SIGKILL)
            expect_in("ended for lack of memory", "oom_kill 1", counts.read_text())
        finally:
            run.kill()
            run.wait()
            group.rmdir()
        expect("launches", json.loads(output.splitlines()[-1])["launches"], THREADS * LAUNCHES + 1)
        expect("kernels are there", len(check_readable(path, True).kernels) > 0, True)


def test_program_killed():
    """Its status is reported, and each call whose record CUPTI had not delivered is counted."""
    require_recording()
    moments = random.Random(SEED)
    for attempt in range(TRIES):
        with Workspace() as work:
            run = start(work)
            moment_s = moments.uniform(0.5, 4)
            time.sleep(moment_s)
            what = f"try {attempt}, {moment_s:.3f} s"
            program = xpu_testing.program_of(run.pid, workload(PROGRAM))
            if program is None:  # over, or not yet begun
                run.communicate(timeout=PATIENCE_S)
                expect(f"{what}: status", run.returncode, 0)
                continue
            os.kill(program, signal.SIGKILL)
            errors = run.communicate(timeout=PATIENCE_S)[1]
            expect(f"{what}: status", run.returncode, -signal.SIGKILL)
            capture = check_readable(work.path / "capture.xpu", False)
            expect(f"{what}: wait status", capture.recording_end[0]["wait_status"], signal.SIGKILL)
            kernels = {kernel["correlation_id"] for kernel in capture.kernels}
            missing = [call for call in capture.api_calls if call["callback_id"] == LAUNCH_KERNEL
                       and call["correlation_id"] not in kernels]
            ledger = capture.losses()
            if not capture.api_calls:  # killed before it took its ring
                ledger.pop("process_not_reached", None)
            # Calls that had not returned are counted too.
            more = ledger.pop("cupti_not_delivered", 0) - len(missing)
            expect(f"{what}: {more} more were not delivered", 0 <= more <= THREADS, True)
            # Who was sending just then: a thread of the program's, or CUPTI's.
            expect(f"{what}: torn", ledger.pop("wire_torn", 0) <= THREADS + 1, True)
            expect(f"{what}: other losses ({errors})", ledger, {})


if __name__ == "__main__":
    xpu_testing.main(globals())

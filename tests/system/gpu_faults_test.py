"""Kernels that fault: the report names the one that did, whatever call returned the error, and lists
candidates where it cannot be one alone. On the simulated device.

XPU_TEST_TRIES is how often a program is killed (default 4).
"""

import contextlib
import csv
import io
import os
import pathlib
import random
import signal
import subprocess
import time

import xpu_testing
from simulated_gpu import record, simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, report, require_recording,
                         workload)

TRIES = int(os.environ.get("XPU_TEST_TRIES", "4"))
FAULTS = workload("gpu_faults")
ILLEGAL_ADDRESS = 700
GOOD = 30
AFTER = 5
SEED = 5


def faulting(code=ILLEGAL_ADDRESS, **variables):
    """The second launch of `culprit` is the one that counts: the first one only loads it. All work is
    launched before that one begins."""
    return simulated(XPU_FAKE_FAULT=f"culprit:{code}:2", XPU_FAKE_OVERHEADS="0",
                     XPU_FAKE_KERNEL_NS="20000000", **variables)


def recorded(work, *options, env):
    """gpu_faults, which prints the error and exits with 1."""
    result = record(work, "--", FAULTS, "--good", str(GOOD), "--after", str(AFTER), *options,
                    env=env, status=1)
    expect_in("what the program prints", "error", result.stderr.lower())
    return result.stderr


def rows(work):
    text = report("--top", "--table", "unfinished_sum", "--format", "csv", work.file("capture.xpu"))
    return list(csv.DictReader(io.StringIO(text)))


def with_state(work, state):
    return [row for row in rows(work) if row["State"] == state]


def first_finding(work):
    text = " ".join(report(work.file("capture.xpu")).split())
    _, has_findings, findings = text.partition("What to look at next - ")
    return findings.partition(" - ")[0] if has_findings else ""


def test_the_kernel_that_faulted_is_named():
    require_recording()
    for code, meaning in ((700, "an illegal memory access"), (716, "a misaligned address"),
                          (719, "an unspecified launch failure")):
        with Workspace() as work:
            messages = recorded(work, env=faulting(code))
            expect_in("recorder", f"error {code}, {meaning}", messages)
            finding = first_finding(work)
            expect_in("error", f"returned error {code}, {meaning}", finding)
            expect_in("kernel", "The work that failed is `culprit`, grid 2x1x1, block 64x1x1", finding)
            expect_in("launching function", "main > LaunchCulprit", finding)
            expect_in("reporting function", "cudaDeviceSynchronize, called by main > WaitForGpu,",
                      finding)
            expect("failed", [row["Name"].partition("(")[0] for row in with_state(work, "failed")],
                   ["culprit"])
            expect("after it", len(with_state(work, "waits for its stream")), AFTER)
            page = report("--flamegraph", work.file("capture.xpu"))
            expect_in("page", "The work that failed is", page)
            expect_in("trace", "[unfinished] culprit", report("--chrome-trace", work.file("capture.xpu")))


def test_the_oldest_work_of_each_stream_is_a_candidate():
    require_recording()
    with Workspace() as work:
        recorded(work, "--streams", "4", env=faulting())
        candidates = with_state(work, "candidate")
        expect("candidates", len(candidates), 4)
        expect("the oldest", candidates[0]["Name"].partition("(")[0], "culprit")
        expect("streams", len({row["Strm"] for row in candidates}), 4)
        expect_in("finding", "4 streams had unfinished work", first_finding(work))


def test_the_functions_that_made_the_nodes_of_a_replay_are_named():
    require_recording()
    with Workspace() as work:
        recorded(work, "--graph", "1", env=faulting())
        finding = first_finding(work)
        expect_in("replay", "launched by main > ReplayGraph", finding)
        expect_in("nodes", "1 made by main > MakeGraph > LaunchCulprit", finding)


def test_without_times_in_host_memory_finished_work_may_be_among_the_candidates():
    """A GPU with confidential computing, which writes no times there."""
    require_recording()
    with Workspace() as work:
        recorded(work, env=faulting(XPU_FAKE_CONFIDENTIAL="1"))
        expect("named", with_state(work, "failed"), [])
        names = [row["Name"].partition("(")[0] for row in with_state(work, "candidate")]
        expect_in("candidates", "culprit", names)
        expect_in("finding", "times of finished work may be lost", first_finding(work))


def test_programs_without_faults_have_no_such_finding():
    require_recording()
    with Workspace() as work:
        record(work, "--", FAULTS, "--fault", "none", "--good", str(GOOD),
               env=simulated(XPU_FAKE_OVERHEADS="0"))
        expect("rows", rows(work), [])


def test_nothing_is_blamed_when_a_working_program_is_killed():
    """At any moment: what has no record may have ended."""
    require_recording()
    moments = random.Random(SEED)
    for _ in range(TRIES):
        with Workspace() as work:
            run = subprocess.Popen(
                [xpu_testing.recorder(), "-o", work.file("capture.xpu"), "--", FAULTS, "--fault", "none",
                 "--good", "1000000", "--period-us", "100", "--sync-every", "7"],
                env=simulated(XPU_FAKE_OVERHEADS="0", XPU_FAKE_KERNEL_NS="20000"),
                stderr=subprocess.PIPE, text=True)
            time.sleep(moments.uniform(0.3, 1.5))
            children = pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text()
            for child in children.split():
                # The recorder's own helpers come and go.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
            run.communicate(timeout=PATIENCE_S)
            expect("finding", "unfinished_sum" in first_finding(work), False)


if __name__ == "__main__":
    main(globals())

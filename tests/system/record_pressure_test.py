"""xpu-record when it cannot keep up: stopped, or with little of the CPU. The program goes on, and what
the rings could not hold is counted exactly: what the program did is what was recorded plus what the
ledger says was lost."""

import json
import os
import signal
import subprocess
import time

import xpu_testing
from simulated_gpu import keys, simulated
from xpu_testing import PATIENCE_S, Capture, Workspace, expect, require_recording, workload

# Of the simulated device; without overhead records the program's account is the device's.
WITHOUT_OVERHEADS = {"XPU_FAKE_OVERHEADS": "0"}
GPU_RECORDS = ("kernels", "synchronizations", "raw_activities")
OTHER_RECORDS = 2  # the device and its context, kept as they are
LIBRARYS_THREAD = "xpu-inject"
LAUNCHES_PER_SYNC = 500  # empty_launches.cu
EXISTING = 0  # ProcessEventKind


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def wait_until(what, is_so, timeout=PATIENCE_S):
    end = time.monotonic() + timeout
    while not is_so():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what}")
        time.sleep(0.002)


class Recording:
    """A program that is being recorded: it runs, with this thread."""

    def __init__(self, work, options, command, env=None, thread=None):
        self.capture_path = work.path / "capture.xpu"
        self.program = None
        self.process = subprocess.Popen(
            [xpu_testing.recorder(), "-q", "-o", self.capture_path, *options, "--", *command],
            env=env, stdout=subprocess.PIPE, text=True)
        wait_until("the program starts", lambda: self.find(command[0]))
        if thread:
            wait_until(f"the thread {thread}", lambda: thread in self.threads())

    def stop_until_the_program_has_ended(self):
        """It ends although nobody takes what it leaves."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            wait_until("the program's end", lambda: state_of(self.program) == "Z")
            expect("state of the recorder", state_of(self.process.pid), "T")
        finally:
            self.process.send_signal(signal.SIGCONT)
        return self

    def starve(self):
        """The recorder runs only where a processor has nothing else to do."""
        os.sched_setscheduler(self.process.pid, os.SCHED_IDLE, os.sched_param(0))
        return self

    def find(self, path):
        self.program = xpu_testing.program_of(self.process.pid, path)
        return self.program is not None

    def threads(self):
        names = []
        for tid in os.listdir(f"/proc/{self.program}/task"):
            with open(f"/proc/{self.program}/task/{tid}/comm", encoding="utf-8") as name:
                names.append(name.read().strip())
        return names

    def finish(self):
        output = self.process.communicate(timeout=PATIENCE_S)[0]
        expect("status", self.process.returncode, 0)
        return json.loads(output.splitlines()[-1]), Capture(self.capture_path)


CALLS = ("API calls, whose stacks are kept", "API calls")


def lost(capture, name, *details):
    return sum(loss["count"] for loss in capture.events.get("losses", [])
               if loss["name"] == name and (not details or loss["detail"] in details))


def check_gpu(truth, capture, inline=True):
    calls = truth["launches"] + 1 + sum(worker["launches"] // LAUNCHES_PER_SYNC + 1
                                        for worker in truth["workers"])
    records = sum(len(capture.events.get(kind, [])) for kind in GPU_RECORDS)
    expect("GPU records, there or lost", records + lost(capture, "wire_ring_full", "GPU records"),
           calls + OTHER_RECORDS)
    without_stack = lost(capture, "call_lost")
    expect("calls, there or lost",
           len(capture.api_calls) + lost(capture, "wire_ring_full", *CALLS) + without_stack, calls)
    expect("stacks, there or lost", len(capture.launch_stacks) + lost(capture, "launch_ring_full"),
           calls)
    expect("other losses",
           set(capture.losses()) - {"wire_ring_full", "launch_ring_full", "call_lost"}, set())
    if inline:
        # Each call is there in some way, or counted as one that is not.
        left = keys(capture.api_calls) | keys(capture.launch_stacks)
        expect("calls of which something is left", len(left) + without_stack, calls)
    expect("kernels that are there twice", len(capture.kernels) - len(keys(capture.kernels)), 0)


def record_launches(work, launches, *options):
    return Recording(work, options, [workload("empty_launches"), "--launches", str(launches),
                                     "--threads", "2"],
                     env=simulated(**WITHOUT_OVERHEADS), thread=LIBRARYS_THREAD)


def check_stopped_gpu(launch_stacks):
    require_recording()
    with Workspace() as work:
        run = record_launches(work, 150000, f"--launch-stacks={launch_stacks}")
        truth, capture = run.stop_until_the_program_has_ended().finish()
        expect("more than the rings hold", lost(capture, "wire_ring_full") > 0, True)
        check_gpu(truth, capture, launch_stacks == "inline")


def test_stopped_recorder_inline():
    check_stopped_gpu("inline")


def test_stopped_recorder_uprobe():
    check_stopped_gpu("uprobe")


def test_stopped_recorder_samples_by_count():
    require_recording()
    with Workspace() as work:
        pages = 200000
        run = Recording(work, ["--cpu-only", "-e", "page-faults", "-c", "1"],
                        [workload("cpu_events"), "--pages", str(pages)])
        truth, capture = run.stop_until_the_program_has_ended().finish()
        dropped = lost(capture, "sample_ring_full")
        expect("more than the ring holds", dropped > 0, True)
        # The loader and the start of the process touch some too.
        others = len(capture.cpu_samples) + dropped - truth["pages"]
        expect(f"faults, there or lost ({others} others)", 0 <= others < 2000, True)


def test_stopped_recorder_probes():
    require_recording()
    with Workspace() as work:
        puppet = workload("cpu_events")
        run = Recording(work, ["--cpu-only", "--uprobe", f"{puppet}:CountedCall"],
                        [puppet, "--calls", "300000"])
        truth, capture = run.stop_until_the_program_has_ended().finish()
        dropped = lost(capture, "probe_ring_full")
        expect("more than the ring holds", dropped > 0, True)
        expect("hits, there or lost", len(capture.probe_hits) + dropped, truth["calls"])


def kernel_records(capture):
    """Of processes and mappings, as the kernel wrote them."""
    return len(capture.mappings) + sum(event["kind"] != EXISTING
                                       for event in capture.process_events)


def test_stopped_recorder_processes():
    """A process that only forks and ends is two records of the kernel."""
    require_recording()
    with Workspace() as work:
        puppet = workload("cpu_events")
        expect("status", work.record("--cpu-only", puppet).returncode, 0)
        others = kernel_records(work.capture())
        run = Recording(work, ["--cpu-only"], [puppet, "--processes", "80000"])
        truth, capture = run.stop_until_the_program_has_ended().finish()
        dropped = lost(capture, "perf_records_lost")
        expect("more than the rings hold", dropped > 0, True)
        expect("records, there or lost", kernel_records(capture) + dropped,
               others + 2 * truth["processes"])


def test_recorder_with_little_of_the_cpu():
    require_recording()
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count())]
    try:
        with Workspace() as work:
            check_gpu(*record_launches(work, 100000).starve().finish())
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    xpu_testing.main(globals())

"""Kernels that never end: what is unfinished, and where the threads wait, is in the capture while it is
being recorded; a program that hangs already can be attached to, and gets its GPU records if the GPU
goes on. On the simulated device."""

import contextlib
import os
import signal
import subprocess
import threading

from attach_end_test import check_left, finish, threads_of_library, wait_for
from attaching import Steps
from gpu_capture import GpuCapture
from other_users import as_nobody
from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, recorder, require_recording,
                         symbols_of, workload)

BLOCKED = 1  # OffCpuState
FAULTS = workload("gpu_faults")
# Its first launch of `culprit` only loads it.
HANGS = {"XPU_FAKE_ENDLESS": "culprit:2"}
NANOSLEEP = 230  # on x86-64: how the simulated device waits


class Recording:
    """xpu-record, whose messages are read as they come."""

    def __init__(self, work, *arguments, env):
        self.path = work.path / "capture.xpu"
        self.process = subprocess.Popen([recorder(env), "-o", str(self.path), *map(str, arguments)],
                                        env=env, stderr=subprocess.PIPE, text=True, bufsize=1,
                                        start_new_session=True)
        self.errors = ""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            self.errors += line

    def wait_for(self, message):
        wait_for(message, lambda: message in self.errors or self.process.poll() is not None)
        expect_in("message", message, self.errors)

    def capture(self):
        return GpuCapture(self.path)

    def finish(self, number=None, status=0):
        if number is not None:
            self.process.send_signal(number)
        expect(f"status ({self.errors})", self.process.wait(PATIENCE_S), status)
        self.reader.join(PATIENCE_S)
        return self.capture()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # with the program that it has started
        self.process.wait()


def named(kernels):
    """The kernels' names in launch order, with "?" where the times are missing."""
    names = {"culprit": "culprit", "ordinary": "ordinary"}
    return [next(short for name, short in names.items() if name in k["name"]) +
            ("" if int(k["end_ns"]) else "?")
            for k in sorted(kernels, key=lambda k: int(k["correlation_id"]))]


def waits_of(work, pid):
    """The functions of the program that each listed wait of a thread has in its stack, by thread."""
    capture = work.capture()
    symbols = symbols_of(FAULTS)
    stacks = {}
    for wait in capture.off_cpu_waits:
        if wait["pid"] != pid:
            continue
        expect("it is a list of waits", (wait["is_open"], wait["start_ns"]), (True, wait["end_ns"]))
        names = set()
        for address in (int(f[1:], 16) for f in wait["stack"] if f[0] != "k"):
            mapping = capture.mapping_at(pid, address, wait["end_ns"])
            if mapping and mapping["path"] == FAULTS:
                offset = address - mapping["start_address"] + mapping["file_offset"]
                names.add(symbols.name_at(offset - 1))
        stacks.setdefault(wait["tid"], []).append((wait["state"], wait["system_call"], names))
    return stacks


def check_where_it_waits(work, pid):
    stacks = waits_of(work, pid)
    expect(f"times that the first thread was listed: {stacks}", len(stacks.get(pid, [])), 1)
    state, call, names = stacks[pid][0]
    expect("state and system call", (state, call), (BLOCKED, NANOSLEEP))
    expect_in("the function that waits", "WaitForGpu", names)


def test_what_is_unfinished_is_recorded_while_it_hangs():
    require_recording()
    env = simulated(**HANGS, XPU_TEST_HANG_MS="300")
    with Workspace() as work, Recording(work, "--", FAULTS, "--fault", "none", "--good", 20,
                                        "--after", 5, env=env) as recording:
        recording.wait_for("nothing has ended on the GPU for ")
        expect_in("hint", "hint: xpu-report shows it while it is being recorded", recording.errors)
        wait_for("the unfinished work is in the capture", lambda: recording.path.exists() and
                 any("culprit?" in name for name in named(recording.capture().of("kernel"))))
        capture = recording.capture()
        expect("kernels", named(capture.of("kernel")),
               ["culprit", *["ordinary"] * 20, "culprit?", *["ordinary?"] * 5])
        pid = int(capture.of("gpu_process")[0]["pid"])
        wait_for("the waits are in the capture", lambda: pid in waits_of(work, pid))
        check_where_it_waits(work, pid)
        os.kill(pid, signal.SIGKILL)
        capture = recording.finish(status=-signal.SIGKILL)
        expect("losses", set(capture.losses()) & {"hang_times_lost", "cupti_not_delivered"}, set())


def test_launches_that_go_on_are_no_hang():
    """A GPU that is always busy keeps buffers back, too."""
    require_recording()
    env = simulated(**HANGS, XPU_TEST_HANG_MS="2000")
    with Workspace() as work:
        result = work.record("--", FAULTS, "--fault", "none", "--good", "5", "--after", "1000",
                             "--period-us", "4000", "--kill-after-ms", "1", env=env)
        expect(f"status ({result.stderr})", result.returncode, -signal.SIGKILL)
        expect("it is called a hang", "nothing has ended on the GPU" in result.stderr, False)


def test_work_that_ends_later_is_counted():
    require_recording()
    env = simulated(XPU_TEST_HANG_MS="300")
    with Workspace() as work:
        result = work.record("--", workload("long_kernel"), "--long-ms", "4000", "--launches", "2",
                             env=env)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = GpuCapture(work.path / "capture.xpu")
        untimed = [k for k in capture.of("kernel") if int(k["end_ns"]) == 0]
        expect("the long kernel has lost its time",
               sum("long_kernel" in k["name"] for k in untimed), 1)
        expect("they are counted", capture.losses()["hang_times_lost"], len(untimed))


def test_without_privileges_no_waits_are_listed():
    env = simulated(XPU_TEST_HANG_MS="300")
    with Workspace() as work:
        result = as_nobody(work, "--gpu-only", "--", workload("long_kernel"), "--long-ms", "4000",
                           "--launches", "10", env=env)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture("out/capture.xpu")
        expect("waits", capture.off_cpu_waits, [])
        expect("what is missing", capture.losses().get("threads_not_listed"), 1)


def hanging(work):
    """A program that waits for a kernel that does not end."""
    process = subprocess.Popen([FAULTS, "--fault", "none", "--good", "5", "--after", "5"],
                               env=simulated(**HANGS), cwd=work.path)

    def waits():
        with open(f"/proc/{process.pid}/syscall", encoding="ascii") as call:
            return call.read().startswith(f"{NANOSLEEP} ")

    wait_for("it waits for the GPU", waits)
    return process


def test_a_program_that_hangs_already():
    require_recording()
    env = simulated()
    with Workspace() as work:
        program = hanging(work)
        try:
            with Recording(work, "-p", program.pid, "-F", "997", env=env) as recording:
                recording.wait_for(f"process {program.pid}: GPU activity is not recorded yet: the GPU "
                                   "has not finished the work that was launched before the attach")
                wait_for("the waits are in the capture",
                         lambda: program.pid in waits_of(work, program.pid))
                capture = recording.finish(signal.SIGINT)
            expect("the loss", capture.losses().get("gpu_not_finished"), 1)
            expect_in("what stays", "a thread of it stays busy in the CUDA driver until the GPU has "
                      "finished", recording.errors)
            check_where_it_waits(work, program.pid)
            expect("CPU samples", any(s["pid"] == program.pid for s in work.capture().cpu_samples),
                   True)
            expect("threads of the library", threads_of_library(program.pid), 1)
            second = work.record("-p", str(program.pid), "-d", "100ms", output="second.xpu", env=env)
            expect(f"status ({second.stderr})", second.returncode, 0)
            expect_in("why", "GPU activity is not recorded: a thread of an earlier recording still "
                      "waits in it until the GPU has finished its work\nhint: attach again when the "
                      "GPU has finished", second.stderr)
            expect("threads of the library", threads_of_library(program.pid), 1)
            expect("the program runs", program.poll(), None)
        finally:
            program.kill()
            program.wait()


def busy_steps(work):
    """Steps after a kernel that takes longer than a recording waits for the GPU."""
    return Steps(work, [workload("endless_steps"), "--first-ms", "5000", "--sync-every", "1",
                        "--sleep-us", "2000"], env=simulated())


def test_a_busy_gpu_is_recorded_once_it_has_finished():
    require_recording()
    with Workspace() as work, busy_steps(work) as steps, \
            Recording(work, "-p", steps.pid, env=simulated()) as recording:
        recording.wait_for("GPU activity is not recorded yet")
        wait_for("kernels are recorded", lambda: recording.path.exists() and
                 recording.capture().of("kernel"))
        capture = recording.finish(signal.SIGINT)
        expect("the loss", capture.losses().get("gpu_not_finished"), 1)
        expect_in("what it says", "and is recorded since", recording.errors)
        check_left(work, steps)


def test_the_library_leaves_when_the_gpu_has_finished():
    require_recording()
    with Workspace() as work, busy_steps(work) as steps:
        with Recording(work, "-p", steps.pid, env=simulated()) as recording:
            recording.wait_for("GPU activity is not recorded yet")
            capture = recording.finish(signal.SIGINT)
            expect("kernels", capture.of("kernel"), [])
        check_left(work, steps)


if __name__ == "__main__":
    main(globals())

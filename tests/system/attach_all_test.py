"""Attaching to all processes that use CUDA, now or later (-a --attach). In a pid namespace of its
own: the programs of other tests, and of other users, are left alone."""

import signal
import subprocess
import sys
import time

from attaching import Steps, calls_in_whole_steps
from control_testing import Fifos
from gpu_attach_test import SLOWLY, is_launch
from gpu_capture import GpuCapture
from gpu_programs import prepare, program
from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, program_of, recorder,
                         run_alone)

def record_all(work, *command, output="capture.xpu"):
    return subprocess.Popen([recorder(), "-o", str(work.path / output), "-a", "--attach",
                             *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def finish(process, work):
    _, errors = process.communicate(timeout=PATIENCE_S)
    expect(f"status of xpu-record ({errors})", process.returncode, 0)
    return GpuCapture(work.path / "capture.xpu"), errors


def wait_until_recorded(pid):
    """The library in it is connected to the recorder."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            if "/memfd:xpu-ring" in maps.read():
                return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} is not attached to")


def wait_for_program(recorder_pid, path):
    deadline = time.monotonic() + PATIENCE_S
    while (pid := program_of(recorder_pid, path)) is None:
        if time.monotonic() > deadline:
            raise AssertionError("the recorder has not started the program")
        time.sleep(0.01)
    return pid


def check_process(capture, pid, threads, launches):
    instances = {p["instance"] for p in capture.of("gpu_process") if int(p["pid"]) == pid}
    expect(f"sessions of process {pid}", len(instances), 1)
    (times,) = threads.values()
    steps = calls_in_whole_steps(capture, times, lambda c: c["instance"] in instances and
                                 is_launch(capture)(c))
    expect(f"launches in each whole step of {pid}", set(steps), {launches})


def test_all_processes_now_and_later():
    launches = 10
    command = [program("endless_steps"), *SLOWLY, "--launches", launches]
    with Workspace() as work, Steps(work, command, name="a") as first, \
            Steps(work, [*command, "--wait"], name="b", waits=True) as waits:
        process = record_all(work)
        wait_until_recorded(first.pid)
        with Steps(work, command, name="c") as later:
            waits.go()
            for steps in (waits, later):
                wait_until_recorded(steps.pid)
            time.sleep(1)
            process.send_signal(signal.SIGINT)
            capture, errors = finish(process, work)
            expect(f"failures in {errors}", "not recorded" in errors, False)
            for steps in (first, waits, later):
                check_process(capture, steps.pid, steps.end(), launches)
        counts = capture.launch_counts()
        expect(f"seen = matched + pending: {counts}", counts["seen"],
               counts["matched"] + counts["pending"])


def test_a_command_that_uses_cuda():
    with Workspace() as work, Steps(work, [program("endless_steps"), *SLOWLY]) as steps:
        process = record_all(work, "--", program("endless_steps"), *SLOWLY)
        wait_until_recorded(steps.pid)
        wait_until_recorded(wait_for_program(process.pid, program("endless_steps")))
        capture, _ = finish(process, work)  # its input ends, and so does the command
        expect("processes with GPU work", len({p["pid"] for p in capture.of("gpu_process")}), 2)
        steps.end()


FORKS = """
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    if status := getattr(cuda, name)(*arguments):
        raise SystemExit(f"{name}: {status}")

def wait_for_line():
    print("waiting", flush=True)
    sys.stdin.readline()

def use():
    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDeviceGet", ctypes.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    call("cuCtxSetCurrent", context)
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
    times = []
    end = time.monotonic() + 5
    while time.monotonic() < end:
        times.append(time.monotonic_ns())
        call("cuMemsetD8_v2", memory, ctypes.c_ubyte(1), ctypes.c_size_t(4096))
        time.sleep(0.005)
    call("cuCtxSynchronize")
    return times

parent_uses, forks_first = map(int, sys.argv[1:])
if parent_uses:
    call("cuInit", 0)
if not forks_first:
    wait_for_line()
child = os.fork()
if child == 0:
    if forks_first:
        wait_for_line()
    if parent_uses:
        time.sleep(1.5)
        os._exit(0)
    for ns in use():
        print(ns)
else:
    assert os.waitpid(child, 0)[1] == 0
"""


def record_fork(work, parent_uses, forks_first):
    """The program's pid, when its child used CUDA, the capture and what the recorder said."""
    (work.path / "dev").mkdir()
    device = work.file("dev/nvidia-uvm", "")
    with Fifos(work) as fifos, subprocess.Popen(
            [sys.executable, "-c", FORKS, str(int(parent_uses)), str(int(forks_first))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=simulated(XPU_FAKE_DEVICE_FILE=device)) as program:
        program.stdout.readline()  # it waits
        recording = record_all(work, "-v", fifos.option)
        fifos.ask("ping")  # CUPTI has been set up in the parent
        output, _ = program.communicate("\n", timeout=PATIENCE_S)
        expect("status of the program", program.returncode, 0)
        recording.send_signal(signal.SIGINT)
        return program.pid, list(map(int, output.split())), *finish(recording, work)


def processes_of(capture):
    return {int(p["pid"]) for p in capture.of("gpu_process")}


def test_a_child_that_was_forked_uses_cuda():
    """It is recorded from then on."""
    with Workspace() as work:
        pid, times, capture, errors = record_fork(work, False, True)
    expect(f"processes that use CUDA beside the parent ({errors})",
           len(processes_of(capture) - {pid}), 1)
    ids = {m["correlation_id"] for m in capture.of("memset")}
    expect(f"memsets ({errors})", len(ids) > 0, True)
    first_ns = min(int(c["start_ns"]) for c in capture.of("api_call")
                   if c["correlation_id"] in ids)
    expect("memsets since the first one", len([ns for ns in times if ns > first_ns]), len(ids) - 1)
    expect("losses", capture.losses(), {})


def test_a_child_that_is_forked_meanwhile_uses_cuda():
    """It cannot be recorded, which is reported and counted."""
    with Workspace() as work:
        pid, _, capture, errors = record_fork(work, False, False)
    expect("processes", processes_of(capture), {pid})
    expect_in("why", "GPU activity is not recorded: it was forked from a process",
              errors)
    expect_in("what to do", "hint: start the recording after the fork", errors)
    expect("losses", capture.losses(), {"process_not_reached": 1})


def test_children_of_a_process_that_uses_cuda_are_left_alone():
    for forks_first in (True, False):
        with Workspace() as work:
            pid, _, capture, errors = record_fork(work, True, forks_first)
        expect(f"attached to ({errors})", errors.count("library loaded"), 1)
        expect("processes", processes_of(capture), {pid})
        expect("losses", capture.losses(), {})


if __name__ == "__main__":
    prepare()
    run_alone()
    main(globals())

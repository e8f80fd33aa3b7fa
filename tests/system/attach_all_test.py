"""Attaching to all processes that use CUDA, now or later (-a --attach). In a pid namespace of its
own: the programs of other tests, and of other users, are left alone."""

import signal
import subprocess
import sys
import time

from attaching import Steps, calls_in_whole_steps
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


def test_children_that_were_forked_are_left_alone():
    script = ("import ctypes, os, sys, time\n"
              "ctypes.CDLL('libcuda.so.1').cuInit(0)\n"
              "child = os.fork()\n"
              "if child == 0:\n"
              "    time.sleep(100)\n"
              "    os._exit(0)\n"
              "print(child, flush=True)\n"
              "sys.stdin.read()\n"
              "os.kill(child, 9)\n")
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=simulated(), text=True)
    child = int(parent.stdout.readline())
    with Workspace() as work:
        process = record_all(work, "-d", "500ms", "-v")
        capture, errors = finish(process, work)
        expect("status of the program", (parent.communicate()[0], parent.returncode), ("", 0))
        expect_in("the parent", f"process {parent.pid}: library loaded", errors)
        expect("the child", f"process {child}:" in errors, False)
        expect("losses", "process_not_reached" in capture.losses(), False)


if __name__ == "__main__":
    prepare()
    run_alone()
    main(globals())

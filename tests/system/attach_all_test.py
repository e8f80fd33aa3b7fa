"""Attaching to all processes that use CUDA, now or later (-a --attach). In a pid namespace of its
own: the programs of other tests, and of other users, are left alone."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

from attaching import Steps, calls_in_whole_steps
from control_testing import Fifos
from gpu_attach_test import SLOWLY, is_launch
from gpu_capture import GpuCapture
from gpu_programs import prepare, program
from other_users import NOBODY
from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, program_of, recorder,
                         run_alone)


def record(work, *command, output="capture.xpu"):
    return subprocess.Popen([recorder(), "-o", str(work.path / output), *command], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def record_all(work, *command, **options):
    return record(work, "-a", "--attach", *command, **options)


def finish(process, work):
    _, errors = process.communicate(timeout=PATIENCE_S)
    expect(f"status of xpu-record ({errors})", process.returncode, 0)
    return GpuCapture(work.path / "capture.xpu"), errors


def is_recorded(pid):
    """The library in it is connected to the recorder."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
        return "/memfd:xpu-ring" in maps.read()


def wait_until_recorded(pid, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if is_recorded(pid):
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


def record_fork(work, parent_uses, forks_first, names_parent=False):
    """The program's pid, when its child used CUDA, the capture and what the recorder said."""
    (work.path / "dev").mkdir()
    device = work.file("dev/nvidia-uvm", "")
    with Fifos(work) as fifos, subprocess.Popen(
            [sys.executable, "-c", FORKS, str(int(parent_uses)), str(int(forks_first))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=simulated(XPU_FAKE_DEVICE_FILE=device)) as program:
        program.stdout.readline()  # it waits
        what = ("-p", str(program.pid)) if names_parent else ("-a", "--attach")
        recording = record(work, *what, "-v", fifos.option)
        fifos.ask("ping")  # if the parent is attached to, CUPTI has been set up in it
        output, _ = program.communicate("\n", timeout=PATIENCE_S)
        expect("status of the program", program.returncode, 0)
        recording.send_signal(signal.SIGINT)
        return program.pid, list(map(int, output.split())), *finish(recording, work)


def processes_of(capture):
    return {int(p["pid"]) for p in capture.of("gpu_process")}


def check_child_uses_cuda(forks_first):
    with Workspace() as work:
        pid, times, capture, errors = record_fork(work, False, forks_first)
    processes = processes_of(capture)
    expect(f"only the child is attached to ({errors})", (len(processes), pid in processes),
           (1, False))
    ids = {m["correlation_id"] for m in capture.of("memset")}
    expect(f"memsets ({errors})", len(ids) > 0, True)
    first_ns = min(int(c["start_ns"]) for c in capture.of("api_call")
                   if c["correlation_id"] in ids)
    expect("memsets since the first one", len([ns for ns in times if ns > first_ns]), len(ids) - 1)
    expect("losses", capture.losses(), {})


def test_a_child_that_was_forked_uses_cuda():
    """It is recorded from then on; the parent is left alone, which only has mapped the driver."""
    check_child_uses_cuda(forks_first=True)


def test_a_child_that_is_forked_meanwhile_uses_cuda():
    check_child_uses_cuda(forks_first=False)


def test_a_child_of_a_parent_that_was_attached_to_uses_cuda():
    """It cannot be recorded, which is reported and counted."""
    with Workspace() as work:
        pid, _, capture, errors = record_fork(work, False, False, names_parent=True)
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


MANY_MAPPINGS = """
import ctypes, mmap, sys
cuda = ctypes.CDLL("libcuda.so.1")
memory = mmap.mmap(-1, 50000 * 4096)
start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
protect = ctypes.CDLL(None).mprotect
for page in range(0, 50000, 2):
    assert protect(ctypes.c_void_p(start + page * 4096), 4096, mmap.PROT_READ) == 0
print("waiting", flush=True)
sys.stdin.readline()
assert cuda.cuInit(0) == 0
sys.stdin.readline()
"""
OWN_DEVICE = ["unshare", "--mount", "sh", "-c",
              'mount -t tmpfs none /dev && touch /dev/nvidia-uvm && exec "$@"', "sh"]


def test_the_kernel_tells_who_begins_to_use_cuda():
    """With a container's own device, in a program that takes so long to look at that this is done
    twice a minute."""
    with Workspace() as work, Fifos(work) as fifos, subprocess.Popen(
            [*OWN_DEVICE, sys.executable, "-c", MANY_MAPPINGS], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env=simulated(XPU_FAKE_DEVICE_FILE="/dev/nvidia-uvm")) as program:
        program.stdout.readline()
        recording = record_all(work, "--gpu-only", fifos.option)
        fifos.ask("ping")
        with open(f"/proc/{program.pid}/maps", encoding="utf-8") as maps:
            expect("the library is in it before", "xpu" in maps.read(), False)
        program.stdin.write("\n")
        program.stdin.flush()
        wait_until_recorded(program.pid, 5)
        program.communicate("\n", timeout=PATIENCE_S)
        recording.send_signal(signal.SIGINT)
        finish(recording, work)


@contextlib.contextmanager
def slow_loaders(work, device, count, **user):
    """Programs that use CUDA and whose loader never returns."""
    driver = shutil.copy(find("tests/system/slow_driver/libcuda.so.1"), work.path)
    os.chmod(work.path, 0o755)
    env = dict(os.environ, LD_PRELOAD=driver, XPU_FAKE_DEVICE_FILE=device)
    with contextlib.ExitStack() as stack:
        processes = []
        for _ in range(count):
            processes.append(stack.enter_context(subprocess.Popen(
                ["/bin/sleep", "1"], stdout=subprocess.PIPE, env=env, **user)))
            stack.callback(processes[-1].kill)
        for process in processes:
            expect("its first line", process.stdout.readline(), b"waiting\n")
        yield {process.pid for process in processes}


def check_starving(count, **user):
    """A program is attached to before the first of those that cannot be is given up."""
    with Workspace() as work:
        (work.path / "dev").mkdir()
        device = work.file("dev/nvidia-uvm", "")
        os.chmod(device, 0o666)
        command = [program("endless_steps"), *SLOWLY, "--wait"]
        with slow_loaders(work, device, count, **user) as slow, \
                Steps(work, command, waits=True, env=simulated()) as steps:
            recording = record_all(work, "--gpu-only")
            steps.go()
            wait_until_recorded(steps.pid)
            recording.send_signal(signal.SIGINT)
            capture, errors = finish(recording, work)
            steps.end()
    expect("processes", processes_of(capture), {steps.pid})
    expect(f"losses ({errors})", capture.losses()["process_not_reached"], count)
    for pid in slow:
        expect_in("why", f"process {pid}: GPU activity is not recorded: the recording ended "
                  "before: none of its threads could be borrowed", errors)


def test_processes_whose_loader_does_not_return():
    check_starving(60)


def test_processes_of_another_user_whose_loader_does_not_return():
    check_starving(60, **NOBODY)


AGAIN = """
import ctypes, os, sys, time
assert ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
left = int(sys.argv[1])
time.sleep(0.02 * (left % 3))
if left > 0:
    os.execv(sys.executable, [sys.executable, __file__, str(left - 1)])
"""


def test_a_program_that_executes_itself_again_and_again():
    """While it is being attached to, too."""
    with Workspace() as work, Fifos(work) as fifos:
        script = work.file("again.py", AGAIN)
        recording = record_all(work, "--gpu-only", fifos.option)
        fifos.ask("ping")
        result = subprocess.run([sys.executable, script, "30"], env=simulated(),
                                capture_output=True, text=True, timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        recording.send_signal(signal.SIGINT)
        _, errors = finish(recording, work)
    expect(f"tracers ({errors})", "tracing it" in errors, False)


if __name__ == "__main__":
    prepare()
    run_alone()
    main(globals())

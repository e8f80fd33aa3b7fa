"""Attaching to programs in containers: own mount, pid, network and user namespaces, a user of their
own, a root that cannot be written and holds nothing of xpu. Made by unshare(1). And to programs
that share a GPU through NVIDIA's Multi-Process Service, on a real one."""

import contextlib
import os
import shlex
import shutil
import subprocess
import time
from collections import Counter

import xpu_testing
from attaching import Steps, calls_in_whole_steps
from gpu_attach_test import SLOWLY, is_launch
from gpu_capture import GpuCapture
from gpu_programs import REAL, prepare, program
from other_users import readable_copy
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, find, skip

LAUNCHES = 20
NAMESPACES = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts",
              "--fork", "--kill-child", "--mount-proc"]


def container(work, name, *arguments, user):
    """A program of `user` that runs steps in namespaces of its own, and its pid out here."""
    ours = os.path.dirname(find("lib/xpu/libxpu_inject.so", "cupti_inject/libxpu_inject.so"))
    (work.path / name).mkdir(mode=0o777)
    os.chmod(work.path / name, 0o777)
    command = shlex.join([program("endless_steps"), *SLOWLY, *arguments, "--launches",
                          str(LAUNCHES)])
    # No file of ours is there, and of the rest only the results can be written.
    script = " && ".join([f"mount --bind {work.path / name} {work.path / name}",
                          f"mount -t tmpfs none {ours}",
                          "mount -o remount,bind,ro /",
                          f"! touch {ours}/../x 2>/dev/null",
                          f'exec {command} "$@"'])
    steps = Steps(work, [*NAMESPACES, "sh", "-c", script, "steps"], name=f"{name}/steps", user=user,
                  group=user, extra_groups=[])
    with open(f"/proc/{steps.pid}/task/{steps.pid}/children", encoding="utf-8") as children:
        (pid,) = children.read().split()
    return steps, int(pid)


def require_namespaces():
    xpu_testing.require_recording()
    if os.geteuid() != 0:
        skip("root", "only root runs programs as other users")
    probe = subprocess.run([*NAMESPACES, "true"], capture_output=True, text=True, user=12345,
                           group=12345, extra_groups=[])
    if probe.returncode != 0:
        skip("namespaces", f"unshare: {probe.stderr.strip()}")


def check_container(capture, pid, threads):
    (instance,) = {p["instance"] for p in capture.of("gpu_process") if int(p["pid"]) == pid}
    calls = [c for c in capture.of("api_call")
             if c["instance"] == instance and is_launch(capture)(c)]
    expect("launches without a stack", [c for c in calls if capture.key(c) not in capture.stacks],
           [])
    (times,) = threads.values()
    steps = calls_in_whole_steps(capture, times, lambda c: c["instance"] == instance and
                                 is_launch(capture)(c))
    expect("launches in each whole step", Counter(steps), Counter({LAUNCHES: len(steps)}))
    expect("whole steps", len(steps) > 0, True)


@contextlib.contextmanager
def mps(work):
    """Environment of the programs that share a GPU through a daemon of ours."""
    control = shutil.which("nvidia-cuda-mps-control")
    if not REAL or control is None:
        skip("MPS", "needs a GPU and nvidia-cuda-mps-control")
    env = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": str(work.path / "mps"),
           "CUDA_MPS_LOG_DIRECTORY": str(work.path / "mps_log")}
    subprocess.run([control, "-d"], env=env, check=True)
    try:
        yield env
    finally:
        subprocess.run([control], input="quit\n", text=True, env=env, check=True)


def test_two_programs_under_mps():
    with Workspace() as work, mps(work) as env, contextlib.ExitStack() as stack:
        programs = [stack.enter_context(
            Steps(work, [program("endless_steps"), "--sleep-us", "100", "--launches", LAUNCHES],
                  env, name=name)) for name in ("a", "b")]
        clients = subprocess.run(["nvidia-cuda-mps-control"], input="ps\n", text=True, env=env,
                                 capture_output=True, check=True).stdout
        pids = [steps.pid for steps in programs]
        expect(f"clients ({clients})", [str(pid) in clients.split() for pid in pids], [True, True])
        result = work.record("-p", ",".join(map(str, pids)), "-d", "500ms")
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = GpuCapture(work.path / "capture.xpu")
        for steps in programs:
            check_container(capture, steps.pid, steps.end())
        expect("lost launches", capture.launch_counts()["lost"], 0)


def test_two_containers():
    require_namespaces()
    with Workspace() as work, contextlib.ExitStack() as stack:
        os.chmod(work.path, 0o777)
        containers = [container(work, name, user=user) for name, user in (("a", 12345),
                                                                         ("b", 54321))]
        for steps, _ in containers:
            stack.enter_context(steps)
        pids = [pid for _, pid in containers]
        for window in range(2):
            result = work.record("-p", ",".join(map(str, pids)), "-d", "500ms", "-v",
                                 output=f"{window}.xpu")
            expect(f"status ({result.stderr})", result.returncode, 0)
        threads = [steps.end() for steps, _ in containers]
        for window in range(2):
            capture = GpuCapture(work.path / f"{window}.xpu")
            for pid, of_container in zip(pids, threads):
                check_container(capture, pid, of_container)
            counts = capture.launch_counts()
            expect(f"seen = matched + pending: {counts}", counts["seen"],
                   counts["matched"] + counts["pending"])
            expect("losses", {k: v for k, v in capture.losses().items() if k != "launch_pending"},
                   {})
            stacks = [line for line in capture.folded("--mode", "gpu", "--unit", "ns")
                      if ";LaunchStep(" in line and ";RunSteps(" in line]
            expect("stacks with names", len(stacks) > 0, True)


def test_a_user_without_privileges():
    """Of the user's own program; nothing else waits for what only root can do."""
    require_namespaces()
    user = {"user": 23456, "group": 23456, "extra_groups": []}
    with Workspace() as work:
        own = readable_copy(work)
        with Steps(work, [program("endless_steps"), *SLOWLY, "--launches", LAUNCHES],
                   **user) as steps:
            for name, options in (("p", ("-p", str(steps.pid))), ("a", ("-a", "--attach"))):
                result = subprocess.run([own, "--gpu-only", *options, "-d", "500ms", "-o",
                                         work.path / "out" / f"{name}.xpu"], capture_output=True,
                                        text=True, check=False, **user)
                expect(f"status of {options} ({result.stderr})", result.returncode, 0)
            recording = subprocess.Popen([own, "--gpu-only", "-p", str(steps.pid), "-o",
                                          work.path / "out" / "all.xpu"], stderr=subprocess.PIPE,
                                         text=True, **user)
            time.sleep(1)
            threads = steps.end()
            _, errors = recording.communicate(timeout=PATIENCE_S)
            expect(f"it ends with the program ({errors})", recording.returncode, 0)
            expect_in("what is not noticed", "-p without CAP_BPF and CAP_PERFMON", errors)
        for name in ("p", "a", "all"):
            capture = GpuCapture(work.path / "out" / f"{name}.xpu")
            check_container(capture, steps.pid, threads)
            calls = [int(c["start_ns"]) for c in capture.of("api_call")]
            expect(f"{name}: length in s", (max(calls) - min(calls)) / 1e9 < 4, True)


if __name__ == "__main__":
    prepare()
    xpu_testing.main(globals())

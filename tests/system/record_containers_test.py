"""Which container each process is in, by control groups as runtimes make them: of version 1 and 2,
and by mounts where the groups do not tell. Also of programs that run already, and of what they
start."""

import contextlib
import os
import pathlib
import shlex
import shutil
import subprocess
import time

import xpu_testing
from xpu_testing import (Workspace, expect, expect_in, folded, main, own_mounts, report, require_recording, skip,
                         table_rows)

DOCKER, POD, MOUNTED = "d" * 64, "c0" * 32, "5" * 64
UID = "0a1b2c3d-1111-2222-3333-444455556666"
POD_PATH = (f"kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/"
            f"cri-containerd-{POD}.scope")
SPIN = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass\n"


def mounts_of(kind):
    with open("/proc/self/mounts", encoding="utf-8") as lines:
        return [line.split()[1] for line in lines if line.split()[2] == kind]


@contextlib.contextmanager
def group(root, path):
    """A new control group below the hierarchy at `root`."""
    top = pathlib.Path(root) / f"xpu_test_{os.getpid()}"
    directory = top / path
    try:
        directory.mkdir(parents=True)
    except OSError as error:
        skip("root", f"{directory}: {error.strerror}")
    try:
        yield directory
    finally:
        for _ in range(100):  # what has just ended may still be in it
            with contextlib.suppress(OSError):
                for each, _, _ in os.walk(top, topdown=False):
                    os.rmdir(each)
                break
            time.sleep(0.1)


def in_group(directory, command, **variables):
    """A shell's command line that runs one in the group, as a runtime starts a container's."""
    names = " ".join(f"{name}={value}" for name, value in variables.items())
    script = f"echo $$ > {directory}/cgroup.procs && exec env {names} {shlex.join(command)}"
    return f"sh -c {shlex.quote(script)}"


def spin(seconds, *, fork=False):
    code = SPIN.format(seconds)
    return ["python3", "-c", f"import os\nos.fork()\n{code}" if fork else code]


def hierarchies():
    found = [path for path in mounts_of("cgroup2") + mounts_of("cgroup")
             if os.access(path, os.W_OK) and "cpuset" not in path]
    if os.geteuid() != 0 or not found:
        skip("root", "control groups can be made by root only, where they are mounted")
    return [found[0], found[-1]]  # of both versions, where there are both


def test_groups_of_two_containers():
    require_recording()
    first, second = hierarchies()
    with Workspace() as work, group(first, f"docker/{DOCKER}") as docker, \
            group(second, POD_PATH) as pod:
        capture = work.file("capture.xpu")
        script = " & ".join([in_group(docker, spin(0.4, fork=True), HOSTNAME="web"),
                             in_group(pod, spin(0.4), HOSTNAME="trainer-0", POD_NAMESPACE="ml",
                                      KUBERNETES_SERVICE_HOST="10.0.0.1"),
                             shlex.join(spin(0.2))]) + " & wait"
        work.record("--cpu-only", "--", "sh", "-c", script)
        infos = xpu_testing.Capture(capture).container_infos
        expect("containers", {info["id"] for info in infos}, {DOCKER, POD})
        (uid,) = {info["pod_uid"] for info in infos if info["id"] == POD}
        expect("pod", uid, UID)
        in_web = {info["pid"] for info in infos if info["id"] == DOCKER}
        expect("the program and its fork", len(in_web), 2)

        rows = table_rows(capture, "thread_sum")
        expect("containers of processes", {row["Container"] for row in rows if row["Container"]},
               {"web", "ml/trainer-0"})
        expect("who is in one", {row["Pid"] for row in rows if row["Container"] == "web"}, in_web)
        expect_in("summary",
                  f"container ml/trainer-0 (containerd {POD[:12]}, 1 process), "
                  f"web (Docker {DOCKER[:12]}, 2 processes)", " ".join(report(capture).split()))
        groups = {stack.split(";")[0] for stack in folded("--by", "container", capture)}
        expect("groups", groups >= {"web", "ml/trainer-0", "[no container]"}, True)
        for name in ("trainer-0", POD[:12], "ml/trainer-0"):
            some = folded("--by", "container", "--container", name, capture)
            expect(f"--container {name}", {stack.split(";")[0] for stack in some},
                   {"ml/trainer-0"})


def test_a_program_that_runs_already():
    require_recording()
    first, _ = hierarchies()
    with Workspace() as work, group(first, f"docker/{DOCKER}") as docker:
        with subprocess.Popen(["sh", "-c", "exec " + in_group(docker, spin(60))]) as program:
            try:
                while "python3" not in pathlib.Path(f"/proc/{program.pid}/comm").read_text(
                        encoding="utf-8"):
                    time.sleep(0.01)
                capture = work.file("capture.xpu")
                work.record("--cpu-only", "-p", str(program.pid), "-d", "300ms")
                infos = xpu_testing.Capture(capture).container_infos
                expect("container", [(info["pid"], info["id"]) for info in infos],
                       [(program.pid, DOCKER)])
            finally:
                program.kill()


def test_by_mounts():
    """The group says nothing, as in a control group namespace."""
    require_recording()
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        skip("root", "only root mounts files")
    with Workspace() as work:
        files = work.path / "containers" / MOUNTED
        files.mkdir(parents=True)
        (files / "hostname").write_text("box\n", encoding="utf-8")
        capture = work.file("capture.xpu")
        script = f"mount --bind {files}/hostname /etc/hostname && exec {shlex.join(spin(0.3))}"
        work.record("--cpu-only", "--", *own_mounts(), "sh", "-c", script)
        # Before the mount it is in none.
        ids = {info["id"] for info in xpu_testing.Capture(capture).container_infos} - {""}
        expect("container", ids, {MOUNTED})
        expect("what it is called", {row["Container"] for row in table_rows(capture, "thread_sum")},
               {MOUNTED[:12]})


if __name__ == "__main__":
    main(globals())

"""./bootstrap.sh demo, less the compiling: it records, reports, and says on what; also for an
ordinary user, with sudo and without, whose home nobody else may enter."""

import os
import pathlib
import shutil
import subprocess

from other_users import NOBODY
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, own_mounts,
                         require_recording, require_set_user_id, skip)

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The demo needs these parts of a build.
BUILT = ["record/xpu-record", "report/xpu-report", "cupti_inject/libxpu_inject.so",
         "tests/workloads/transformer", "tests/fake_cuda/lib"]


def check_report(result, directory):
    expect(f"status ({result.stdout}{result.stderr})", result.returncode, 0)
    expect_in("matches", "launches  15,200: 15,200 with their kernel, 0 pending", result.stdout)
    expect("what is left", sorted(os.listdir(directory)), ["demo.html", "demo.xpu"])
    expect_in("longest", "[GPU_Kernel]layer_norm_kernel", result.stdout)
    expect_in("what it ran on", "demo ran on the ", result.stdout.splitlines()[-1])


def test_demo():
    require_recording()
    with Workspace() as work:
        result = subprocess.run([ROOT / "tests/workloads/demo.sh", os.environ["XPU_BUILD_DIR"],
                                 str(work.path)],
                                capture_output=True, text=True, timeout=PATIENCE_S)
        check_report(result, work.path)
        expect_in("CPU samples", "\nCPU functions: ", result.stdout)


class Clone:
    """A built clone in the home of a user who is not root."""

    def __init__(self, work):
        if os.geteuid() != 0:
            skip("root", "only root becomes another user")
        require_recording()
        os.chmod(work.path, 0o755)
        self.home = work.path / "home"
        self.path = self.home / "xpu"
        self.commands = work.path / "commands"
        self.sudoers = work.path / "sudoers"
        for name in ["bootstrap.sh", "tests/workloads/demo.sh"]:
            self.copy(ROOT / name, self.path / name)
        self.command("cmake", "exit 0")  # all is built
        self.command("dpkg-query", "echo install ok installed")

    def copy_build(self):
        for name in BUILT:
            self.copy(find(name), self.path / "build/release" / name)

    def copy(self, source, target):
        target.parent.mkdir(parents=True, exist_ok=True)
        if os.path.isdir(source):
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target)

    def command(self, name, script):
        self.commands.mkdir(exist_ok=True)
        (self.commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.commands / name).chmod(0o755)

    def demo(self, sudoers):
        """Runs it as that user, on a machine with these rules of sudo."""
        if not shutil.which("sudo"):
            skip("sudo", "sudo is not installed")
        require_set_user_id()
        self.sudoers.write_text(f"Defaults env_reset\nroot ALL=(ALL) ALL\n{sudoers}\n")
        self.sudoers.chmod(0o440)
        for place in [self.home, *self.home.rglob("*")]:
            os.chown(place, NOBODY["user"], NOBODY["group"], follow_symlinks=False)
        self.home.chmod(0o700)
        environment = {"PATH": f"{self.commands}:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.home)}
        return subprocess.run(
            [*own_mounts(), "sh", "-ec", 'mount --bind "$1" /etc/sudoers; shift; exec "$@"',
             "sh", self.sudoers, "setpriv", f"--reuid={NOBODY['user']}",
             f"--regid={NOBODY['group']}", "--clear-groups", self.path / "bootstrap.sh", "demo"],
            capture_output=True, text=True, timeout=PATIENCE_S, env=environment, cwd="/",
            stdin=subprocess.DEVNULL, start_new_session=True)


def test_user_with_sudo():
    with Workspace() as work:
        clone = Clone(work)
        clone.copy_build()
        result = clone.demo("nobody ALL=(ALL) NOPASSWD: ALL")
        directory = clone.path / "build/demo"
        check_report(result, directory)
        expect_in("CPU samples", "\nCPU functions: ", result.stdout)
        for path in [directory / "demo.xpu", directory / "demo.html"]:
            expect(f"owner of {path.name}", path.stat().st_uid, NOBODY["user"])
        # The commands that it prints work from anywhere.
        line = [line for line in result.stdout.splitlines() if " --top " in line][-1]
        table = subprocess.run(["sh", "-c", line], cwd="/", capture_output=True, text=True)
        expect_in("its last command", "softmax_kernel", table.stdout)


def test_user_without_sudo():
    with Workspace() as work:
        clone = Clone(work)
        clone.copy_build()
        result = clone.demo("")
        check_report(result, clone.path / "build/demo")
        expect("CPU samples", "\nCPU functions: " in result.stdout, False)
        expect_in("what is left out", "== only the GPU's side is recorded", result.stdout)
        expect_in("why", "\n  privileges: without CAP_BPF and CAP_PERFMON\n", result.stdout)
        expect("hints", result.stdout.count("\n  hint: run as root"), 1)


def test_user_without_sudo_and_packages():
    with Workspace() as work:
        clone = Clone(work)
        clone.command("dpkg-query", 'case "$*" in *libdw-dev|*ninja-build) exit 1;; esac\n'
                      "echo install ok installed")
        result = clone.demo("")
        expect("status", result.returncode, 1)
        expect("message", result.stderr.splitlines()[-3:],
               ["packages are missing, and installing them needs root",
                "hint: ask an administrator to run:",
                "  apt-get install -y --no-install-recommends libdw-dev ninja-build"])
        expect("nothing is begun", sorted(os.listdir(clone.path)), ["bootstrap.sh", "tests"])


if __name__ == "__main__":
    main(globals())

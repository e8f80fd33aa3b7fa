"""Processes with the CUDA driver in which the injected library cannot be: each is a loss, with its
reason, and nothing else is."""

import os
import shutil
import subprocess

from odd_programs import odd, require_root
from other_users import readable_copy
from simulated_gpu import simulated
from xpu_testing import (Workspace, expect, expect_in, find, main, own_mounts, recorder, report,
                         require_recording)

LIBRARIES = f"LD_LIBRARY_PATH={simulated()['LD_LIBRARY_PATH']}"


def record(work, *command, looks=1, losses, options=(), program=None, first_input=None):
    """Lets the program end when the recorder has looked at `looks` processes, and closes
    `first_input` when it has looked at one. Returns its stderr."""
    with subprocess.Popen([program or recorder(), "-v", "-o", work.file("capture.xpu"), *options,
                           "--", *command], env=simulated(), cwd=work.path, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as run:
        text = ""
        while text.count("the injected library") < looks:
            line = run.stderr.readline()
            if not line:
                break
            text += line
            if first_input and "the injected library" in line:
                first_input.close()
        run.stdin.close()
        text += run.stderr.read()
    expect(f"status ({text})", run.returncode, 0)
    expect(f"losses ({text})", work.capture().losses(), losses)
    report("--strict", work.file("capture.xpu"), status=3 if losses else 0)
    return text


def test_variables_that_are_lost():
    require_recording()
    with Workspace() as work:
        program = odd("launch=5", "wait")
        for cleared in (["env", "-i", LIBRARIES], ["env", "-u", "CUDA_INJECTION64_PATH"]):
            text = record(work, *cleared, *program, losses={"process_not_reached": 1})
            expect_in("reason", "(xpu_odd_program): it was started without CUDA_INJECTION64_PATH",
                      text)
        text = record(work, "env", "CUDA_INJECTION64_PATH=/no/such.so", *program,
                      losses={"process_not_reached": 1})
        expect_in("reason", "its CUDA_INJECTION64_PATH was changed", text)
        record(work, "env", "-i", LIBRARIES, *program, options=("--gpu-only",),
               losses={"process_not_reached": 1})
        # Asked for without it.
        text = record(work, "env", "-i", LIBRARIES, *program, options=("--cpu-only",), looks=0,
                      losses={})


def test_one_of_several_images():
    """An exec keeps the pid: what the first one reports does not count for the second."""
    require_recording()
    with Workspace() as work:
        os.mkfifo(work.file("first"))
        script = (f'env -i {LIBRARIES} "$0" launch=5 wait <{work.file("first")}; '
                  'exec "$0" launch=20 wait')
        # With a reader: opening it waits for none.
        with open(work.file("first"), "r+b", buffering=0) as first_input:
            record(work, "sh", "-c", script, *odd(), looks=2, losses={"process_not_reached": 1},
                   first_input=first_input)
        expect("kernels", len(work.capture().kernels), 20)


def test_driver_that_is_not_used():
    require_recording()
    with Workspace() as work:
        record(work, *odd("map-driver", "wait"), losses={})
        # Whether it was meant to be used nobody can tell.
        record(work, "env", "-i", LIBRARIES, *odd("map-driver", "wait"),
               losses={"process_not_reached": 1})


def test_recorders_within_another():
    require_recording()
    with Workspace() as work:
        inner = [recorder(), "-q", "-o", work.file("inner.xpu")]
        # That one has asked for no GPU, so that the outer one has it.
        record(work, *inner, "--cpu-only", "--", *odd("launch=5", "wait"), losses={})
        expect("kernels", len(work.capture().kernels), 5)
        expect("losses inside", work.capture("inner.xpu").losses(), {})
        for stacks in "inline", "uprobe":
            text = record(work, *inner, f"--launch-stacks={stacks}", "--", *odd("launch=5", "wait"),
                          losses={"process_not_reached": 1})
            expect_in("reason", "(xpu_odd_program): another xpu-record inside this one records "
                      "it.\n", text)
            expect("kernels inside", len(work.capture("inner.xpu").kernels), 5)
            expect("losses inside", work.capture("inner.xpu").losses(), {})


def test_library_that_the_user_may_not_read():
    require_recording()
    require_root()
    with Workspace() as work:
        program = readable_copy(work)
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   *odd("launch=5", "wait")]
        record(work, *command, losses={}, program=program)
        expect("kernels", len(work.capture().kernels), 5)
        os.chmod(work.path / "lib", 0o700)
        text = record(work, *command, losses={"process_not_reached": 1}, program=program)
        expect_in("reason", "its user cannot read", text)


def test_library_that_is_not_in_the_root():
    require_recording()
    require_root()
    with Workspace() as work:
        directory = simulated()["LD_LIBRARY_PATH"]
        shutil.copytree(directory, f"{work.path}/root/{directory}", symlinks=True)
        program = odd(f"chroot={work.path}/root", "launch=5", "wait")
        text = record(work, *program, losses={"process_not_reached": 1})
        expect_in("reason", "libxpu_inject.so is not in its root", text)
        inject = os.path.dirname(find("cupti_inject/libxpu_inject.so",
                                      "../lib/xpu/libxpu_inject.so"))
        hide = [*own_mounts(), "sh", "-ec", f"mount -t tmpfs none {inject}; exec \"$@\"", "sh"]
        text = record(work, *hide, *odd("launch=5", "wait"), losses={"process_not_reached": 1})
        expect_in("reason", "libxpu_inject.so is not in its root", text)


if __name__ == "__main__":
    main(globals())

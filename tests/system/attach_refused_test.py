"""Programs that use the GPU and cannot be attached to: the message says why, and hints at what helps, their
CPU samples are recorded, and they go on."""

import os
import pathlib
import subprocess

from attaching import Steps
from gpu_programs import prepare, program
from other_users import KILL, forbid, readable_copy
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, find, main, skip

MEMFD_CREATE = 319  # on x86-64


def check_refused(work, process, reason, hint, command=None):
    options = ["-o", str(work.path / "out" / "capture.xpu"), "-F", "997", "-d", "1s", "-p",
               str(process.pid)]
    (work.path / "out").mkdir(exist_ok=True)
    result = (subprocess.run([*command, *options], capture_output=True, text=True, timeout=PATIENCE_S)
              if command else work.record(*options[2:], output="out/capture.xpu"))
    expect(f"status ({result.stderr})", result.returncode, 0)
    expect_in("the message",
              f"process {process.pid}: GPU activity is not recorded: {reason}", result.stderr)
    expect_in("the hint", f"hint: {hint}", result.stderr)
    capture = work.capture("out/capture.xpu")
    expect("it is in the capture",
           [reason in detail for detail in capture.details("process_not_reached")], [True])
    expect("CPU samples are recorded",
           any(s["pid"] == process.pid for s in capture.cpu_samples), True)
    expect("the program goes on", process.poll(), None)


def mapped_driver(name):
    directory = os.path.dirname(find("tests/fake_cuda/lib/libcuda.so.1"))
    process = subprocess.Popen([find(name)], cwd=directory, stdout=subprocess.PIPE)
    expect("its first line", process.stdout.readline(), b"running\n")
    return process


def check_other_program(name, reason, hint):
    process = mapped_driver(name)
    try:
        with Workspace() as work:
            check_refused(work, process, reason, hint)
    finally:
        process.kill()
        process.communicate()


def test_a_seccomp_filter_that_would_kill():
    with Workspace() as work, Steps(work, [program("endless_steps")],
                                    preexec_fn=lambda: forbid(MEMFD_CREATE, action=KILL)) as steps:
        check_refused(work, steps.process,
                      "its seccomp filter does not allow memfd_create, which the library needs",
                      "start the program under xpu-record, or allow the call in the filter")
        steps.end()


def test_a_seccomp_filter_that_refuses():
    with Workspace() as work, Steps(work, [program("endless_steps")],
                                    preexec_fn=lambda: forbid(MEMFD_CREATE)) as steps:
        check_refused(work, steps.process,
                      "its seccomp filter does not allow memfd_create, which the library needs",
                      "start the program under xpu-record, or allow the call in the filter")
        steps.end()


def test_a_program_without_the_c_library():
    check_other_program("tests/system/xpu_mapped_driver",
                        "the program does not use the GNU C library 2.34 or newer as a shared "
                        "library", "start the program under xpu-record")


def test_a_32_bit_program():
    name = "tests/system/xpu_mapped_driver_32"
    if not (pathlib.Path(os.environ.get("XPU_BUILD_DIR", "/")) / name).exists():
        skip("32-bit", "the compiler makes no 32-bit programs")
    try:
        mapped_driver(name).kill()
    except OSError as error:
        skip("32-bit", f"the kernel runs no 32-bit programs: {error}")
    check_other_program(name, "it is a 32-bit program", "build it for 64 bits")


def test_a_process_of_another_user():
    with Workspace() as work:
        recorder = readable_copy(work)
        (work.path / "out").chmod(0o777)
        capabilities = "+bpf,+perfmon"
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                   f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}", recorder]
        with Steps(work, [program("endless_steps")], user=12345, group=12345,
                   extra_groups=[]) as steps:
            try:
                check_refused(work, steps.process, "it belongs to another user",
                              "run as root, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep",
                              command)
            finally:
                steps.end()


if __name__ == "__main__":
    prepare()
    main(globals())

"""--user: the program runs as another user with nothing left of root, and is recorded all the same;
what that user cannot reach is said before the program starts."""

import json
import os
import pwd
import subprocess

from record_gpu_test import keys, simulated
from record_privileges_test import as_nobody, readable_copy
from xpu_testing import (Workspace, expect, expect_in, main, recorder, require_recording, skip,
                         workload)

ENTRY = pwd.getpwnam("nobody")
ALL = ",".join(f"+{name}" for name in ("setuid", "setgid", "dac_override", "sys_admin", "bpf"))
# Each way back to root, and what it gave.
WAYS_BACK = """
import ctypes, json, os
def attempt(function, *arguments):
    try:
        function(*arguments)
    except PermissionError:
        return "refused"
    return "worked"
ways = {
    "setuid": attempt(os.setuid, 0),
    "seteuid": attempt(os.seteuid, 0),
    "setresuid": attempt(os.setresuid, 0, 0, 0),
    "setgid": attempt(os.setgid, 0),
    "setgroups": attempt(os.setgroups, [0]),
}
status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({
    "ways": ways,
    "status": {name: value.split() for name, value in status.items()},
    "environment": dict(os.environ),
    "folder": os.getcwd(),
}))
"""


def require_root():
    if os.geteuid() != 0:
        skip("root", "only root becomes another user")


def run(work, *arguments, prefix=(), **options):
    options.setdefault("cwd", work.path)
    return subprocess.run([*prefix, readable_copy(work), "-o", work.file("capture.xpu"),
                           *arguments], capture_output=True, text=True, timeout=60, **options)


def seen_by_program(work, *arguments, **options):
    """The system's Python: everybody can read it."""
    result = run(work, "--gpu-only", "-q", *arguments, "/usr/bin/python3", "-c", WAYS_BACK,
                 **options)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout)


def check_nothing_is_left(seen):
    expect("ways back", set(seen["ways"].values()), {"refused"})
    status = seen["status"]
    expect("user ids", status["Uid"], [str(ENTRY.pw_uid)] * 4)
    expect("group ids", status["Gid"], [str(ENTRY.pw_gid)] * 4)
    expect("groups", status["Groups"],
           [str(group) for group in os.getgrouplist(ENTRY.pw_name, ENTRY.pw_gid)])
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        expect(name, int(status[name][0], 16), 0)


def test_program_has_nothing_of_root():
    require_root()
    with Workspace() as work:
        for name in (ENTRY.pw_name, str(ENTRY.pw_uid)):
            seen = seen_by_program(work, "--user", name)
            check_nothing_is_left(seen)
            expect("folder", seen["folder"], str(work.path))
            for variable, value in (("HOME", ENTRY.pw_dir), ("USER", ENTRY.pw_name),
                                    ("LOGNAME", ENTRY.pw_name), ("SHELL", ENTRY.pw_shell)):
                expect(variable, seen["environment"][variable], value)
            expect("PATH", seen["environment"]["PATH"], os.environ["PATH"])


def test_capabilities_that_the_recorder_was_given_are_not_passed_on():
    require_root()
    with Workspace() as work:
        for prefix in (["setpriv", f"--inh-caps={ALL}", f"--ambient-caps={ALL}"],
                       ["setpriv", f"--inh-caps={ALL}",
                        "--securebits=+no_setuid_fixup"],
                       ["setpriv", "--securebits=+noroot,+noroot_locked", f"--inh-caps={ALL}",
                        f"--ambient-caps={ALL}"]):
            check_nothing_is_left(seen_by_program(work, "--user=nobody", prefix=prefix))


def test_gpu_and_cpu_are_recorded():
    require_recording()
    require_root()
    with Workspace() as work:
        for arguments in ((), ("--gpu-only",), ("--launch-stacks=uprobe",)):
            os.path.exists(work.file("capture.xpu")) and os.unlink(work.file("capture.xpu"))
            result = run(work, "--user=nobody", *arguments, workload("two_kernels"),
                         "--mode=processes", env=simulated())
            expect(f"status ({result.stderr})", result.returncode, 0)
            launches = sum(actor["launches"] for actor in json.loads(result.stdout)["actors"])
            capture = work.capture()
            expect("losses", capture.losses(), {})
            expect("kernels", len(capture.kernels), launches)
            expect("kernels without a stack", keys(capture.kernels) - keys(capture.launch_stacks),
                   set())


def test_capture_belongs_to_the_caller_of_sudo():
    require_root()
    with Workspace() as work:
        environment = dict(os.environ, SUDO_UID="12345", SUDO_GID="12346")
        result = run(work, "--gpu-only", "--user=nobody", "true", env=environment)
        expect(f"status ({result.stderr})", result.returncode, 0)
        owner = os.stat(work.path / "capture.xpu")
        expect("owner", (owner.st_uid, owner.st_gid, owner.st_mode & 0o777), (12345, 12346, 0o600))


def check_refused(work, result, *texts, status=125):
    expect("status", result.returncode, status)
    for text in texts:
        expect_in("message", text, result.stderr)
    left = {"bin", "lib", "out"} & set(os.listdir(work.path)) | {"private"}
    expect("files", set(os.listdir(work.path)) - left, set())


def test_what_the_user_cannot_reach():
    require_root()
    with Workspace() as work:
        readable_copy(work)
        os.chmod(work.path / "lib", 0o700)
        result = run(work, "--gpu-only", "--user=nobody", "touch", "out/started")
        check_refused(work, result, "libxpu_inject.so: not reached by user nobody: Permission",
                      "hint: install xpu-record where every user can read it",
                      f"; user nobody may not enter {work.path}/lib\n")
        expect("started", os.listdir(work.path / "out"), [])
        # Nothing is loaded: nothing to reach.
        require_recording()
        result = run(work, "--cpu-only", "--user=nobody", "true")
        expect(f"status ({result.stderr})", result.returncode, 0)


def test_chosen_cupti_is_reached_too():
    require_root()
    with Workspace() as work:
        os.mkdir(work.path / "private", 0o700)
        chosen = work.file("private/libcupti.so.13", "no library")
        result = run(work, "--gpu-only", "--user=nobody", "--cupti-lib", chosen, "true")
        check_refused(work, result, f"{chosen}: not reached by user nobody: Permission denied",
                      "name a file that this user can read; user nobody may not enter "
                      f"{work.path}/private\n")


def test_program_that_the_user_cannot_execute():
    require_root()
    with Workspace() as work:
        program = work.file("out-program", "#!/bin/sh\n", 0o700)
        result = run(work, "--gpu-only", "--user=nobody", program)
        expect("status", result.returncode, 126)
        expect_in("message", f"{program}: exec: Permission denied\nhint: user nobody may not run it: "
                  "its mode is 700\n", result.stderr)
        expect("capture", os.path.exists(work.path / "capture.xpu"), False)


def test_ids_that_may_not_be_changed():
    require_root()
    with Workspace() as work:
        prefix = ["setpriv", "--bounding-set=-setuid"]
        result = run(work, "--gpu-only", "--user=nobody", "touch", "out/started", prefix=prefix)
        check_refused(work, result, "--user nobody: setresuid: Operation not permitted",
                      "hint: it takes CAP_SETUID and CAP_SETGID")
        expect("started", os.listdir(work.path / "out"), [])


def test_usage():
    with Workspace() as work:
        if os.geteuid() == 0:
            result = as_nobody(work, "--gpu-only", "--user=nobody", "true")
            expect("status", result.returncode, 125)
            expect("message", result.stderr,
                   "xpu-record: --user: only root can run a program as another user\n"
                   "hint: sudo xpu-record --user nobody ...\n")
            for name, text in (("no-such-user", "--user no-such-user: there is no such user"),
                               ("4294967294", "--user 4294967294: there is no such user"),
                               ("root", "--user root: this is root"),
                               ("0", "--user 0: this is root")):
                check_refused(work, run(work, "--gpu-only", "--user", name, "true"), text)
        for subject in (("-p", str(os.getpid())), ("-a",)):
            result = subprocess.run([recorder(), "--user=nobody", *subject], capture_output=True,
                                    text=True, cwd=work.path)
            expect("status", result.returncode, 125)
            expect_in("message", "--user tells as whom a program is started: give one",
                      result.stderr)


if __name__ == "__main__":
    main(globals())

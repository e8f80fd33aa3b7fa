"""--user: the program runs as another user with nothing left of root, and is recorded all the same;
what that user cannot reach is said before the program starts."""

import ctypes
import json
import os
import pwd
import shutil
import struct
import subprocess

from other_users import as_nobody, readable_copy
from simulated_gpu import keys, simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, main, recorder,
                         require_recording, require_set_user_id, skip, workload)

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
    "directory": os.getcwd(),
}))
"""


def require_root():
    if os.geteuid() != 0:
        skip("root", "only root becomes another user")


def run(work, *arguments, prefix=(), **options):
    options.setdefault("cwd", work.path)
    return subprocess.run([*prefix, readable_copy(work), "-o", work.file("capture.xpu"),
                           *arguments], capture_output=True, text=True, timeout=PATIENCE_S, **options)


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
            expect("directory", seen["directory"], str(work.path))
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


# Into a terminal of its own: a line, as if it had been typed. Then what a shell does there.
TYPE_INTO_TERMINAL = """
import ctypes, errno, fcntl, json, os, pty, signal, struct, termios
master, slave = pty.openpty()
if os.fork() == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    byte = ctypes.create_string_buffer(b"x")
    seen = {}
    TIOCLINUX = 0x541C
    def attempt(name, number, request):
        result = libc.syscall(ctypes.c_long(number), ctypes.c_long(slave), ctypes.c_long(request),
                              byte)
        seen[name] = "worked" if result == 0 else errno.errorcode[ctypes.get_errno()]
    attempt("TIOCSTI", 16, termios.TIOCSTI)
    attempt("TIOCSTI, upper half set", 16, 1 << 32 | termios.TIOCSTI)
    attempt("TIOCLINUX", 16, TIOCLINUX)
    attempt("x32", 0x40000000 + 514, termios.TIOCSTI)
    fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8))
    termios.tcsetattr(slave, termios.TCSANOW, termios.tcgetattr(slave))
    child = os.fork()
    if child == 0:
        signal.pause()
    os.setpgid(child, child)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(slave, child)
    seen["foreground"] = os.tcgetpgrp(slave) == child
    os.kill(child, signal.SIGKILL)
    print(json.dumps(seen), flush=True)
    os._exit(0)
os.wait()
"""

# ioctl(0, TIOCSTI, NULL) as a program of 32 bits calls it: mov eax, 54; int 0x80.
TYPE_BY_32_BITS = """
import ctypes, errno, mmap
code = bytes.fromhex("53 b836000000 31db b912540000 31d2 cd80 5b c3")
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
call = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
print(errno.errorcode[-call()])
"""

# Bits of the system calls' interface that the C library does not have.
SYS_KEYCTL, KEYCTL_JOIN_SESSION_KEYRING = 250, 1
SYS_CLOSE_RANGE, SYS_SECCOMP = 436, 317
SESSION_KEYRING_OF = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
ring = libc.syscall(ctypes.c_long(250), ctypes.c_long(0), ctypes.c_long(-3), ctypes.c_long(0))
print(ring if ring > 0 else errno.errorcode[ctypes.get_errno()])
"""
LIST_DESCRIPTORS = """
import os
names = os.listdir("/proc/self/fd")  # and of that directory itself, which is closed by now
print(*sorted(int(name) for name in names if os.path.lexists(f"/proc/self/fd/{name}")))
"""


def refuse(*calls):
    """Makes this process and its children find these system calls missing: (number, None), or where
    the first argument has that value, with that error: (number, argument, error)."""
    PR_SET_NO_NEW_PRIVS, RET_K, JEQ, LOAD = 38, 0x06, 0x15, 0x20
    ALLOW, FAIL = 0x7fff0000, 0x00050000
    program = b""
    for number, argument, error in calls:
        program += struct.pack("HBBI", LOAD, 0, 0, 0)
        if argument is None:
            program += struct.pack("HBBI", JEQ, 0, 1, number)
        else:
            program += struct.pack("HBBI", JEQ, 0, 3, number)
            program += struct.pack("HBBI", LOAD, 0, 0, 16)
            program += struct.pack("HBBI", JEQ, 0, 1, argument)
        program += struct.pack("HBBI", RET_K, 0, 0, FAIL | error)
    program += struct.pack("HBBI", RET_K, 0, 0, ALLOW)
    code = ctypes.create_string_buffer(program, len(program))
    filter_ = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.syscall(ctypes.c_long(SYS_SECCOMP), ctypes.c_long(1), ctypes.c_long(0), filter_) != 0:
        raise OSError(ctypes.get_errno(), "seccomp")


def printed(work, *arguments, script, **options):
    result = run(work, "--gpu-only", "-q", *arguments, "/usr/bin/python3", "-c", script, **options)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return result.stdout.strip()


def test_program_cannot_type_into_the_terminal_of_root():
    require_root()
    with Workspace() as work:
        without = json.loads(printed(work, script=TYPE_INTO_TERMINAL))
        expect("without --user", without["TIOCSTI"] in ("worked", "EIO"), True)
        for options in ((), ("--allow-new-privs",)):
            seen = json.loads(printed(work, "--user=nobody", *options, script=TYPE_INTO_TERMINAL))
            expect("its terminal is as ever", seen.pop("foreground"), True)
            expect(f"what it can type {options}", seen, dict.fromkeys(seen, "EPERM"))


def test_system_calls_of_32_bits_cannot_type_either():
    require_root()
    with Workspace() as work:
        without = run(work, "--gpu-only", "-q", "/usr/bin/python3", "-c", TYPE_BY_32_BITS,
                      stdin=subprocess.DEVNULL)
        if without.returncode != 0:
            skip("i386", "this kernel has no system calls of 32 bits")
        expect("without --user", without.stdout, "ENOTTY\n")
        result = run(work, "--gpu-only", "-q", "--user=nobody", "/usr/bin/python3", "-c",
                     TYPE_BY_32_BITS, stdin=subprocess.DEVNULL)
        expect(f"with --user ({result.stderr})", result.stdout, "EPERM\n")


def test_program_gains_no_privileges_unless_asked():
    require_root()
    require_set_user_id()
    with Workspace() as work:
        status = "--user=nobody", "/usr/bin/python3", "-c", "print(open('/proc/self/status').read())"
        for options, no_new_privs in (((), "1"), (("--allow-new-privs",), "0")):
            lines = run(work, "--gpu-only", "-q", *options, *status).stdout.splitlines()
            expect(f"no_new_privs {options}",
                   [line.split()[1] for line in lines if line.startswith("NoNewPrivs")],
                   [no_new_privs])
        gaining = work.file("gaining")
        shutil.copy(shutil.which("id"), gaining)
        os.chmod(gaining, 0o4755)
        command = "--user=nobody", "sh", "-c", f"{gaining} -u"
        expect("who it is", run(work, "--gpu-only", *command).stdout.split(), [str(ENTRY.pw_uid)])
        expect("who it is when allowed",
               run(work, "--gpu-only", "--allow-new-privs", *command).stdout.split(), ["0"])


def test_program_that_would_gain_privileges_is_recorded_without_them():
    require_root()
    require_recording()
    require_set_user_id()
    with Workspace() as work:
        gaining = work.file("gaining")
        shutil.copy(workload("cpu_fork"), gaining)
        os.chmod(gaining, 0o4755)
        burn = "--children", "1", "--threads", "1", "--ms", "50"
        result = run(work, "--cpu-only", "-F", "499", "--user=nobody", gaining, *burn)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        sampled = {s["pid"] for s in capture.cpu_samples}
        expect("sampled", json.loads(result.stdout)["pid"] in sampled, True)
        result = run(work, "--cpu-only", "--user=nobody", "--allow-new-privs", gaining, *burn)
        expect("status when allowed", result.returncode, 125)
        expect_in("message", "gains the privileges of user root", result.stderr)


def join_new_session_keyring():
    """As a login does it: without, each user has a common one. Returns its number."""
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(ctypes.c_long(SYS_KEYCTL), ctypes.c_long(KEYCTL_JOIN_SESSION_KEYRING), None)
    if ring < 0:
        skip("keyctl", f"keyrings are not to be had here: {os.strerror(ctypes.get_errno())}")
    return str(ring)


def test_program_has_a_session_keyring_of_its_own():
    require_root()
    ours = join_new_session_keyring()
    with Workspace() as work:
        expect("without --user", printed(work, script=SESSION_KEYRING_OF), ours)
        for options in ((), ("--allow-new-privs",)):
            theirs = printed(work, "--user=nobody", *options, script=SESSION_KEYRING_OF)
            expect(f"a keyring: {theirs}", theirs.isdigit(), True)
            expect("it is another one", theirs != ours, True)


def check_not_started(work, refused, *texts):
    result = run(work, "--gpu-only", "--user=nobody", "touch", "out/started",
                 preexec_fn=lambda: refuse(refused))
    check_refused(work, result, *texts)
    expect("started", os.listdir(work.path / "out"), [])


def test_keyrings_that_a_sandbox_refuses():
    require_root()
    with Workspace() as work:
        # All of them: the program has none to look into either.
        for error in (1, 38):
            printed(work, "--user=nobody", script="",
                    preexec_fn=lambda error=error: refuse((SYS_KEYCTL, None, error)))
    # Only the new one: it would have root's.
    join_new_session_keyring()
    with Workspace() as work:
        check_not_started(work, (SYS_KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, 122),
                          "--user nobody: a session keyring of its own: Disk quota exceeded",
                          "hint: otherwise the program would have the keys of root's session")


def test_kernel_without_filters():
    require_root()
    with Workspace() as work:
        check_not_started(work, (SYS_SECCOMP, None, 22), "--user nobody: seccomp: Invalid argument",
                          "hint: this needs a kernel with seccomp filters")


def test_descriptors_are_closed_unless_kept():
    require_root()
    secret = os.open("/etc/shadow", os.O_RDONLY)
    high = os.dup2(secret, 777)
    try:
        with Workspace() as work:
            passed = {"pass_fds": (secret, high), "script": LIST_DESCRIPTORS}
            kept = f"0 1 2 {secret} {high}"
            expect("without --user", printed(work, **passed), kept)
            expect("with --user", printed(work, "--user=nobody", **passed), "0 1 2")
            expect("when kept", printed(work, "--user=nobody", "--keep-fds", **passed), kept)
            # Before Linux 5.11.
            for error in (38, 22):
                expect("without close_range",
                       printed(work, "--user=nobody", **passed,
                               preexec_fn=lambda error=error: refuse(
                                   (SYS_CLOSE_RANGE, None, error))),
                       "0 1 2")
    finally:
        os.close(secret)
        os.close(high)


def test_what_the_user_cannot_reach():
    require_root()
    with Workspace() as work:
        readable_copy(work)
        os.chmod(work.path / "lib", 0o700)
        result = run(work, "--gpu-only", "--user=nobody", "touch", "out/started")
        check_refused(work, result, "libxpu_inject.so: not accessible to user nobody: Permission",
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
        check_refused(work, result, f"{chosen}: not accessible to user nobody: Permission denied",
                      "name a file that this user can read; user nobody may not enter "
                      f"{work.path}/private\n")


def test_program_that_the_user_cannot_execute():
    require_root()
    with Workspace() as work:
        program = work.file("out-program", "#!/bin/sh\n", 0o700)
        result = run(work, "--gpu-only", "--user=nobody", program)
        expect("status", result.returncode, 126)
        expect_in("message", f"{program}: exec: Permission denied\n"
                  "hint: user nobody may not execute it: its mode is 700\n", result.stderr)
        expect("capture", os.path.exists(work.path / "capture.xpu"), False)


def test_ids_that_may_not_be_changed():
    require_root()
    with Workspace() as work:
        prefix = ["setpriv", "--bounding-set=-setuid"]
        result = run(work, "--gpu-only", "--user=nobody", "touch", "out/started", prefix=prefix)
        check_refused(work, result, "--user nobody: setresuid: Operation not permitted",
                      "hint: this needs CAP_SETUID and CAP_SETGID")
        expect("started", os.listdir(work.path / "out"), [])


def test_usage():
    with Workspace() as work:
        if os.geteuid() == 0:
            result = as_nobody(work, "--gpu-only", "--user=nobody", "true")
            expect("status", result.returncode, 125)
            expect("message", result.stderr,
                   "xpu-record: --user: only root can run a program as another user\n"
                   "hint: sudo xpu-record --user nobody ...\n")
            for name, text in (("no-such-user", "--user no-such-user: no such user"),
                               ("4294967294", "--user 4294967294: no such user"),
                               ("root", "--user root: is root"),
                               ("0", "--user 0: is root")):
                check_refused(work, run(work, "--gpu-only", "--user", name, "true"), text)
        for option in ("--allow-new-privs", "--keep-fds"):
            result = subprocess.run([recorder(), option, "true"], capture_output=True, text=True,
                                    cwd=work.path)
            expect("status", result.returncode, 125)
            expect_in("message", f"{option} requires --user", result.stderr)
        for subject in (("-p", str(os.getpid())), ("-a",)):
            result = subprocess.run([recorder(), "--user=nobody", *subject], capture_output=True,
                                    text=True, cwd=work.path)
            expect("status", result.returncode, 125)
            expect_in("message", "--user needs a program to run",
                      result.stderr)


if __name__ == "__main__":
    main(globals())

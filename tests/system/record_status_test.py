"""The exit status of xpu-record is the program's; the program runs as it would alone."""

import os
import resource
import signal
import subprocess

from xpu_testing import Workspace, expect, expect_in, main, recorder, require_recording, skip


def status_of(*command, **options):
    with Workspace() as work:
        return work.record("--cpu-only", "-q", *command, **options).returncode


def test_exit_statuses():
    require_recording()
    expect("true", status_of("true"), 0)
    expect("exit 3", status_of("sh", "-c", "exit 3"), 3)
    expect("exit 255", status_of("--", "sh", "-c", "exit 255"), 255)


def test_killed_by_a_signal():
    require_recording()
    for name in ("SIGKILL", "SIGTERM", "SIGINT", "SIGSEGV", "SIGABRT", "SIGPIPE"):
        number = getattr(signal, name)
        expect(name, status_of("sh", "-c", f"kill -{number} $$"), -number)


def test_no_second_core_file():
    require_recording()
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    if most == 0:
        skip("core", "no core files are allowed here (ulimit -Hc)")
    with Workspace() as work:
        def allow_cores():
            resource.setrlimit(resource.RLIMIT_CORE, (most, most))
        # The program's own core is off, so a core file can only be the recorder's.
        result = work.record("--cpu-only", "-q", "sh", "-c", "ulimit -c 0; kill -SEGV $$",
                             preexec_fn=allow_cores)
        expect("status", result.returncode, -signal.SIGSEGV)
        expect("files", sorted(os.listdir(work.path)), ["capture.xpu"])


def test_not_found_is_127():
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "no-such-program-of-ours")
        expect("status", result.returncode, 127)
        expect_in("message", "no-such-program-of-ours: exec: No such file", result.stderr)
        expect("no capture is left", os.listdir(work.path), [])
        result = work.record("--cpu-only", "/no/such/folder/x")
        expect("status", result.returncode, 127)


def test_not_executable_is_126():
    require_recording()
    with Workspace() as work:
        plain = work.file("plain", "text", mode=0o644)
        result = work.record("--cpu-only", plain)
        expect("status", result.returncode, 126)
        expect_in("message", "Permission denied\n"
                  "hint: it is not executable; if it is a program: chmod +x ", result.stderr)
        result = work.record("--cpu-only", str(work.path))
        expect("folder", result.returncode, 126)
        expect_in("message", "Permission denied\nhint: it is a directory\n", result.stderr)


def test_an_earlier_capture_survives_a_failed_start():
    require_recording()
    with Workspace() as work:
        work.file("capture.xpu", "earlier")
        work.record("--cpu-only", "no-such-program-of-ours")
        expect("files", os.listdir(work.path), ["capture.xpu"])
        expect("content", (work.path / "capture.xpu").read_text(), "earlier")


def test_usage_errors_are_125():
    for arguments in ([], ["--bogus", "true"], ["-F", "0", "true"], ["--cpu-only", "--gpu-only",
                      "true"], ["--launch-stacks=maybe", "true"], ["--check", "true"], ["-o"]):
        result = subprocess.run([recorder(), *arguments], capture_output=True, text=True)
        expect(f"{arguments}", result.returncode, 125)
        expect_in("hint", "xpu-record --help", result.stderr)


def test_help_and_version():
    result = subprocess.run([recorder(), "--version"], capture_output=True, text=True)
    expect("status", result.returncode, 0)
    expect("name", result.stdout.split()[0], "xpu-record")
    for group, option in (([], "--cpu-only"), (["all"], "--launch-stacks")):
        result = subprocess.run([recorder(), "--help", *group], capture_output=True, text=True)
        expect("status", result.returncode, 0)
        expect_in("options", option, result.stdout)


def test_program_inherits_what_the_recorder_got():
    """Descriptors, signal mask and dispositions, limits, working directory, output."""
    require_recording()
    script = ("ls -l /proc/self/fd | grep -c ' -> ' ; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status;"
              " ulimit -a; pwd; umask; echo \"$#:$1\"")
    command = ["sh", "-c", script, "sh", "an argument"]
    for ignore in (False, True):
        def prepare():
            if ignore:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                signal.signal(signal.SIGPIPE, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        with Workspace() as work:
            plain = subprocess.run(command, capture_output=True, text=True, cwd=work.path,
                                   preexec_fn=prepare, restore_signals=False)
            recorded = work.record("--cpu-only", "-q", *command, preexec_fn=prepare,
                                   restore_signals=False)
            expect("output", recorded.stdout, plain.stdout)
            expect("messages", recorded.stderr, plain.stderr)


def test_options_after_the_program_are_its_own():
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "-q", "echo", "-o", "x", "--", "--version")
        expect("output", result.stdout, "-o x -- --version\n")


if __name__ == "__main__":
    main(globals())

"""Where the capture goes, and what happens when it cannot."""

import os
import re
import resource
import stat
import subprocess
import tempfile

from xpu_testing import Workspace, expect, expect_in, find, main, recorder, require_recording, skip


def test_existing_file_is_kept_as_old():
    require_recording()
    with Workspace() as work:
        work.file("capture.xpu", "first")
        expect("status", work.record("--cpu-only", "true").returncode, 0)
        expect("old", (work.path / "capture.xpu.old").read_text(), "first")
        expect("files", sorted(os.listdir(work.path)), ["capture.xpu", "capture.xpu.old"])
        expect("mode", stat.S_IMODE(os.stat(work.path / "capture.xpu").st_mode), 0o600)
        work.capture()


def test_default_name():
    require_recording()
    with Workspace() as work:
        subprocess.run([recorder(), "--cpu-only", "-q", "true"], cwd=work.path, check=True)
        expect("files", os.listdir(work.path), ["capture.xpu"])


def test_sudo_caller_owns_the_capture():
    require_recording()
    if os.geteuid() != 0:
        skip("root", "only root gives files away")
    with Workspace() as work:
        environment = dict(os.environ, SUDO_UID="1234", SUDO_GID="4321")
        expect("status", work.record("--cpu-only", "true", env=environment).returncode, 0)
        info = os.stat(work.path / "capture.xpu")
        expect("owner", (info.st_uid, info.st_gid), (1234, 4321))


def test_links_are_not_followed():
    require_recording()
    with Workspace() as work:
        work.file("precious", "content")
        os.symlink("precious", work.path / "capture.xpu")
        result = work.record("--cpu-only", "true")
        expect("status", result.returncode, 125)
        expect_in("message", "is a symbolic link", result.stderr)
        expect("content", (work.path / "precious").read_text(), "content")
        os.symlink("nothing", work.path / "dangling")
        expect("dangling", work.record("--cpu-only", "true", output="dangling").returncode, 125)
        expect("files", sorted(os.listdir(work.path)), ["capture.xpu", "dangling", "precious"])


def test_not_writable():
    require_recording()
    with Workspace() as work:
        result = subprocess.run([recorder(), "--cpu-only", "-o", "/no/such/folder/x.xpu", "sh", "-c",
                                 f"touch {work.path}/started"], capture_output=True, text=True)
        expect("status", result.returncode, 125)
        expect_in("message", "/no/such/folder/x.xpu: create: No such file or directory",
                  result.stderr)
        expect_in("hint", "hint:", result.stderr)
        result = work.record("--cpu-only", "touch", "started", output=".")
        expect("folder", result.returncode, 125)
        expect_in("message", ": open: Is a directory\nhint: name a file in it: -o /", result.stderr)
        expect("the program was not started", os.listdir(work.path), [])


def test_standard_output():
    require_recording()
    with Workspace() as work:
        with open(work.path / "piped.xpu", "wb") as piped:
            reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=piped)
            result = subprocess.run([recorder(), "--cpu-only", "-q", "-o", "-", "echo", "a word"],
                                    stdout=reader.stdin, stderr=subprocess.PIPE, text=True)
            reader.stdin.close()
            reader.wait()
        expect("status", result.returncode, 0)
        expect("ends", len(work.capture("piped.xpu").recording_end), 1)
        # What the program prints is not in the capture.
        expect("standard error", result.stderr, "a word\n")
        with open(work.path / "piped.xpu", "rb") as piped:
            dump = subprocess.run([find("report/xpu-report"), "--dump", "-"], stdin=piped,
                                  capture_output=True, text=True, check=True).stdout
        expect_in("problems", "blocks_damaged=0 bytes_skipped=0 cut=0", dump)


def test_reader_that_goes_away():
    require_recording()
    with Workspace() as work:
        process = subprocess.Popen(
            [recorder(), "--cpu-only", "-o", "-", "sh", "-c", f"sleep 1.5; touch {work.path}/ran"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        stderr = process.stderr.read()
        expect("status", process.wait(), 125)
        expect_in("message", "standard output: write: Broken pipe\nhint: the reader has exited\n",
                  stderr)
        expect("a disk has nothing to do with it", "disk" in stderr, False)
        if "ran" not in os.listdir(work.path):
            # The header was refused already: then the program must not have been started.
            expect("no summary", "events" in stderr, False)
        else:
            expect_in("loss", "written to the capture. standard output: write: Broken pipe (its "
                      "reader has ended).", stderr)


def full_disk(work, result, marker):
    expect("status", result.returncode, 125)
    expect_in("loss", "write_failed", result.stderr)
    expect("the program ran to its end", os.path.exists(marker), True)


def test_limit_on_file_size():
    require_recording()
    with Workspace() as work:
        marker = work.path / "ran"
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        command = f"for i in $(seq 150); do /bin/true; done; : > {marker}"
        result = work.record("--cpu-only", "sh", "-c", command, preexec_fn=limit)
        expect_in("message", "capture.xpu: write: File too large\nhint: allow larger files: ulimit -f",
                  result.stderr)
        full_disk(work, result, marker)


def test_full_disk():
    require_recording()
    if os.geteuid() != 0:
        skip("root", "mounting a small filesystem needs root")
    with Workspace() as work, tempfile.TemporaryDirectory() as small:
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "xpu-test", small],
                               capture_output=True, text=True)
        if mount.returncode != 0:
            skip("root", f"mount: {mount.stderr.strip()}")
        try:
            marker = work.path / "ran"
            command = f"for i in $(seq 300); do /bin/true; done; : > {marker}"
            result = subprocess.run([recorder(), "--cpu-only", "-o", f"{small}/c.xpu", "sh", "-c",
                                     command], capture_output=True, text=True)
            expect_in("message", "c.xpu: write: No space left on device\nhint: the disk is full",
                      result.stderr)
            full_disk(work, result, marker)
        finally:
            subprocess.run(["umount", small], check=True)


def test_full_device_is_reported_before_the_program_starts():
    require_recording()
    with Workspace() as work:
        result = subprocess.run([recorder(), "--cpu-only", "-o", "/dev/full", "touch",
                                 work.file("ran")], capture_output=True, text=True)
        expect("status", result.returncode, 125)
        expect_in("message", "No space left on device\nhint: the disk is full", result.stderr)
        expect("the program was not started", os.listdir(work.path), [])


def test_help_on_a_full_device():
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run([recorder(), "--help"], stdout=full, stderr=subprocess.PIPE,
                                text=True)
    expect("status", result.returncode, 125)
    expect_in("message", "standard output: write: No space left on device", result.stderr)


def test_summary_and_quiet():
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "true")
        expect("standard output", result.stdout, "")
        # Code that was mapped just before may leave an incomplete stack.
        pattern = (r"xpu-record: \d+ events, 0 losses,( \d+ notes? on stacks,)? "
                   r"\S*capture\.xpu, \d+(\.\d)? K?i?B\n(xpu-record: (stack|unwind)_.*\n)*")
        if not re.fullmatch(pattern, result.stderr):
            raise AssertionError(f"summary: {result.stderr!r}")
        expect("quiet", work.record("--cpu-only", "-q", "true").stderr, "")


def test_check():
    require_recording()
    result = subprocess.run([recorder(), "--check"], capture_output=True, text=True)
    expect("status", result.returncode, 0)
    for line in result.stdout.splitlines():
        if not re.match(r"(ok|absent) +\S.*: ", line):
            raise AssertionError(f"line: {line!r}")
    for name in ("kernel:", "BTF", "privileges:", "perf events:", "CPU samples:",
                 "injected library:", "launch marker:", "libcupti:", "NVIDIA driver:"):
        expect_in("abilities", name, result.stdout)


if __name__ == "__main__":
    main(globals())

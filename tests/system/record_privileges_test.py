"""Without privileges: what is missing is said before the program starts; the rest works."""

import os

from other_users import as_nobody
from xpu_testing import Workspace, expect, expect_in, main


def test_names_what_is_missing():
    with Workspace() as work:
        result = as_nobody(work, "touch", "started")
        expect("status", result.returncode, 125)
        expect("first line", result.stderr.splitlines()[0],
               "xpu-record: CPU samples need CAP_BPF and CAP_PERFMON, which this process lacks")
        expect_in("cure", "--gpu-only works for any user", result.stderr)
        expect("the program was not started", os.listdir(work.path / "out"), [])


def test_names_only_what_the_options_need():
    with Workspace() as work:
        result = as_nobody(work, "--cpu-only", "true")
        expect_in("message", "CPU samples need CAP_BPF", result.stderr)
        result = as_nobody(work, "--gpu-only", "--launch-stacks=uprobe", "true")
        expect_in("message", "launch stacks need CAP_BPF", result.stderr)
        result = as_nobody(work, "true")
        expect_in("message", "CPU samples need CAP_BPF", result.stderr)


def test_gpu_side_works_for_any_user():
    with Workspace() as work:
        result = as_nobody(work, "--gpu-only", "sh", "-c", "exit 5")
        expect("status", result.returncode, 5)
        expect("files", os.listdir(work.path / "out"), ["capture.xpu"])
        capture = work.capture("out/capture.xpu")
        expect("losses", capture.losses(), {})
        expect("names", [e["name"] for e in capture.process_events if e["kind"] == 2], ["sh"])


def test_check_prints_the_hint():
    with Workspace() as work:
        result = as_nobody(work, "--check")
        expect("status", result.returncode, 1)
        lines = [l for l in result.stdout.splitlines() if l.startswith("missing  privileges")]
        expect("lines", len(lines), 1)
        expect_in("what", "CAP_BPF and CAP_PERFMON", lines[0])
        # The command as it is to be given.
        expect_in("cure", f"setcap cap_bpf,cap_perfmon+ep {work.path}/bin/xpu-record", lines[0])
        expect_in("what works", "xpu-record --gpu-only works", result.stdout)


def test_check_is_about_the_requested_recording():
    with Workspace() as work:
        result = as_nobody(work, "--gpu-only", "--check")
        expect(f"status ({result.stdout})", result.returncode, 0)
        expect_in("privileges", "absent   privileges: without CAP_BPF", result.stdout)
        result = as_nobody(work, "--gpu-only", "--launch-stacks=uprobe", "--check")
        expect(f"status ({result.stdout})", result.returncode, 1)


def test_gpu_only_is_suggested_where_it_works():
    with Workspace() as work:
        for options, is_part in (([], True), (["--cpu-only"], False), (["-e", "page-faults"], False),
                                 (["--uprobe", "libc:malloc"], False), (["--no-inject"], False),
                                 (["--gpu-only", "--launch-stacks=uprobe"], False)):
            hint = as_nobody(work, *options, "true").stderr.splitlines()[1]
            expect(f"{options}: {hint}", "--gpu-only" in hint, is_part)


if __name__ == "__main__":
    main(globals())

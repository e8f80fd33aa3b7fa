"""Launch stacks that the injected library takes in the program, on the simulated device: the same
as those of the probe, for any user, from any stack, without a trace in the program."""

import json
import os
import platform
import resource

from other_users import PERF_EVENT_OPEN, as_nobody, forbid
from simulated_gpu import keys, simulated
from xpu_testing import (Workspace, expect, expect_in, find, folded, main, require_recording, skip,
                         workload)

TABLES, COMPLETE, NOT_READY, IN_PROCESS = 16, 32, 64, 128
IN_PROCESS_SOURCE = 4
INTERNAL = ("libxpu_inject", "libcupti", "libcuda.so", "libcudart")


def record(work, *arguments, env=None, output="capture.xpu", **options):
    result = work.record("--gpu-only", *arguments, env=env or simulated(), output=output, **options)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return result


def launch_stacks_of(path):
    """Without their values: how long it took differs from run to run."""
    return sorted(folded("--mode=gpu", "--unit=ns", path))


def frames_of(capture, stack, time_ns, pid):
    """(file, offset) of the program's own frames, outermost last."""
    frames = []
    for frame in stack:
        mapping = capture.mapping_at(pid, frame - 1, time_ns)
        if mapping is None:
            frames.append(("?", frame))
        elif not any(name in mapping["path"] for name in INTERNAL):
            frames.append((os.path.basename(mapping["path"]),
                           frame - mapping["start_address"] + mapping["file_offset"]))
    return frames


def walked(capture):
    """How often the launch stacks have each flag."""
    return {flag: sum(stack["stack_flags"] & flag != 0 for stack in capture.launch_stacks)
            for flag in (TABLES, COMPLETE, NOT_READY, IN_PROCESS)}


def test_every_launch_has_a_complete_stack():
    with Workspace() as work:
        result = record(work, "--launch-stacks=inline", workload("empty_launches"),
                        "--launches", "5000")
        truth = json.loads(result.stdout)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("kernels", len(capture.kernels), truth["launches"])
        expect("source", capture.recording_info[0]["launch_stacks"], IN_PROCESS_SOURCE)
        expect("calls without a stack", keys(capture.api_calls) - keys(capture.launch_stacks),
               set())
        expect("stacks that are there twice", len(capture.launch_stacks),
               len(keys(capture.launch_stacks)))
        every = len(capture.launch_stacks)
        expect("how they were taken", walked(capture),
               {TABLES: every, COMPLETE: every, NOT_READY: 0, IN_PROCESS: every})
        expect("threads", {s["tid"] for s in capture.launch_stacks}, {truth["workers"][0]["tid"]})


def test_same_stacks_as_the_probe():
    require_recording()
    with Workspace() as work:
        stacks = {}
        for source in ("inline", "uprobe"):
            record(work, f"--launch-stacks={source}", workload("two_kernels"), "--mode=processes",
                   output=f"{source}.xpu")
            stacks[source] = launch_stacks_of(work.file(f"{source}.xpu"))
        expect("stacks", stacks["inline"], stacks["uprobe"])
        expect_in("a stack", "main;", ";".join(stacks["inline"]))


def test_any_user_gets_what_root_gets():
    if os.geteuid() != 0:
        skip("root", "only root becomes another user")
    with Workspace() as work:
        command = (workload("two_kernels"), "--mode=processes")
        record(work, "--launch-stacks=inline", *command)
        result = as_nobody(work, "-o", "c.xpu", "--gpu-only", *command, env=simulated())
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect("losses", work.capture("out/c.xpu").losses(), {})
        expect("stacks", launch_stacks_of(work.file("out/c.xpu")),
               launch_stacks_of(work.file("capture.xpu")))


def test_any_user_without_perf_events():
    """The injected library reports mappings, processes and threads instead of the kernel."""
    if os.geteuid() != 0 or platform.machine() != "x86_64":
        skip("root", "only root becomes another user")
    with Workspace() as work:
        for mode in ("processes", "threads"):
            command = (workload("two_kernels"), f"--mode={mode}")
            record(work, "--launch-stacks=inline", *command)
            result = as_nobody(work, "-o", "c.xpu", "--gpu-only", *command, env=simulated(),
                               preexec_fn=lambda: forbid(PERF_EVENT_OPEN))
            expect(f"status ({result.stderr})", result.returncode, 0)
            told, whole = work.capture("out/c.xpu"), work.capture()
            expect("losses", told.losses(), {})
            expect("not whole", [s for s in told.launch_stacks if not s["stack_flags"] & COMPLETE],
                   [])
            expect("programs told of", {m["build_id"] for m in told.mappings
                                        if m["path"] == command[0]},
                   {m["build_id"] for m in whole.mappings if m["path"] == command[0]})
            expect("stacks", launch_stacks_of(work.file("out/c.xpu")),
                   launch_stacks_of(work.file("capture.xpu")))


def strange(work, mode, *arguments):
    result = record(work, "--launch-stacks=inline", workload("strange_stacks"), f"--mode={mode}",
                    *arguments)
    truth = json.loads(result.stdout)
    capture = work.capture()
    expect(f"{mode}: kernels", len(capture.kernels), truth["launches"])
    expect(f"{mode}: calls without a stack",
           keys(capture.api_calls) - keys(capture.launch_stacks), set())
    return truth, capture


def test_complete_stacks_from_unusual_code():
    with Workspace() as work:
        for mode in ("plain", "altstack", "jit"):
            _, capture = strange(work, mode)
            expect(f"{mode}: losses", capture.losses(), {})
        # The return address of a coroutine's function is the first byte of __start_context, so the
        # instruction before it belongs to another function: whole or not is the C library's luck.
        _, capture = strange(work, "coroutine")
        expect("coroutine: losses", set(capture.ledger()) <= {"stack_bad_return", "stack_stuck"},
               True)
        for kilobytes in (16, 32, 64):
            _, capture = strange(work, "tiny", "--stack-kb", str(kilobytes))
            expect(f"{kilobytes} KiB: losses", capture.losses(), {})


def test_broken_frames_are_counted():
    with Workspace() as work:
        for mode, reason in (("far", "stack_unreadable"), ("low", "stack_stuck"),
                             ("smashed", "stack_unreadable"), ("data", "stack_bad_return")):
            truth, capture = strange(work, mode)
            expect(f"{mode}: losses", capture.ledger(), {reason: truth["launches"]})


def test_code_that_comes_and_goes():
    with Workspace() as work:
        truth, capture = strange(work, "plugin", "--launches=3",
                                 "--plugin", find("tests/workloads/strange_plugin_small.so"),
                                 "--other-plugin", find("tests/workloads/strange_plugin_large.so"))
        expect("one at the place of another", truth["reused"] >= 90, True)
        # On a loaded machine the reports about the loader may come late, which is then reported.
        ledger = capture.ledger()
        late = ledger.pop("unwind_table_not_ready", 0)
        expect(f"losses ({capture.details('symbols_not_stored')})", ledger, {})
        expect(f"stacks by a table that was not there yet: {late}", late < 100, True)
        path = "LaunchFromPlugins(char const*, char const*);CallBack;{};LaunchStrange()"
        paths = {name: path.format(name) for name in ("through_small", "through_large")}
        stacks = launch_stacks_of(work.file("capture.xpu"))
        for name in paths:
            expect(f"whole stacks of {name}: {stacks}",
                   sum(paths[name] in stack for stack in stacks), 1)
        if late == 0:
            expect(f"stacks ({stacks})", len(stacks), 2)


def test_descriptors_are_the_programs_own():
    with Workspace() as work:
        truth, _ = strange(work, "descriptors")
        expect("numbers", truth["descriptors"], list(range(3, 11)))
        expect("bytes", truth["file_bytes"], 70)
        expect("signals", truth["signals_free"], True)


def test_limit_on_file_size():
    """It holds for memory that is shared too: that is smaller then."""
    require_recording()
    with Workspace() as work:
        result = record(work, workload("empty_launches"), "--launches", "2000",
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                              (4 << 20, 4 << 20)))
        capture = work.capture()
        expect(f"losses ({result.stderr})", capture.losses(), {})
        expect("kernels", len(capture.kernels), json.loads(result.stdout)["launches"])
        expect("stacks", walked(capture)[IN_PROCESS], len(capture.launch_stacks))


def test_no_descriptor_for_the_tables():
    """The marker is called then, which nobody listens to with --launch-stacks=inline."""
    require_recording()
    with Workspace() as work:
        program = f"ulimit -n 5; exec {workload('exit_styles')} --launches 30 --sync"
        result = record(work, "--launch-stacks=inline", "sh", "-c", program)
        capture = work.capture()
        expect(f"losses ({result.stderr})", capture.losses(), {"launch_stack_missing": 31})
        pid = json.loads(result.stdout)["pid"]
        expect("reason", capture.details("launch_stack_missing"),
               [f"process {pid}: its limit of 5 open files leaves no descriptor free: raise it "
               "(RLIMIT_NOFILE, 'ulimit -n')"])


def test_address_space_is_short():
    """With what the library maps the program still has most of it for itself."""
    require_recording()
    with Workspace() as work:
        result = record(work, "sh", "-c", f"ulimit -v 1000000; exec {workload('empty_launches')}")
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("kernels", len(capture.kernels), json.loads(result.stdout)["launches"])
        expect("kernels without a stack",
               keys(capture.kernels) - keys(capture.launch_stacks), set())


if __name__ == "__main__":
    main(globals())

"""The recorder's part of GPU recording, on the simulated device: who connects, what is lost, which
stacks belong to which launch. What the records say is in gpu_truth_test.py."""

import json
import os
import signal
import subprocess

from other_users import as_nobody
from simulated_gpu import keys, record, simulated
from xpu_testing import (STACK_COMPLETE, Capture, Workspace, expect, expect_in, find, main,
                         recorder, require_recording, run_report, workload)

FINISHED, DORMANT = 3, 2


def test_every_launch_has_its_stack():
    require_recording()
    with Workspace() as work:
        result = record(work, workload("empty_launches"), "--launches", "5000")
        truth = json.loads(result.stdout)
        capture = work.capture()
        expect("kernels", len(capture.kernels), truth["launches"])
        expect("losses", capture.losses(), {})
        expect("kernels without a stack",
               keys(capture.kernels) - keys(capture.launch_stacks), set())
        expect("kernels without a call", keys(capture.kernels) - keys(capture.api_calls), set())
        expect("stacks that are there twice", len(capture.launch_stacks),
               len(keys(capture.launch_stacks)))
        process = capture.gpu_processes[-1]
        expect("state", process["state"], FINISHED)
        expect("pid", process["pid"], truth["pid"])
        names = {(n["domain"], n["callback_id"]): n["name"] for n in capture.callback_names}
        for call in capture.api_calls:
            expect_in("name of a call", (call["domain"], call["callback_id"]), names)


def test_stacks_wait_for_tables():
    """Those of the program and its libraries when it starts, those of CUPTI when CUDA does."""
    require_recording()
    with Workspace() as work:
        record(work, "--gpu-only", "--launch-stacks=uprobe", workload("empty_launches"),
               "--launches", "100", env=simulated(XPU_TEST_TABLE_DELAY_MS="150"))
        capture = work.capture()
        expect("losses", capture.ledger(), {})
        expect("stacks", len(capture.launch_stacks) > 100, True)
        expect("stacks that are not whole",
               [s for s in capture.launch_stacks if not s["stack_flags"] & STACK_COMPLETE], [])


def test_a_program_does_not_wait_for_ever():
    require_recording()
    with Workspace() as work:
        for stacks in ("uprobe", "inline"):
            result = record(work, "--gpu-only", f"--launch-stacks={stacks}",
                            workload("empty_launches"), "--launches", "100",
                            env=simulated(XPU_TEST_TABLE_DELAY_MS="3600000"))
            expect("launches", json.loads(result.stdout)["launches"],
                   len(work.capture().kernels))


def test_kernels_without_a_time():
    """The report finds them in the capture, and the last line says the same."""
    require_recording()
    with Workspace() as work:
        result = record(work, workload("empty_launches"), "--launches", "100",
                        env=simulated(XPU_FAKE_ZERO_TIMES_EVERY="5"))
        expect_in("last line", " events, 20 losses, ", result.stderr)
        expect_in("reason", "xpu-record: invalid_time: 20 GPU records without a valid time",
                  result.stderr)
        expect("stored beside the records", work.capture().losses(), {})
        strict = run_report("--strict", work.file("capture.xpu"))
        expect_in("report", "\n  20 GPU records without a valid time", strict.stdout)
        expect("--strict", strict.returncode, 3)


def test_processes_are_distinguished():
    require_recording()
    with Workspace() as work:
        result = record(work, workload("two_kernels"), "--mode=processes", "--launches", "200")
        truth = json.loads(result.stdout)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        pids = {p["instance"]: p["pid"] for p in capture.gpu_processes}
        for actor in truth["actors"]:
            instances = {i for i, pid in pids.items() if pid == actor["pid"]}
            kernels = [k for k in capture.kernels if k["instance"] in instances]
            expect(f"kernels of {actor['actor']}", len(kernels), actor["launches"])
            (name,) = actor["kernels"]
            expect("names", all(name in k["name"] for k in kernels), True)
            stacks = [s for s in capture.launch_stacks if s["instance"] in instances]
            expect("pids of the stacks", {s["pid"] for s in stacks}, {actor["pid"]})


def test_two_recorders_do_not_see_each_other():
    require_recording()
    with Workspace() as work:
        runs = [subprocess.Popen(
            [recorder(), "-q", "-o", work.file(f"{i}.xpu"), workload("empty_launches"),
             "--launches", "20000"], env=simulated(), stdout=subprocess.PIPE, text=True)
            for i in range(2)]
        for i, run in enumerate(runs):
            truth = json.loads(run.communicate()[0])
            capture = Capture(work.path / f"{i}.xpu")
            expect("losses", capture.losses(), {})
            expect("kernels", len(capture.kernels), truth["launches"])
            expect("pids", {s["pid"] for s in capture.launch_stacks}, {truth["pid"]})
            expect("stacks", keys(capture.kernels) - keys(capture.launch_stacks), set())


def test_a_kill_is_reported_with_its_cost():
    require_recording()
    with Workspace() as work:
        result = record(work, workload("exit_styles"), "--how=sigkill", "--launches", "100",
                        status=-9)
        truth = json.loads(result.stdout)
        capture = work.capture()
        missing = truth["launches"] - len(capture.kernels)
        expect("losses", capture.losses(), {"cupti_not_delivered": missing} if missing else {})
        expect("stacks", len(capture.launch_stacks) >= truth["launches"], True)


def test_a_lost_event_moves_nothing_else():
    require_recording()
    with Workspace() as work:
        record(work, workload("empty_launches"), "--launches", "700",
               env=simulated(XPU_TEST_DROP="stack:7"))
        capture = work.capture()
        stacks = len(capture.launch_stacks)
        expect("losses", capture.losses(),
               {"launch_stack_missing": (len(capture.api_calls)) // 7})
        expect("stacks", stacks, len(capture.api_calls) - len(capture.api_calls) // 7)
        expect("kernels", len(capture.kernels), 701)
        record(work, workload("empty_launches"), "--launches", "700",
               env=simulated(XPU_TEST_DROP="activity:7"))
        capture = work.capture()
        expect("stacks", len(capture.launch_stacks), len(capture.api_calls))
        lost = capture.losses()["cupti_dropped"]
        activities = sum(len(capture.events.get(kind, [])) for kind in
                         ("kernels", "memcpys", "memsets", "synchronizations", "overheads",
                          "graph_launches", "raw_activities"))
        expect("every seventh", lost, (activities + lost) // 7)


def test_without_launch_stacks():
    require_recording()
    with Workspace() as work:
        result = record(work, "--launch-stacks=none", workload("empty_launches"))
        capture = work.capture()
        expect("stacks", capture.launch_stacks, [])
        expect("kernels", len(capture.kernels), json.loads(result.stdout)["launches"])
        expect("losses", capture.losses(), {})


def test_any_user_records_the_gpu():
    with Workspace() as work:
        result = as_nobody(work, "-o", "c.xpu", "--gpu-only", "--launch-stacks=none",
                           workload("empty_launches"), env=simulated())
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture("out/c.xpu")
        expect("kernels", len(capture.kernels), json.loads(result.stdout)["launches"])
        expect("losses", capture.losses(), {})


def test_cpu_only_loads_nothing_into_the_program():
    require_recording()
    with Workspace() as work:
        record(work, "--cpu-only", workload("empty_launches"))
        capture = work.capture()
        expect("processes", capture.gpu_processes, [])
        expect("mapped", [m["path"] for m in capture.mappings if "xpu_inject" in m["path"]], [])
        result = record(work, "--cpu-only", "-q", "env")
        expect("variables", [l for l in result.stdout.splitlines() if "INJECT" in l], [])


def test_another_tool_holds_cupti():
    require_recording()
    with Workspace() as work:
        result = record(work, workload("empty_launches"), env=simulated(XPU_FAKE_SUBSCRIBED="1"))
        capture = work.capture()
        expect("losses", capture.losses(), {"inject_dormant": 1})
        expect("state", capture.gpu_processes[-1]["state"], DORMANT)
        expect_in("why", "another tool", capture.gpu_processes[-1]["detail"])
        expect_in("why", "another tool", result.stderr)


def test_another_tool_wants_to_be_injected():
    with Workspace() as work:
        result = record(work, "--gpu-only", "--launch-stacks=none", "touch", "ran", status=125,
                        env=simulated(CUDA_INJECTION64_PATH="/other/tool.so"))
        expect_in("message", "CUDA_INJECTION64_PATH is already set, to /other/tool.so",
                  result.stderr)
        expect("the program was not started", os.listdir(work.path), [])


def test_chosen_cupti_that_is_not_there():
    with Workspace() as work:
        result = record(work, "--gpu-only", "--launch-stacks=none", "--cupti-lib", "/no/cupti.so",
                        "true", status=125)
        expect_in("message", "--cupti-lib /no/cupti.so: No such file", result.stderr)


def test_chosen_cupti():
    require_recording()
    with Workspace() as work:
        chosen = os.path.join(os.path.dirname(find("tests/fake_cuda/lib/libcuda.so.1")),
                              "libcupti.so.13")
        record(work, "--cupti-lib", os.path.relpath(chosen, work.path), "sh", "-c",
               f"cd /; exec {workload('vector_add')}")
        process = work.capture().gpu_processes[-1]
        expect("path", process["cupti_path"], os.path.realpath(chosen).replace("so.13.0", "so.13"))


def test_program_that_outlives_its_parent():
    """The recording ends with the program that was named; what its children still do is cut off."""
    require_recording()
    with Workspace() as work:
        record(work, "sh", "-c", f"{workload('exit_styles')} --launches 50 --linger-ms 600000 "
               ">/dev/null 2>&1 & echo $! > pid; until grep -q '^230 ' /proc/$!/syscall; do "
               "sleep 0.1; done; sleep 1.5")  # it lingers, in clock_nanosleep
        child = int((work.path / "pid").read_text())
        os.kill(child, signal.SIGKILL)  # it is still there
        capture = work.capture()
        expect("ends", len(capture.recording_end), 1)
        expect("kernels", len(capture.kernels), 50)


if __name__ == "__main__":
    main(globals())

"""xpu-record --event: CPU samples at events that the program counts itself, in threads and in a
child; several events in one recording, and what the machine lacks."""

import json
import subprocess

import xpu_testing
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, folded, report, run_report,
                         table_rows)

HARDWARE = "cycles"


def stacks_of(work, *arguments):
    return folded(*arguments, work.file("capture.xpu"))


def below(stacks, function):
    return sum(n for stack, n in stacks.items()
               if any(frame.split("(")[0] == function for frame in stack.split(";")))


def recorded(work, events, *options, pages=500, sleeps=20, threads=2):
    xpu_testing.require_recording()
    command = [xpu_testing.workload("cpu_events"), "--pages", str(pages), "--sleeps", str(sleeps),
               "--threads", str(threads), "--child"]
    result = work.record("--cpu-only", *events, *options, "--", *command)
    expect(f"exit status ({result.stderr})", result.returncode, 0)
    expect("losses", work.capture().losses(), {})
    return json.loads(result.stdout.splitlines()[-1])


def test_each_page_fault_is_a_sample():
    with Workspace() as work:
        account = recorded(work, ["-e", "page-faults", "-c", "1"])
        source, = work.capture().sample_sources
        expect("the source", (source["name"], source["unit"], source["period"],
                              source["frequency_hz"]), ("page-faults", "events", 1, 0))
        expect("faults", below(stacks_of(work), "TouchPages"), account["pages"])
        expect("faults by samples", below(stacks_of(work, "--unit", "samples"), "TouchPages"),
               account["pages"])


def test_samples_are_weighted_by_the_period():
    with Workspace() as work:
        recorded(work, ["-e", "minor-faults", "-c", "10"], pages=1000)
        weighed = below(stacks_of(work), "TouchPages")
        samples = below(stacks_of(work, "--unit", "samples"), "TouchPages")
        expect("weight of a sample", weighed, 10 * samples)
        # Three threads and processes, each of which begins to count anew.
        expect("samples of 3000 faults", 295 <= samples <= 305, True)


def test_with_a_frequency_reports_count_samples():
    """Its periods are near in a long row of faults, and far off in short ones."""
    with Workspace() as work:
        account = recorded(work, ["-e", "page-faults", "-F", "1000"], pages=20000)
        capture = work.capture()
        weights = [sample["weight"] for sample in capture.cpu_samples]
        expect("samples with a weight", min(weights) >= 1, True)
        expect("fewer samples than faults", len(weights) < account["pages"] // 2, True)
        share = sum(weights) / account["pages"]
        expect(f"the weights are the faults ({share:.2f})", 0.5 < share < 1.5, True)
        expect("faults that are shown", below(stacks_of(work), "TouchPages"),
               below(stacks_of(work, "--unit", "samples"), "TouchPages"))


def test_several_events_are_distinguished():
    with Workspace() as work:
        account = recorded(work, ["-e", "page-faults/period=1/,context-switches/period=1/",
                                  "-e", "cpu-clock"])
        expect("sources", [(s["source"], s["name"], s["unit"])
                           for s in work.capture().sample_sources],
               [(1, "page-faults", "events"), (2, "context-switches", "events"),
                (3, "cpu-clock", "ns")])
        expect("faults", below(stacks_of(work, "--event", "page-faults"), "TouchPages"),
               account["pages"])
        switches = below(stacks_of(work, "--event", "context-switches"), "SleepOften")
        # A sleep is one; there are more if another process takes the processor.
        expect("switches", account["sleeps"] <= switches <= 2 * account["sleeps"], True)
        expect("the clock is what is shown unless asked otherwise",
               stacks_of(work), stacks_of(work, "--event", "cpu-clock"))
        summary = report(work.file("capture.xpu"), "--no-pager")
        for part in ("(page-faults, each)", "(context-switches, each)", "(cpu-clock, 99 Hz)"):
            expect_in("summary", part, summary)
        script = report(work.file("capture.xpu"), "--script")
        expect("faults in the script", script.count("\tevent=page-faults weight=1\n"),
               sum(1 for s in work.capture().cpu_samples if s["source"] == 1))
        rows = table_rows(work.file("capture.xpu"), "cpu_func_sum", "--event", "page-faults")
        expect_in("columns", "Self (page-faults)", rows[0])


def test_user_code_or_the_kernel_only():
    with Workspace() as work:
        account = recorded(work, ["-e", "page-faults/period=1/:u"])
        expect("faults of user code", below(stacks_of(work), "TouchPages"), account["pages"])
        recorded(work, ["-e", "page-faults:k", "-c", "1"])
        expect("faults of the kernel", below(stacks_of(work), "TouchPages"), 0)


def test_an_event_that_was_not_recorded():
    with Workspace() as work:
        recorded(work, ["-e", "page-faults"])
        result = run_report("--event", "cycles", work.file("capture.xpu"))
        expect("exit status", result.returncode, 2)
        expect_in("message", "--event cycles: the capture has no samples of this event", result.stderr)
        expect_in("hint", "page-faults", result.stderr)


def test_events_that_the_machine_lacks():
    xpu_testing.require_recording()
    check = subprocess.run([xpu_testing.recorder(), "--check", "--cpu-only"], capture_output=True,
                           text=True, timeout=PATIENCE_S).stdout
    line, = [line for line in check.splitlines() if "CPU events: " in line]
    expect_in("--check", "cpu-clock, task-clock, page-faults", line)
    here = line.split(";")[0]
    if HARDWARE in here:
        return
    with Workspace() as work:
        marker = work.path / "ran"
        result = work.record("--cpu-only", "-e", HARDWARE, "--", "touch", str(marker))
        expect("exit status", result.returncode, 125)
        expect("message", result.stderr.splitlines()[0],
               "xpu-record: cycles: this machine has no hardware counters (virtual machine?)")
        expect_in("hint", "-e cpu-clock", result.stderr)
        expect("the program ran", marker.exists(), False)


def test_invalid_event_names_are_refused():
    for words, why in ((["-e", "foo"], "unknown event 'foo'"),
                       (["-e", "cycles:x"],
                        "unknown modifier 'x'\nhint: cycles:u counts only user code"),
                       (["-e", "page-fault"], "hint: did you mean page-faults?"),
                       (["-e", "cs", "-e", "context-switches"], "given twice (also as cs)"),
                       (["-e", "cycles/period=0/"], "expected period=N between the slashes"),
                       (["-e", "page-faults", "--gpu-only"], "cannot be combined with --event"),
                       (["-c", "5", "-F", "99"], "excludes"),
                       (["-c", "0"], "-c")):
        with Workspace() as work:
            result = work.record(*words, "--", "true")
            expect(f"{words}: exit status", result.returncode, 125)
            expect_in(f"{words}", why, result.stderr)


if __name__ == "__main__":
    xpu_testing.main(globals())

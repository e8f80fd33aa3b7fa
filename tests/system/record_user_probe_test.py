"""xpu-record --uprobe, --uretprobe, --kprobe, --kretprobe, --tracepoint: hits and stacks of a
program that counts its own calls, in threads and in a child."""

import json
import os
import shutil
import subprocess

import xpu_testing
from xpu_testing import Workspace, expect, expect_in, folded, report, table_rows

PUPPET = "cpu_events"
UPROBE, URETPROBE, KPROBE, KRETPROBE, TRACEPOINT = range(5)
HAS_KPROBES = os.path.exists("/sys/bus/event_source/devices/kprobe/type")


def puppet():
    return xpu_testing.workload(PUPPET)


def stacks_of(work):
    return folded("--mode", "probe", work.file("capture.xpu"))


def caller_counts(stacks, leaf):
    """Hits by the function that called."""
    counts = {}
    for stack, hits in stacks.items():
        frames = stack.split(";")
        if frames[-1] != leaf:
            continue
        caller = frames[-2].split("(")[0]
        counts[caller] = counts.get(caller, 0) + hits
    return counts


def recorded(work, probes, *options, calls=300, threads=2, sleeps=0):
    xpu_testing.require_recording()
    result = work.record("--cpu-only", *probes, *options, "--", puppet(), "--calls", str(calls),
                         "--threads", str(threads), "--sleeps", str(sleeps), "--child")
    expect(f"exit status ({result.stderr})", result.returncode, 0)
    return json.loads(result.stdout.splitlines()[-1]), result


def test_calls_of_a_function_by_caller():
    with Workspace() as work:
        account, _ = recorded(work, ["--uprobe", f"{puppet()}:CountedCall"])
        capture = work.capture()
        expect("losses", capture.losses(), {})
        probe, = capture.probes
        expect("definition", (probe["probe"], probe["purpose"], probe["function"], probe["path"],
                              probe["kind"], probe["offset"]),
               (1, 0, "CountedCall", puppet(), UPROBE, 0))
        expect("hits", len(capture.probe_hits), account["calls"])
        expect("processes", len({hit["pid"] for hit in capture.probe_hits}), 2)
        expect("threads", len({hit["tid"] for hit in capture.probe_hits}), account["runs"])
        expect("callers", caller_counts(stacks_of(work), "[probe] CountedCall"),
               {"counted::Often": account["often"], "counted::Twice": account["twice"],
                "CountedDepth": account["in_depth"]})


def test_other_programs_do_not_count():
    with Workspace() as work:
        other = subprocess.Popen([puppet(), "--calls", "30000000"], stdout=subprocess.DEVNULL)
        account, _ = recorded(work, ["--uprobe", f"{PUPPET}:CountedCall"], calls=10)
        other.kill()
        other.wait()
        expect("hits", len(work.capture().probe_hits), account["calls"])


def test_entries_and_returns_make_calls():
    with Workspace() as work:
        account, _ = recorded(work, ["--uprobe", f"{puppet()}:CountedDepth", "--uretprobe",
                                     f"{puppet()}:CountedDepth", "--uretprobe",
                                     f"{puppet()}:CountedCall"], calls=20)
        capture = work.capture()
        expect("returned values of the recursion",
               sorted({hit["return_value"] for hit in capture.probe_hits if hit["probe"] == 2}),
               [0, 1, 2, 3, 4, 5])
        expect("callers of what returned", caller_counts(stacks_of(work), "[probe] CountedCall%return"),
               {"counted::Often": account["often"], "counted::Twice": account["twice"],
                "CountedDepth": account["in_depth"]})
        rows = {row["Probe"]: row for row in table_rows(work.file("capture.xpu"), "probe_sum")}
        returns = rows[f"uretprobe {PUPPET}:CountedDepth"]
        expect("hits", int(returns["Hits"]), account["depth"])
        expect("calls", int(returns["Calls"]), account["depth"])
        expect("the outer calls hold the inner ones",
               0 < int(returns["Min (ns)"]) < int(returns["Max (ns)"]) <
               int(returns["Total Time (ns)"]), True)
        alone = rows[f"uretprobe {PUPPET}:CountedCall"]
        expect("calls without an entry", alone["Calls"] in (None, ""), True)


def test_a_demangled_name_is_enough():
    with Workspace() as work:
        account, _ = recorded(work, ["--uprobe", f"{puppet()}:counted::Tw"])
        expect("function", work.capture().probes[0]["function"], "_ZN7counted5TwiceEi")
        expect("hits", len(work.capture().probe_hits), account["runs"])


def test_a_library_by_its_name_and_an_offset():
    with Workspace() as work:
        account, _ = recorded(work, ["--uprobe", "libc:nanosleep", "--uprobe",
                                     "libc.so.6:nanosleep+0"], sleeps=7)
        capture = work.capture()
        expect("hits", len(capture.probe_hits), 2 * account["sleeps"])
        expect_in("path", "libc.so.6", os.path.basename(capture.probes[0]["path"]))


def test_every_view_has_them():
    with Workspace() as work:
        account, _ = recorded(work, ["--uprobe", f"{puppet()}:CountedCall"], calls=10)
        hits = account["calls"]
        expect_in("summary", f"Probes: {hits} hits", report("--no-pager", work.file("capture.xpu")))
        expect("script", report("--script", work.file("capture.xpu")).count(
            f"\tevent=uprobe probe={PUPPET}:CountedCall\n"), hits)
        trace = json.loads(report("--chrome-trace", work.file("capture.xpu")))
        moments = [e for e in trace["traceEvents"] if e["ph"] == "i"]
        expect("moments in the trace", len(moments), hits)
        expect("their name", {m["name"] for m in moments}, {"CountedCall"})


def test_a_tracepoint():
    with Workspace() as work:
        account, result = recorded(work, ["--tracepoint", "sched:sched_process_fork", "--tracepoint",
                                          "syscalls:sys_enter_clock_nanosleep"], sleeps=5)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("forks: threads and a child", len([h for h in capture.probe_hits if h["probe"] == 1]),
               account["runs"])
        expect("sleeps", len([h for h in capture.probe_hits if h["probe"] == 2]),
               account["sleeps"])
        expect("nothing from before the program",
               [s for s in stacks_of(work) if "xpu-record;" in s], [])
        expect("who slept", caller_function(stacks_of(work)), {"SleepOften": account["sleeps"]})


def caller_function(stacks):
    counts = {}
    for stack, hits in stacks.items():
        if not stack.endswith("[probe] syscalls:sys_enter_clock_nanosleep"):
            continue
        name = "SleepOften" if "SleepOften(" in stack else stack
        counts[name] = counts.get(name, 0) + hits
    return counts


def test_functions_of_the_kernel():
    with Workspace() as work:
        probes = ["--kprobe", "hrtimer_nanosleep", "--kretprobe", "hrtimer_nanosleep"]
        if not HAS_KPROBES:
            xpu_testing.require_recording()
            result = work.record("--cpu-only", *probes, "--", "true")
            expect("exit status", result.returncode, 125)
            expect("message", result.stderr.splitlines()[0],
                   "xpu-record: kprobe hrtimer_nanosleep: this kernel has no kprobes "
                   "(CONFIG_KPROBES)")
            return
        account, _ = recorded(work, probes, sleeps=5)
        hits = work.capture().probe_hits
        expect("entries", len([h for h in hits if h["probe"] == 1]), account["sleeps"])
        expect("returns", len([h for h in hits if h["probe"] == 2]), account["sleeps"])


def test_what_cannot_be_found():
    xpu_testing.require_recording()
    for probe, why in ((["--uprobe", "libnothing.so:f"], "the loader finds no library"),
                       (["--uprobe", "/nothing/lib.so:f"], "No such file or directory"),
                       (["--uprobe", f"{puppet()}:no_such"], "has no function of this name"),
                       (["--uprobe", f"{puppet()}:counted"], "_ZN7counted5OftenEi"),
                       (["--uprobe", f"{puppet()}:counted::"], "expected LIBRARY:FUNCTION"),
                       (["--uprobe", "malloc"], "expected LIBRARY:FUNCTION"),
                       (["--uretprobe", "libc:malloc+4"], "expected LIBRARY:FUNCTION"),
                       (["--tracepoint", "sched"], "expected CATEGORY:NAME"),
                       (["--tracepoint", "sched:nothing"], "does not exist in this kernel"),
                       (["--tracepoint", "sched:sched_swich"],
                        "hint: did you mean sched_switch in category sched?"),
                       (["--tracepoint", "shed:sched_switch"],
                        "hint: did you mean category sched?"),
                       (["--uprobe", "libc:free", "--uprobe", "libc:free"],
                        "--uprobe libc:free: given twice"),
                       (["--uprobe", "./shim:main"], "uprobe ./shim:main: "),
                       (["--uprobe", "./shim:main"], "not an ELF file\nhint: it is a script")):
        with Workspace() as work:
            (work.path / "shim").write_text("#!/bin/sh\n" + "# A shim.\n" * 9 + "exec true\n")
            marker = work.path / "ran"
            result = work.record("--cpu-only", *probe, "--", "touch", str(marker))
            expect(f"{probe}: exit status", result.returncode, 125)
            expect_in(f"{probe}", why, result.stderr)
            expect(f"{probe}: the program ran", marker.exists(), False)


def test_a_slow_probe_is_reported():
    xpu_testing.require_recording()
    compiler = shutil.which("gcc")
    if compiler is None:
        xpu_testing.skip("gcc", "no compiler")
    with Workspace() as work:
        source = work.file("slow.c", "__attribute__((noipa, naked)) void slow(void) "
                           "{ __asm__(\"xor %eax, %eax\\n ret\"); }\n"
                           "__attribute__((noipa, naked)) void fast(void) "
                           "{ __asm__(\"endbr64\\n push %rbp\\n pop %rbp\\n ret\"); }\n"
                           "int main(void) { slow(); fast(); fast(); return 0; }\n")
        subprocess.run([compiler, "-O2", "-fcf-protection=none", source, "-o", work.file("slow")], check=True)
        result = work.record("--cpu-only", "--uprobe", "./slow:slow", "--uprobe", "./slow:fast",
                             "--", "./slow")
        expect("exit status", result.returncode, 0)
        said = [line for line in result.stderr.splitlines() if "single-steps" in line]
        expect("who is slow", [line.split(": ")[1] for line in said], ["uprobe ./slow:slow"])
        capture = work.capture()
        expect("hits", sorted(hit["probe"] for hit in capture.probe_hits), [1, 2, 2])


if __name__ == "__main__":
    xpu_testing.main(globals())

"""What a capture knows of symbols: it reads the same where the program's files are not."""

import json
import os
import shutil
import subprocess

from xpu_testing import (Workspace, expect, expect_in, find, folded, main, report,
                         require_recording, skip, workload)


def samples_of(work, *options):
    """Samples by stack."""
    return folded("--mode=cpu", "--unit=samples", *options, work.file("capture.xpu"))


def frames(stacks):
    """How many samples each function is in, without its arguments; how many samples there are."""
    counts = {}
    for stack, count in stacks.items():
        for frame in {f.split("(")[0] if f[0] != "(" else f for f in stack.split(";")}:
            counts[frame] = counts.get(frame, 0) + count
    return counts, sum(stacks.values())


def record(work, *command, **options):
    result = work.record("--cpu-only", "-F", "997", *command, **options)
    expect(f"status ({result.stderr})", result.returncode, 0)
    return result


def own_copy(work, name):
    """The workload under a name that nothing else has, so that it can be taken away."""
    path = work.file(f"own_{name}")
    shutil.copy(workload(name), path)
    return path


def test_reads_the_same_without_the_files():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_hot")
        record(work, program, "--seconds", "0.3")
        here = samples_of(work)
        os.unlink(program)
        expect("folded", samples_of(work), here)
        counts, total = frames(here)
        expect("most samples are in the loop", counts["RunHotLoop"] > 0.8 * total, True)
        expect("losses", work.capture().losses(), {})


def test_reads_the_same_when_the_file_is_another_one():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_hot")
        record(work, program, "--seconds", "0.3")
        here = samples_of(work)
        shutil.copy(workload("cpu_fork"), program)
        expect("folded", samples_of(work), here)


def test_none_keeps_no_names():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_hot")
        record(work, "--symbols=none", program, "--seconds", "0.2")
        expect("slices", work.capture().symbol_slices, [])
        expect_in("frame", "RunHotLoop", ";".join(samples_of(work)))
        os.unlink(program)
        text = ";".join(samples_of(work))
        expect("named", "RunHotLoop" in text, False)
        expect_in("frame", "own_cpu_hot+0x", text)


def test_slices_hold_what_occurs_and_no_more():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_hot")
        record(work, program, "--seconds", "0.3")
        slices = {s["path"]: s for s in work.capture().symbol_slices}
        paths = set(slices)
        expect("files", {program} <= paths and any("libc.so" in p for p in paths), True)
        report("--export-symbols", work.file("tree"), work.file("capture.xpu"))
        build_id = subprocess.run(["readelf", "-nW", program], check=True, capture_output=True,
                                  text=True).stdout.split("Build ID: ")[1].split()[0]
        path = work.file(f"tree/.build-id/{build_id[:2]}/{build_id[2:]}.debug")
        symbols = subprocess.run(["nm", path], check=True, capture_output=True, text=True).stdout
        expect_in("symbols", "HotHalf", symbols)
        expect("a function that never ran", "OptionNumber" in symbols, False)
        expect("bytes", os.path.getsize(path) < 4096, True)
        # What comes of a whole file is what comes of its slice.
        text = subprocess.run(["readelf", "-aW", path], check=True, capture_output=True, text=True)
        expect("complaints of readelf", text.stderr, "")


def test_files_that_go_while_the_program_runs():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_hot")
        record(work, "sh", "-c", f"{program} --seconds 0.4 & sleep 0.1; rm {program}; wait")
        counts, total = frames(samples_of(work))
        expect("named", counts.get("RunHotLoop", 0) > 0.7 * total, True)


def test_programs_in_another_root():
    require_recording()
    if os.geteuid() != 0:
        skip("root", "only root changes the root")
    with Workspace() as work:
        os.mkdir(work.path / "root")
        shutil.copy(find("tests/workloads/unwind/calls-static"), work.path / "root" / "program")
        record(work, "chroot", work.file("root"), "/program", "30")
        shutil.rmtree(work.path / "root")
        counts, total = frames(samples_of(work))
        expect("named", counts.get("RunPlain", 0) > 0, True)
        expect("unnamed", sum(n for f, n in counts.items() if f.startswith("program+0x")) <
               0.02 * total, True)


def test_every_process_of_a_tree():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_fork")
        record(work, program, "--children", "3", "--threads", "2", "--ms", "60")
        here = samples_of(work)
        os.unlink(program)
        expect("folded", samples_of(work), here)
        counts, _ = frames(here)
        for function in ("RootBurn", "ChildBurn", "ThreadBurn", "LeafBurn"):
            expect(f"{function} is named", counts.get(function, 0) > 0, True)


def test_full_slices_have_lines_and_inlined_functions():
    require_recording()
    with Workspace() as work:
        program = own_copy(work, "cpu_hot")
        record(work, "--symbols=full", program, "--seconds", "0.3")
        def own():
            stacks = samples_of(work, "--lines", "--inline")
            return {stack: n for stack, n in stacks.items() if "cpu_hot.cpp:" in stack}

        here = own()
        expect("the program's own code has lines", here != {}, True)
        os.unlink(program)
        expect("lines of the program's own code", own(), here)


def generated(work, way, memory="anonymous"):
    result = record(work, workload("generated_code"), "--say", way, "--memory", memory, "--ms",
                    "150")
    pid = json.loads(result.stdout)["pid"]
    for path in (f"/tmp/perf-{pid}.map", work.file(f"jit-{pid}.dump")):
        if os.path.exists(path):
            os.unlink(path)
    return frames(samples_of(work))


def test_code_that_the_program_made():
    require_recording()
    with Workspace() as work:
        counts, total = generated(work, "map")
        expect("by map", counts.get("JitFirst", 0) > 0.7 * total, True)
        # A sample of the first instructions, or taken before the unwind tables are ready, lacks it.
        expect(f"caller ({counts})", counts.get("JitOuter", 0) >= 0.9 * counts["JitFirst"], True)
    with Workspace() as work:
        counts, total = generated(work, "dump")
        for name in ("JitFirst", "JitSecond", "JitMoved"):
            share = counts.get(name, 0) / total
            expect(f"{name} by dump ({counts})", 0.2 < share < 0.45, True)
    with Workspace() as work:
        counts, total = generated(work, "nothing")
        expect("without a name", counts.get("[anon]", 0) > 0.7 * total, True)


def test_generated_code_in_memory_that_looks_like_a_file():
    """As PHP and .NET have it."""
    require_recording()
    for memory in ("memfd", "shared"):
        with Workspace() as work:
            counts, total = generated(work, "map", memory)
            expect(f"{memory} by map ({counts})", counts.get("JitFirst", 0) > 0.7 * total, True)
            capture = work.capture()
            expect("losses", capture.losses(), {})
            expect("tables", capture.ledger().get("unwind_table_failed", 0), 0)
            expect_in("report", "CPU samples", summary := report(work.file("capture.xpu")))
            expect("files that are missing", "file_missing" in summary, False)
        with Workspace() as work:
            counts, total = generated(work, "dump", memory)
            expect(f"{memory} by dump ({counts})", counts.get("JitMoved", 0) > 0.2 * total, True)
        with Workspace() as work:
            counts, total = generated(work, "nothing", memory)
            expect(f"{memory} ({counts})", counts.get("[anon]", 0) > 0.7 * total, True)


def test_elf_file_in_memory_keeps_its_names():
    require_recording()
    with Workspace() as work:
        script = ("import os, sys; fd = os.memfd_create('program');"
                  "os.write(fd, open(sys.argv[1], 'rb').read());"
                  "os.execv(f'/proc/self/fd/{fd}', ['program', '--seconds', '0.3'])")
        program = own_copy(work, "cpu_hot")
        subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", program], check=True)
        record(work, "python3", "-c", script, program)
        # Python, which starts it, has samples too.
        counts, _ = frames(samples_of(work))
        expect(f"named ({counts})", counts.get("RunHotLoop", 0) > 0.9 * counts["main"] > 0, True)


# Of all addresses, so that any code without a name gets this one.
WRONG_MAP = "1000 7ffffffff000 WrongName"


def outdated(work):
    """The names that were not used, and their files."""
    capture = work.capture()
    return capture.losses(), capture.details("generated_code_outdated")


def test_perf_maps_of_earlier_programs():
    require_recording()
    program = f"exec {workload('generated_code')} --say nothing --ms 300"
    write = f"echo {WRONG_MAP} > /tmp/perf-$$.map; trap 'rm /tmp/perf-$$.map' EXIT; echo $$"
    for before in ("touch -d '1 day ago' /tmp/perf-$$.map", "sleep 0.1"):
        with Workspace() as work:
            result = record(work, "sh", "-c", f"{write}; {before}; {program}")
            path = f"/tmp/perf-{result.stdout.split()[0]}.map"
            os.unlink(path)
            counts, total = frames(samples_of(work))
            expect(f"{before}: names ({counts})", "WrongName" in counts, False)
            expect(f"{before}: nameless ({counts})", counts["[anon]"] > 0.7 * total, True)
            expect(before, outdated(work), ({"generated_code_outdated": 1}, [path]))
    with Workspace() as work:
        result = record(work, "sh", "-c", f"(sleep 0.1; {write}; trap - EXIT) & {program}")
        os.unlink(f"/tmp/perf-{result.stdout.split()[0]}.map")
        counts, total = frames(samples_of(work))
        expect(f"its own ({counts})", counts.get("WrongName", 0) > 0.7 * total, True)
        expect("its own", outdated(work), ({}, []))


def test_perf_maps_of_running_processes():
    """Only their start is known."""
    require_recording()
    for age, is_used in (("1 day ago", False), ("now", True)):
        with Workspace() as work:
            program = subprocess.Popen([workload("generated_code"), "--say", "nothing", "--ms",
                                        "60000"])
            path = f"/tmp/perf-{program.pid}.map"
            with open(path, "w") as file:
                file.write(WRONG_MAP + "\n")
            subprocess.run(["touch", "-d", age, path], check=True)
            record(work, "-p", str(program.pid), "-d", "0.5")
            program.kill()
            program.wait()
            os.unlink(path)
            counts, total = frames(samples_of(work))
            expect(f"{age} ({counts})", counts.get("WrongName", 0) > 0.7 * total, is_used)
            losses = {} if is_used else {"generated_code_outdated": 1}
            expect(age, outdated(work), (losses, [] if is_used else [path]))


def moved_code(*options):
    return [workload("moved_code"), *options]


def expect_moved_program(work, what, cut=0.05):
    """All frames of tests/workloads/moved_code.cpp, and their shares."""
    stacks = samples_of(work)
    counts, total = frames(stacks)
    expect(f"{what}: there are samples", total > 100, True)
    inside = sum(n for stack, n in stacks.items() if "ThreeParts" in stack and "Burn" in stack)
    expect(f"{what}: share ({counts})", 0.65 < inside / total < 0.85, True)
    for frame in ("[anon]", "[unknown]"):
        expect(f"{what}: {frame} ({counts})", counts.get(frame, 0) <= cut * total, True)
    ledger = work.capture().ledger()
    expect(f"{what}: cut stacks ({ledger})", ledger.get("stack_no_rule", 0) <= cut * total, True)
    return counts, total


def test_code_that_was_moved_to_anonymous_memory():
    require_recording()
    # A moment passes until the recorder looks; 100 ms if the memory stays writable.
    for how, ms, cut in (("nothing", 500, 0.05), ("copy", 1000, 0.1), ("shared", 1000, 0.1),
                         ("replace", 1000, 0.1), ("writable", 2000, 0.1)):
        with Workspace() as work:
            record(work, *moved_code("--how", how, "--ms", str(ms)))
            counts, total = expect_moved_program(work, how, cut)
            expect(f"{how}: from its start ({counts})", counts["main"] > (0.98 - cut) * total, True)
            expect(f"{how}: losses", work.capture().losses(), {})


def running(work, *options):
    """A program of which the change has been made, and what is recorded of it from then on."""
    program = subprocess.Popen(moved_code(*options, "--ms", "60000"), stdout=subprocess.PIPE,
                               text=True)
    program.stdout.readline()
    result = work.record("--cpu-only", "-F", "997", "-p", str(program.pid), "-d", "1")
    program.kill()
    program.wait()
    expect(f"status ({result.stderr})", result.returncode, 0)


def test_code_that_was_moved_before_the_recording():
    require_recording()
    for how in ("copy", "replace"):
        with Workspace() as work:
            running(work, "--how", how)
            counts, total = expect_moved_program(work, how)
            expect(f"{how}: from its start ({counts})", counts["main"] > 0.95 * total, True)
            expect(f"{how}: losses", work.capture().losses(), {})


def test_generated_code_in_the_place_of_a_library():
    require_recording()
    for how in ("library", "mixed", "inside"):
        with Workspace() as work:
            record(work, *moved_code("--how", how, "--ms", "500"))
            stacks = samples_of(work)
            counts, total = frames(stacks)
            expect(f"{how} ({counts})", counts["[anon]"] > 0.9 * total, True)
            expect(f"{how}: names of the library ({counts})",
                   [f for f in counts if "libresolv" in f or
                    f.startswith("ns_") and not f.endswith("_[k]")], [])
            expect(f"{how}: losses", work.capture().losses(),
                   {"moved_code_unknown": 1} if how == "mixed" else {})
        with Workspace() as work:
            result = record(work, *moved_code("--how", how, "--say", "map", "--ms", "500"))
            os.unlink(f"/tmp/perf-{result.stdout.strip()}.map")
            counts, total = frames(samples_of(work))
            expect(f"{how}: by map ({counts})", counts.get("JitAtLibrary", 0) > 0.9 * total, True)
    with Workspace() as work:
        running(work, "--how", "inside")
        counts, total = frames(samples_of(work))
        inside = [n for f, n in counts.items() if f.startswith("[anon in libresolv")]
        expect(f"before the recording ({counts})", sum(inside) > 0.9 * total, True)
        expect("before the recording", work.capture().losses(), {"moved_code_unknown": 1})


def test_a_process_whose_first_thread_has_ended():
    require_recording()
    with Workspace() as work:
        record(work, *moved_code("--how", "thread", "--ms", "500"))
        expect_moved_program(work, "started")
    with Workspace() as work:
        running(work, "--how", "thread")
        expect_moved_program(work, "running")


def test_processes_that_share_memory():
    """They are no threads of one process, but what one maps the others have."""
    require_recording()
    with Workspace() as work:
        record(work, *moved_code("--how", "process", "--ms", "500"))
        expect_moved_program(work, "clone")
    with Workspace() as work:
        record(work, *moved_code("--how", "mapped", "--ms", "500"))
        stacks = samples_of(work)
        counts, total = frames(stacks)
        inside = sum(n for s, n in stacks.items() if "main;" in s and "RunGenerated" in s and
                     "Burn" in s)
        expect(f"mapped by another one ({counts})", inside > 0.9 * total, True)
        expect("losses", work.capture().losses(), {})


if __name__ == "__main__":
    main(globals())

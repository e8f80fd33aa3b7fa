"""Programs without frame pointers whose stacks are known: CPU samples unwound by tables.

Each program of tests/workloads/unwind prints the path to each of its leaves. At least 95 % of the
samples in a leaf have exactly that path and are marked complete, no other stack is, and what ends
early is in the ledger under its reason.
"""

import json
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor

import unwind_references as references
from call_sites import invented_frames
from unwind_judge import Judge
from unwind_stacks import COMPLETE, NOT_READY, Stacks, text_of
from xpu_testing import Workspace, expect, find, main, require_recording, skip

MILLISECONDS = 120
# A loaded machine samples less; the leaves burn CPU time, so it is not much less.
LEAST_SAMPLES = MILLISECONDS // 4
# Tables of the program and of libc may come this many samples after its start, and the same again
# for each library that it loads.
MOST_NOT_READY = 40

COMPILERS = [f"{compiler}-{level}-{cet}" for compiler in ("gcc", "clang") for level in ("O2", "O3")
             for cet in ("none", "full")]
LINKERS = ("lld", "mold")


def program(name):
    return find(f"tests/workloads/unwind/{name}")


def is_built(name):
    return os.path.exists(f"{os.path.dirname(program('calls-static'))}/{name}")


def variants(name):
    there = [v for v in COMPILERS if is_built(f"{name}-{v}")]
    expect("g++ variants", len([v for v in there if v.startswith("gcc")]), 4)
    return there


def command_of(name, milliseconds=MILLISECONDS):
    command = [program(name), str(milliseconds)]
    if name.startswith("loads-"):
        variant = name.removeprefix("loads-")
        command += [program(f"libunwind_{which}-{variant}.so") for which in ("first", "second")]
    return command


def expected_of(text):
    expected = []
    for line in text.splitlines():
        if line not in expected:
            expected.append(line)
    leaves = {}
    for entry in map(json.loads, expected):
        leaves[entry["leaf"], entry["path"]] = entry
    return list(leaves.values())


def judge_program(name, twin=None, milliseconds=MILLISECONDS):
    """Records the program; returns what is wrong with its stacks, and its samples in PLT entries."""
    command = command_of(name, milliseconds)
    with Workspace() as work:
        result = work.record("--cpu-only", f"--call-graph={CALL_GRAPH}", "-F", "997", *command)
        expect("status", result.returncode, 0)
        expected = expected_of(result.stdout)
        stacks = Stacks(work.capture(), {command[0]: program(twin)} if twin else {})
        judge = Judge(stacks, expected)
        problems = judge.judge(LEAST_SAMPLES * milliseconds // MILLISECONDS,
                               MOST_NOT_READY * (3 if "loads" in name else 1))
        if "lay elsewhere" in result.stderr:
            print(f"        {name}: {result.stderr.strip()}")
        return [f"{name}: {problem}" for problem in problems], judge.plt_samples


# fp is for looking at what these tests catch.
CALL_GRAPH = os.environ.get("XPU_TEST_CALL_GRAPH", "eh")


def check(*names, **options):
    """Returns the samples in PLT entries."""
    require_recording()
    # Each is busy on one processor.
    with ThreadPoolExecutor(2) as pool:
        judged = list(pool.map(lambda name: judge_program(name, **options), names))
    problems = [problem for found, _ in judged for problem in found]
    if problems:
        raise AssertionError("\n".join(problems))
    return sum(in_plt for _, in_plt in judged)


def check_variants(name, **options):
    return check(*[f"{name}-{variant}" for variant in variants(name)], **options)


def check_plt_variants(name):
    in_plt = check_variants(name)
    if in_plt < LEAST_SAMPLES:
        raise AssertionError(f"{name}: {in_plt} samples in PLT entries, expected {LEAST_SAMPLES}")


def test_frames_of_compilers():
    check_variants("calls")


def test_assembly():
    check_variants("assembly")


def test_coroutines():
    check_variants("coroutines")


def check_linker(linker):
    names = [f"{name}-gcc-O2-{linker}" for name in (
        "calls", "assembly", "coroutines", "signals", "exceptions", "threads", "plt_lazy",
        "plt_now")]
    if not is_built(names[0]):
        skip(linker, f"{linker} was not installed when the programs were built")
    check(*names)
    check(f"loads-gcc-O2-{linker}", milliseconds=400)


def test_programs_linked_by_lld():
    check_linker("lld")


def test_programs_linked_by_mold():
    check_linker("mold")


def test_other_layouts_of_segments():
    names = ["calls-gold", "calls-no_separate_code", "calls-large_pages",
             "calls-packed_relocations"]
    if is_built("calls-lld_no_rosegment"):
        names += ["calls-lld_no_rosegment", "calls-lld_large_pages", "calls-lld_static_pie"]
    check(*names)


def expect_complete(name, percent):
    """Of the samples whose tables were ready; and calls made all frames."""
    with Workspace() as work:
        result = work.record("--cpu-only", f"--call-graph={CALL_GRAPH}", "-F", "997",
                             program(name), str(4 * MILLISECONDS))
        expect("status", result.returncode, 0)
        capture = work.capture()
        stacks = Stacks(capture)
        ready = [s for s in stacks.all if s.names and not s.flags & NOT_READY]
        expect(f"{name}: enough samples", len(ready) > LEAST_SAMPLES, True)
        open_ends = [text_of(s.names) for s in ready if not s.flags & COMPLETE]
        expect(f"{name}: incomplete stacks of {len(ready)}: {open_ends[:5]}",
               len(open_ends) <= max(1, len(ready) * (100 - percent) / 100), True)
        invented = [f for sample in capture.cpu_samples for f in invented_frames(stacks, sample)]
        expect(f"{name}: frames that no call returns to", invented, [])


def test_rust():
    names = [name for name in ("rust-bfd", "rust-lld", "rust-mold") if is_built(name)]
    if not names:
        skip("Rust", "rustc was not installed when the programs were built")
    for name in names:
        expect_complete(name, 99)


def test_an_entry_point_without_call_frame_information():
    check("calls-own_start")


def test_threads_and_programs_of_musl():
    if not is_built("musl-static"):
        skip("musl", "musl-gcc was not installed when the programs were built")
    for name in ("musl-static", "musl-dynamic"):
        expect_complete(name, 99)


def test_signal_handlers():
    check_variants("signals")


def test_exceptions_in_flight():
    check_variants("exceptions")


def test_plt_entries_and_the_resolver():
    check_plt_variants("plt_lazy")


def test_plt_entries_bound_at_the_start():
    check_plt_variants("plt_now")


def test_threads_and_children():
    check_variants("threads")


def test_libraries_and_generated_code_while_the_program_runs():
    check_variants("loads", milliseconds=400)


def test_static_programs():
    check("calls-static", "calls-static_pie", "calls-no_pie")


def test_programs_without_symbols():
    check("calls-stripped", "calls-no_section_headers", twin="calls-gcc-O2-none")


def test_debug_frame():
    check("calls-debug_frame")


def compare(reference, name, least_leaves, except_for=()):
    """The reference's path to each leaf of the program is the one that the program prints."""
    with Workspace() as work:
        found, text = reference.paths_of(command_of(name), work.path)
    expected = [e for e in expected_of(text) if e["end"] == "complete" and e["path"] and
                e["leaf"] in found and e["leaf"] not in except_for]
    for leaf in expected:
        path = [re.sub(r"\.(cold|part).*", "", n) for n in leaf["path"].split(";")]
        if not references.is_same(found[leaf["leaf"]], path):
            raise AssertionError(f"{name}, {leaf['leaf']}: {reference.TOOL} says "
                                 f"{found[leaf['leaf']]}, expected {path}")
    if len(expected) < least_leaves:
        raise AssertionError(f"{name}: {reference.TOOL} saw only {sorted(found)}")


def compare_all(reference, *programs):
    if not shutil.which(reference.TOOL):
        skip(reference.TOOL, f"{reference.TOOL} is not installed")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda program: compare(reference, *program), programs))


def test_perf_sees_the_same_paths():
    # perf copies 16 KiB of the stack: less than a frame of RunBig.
    for variant in ("gcc-O2-full", "gcc-O3-none"):
        compare_all(references.Perf,
                    (f"calls-{variant}", 7, ("LeafBig", "[vdso]")),
                    (f"assembly-{variant}", 2, ("LeafAsmFramePointer",)),
                    (f"signals-{variant}", 1, ("LeafAlternate",)),
                    (f"plt_now-{variant}", 1, ("[plt]",)),
                    # perf ends early in a program that it started by /proc/self/exe.
                    (f"threads-{variant}", 3, ("LeafSpawned",)))


def test_gdb_sees_the_same_paths():
    # Not the threads and children: gdb does not come back from a breakpoint in a vfork child.
    variant = "gcc-O2-full"
    compare_all(references.Gdb,
                (f"calls-{variant}", 8), (f"assembly-{variant}", 2, ("LeafAsmFramePointer",)),
                (f"signals-{variant}", 2), (f"exceptions-{variant}", 2))


if __name__ == "__main__":
    main(globals())

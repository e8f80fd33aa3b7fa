"""Programs without frame pointers whose stacks are known: CPU samples unwound by tables.

Each program of tests/workloads/unwind prints the path to each of its leaves. At least 95 % of the
samples in a leaf have exactly that path and are marked complete, no other stack is, and what ends
early is in the ledger under its reason.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from call_sites import invented_frames
from unwind_stacks import (BELOW_MAIN, BELOW_THREAD, COMPLETE, HIDDEN, NOT_READY, TABLES,
                           TRUNCATED, USER_FAILED, Stacks, is_function, is_path, text_of)
from xpu_testing import (PATIENCE_S, Workspace, expect, find, folded, is_built, main, require_recording,
                         skip)

# ---- what perf and gdb say of the same programs: the path to each leaf, as names
HIDDEN_OF_TOOLS = {"__libc_start_call_main", "start_thread", "clone3", "__restore_rt"}
UNNAMED = {"[unknown]", "??", "<signal handler called>"}


def is_same(found, path):
    """`found` may lack names that only debug symbols have."""
    return len(found) == len(path) and all(
        f == p or (p in HIDDEN_OF_TOOLS and f in UNNAMED | {p, "__" + p}) for f, p in zip(found, path))


def plain(name):
    return re.sub(r"[ @(+.].*", "", name.strip()).removesuffix("_impl")


class Perf:
    TOOL = "perf"

    @staticmethod
    def paths_of(command, directory):
        """({leaf: its most frequent path}, the program's output)"""
        data = str(directory / "perf.data")
        # With build-ids in the records of mappings: while another recorder asks for them (each
        # xpu-record does), the kernel marks also the records of those that did not ask, and perf 6.1
        # then reads a length from other bytes and aborts.
        run = subprocess.run(["perf", "record", "-q", "--buildid-mmap", "-e", "cpu-clock:u",
                              "-F", "199", "-o", data, "--call-graph", "dwarf,16384", *command],
                             capture_output=True, text=True, cwd=directory)
        expect(f"status of perf record ({run.stderr})", run.returncode, 0)
        read = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym", "--no-inline",
                               "--max-stack", "512"], capture_output=True, text=True)
        expect(f"status of perf script ({read.stderr})", read.returncode, 0)
        counts = collections.defaultdict(collections.Counter)
        for event in read.stdout.split("\n\n"):
            lines = [line.split(None, 1) for line in event.splitlines() if line.strip()]
            path = tuple(plain(line[1]) for line in lines if len(line) == 2)
            if path:
                counts[path[0]][path] += 1
        return {leaf: paths.most_common(1)[0][0] for leaf, paths in counts.items()}, run.stdout


class Gdb:
    TOOL = "gdb"

    @staticmethod
    def paths_of(command, directory):
        """({leaf: the path at its first call}, the program's output)"""
        symbols = subprocess.run(["nm", command[0]], capture_output=True, text=True).stdout
        leaves = re.findall(r" [tT] (Leaf\w+)$", symbols, re.MULTILINE)
        script = ["set pagination off", "set confirm off", "set debuginfod enabled off",
                  "set backtrace past-main on", "set backtrace past-entry on",
                  "set width 0", "handle SIGALRM nostop noprint pass"]
        for leaf in leaves:
            script += [f"tbreak *{leaf}", "commands", "silent", "echo \\npath\\n", "bt",
                       "continue", "end"]
        script += [f"run {' '.join(command[1:])} > output.txt", "quit"]
        (directory / "gdb.txt").write_text("\n".join(script) + "\n")
        run = subprocess.run(["gdb", "-nx", "-batch", "-x", str(directory / "gdb.txt"), command[0]],
                             capture_output=True, text=True, cwd=directory,
                             stdin=subprocess.DEVNULL, timeout=PATIENCE_S)
        found = {}
        for text in run.stdout.split("\npath\n")[1:]:
            path = [plain(re.sub(r"^#\d+ +(0x\w+ in )?", "", line)) if "<signal" not in line
                    else "<signal handler called>"
                    for line in text.splitlines() if line.startswith("#")]
            found.setdefault(path[0], path)
        return found, (directory / "output.txt").read_text()


# ---- the stacks of a capture against the paths that its program printed
# (tests/workloads/unwind/unwind.h)
LIMIT = 512  # frames: XPU_MAX_USER_FRAMES in bpf/events.h
# Why stacks are not complete, in the ledger (format/losses.h).
REASONS = {"truncated": "stack_truncated", "no_rule": "stack_no_rule",
           "unsupported": "stack_rule_unsupported", "bad_return": "stack_bad_return",
           "stuck": "stack_stuck", "unreadable": "stack_unreadable",
           "not_called": "stack_not_called"}
ENDS = {"_start", "clone3", "clone", "__clone", "__clone3", "[ld-linux-x86-64.so.2]"}


# At the end of its work the unwinder of libgcc replaces its own return address by the landing pad
# some instructions before it moves the stack pointer; CFI cannot express that. One of them is a
# return that no processor predicts, where samples gather.
LANDING = "/libgcc_s.so"


def most_landing(samples):
    return 5 + 0.05 * samples


class Judge:
    def __init__(self, stacks, expected):
        self.stacks = stacks
        self.expected = expected
        self.problems = []
        self.plt_samples = 0
        paths = [e["path"].split(";") for e in expected if e["path"]]
        below = set(BELOW_MAIN + BELOW_THREAD) | HIDDEN
        self.ends = ENDS | {e["path"].split(";")[-1] for e in expected
                            if e["path"] and e["end"] == "complete"}
        self.own = {n for path in paths for n in path if n not in below and n[0] != "["}
        parts = [self.own_part([{name} for name in path]) for path in paths]
        self.suffixes = {part[i:] for part in parts for i in range(len(part))}

    def own_part(self, names):
        """The program's own functions, recursion as one."""
        part = []
        for aliases in names:
            name = next(iter(aliases & self.own), None)
            if name and part[-1:] != [name]:
                part.append(name)
        return tuple(part)

    def problem(self, what, stacks=()):
        counts = collections.Counter(f"{s.flags:#x} {text_of(s.names)[:200]}" for s in stacks)
        examples = [f"\n    {count} x {text}" for text, count in counts.most_common(3)]
        self.problems.append(what + "".join(examples))

    def judge(self, least_samples, most_not_ready):
        """What is wrong, as a list of texts."""
        not_ready = [s for s in self.stacks.all if s.flags & NOT_READY]
        if len(not_ready) > most_not_ready:
            self.problem(f"{len(not_ready)} stacks before their tables were ready", not_ready)
        for leaf in self.expected:
            self.judge_leaf(leaf, least_samples)
        wrong = [s for s in self.stacks.all if s.flags & COMPLETE and not self.is_plausible(s)]
        landing = [s for s in wrong if LANDING in s.file]
        if len(landing) <= most_landing(sum(LANDING in s.file for s in self.stacks.all)):
            wrong = [s for s in wrong if s not in landing]
        # A compiler's own description is inexact at an instruction here and there.
        if len(wrong) > max(1, 0.002 * len(self.stacks.all)):
            self.problem(f"{len(wrong)} stacks called complete are wrong", wrong)
        self.judge_ledger()
        return self.problems

    def judge_leaf(self, leaf, least_samples):
        name, end = leaf["leaf"], leaf["end"]
        if name == "also":
            return
        if name.startswith("in:"):
            stacks = [s for s in self.stacks.all if f"/{name[3:]}" in s.file and
                      (self.own_part(s.names) or not s.flags & COMPLETE)]
            is_right = self.is_plausible
            least_samples = 0  # how often its own code is hit varies
        else:
            stacks = [s for s in self.stacks.all if s.names and name in s.names[0]]
            # A leaf may be called from several places.
            paths = [e["path"].split(";") for e in self.expected if e["leaf"] == name]

            def is_right(stack):
                return any(is_path(stack.names, path) for path in paths)
            if name in ("[plt]", "PltFunction0"):
                # Whether a processor takes an interrupt at a lone jump or return depends on where
                # it lies, and on what runs beside it.
                least_samples = 0
            if name == "[plt]":
                self.plt_samples = len(stacks)  # the variants of a program are counted together
        if len(stacks) < least_samples:
            self.problem(f"{name}: {len(stacks)} samples, at least {least_samples} expected")
        ready = [s for s in stacks if not s.flags & NOT_READY]
        wanted = TABLES | {"complete": COMPLETE, "truncated": TRUNCATED}.get(end, 0)
        mask = TABLES | COMPLETE | TRUNCATED
        good = [s for s in ready if is_right(s) and s.flags & mask in (wanted, TABLES | COMPLETE)
                and (end in ("complete", "unsupported") or not s.flags & COMPLETE)]
        if end == "unsupported":
            good += [s for s in ready if s.flags & mask == TABLES]
        most_bad = most_landing(len(ready)) if LANDING in f"/{name[3:]}" else 1 + 0.05 * len(ready)
        if len(ready) - len(good) > most_bad:
            bad = [s for s in ready if s not in good]
            self.problem(f"{name}: {len(bad)} of {len(ready)} stacks are not ({end}) "
                         f"{leaf['path'][:200]}", bad)
        not_complete = [s for s in ready if not s.flags & COMPLETE]
        # Some of them may be for another reason; judge_ledger asks for each.
        if end in REASONS and self.lost(end) < 0.5 * len(not_complete) - 2:
            self.problem(f"{name}: {len(not_complete)} stacks are not complete, in the ledger as "
                         f"{REASONS[end]}: {self.lost(end)}")

    def is_plausible(self, stack):
        """Of a complete stack: the end is an end, and the program's part is the end of a path."""
        if not stack.names:  # between two programs: it has no stack
            return not stack.flags & TABLES
        if not any(is_function(stack.names[-1], end) for end in self.ends):
            return False
        part = self.own_part(stack.names)
        if "main" in part and not is_path(stack.names[-4:], ["main"] + BELOW_MAIN):
            return False
        return not part or part in self.suffixes

    def lost(self, reason):
        return self.totals()[REASONS[reason]]

    def totals(self):
        return collections.Counter(self.stacks.capture.ledger())

    def judge_ledger(self):
        """Every stack that is not complete is counted there, once."""
        totals = self.totals()
        counted = sum(totals[name] for name in REASONS.values())
        open_ends = [s for s in self.stacks.all
                     if not s.flags & COMPLETE and (s.names or s.flags & USER_FAILED)]
        ready = [s for s in open_ends if not s.flags & NOT_READY]
        if not len(ready) <= counted <= len(open_ends):
            self.problem(f"{len(ready)} stacks are not complete although their tables were ready, "
                         f"{counted} in the ledger: {dict(totals)}", ready)
        not_ready = [s for s in self.stacks.all if s.flags & NOT_READY]
        if totals["unwind_table_not_ready"] != len(not_ready):
            self.problem(f"{len(not_ready)} stacks before their tables were ready, in the ledger: "
                         f"{dict(totals)}", not_ready)
        cut = [s for s in self.stacks.all if s.flags & TRUNCATED]
        if totals["stack_truncated"] != len(cut):
            self.problem(f"{len(cut)} stacks are truncated, {totals['stack_truncated']} in the "
                         "ledger", cut)
        if any(len(s.names) > LIMIT for s in self.stacks.all):
            self.problem("stacks above the limit")


# ---- the programs
MILLISECONDS = 60
# A loaded machine samples less; the leaves burn CPU time, so it is not much less.
LEAST_SAMPLES = MILLISECONDS // 4
# Tables of the program and of libc may come this many samples after its start, and the same again
# for each library that it loads.
MOST_NOT_READY = 40

COMPILERS = ["gcc-O2-full", "gcc-O3-none", "clang-O2-none", "clang-O3-full"]
LINKERS = ("lld", "mold")


def program(name):
    return find(f"tests/workloads/unwind/{name}")


def has_program(name):
    return is_built(f"tests/workloads/unwind/{name}")


def variants(name):
    there = [v for v in COMPILERS if has_program(f"{name}-{v}")]
    expect("g++ variants", len([v for v in there if v.startswith("gcc")]), 2)
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
    if not has_program(names[0]):
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
    if has_program("calls-lld_no_rosegment"):
        names += ["calls-lld_no_rosegment", "calls-lld_large_pages", "calls-lld_static_pie"]
    check(*names)


def expect_complete(name, percent, inside=None):
    """Of the samples in that function, if one is named, whose tables were ready; and calls made all
    frames."""
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", f"--call-graph={CALL_GRAPH}", "-F", "997",
                             program(name), str(4 * MILLISECONDS))
        expect("status", result.returncode, 0)
        capture = work.capture()
        stacks = Stacks(capture)
        ready = [s for s in stacks.all if s.names and not s.flags & NOT_READY and
                 (inside is None or any(inside in aliases for aliases in s.names))]
        expect(f"{name}: enough samples", len(ready) > LEAST_SAMPLES, True)
        open_ends = [text_of(s.names) for s in ready if not s.flags & COMPLETE]
        expect(f"{name}: incomplete stacks of {len(ready)}: {open_ends[:5]}",
               len(open_ends) <= max(1, len(ready) * (100 - percent) / 100), True)
        invented = [f for sample in capture.cpu_samples for f in invented_frames(stacks, sample)]
        expect(f"{name}: frames that no call returns to", invented, [])


def test_rust():
    names = [name for name in ("rust-bfd", "rust-lld", "rust-mold") if has_program(name)]
    if not names:
        skip("Rust", "rustc was not installed when the programs were built")
    for name in names:
        expect_complete(name, 99)


GO_CALLERS = {"memmove": "mover", "memclrNoHeapPointers": "eraser", "memeqbody": "comparer",
              "indexbytebody": "finder"}
GO_MAIN = "runtime.goexit;runtime.main;main.main;main.middle"


def judge_go(name):
    """Leaves without a frame and what calls them, and C, which Go calls on another stack: with and
    without a symbol table, by the table of Go's runtime."""
    # The C compiler's names are gone with the symbol table.
    c_path = (GO_MAIN + r";main\.goCaller;main\._Cfunc_c_caller;runtime\.cgocall;"
              r"runtime\.asmcgocall;.*")
    with Workspace() as work:
        result = work.record("--cpu-only", f"--call-graph={CALL_GRAPH}", "-F", "997",
                             program(name), str(10 * MILLISECONDS))
        expect("status", result.returncode, 0)
        counts, wrong = collections.Counter(), collections.Counter()
        for path, samples in folded("--mode=cpu", "--unit=samples",
                                    work.file("capture.xpu")).items():
            frames = [frame.removesuffix(".abi0") for frame in path.split(";")[1:]
                      if not frame.endswith("_[k]")] or ["between programs"]
            leaf, callers = frames[-1].removeprefix("runtime."), ";".join(frames[:-1])
            if leaf in GO_CALLERS:
                is_right = callers == f"{GO_MAIN};main.{GO_CALLERS[leaf]}"
            elif leaf == "main.adder":
                is_right = callers == GO_MAIN
            elif "_cgo_" in path and "_c_caller" in path:
                leaf, is_right = "C", re.fullmatch(c_path, ";".join(frames))
            else:
                leaf, is_right = "other", True
            counts[leaf] += samples
            if not is_right:
                wrong[path] += samples
        total = sum(counts.values())
        expect(f"{name}: samples of all leaves ({counts})",
               [leaf for leaf in [*GO_CALLERS, "main.adder", "C"] if counts[leaf] == 0], [])
        expect(f"{name}: wrong stacks of {total}: {wrong.most_common(5)}",
               sum(wrong.values()) <= 0.02 * total, True)
        cut = {reason: count for reason, count in work.capture().ledger().items()
               if reason in REASONS.values()}
        expect(f"{name}: stacks that are cut: {cut}", sum(cut.values()) <= 5, True)


def test_go():
    require_recording()
    names = [name for name in ("go-plain", "go-stripped", "go-stripped_pie") if has_program(name)]
    if not names:
        skip("Go", "go was not installed when the programs were built")
    for name in names:
        judge_go(name)


def test_an_entry_point_without_call_frame_information():
    check("calls-own_start")


def test_threads_and_programs_of_musl():
    if not has_program("musl-static"):
        skip("musl", "musl-gcc was not installed when the programs were built")
    for name in ("musl-static", "musl-dynamic"):
        expect_complete(name, 99, inside="burn")


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
    check("calls-stripped", "calls-no_section_headers", twin="calls-gcc-O2-full")


def test_debug_frame():
    check("calls-debug_frame")


def record_form(command, directory, form):
    """The percentage of stacks that reach their end or the limit, and what the recorder says."""
    with Workspace() as work:
        result = work.record("--cpu-only", f"--call-graph={CALL_GRAPH}", "-F", "997", command,
                             str(MILLISECONDS), cwd=directory)
        expect(f"{form}: status", result.returncode, 0)
        stacks = [s for s in Stacks(work.capture()).all if s.names and not s.flags & NOT_READY]
        expect(f"{form}: samples", len(stacks) > LEAST_SAMPLES, True)
        followed = sum(bool(s.flags & (COMPLETE | TRUNCATED)) for s in stacks)
        return 100 * followed / len(stacks), result.stderr


def test_forms_of_debug_frame():
    """One build, stripped, whole, compressed, and with its debug information in a file beside it,
    which is not used if anybody can write to it: a table that was made of one form is not used for
    another one."""
    require_recording()
    if not shutil.which("objcopy"):
        skip("objcopy", "objcopy is not installed")
    with Workspace() as work:
        whole = work.path / "whole"
        source = pathlib.Path(__file__).parent.parent / "workloads" / "unwind" / "calls.cpp"
        subprocess.run(["g++", "-std=c++20", "-O2", "-g", "-fomit-frame-pointer", "-pthread",
                        "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-exceptions",
                        f"-Wl,--build-id=0x{os.urandom(16).hex()}", "-o", whole, source], check=True)

        def copy(name, *options):
            made = work.path / name / "program"
            made.parent.mkdir()
            subprocess.run(["objcopy", *options, whole, made], check=True)
            return made

        forms = {"stripped": copy("stripped", "--strip-all"), "whole": whole,
                 "zlib": copy("zlib", "--compress-debug-sections=zlib"),
                 "zlib-gnu": copy("zlib-gnu", "--compress-debug-sections=zlib-gnu"),
                 "zstd": copy("zstd", "--compress-debug-sections=zstd"),
                 "anybody's": copy("anybody", "--strip-all"),
                 "separate": copy("separate", "--strip-all")}
        for form in ("anybody's", "separate"):
            debug = forms[form].parent / "program.debug"
            subprocess.run(["objcopy", "--only-keep-debug", whole, debug], check=True)
            subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", forms[form]], check=True)
            debug.chmod(0o666 if form == "anybody's" else 0o644)
        for form, command in forms.items():
            percent, message = record_form(command, work.path, form)
            # Of a program without unwind tables some stacks are complete by chance.
            expect(f"{form}: {percent} % of the stacks are followed ({message})",
                   percent < 60 if form in ("stripped", "anybody's") else percent > 95, True)


def compare(reference, name, least_leaves, except_for=()):
    """The reference's path to each leaf of the program is the one that the program prints."""
    with Workspace() as work:
        found, text = reference.paths_of(command_of(name), work.path)
    expected = [e for e in expected_of(text) if e["end"] == "complete" and e["path"] and
                e["leaf"] in found and e["leaf"] not in except_for]
    for leaf in expected:
        path = [re.sub(r"\.(cold|part).*", "", n) for n in leaf["path"].split(";")]
        if not is_same(found[leaf["leaf"]], path):
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
        compare_all(Perf,
                    (f"calls-{variant}", 7, ("LeafBig", "[vdso]")),
                    (f"assembly-{variant}", 2, ("LeafAsmFramePointer",)),
                    (f"signals-{variant}", 1, ("LeafAlternate",)),
                    (f"plt_now-{variant}", 1, ("[plt]",)),
                    # perf ends early in a program that it started by /proc/self/exe.
                    (f"threads-{variant}", 3, ("LeafSpawned",)))


def test_gdb_sees_the_same_paths():
    # Not the threads and children: gdb does not come back from a breakpoint in a vfork child.
    variant = "gcc-O2-full"
    compare_all(Gdb,
                (f"calls-{variant}", 8), (f"assembly-{variant}", 2, ("LeafAsmFramePointer",)),
                (f"signals-{variant}", 2), (f"exceptions-{variant}", 2))


if __name__ == "__main__":
    main(globals())

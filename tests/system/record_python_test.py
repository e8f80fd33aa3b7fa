"""Stacks of Python: of CPU samples and of launches, against what the program says it was in."""

import collections
import json
import os
import pathlib
import re
import shutil
import subprocess

from simulated_gpu import simulated
from xpu_testing import (Workspace, expect, expect_in, find, folded, main, report,
                         require_recording, skip)

PYTHON = os.environ.get("XPU_TEST_PYTHON", "/usr/bin/python3.11")
OLDEST, NEWEST = 9, 14  # versions 3.9 to 3.14
WORKLOADS = pathlib.Path(__file__).parent.parent / "workloads"
PROGRAM = WORKLOADS / "python_tree.py"
CUT = "[python frames cut]"


def line_at(code, offset):
    """The line of an instruction, from the location table of the capture."""
    table = code["line_table"].encode("latin-1")
    line, at, place = code["first_line"], 0, 0

    def varint():
        nonlocal place
        value = shift = 0
        while True:
            byte = table[place]
            place += 1
            value |= (byte & 63) << shift
            shift += 6
            if not byte & 64:
                return value

    def signed_varint():
        value = varint()
        return -(value >> 1) if value & 1 else value >> 1

    while place < len(table):
        head = table[place]
        place += 1
        form, units = head >> 3 & 15, (head & 7) + 1
        if form == 14:
            line += signed_varint()
            varint(), varint(), varint()
        elif form == 13:
            line += signed_varint()
        elif form in (10, 11, 12):
            line += form - 10
            place += 2
        elif form != 15:
            place += 1
        at += 2 * units
        if offset < at:
            return None if form == 15 else line
    return None


class Judge:
    def __init__(self, capture, spans):
        self.codes = {code["code"]: code for code in capture.python_codes}
        self.spans = collections.defaultdict(list)
        for span in spans:
            self.spans[span["tid"]].append(span)
        self.right = 0
        self.wrong = []

    def frames(self, event):
        frames = []
        for text in reversed(event["python_stack"]):
            bits = int(text[1:], 16)
            code = self.codes.get(bits >> 32)
            if code is None:
                frames.append(("?", "?", 0))
                continue
            name = code["name"].encode("latin-1").decode().split(".")[-1]
            path = code["path"].encode("latin-1").decode()
            frames.append((name, path, line_at(code, bits & 0x3fffffff)))
        return frames

    def see(self, event):
        for span in self.spans[event["tid"]]:
            if not span["begin_ns"] <= event["time_ns"] <= span["end_ns"]:
                continue
            wanted = [tuple(frame) for frame in span["stack"]]
            frames = self.frames(event)[:len(wanted)]
            # The innermost one goes on meanwhile.
            if frames[:-1] == wanted[:-1] and [f[:2] for f in frames] == [f[:2] for f in wanted]:
                self.right += 1
            else:
                self.wrong.append((wanted, frames))
            return


def require_python():
    require_recording()
    if not os.path.exists(PYTHON):
        skip("python", f"there is no {PYTHON}")


def version_of(python):
    """The minor version, and 1 where there is no global lock."""
    ask = ("import sys, sysconfig; print(sys.version_info[1], "
           "sysconfig.get_config_var('Py_GIL_DISABLED') or 0)")
    output = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, output.split()))


def interpreters():
    """By version, one of each that is here: Debian's, and those that pyenv has built. "3.13t" is
    without the global lock."""
    require_python()
    if "XPU_TEST_PYTHON" in os.environ:
        paths = [PYTHON]
    else:
        built = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
        paths = [PYTHON, *sorted(map(str, built.glob("3.*/bin/python3")))]
    found = {}
    for path in paths:
        minor, is_free = version_of(path)
        if OLDEST <= minor <= NEWEST:
            found.setdefault(f"3.{minor}{'t' if is_free else ''}", path)
    return found


def record(work, *options, program=(), milliseconds=60, python=PYTHON, **more):
    log = work.file("spans.json")
    result = work.record(*options, "--", python, str(PROGRAM), log, str(milliseconds), *program,
                         **more)
    expect("status", (result.returncode, result.stdout), (0, ""))
    with open(log, encoding="utf-8") as spans:
        capture = work.capture()
        return capture, Judge(capture, json.load(spans))


def check_cpu_samples(version, python):
    with Workspace() as work:
        capture, judge = record(work, "--cpu-only", "-F", "999", milliseconds=200, python=python)
        for sample in capture.cpu_samples:
            judge.see(sample)
        judged = judge.right + len(judge.wrong)
        print(f"        {version}: {judge.right} of {judged} samples have the right stack")
        expect(f"enough of {judged} samples", judged > 200, True)
        expect(f"enough right ones, not {judge.wrong[:3]}", judge.right >= 0.99 * judged, True)
        names = {code["name"].encode("latin-1").decode() for code in capture.python_codes}
        # Before 3.11 a code object does not have the name of its class.
        has_class = version not in ("3.9", "3.10")
        expect_in("a name that is not ASCII", "Shape.größe" if has_class else "größe", names)
        expect("functions that were made anew",
               {f"made_{i}" for i in range(8)} - names, set())


def test_cpu_samples():
    for version, python in interpreters().items():
        check_cpu_samples(version, python)


def check_launches(*options):
    for version, python in interpreters().items():
        with Workspace() as work:
            capture, judge = record(work, "--gpu-only", *options, program=["--launch"],
                                    milliseconds=5, python=python, env=simulated())
            for launch in capture.launch_stacks:
                judge.see(launch)
            spans = sum(map(len, judge.spans.values()))
            expect(f"launches that are wrong with {version}", judge.wrong, [])
            expect(f"launches with {version}", judge.right, spans)
            expect("losses", [name for name in capture.ledger() if name.startswith("python")], [])


def test_launches_in_the_process():
    check_launches("--launch-stacks=inline")


def test_launches_by_uprobe():
    check_launches("--launch-stacks=uprobe")


def test_left_out():
    require_python()
    with Workspace() as work:
        capture, _ = record(work, "--no-python", program=["--launch"], milliseconds=5,
                            env=simulated())
        expect("code objects", capture.python_codes, [])
        stacks = [e["python_stack"] for e in capture.cpu_samples + capture.launch_stacks]
        expect("stacks of Python", [stack for stack in stacks if stack], [])


def record_states(work, mode, python, seconds=0.5):
    """Samples by the functions of python_states.py and .c that they are in, outermost first. Then how
    many samples there are at least in the time."""
    result = work.record("--cpu-only", "-F", "999", "--", python, str(WORKLOADS / "python_states.py"),
                         find("tests/system/libxpu_python_states.so"), str(seconds), mode)
    expect(f"status of {mode}", (result.returncode, result.stdout), (0, ""))
    samples = collections.Counter()
    for stack, count in folded("--mode", "cpu", "--unit", "samples",
                               str(work.path / "capture.xpu")).items():
        shown = []
        for frame in stack.split(";"):
            function = re.fullmatch(r"(python_states\.py|<string>):(.*\.)?(\w+)", frame)
            if function or frame in (CUT, "call_python", "run_in"):
                shown.append(function[3] if function else frame)
            elif "greenlet" in frame and shown[-1:] != ["in greenlet"]:
                shown.append("in greenlet")
        samples[";".join(shown)] += count
    return samples, 0.9 * 999 * seconds


def matching(samples, end):
    return sum(count for stack, count in samples.items()
               if stack.endswith(end) or stack.endswith(f"{end};burn"))


def test_states_that_come_and_go():
    for version, python in interpreters().items():
        with Workspace() as work:
            samples, enough = record_states(work, "callbacks", python)
            right = matching(samples, "call_python;from_thread")
            total = sum(n for stack, n in samples.items() if "call_python" in stack)
            print(f"        {version}: {right} of {total} samples have the functions")
            expect(f"enough right ones with {version}: {samples}", right > max(enough, 0.95 * total),
                   True)


def test_an_interpreter_that_does_not_run():
    for version, python in interpreters().items():
        with Workspace() as work:
            samples, enough = record_states(work, "idle", python)
            right = matching(samples, "idle;burn_for")
            print(f"        {version}: {right} samples have the functions")
            expect(f"enough right ones with {version}: {samples}", right > enough, True)


def test_interpreters_that_call_each_other():
    for version, python in interpreters().items():
        with Workspace() as work:
            samples, enough = record_states(work, "nested", python)
            outer = "nested;outermost;run_in;between"
            right = (matching(samples, f"{outer};run_in;innermost;burn_for"),
                     matching(samples, f"{outer};burn_for"))
            print(f"        {version}: {right} samples have the functions")
            if version in ("3.9", "3.10"):  # the order is not known, which the stacks show
                wrong = sum(n for stack, n in samples.items() if "burn" in stack and CUT not in stack)
                expect(f"stacks that seem complete with {version}: {samples}", wrong < 5, True)
                continue
            expect(f"enough right ones with {version}: {samples}", min(right) > enough / 2, True)


def test_greenlets():
    found = {version: python for version, python in interpreters().items()
             if subprocess.run([python, "-c", "import greenlet"], capture_output=True).returncode == 0}
    if not found:
        skip("greenlet", "no interpreter has it")
    for version, python in found.items():
        with Workspace() as work:
            samples, enough = record_states(work, "greenlets", python)
            right = matching(samples, "in greenlet;task;alpha")
            print(f"        {version}: {right} samples have the functions")
            expect(f"enough right ones with {version}: {samples}", right > enough, True)
            # Where the native stack goes on below.
            if matching(samples, f"{CUT};in greenlet;task;alpha") > 0:
                expect_in("a note", "below a greenlet", report(str(work.path / "capture.xpu")))


ENGINE = """
void Py_Initialize(void);
int PyRun_SimpleStringFlags(const char* text, void* flags);
int run_script(const char* text) { Py_Initialize(); return PyRun_SimpleStringFlags(text, 0); }
"""
HOST = "int run_script(const char*); int main(int n, char** texts) { return run_script(texts[n - 1]); }"
SCRIPT = "def burn():\n  for i in range(10_000_000): i * 3\nburn()"


def test_an_interpreter_in_a_library_of_another_name():
    ask = ("import sys, sysconfig as s, os; "
           "print(os.path.join(s.get_config_var('LIBPL'), s.get_config_var('LIBRARY')), sys.base_prefix)")
    compiler = shutil.which("cc")
    tried = []
    for version, python in interpreters().items():
        archive, prefix = subprocess.run([python, "-c", ask], capture_output=True, text=True,
                                         check=True).stdout.split()
        archives = [path for path in (archive.replace(".a", "-pic.a"), archive)
                    if os.path.exists(path)]
        if not compiler or not archives:
            continue
        with Workspace() as work:
            engine = work.file("libengine.so")
            linked = subprocess.run(
                [compiler, "-shared", "-fPIC", "-o", engine, work.file("engine.c", ENGINE),
                 "-Wl,--whole-archive", archives[0], "-Wl,--no-whole-archive", "-lm", "-lz",
                 "-lexpat"], capture_output=True)
            if linked.returncode != 0:
                continue
            tried.append(version)
            host = work.file("host")
            subprocess.run([compiler, "-o", host, work.file("host.c", HOST), engine,
                            "-Wl,-rpath-link,.", f"-Wl,-rpath,{work.path}"], check=True)
            result = work.record("--cpu-only", "-F", "999", "--", host, SCRIPT,
                                 env={**os.environ, "PYTHONHOME": prefix})
            expect("status", (result.returncode, result.stdout), (0, ""))
            samples = folded("--mode", "cpu", "--unit", "samples", str(work.path / "capture.xpu"))
            right = sum(n for stack, n in samples.items()
                        if re.search("<string>:<module>.*;<string>:burn", stack))
            print(f"        {version}: {right} of {sum(samples.values())} samples have the function")
            expect(f"enough right ones with {version}", right > 0.8 * sum(samples.values()), True)
    if not tried:
        skip("libpython.a", "no interpreter's can be linked into a library")


def offset_of(path, name):
    """Where a file keeps a variable."""
    symbols = subprocess.run(["nm", "-D", path], check=True, capture_output=True, text=True).stdout
    address = next(int(line.split()[0], 16) for line in symbols.splitlines()
                   if line.endswith(f" {name}"))
    headers = subprocess.run(["readelf", "-lW", path], check=True, capture_output=True,
                             text=True).stdout
    for line in headers.splitlines():
        fields = line.split()
        if fields and fields[0] == "LOAD":
            offset, start, _, size = (int(field, 16) for field in fields[1:5])
            if start <= address < start + size:
                return address - start + offset
    raise AssertionError(f"{path} has no {name}")


def test_another_version_is_left_native():
    require_python()
    if version_of(PYTHON)[0] >= 13:
        skip("version", "from 3.13 on an interpreter says itself where its frames are")
    with Workspace() as work:
        old = work.file("python-old")
        shutil.copy(PYTHON, old)
        with open(old, "r+b") as file:
            file.seek(offset_of(old, "Py_Version"))
            file.write((0x030800f0).to_bytes(8, "little"))
        capture, _ = record(work, "--cpu-only", python=old, milliseconds=5)
        expect("code objects", capture.python_codes, [])
        (loss,) = [e for e in capture.events["losses"] if e["name"] == "python_not_walked"]
        expect("which", (loss["count"], loss["detail"]), (1, "Python 3.8"))


if __name__ == "__main__":
    main(globals())

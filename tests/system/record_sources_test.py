"""Source text in captures (--sources=hit): the lines around those that occur in stacks of Python and
native code, also of files that are gone at the end; and never what a program only says is a
source."""

import os
import pathlib
import shutil
import subprocess
import sys

import webdriver
from flame_graph_test import ESCAPE, Graph
from hostile_sources import OTHERS, SECRET, hostile_files
from simulated_gpu import simulated
from xpu_testing import (Skip, Workspace, expect, expect_in, main, others_may_enter, report,
                         require_recording, skip)

# Runs the same code under each of these file names.
PROGRAM = '''import ctypes
import os
import select
import sys
import time


def run(name):
    lines = ["\\n"] * 29 + ["def spin(until):\\n", "    import time\\n",
                          "    while time.monotonic() < until:\\n", "        sum(range(1000))\\n"]
    space = {}
    exec(compile("".join(lines), name, "exec"), space)
    space["spin"](time.monotonic() + 0.4)


def watch(name):
    libc = ctypes.CDLL(None)
    events = libc.inotify_init1(0)
    libc.inotify_add_watch(events, name.encode(), 0x10)  # IN_CLOSE_NOWRITE
    return events


def main():
    watched = {name: watch(name) for name in sys.argv[1:] if "gone" in name}
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        sum(range(1000))  # the line that runs
    for name in sys.argv[1:]:
        run(name)
    for name, events in watched.items():
        select.select([events], [], [], 60)  # nobody else reads it than the recorder
        os.unlink(name)


main()
'''
# One that other users can run, where there is one.
PYTHON = next((path for path in ("/usr/bin/python3", sys.executable) if os.path.exists(path)))
TEXT = "".join(f"line {number}\n" for number in range(1, 101))


def recorded(work, *names, options=(), script=None, env=None):
    script = script or work.file("program.py", PROGRAM)
    result = work.record("--cpu-only", "-F", "499", *options, "--", PYTHON, script,
                         *map(str, names), env=env)
    expect(f"status ({result.stderr})", result.returncode, 0)
    capture = work.capture()
    expect("other losses", capture.losses().keys() - {"sources_not_stored"}, set())
    # A sample of Python's start may name files of its own: some are links, which are not read.
    refused = {detail.split(": ", 1)[0] for detail in capture.details("sources_not_stored")}
    return capture.source_texts, {name for name in refused if not name.startswith("/usr/lib/")}


def test_lines_that_occur():
    require_recording()
    with Workspace() as work:
        gone = work.path / "gone.py"
        gone.write_text(TEXT)
        texts, refused = recorded(work, gone, options=["--sources=hit"])
        expect("refused", refused, set())
        texts = {text["path"]: text for text in texts}
        script = work.file("program.py")
        expect("files", {str(gone), script} <= texts.keys(), True)
        expect("first line", texts[script]["first_line"], 1)
        expect_in("line", "# the line that runs", texts[script]["text"])
        # The lines 30 to 33 occur; twenty around them.
        expect("first line", texts[str(gone)]["first_line"], 10)
        expect("text", texts[str(gone)]["text"], "".join(TEXT.splitlines(True)[9:53]))
        page = report("--flamegraph", work.file("capture.xpu"))
        expect_in("page", "# the line that runs", page)


def test_none_by_default():
    require_recording()
    with Workspace() as work:
        expect("texts", recorded(work)[0], [])
        expect("page", "# the line that runs" in report("--flamegraph", work.file("capture.xpu")),
               False)


def check_click(browser, work, name, wanted, *options):
    """The source of the widest frame whose name begins so."""
    graph = Graph(browser, work.file("capture.xpu"), work.path, *options)
    graph.show_all_frames()
    node = graph.run("""(() => {
        const {tree} = flameGraph;
        let widest = 0;
        for (let i = 1; i < tree.size; ++i) {
          if (!tree.nameOf(i).startsWith("NAME")) continue;
          if (tree.total[i] > tree.total[widest] || widest === 0) widest = i;
        }
        return widest;
    })()""".replace("NAME", name))
    browser.click(*graph.place(node))
    expect_in(f"source {options}", wanted, graph.text("source"))
    browser.press(ESCAPE)
    expect("hidden", graph.run("document.getElementById('source').hidden"), True)
    graph.check_quiet()


# Like what torch.compile makes: a function of the model calls a generated file, whose comment names
# the variables of another function, far from the one that is called.
MODEL = "\n" * 49 + """class Block:
    def forward(self, x):
        gate = silu(x)
        return gate


""" + "\n" * 100 + """class Model:
    def forward(self, call):
        return call()
"""
GENERATED = """class Runner:
    def call(self):
        # Topologically Sorted Source Nodes: [gate, mul], Original ATen: [aten.silu, aten.mul]
        stream0 = 0
        kernel.run(stream0)
"""
COMPILED = """import ctypes
import pathlib
import sys
import time

runtime = ctypes.CDLL("libcudart.so.13")
memory = ctypes.c_void_p()
assert runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0


class Kernel:
    def run(self, stream):
        runtime.cudaMemset(memory, 0, ctypes.c_size_t(256))


def load(name):
    space = {"kernel": Kernel()}
    exec(compile(pathlib.Path(name).read_text(), name, "exec"), space)
    return space


model, generated = load(sys.argv[1])["Model"](), load(sys.argv[2])["Runner"]()
for _ in range(20):
    model.forward(generated.call)
    time.sleep(0.02)
"""


def test_compiled_calls_show_lines_of_the_model():
    require_recording()
    with Workspace() as work:
        names = [work.file("model.py", MODEL), work.file("cgen.py", GENERATED)]
        result = work.record("--gpu-only", "--sources=hit", "--", PYTHON,
                             work.file("program.py", COMPILED), *names, env=simulated())
        expect(f"status ({result.stderr})", result.returncode, 0)
        texts = [text["text"] for text in work.capture().source_texts
                 if text["path"] == names[0]]
        expect("the line that runs, and the one that is fused",
               [sum(line in text for text in texts)
                for line in ("return call()", "gate = silu(x)")], [1, 1])
        for name in names:
            os.unlink(name)
        folded = report("--folded", "--python=only", work.file("capture.xpu"))
        expect_in("frames", "model.py:Model.forward;cgen.py:Runner.call;[fused] gate, mul: silu, "
                  "mul;[fused] model.py:52 gate = silu(x);program.py:Kernel.run", folded)
        webdriver.require_browser()
        with webdriver.Browser() as browser:
            check_click(browser, work, "[fused] model.py", "> " + 8 * " " + "gate = silu(x)",
                        "--mode=gpu", "--python=only")


def test_a_click_shows_the_source():
    require_recording()
    webdriver.require_browser()
    with Workspace() as work, webdriver.Browser() as browser:
        recorded(work, options=["--sources=hit"])
        for options, wanted in (((), "> def main():"),
                                (("--lines",), "> " + 8 * " " + "sum(range(1000))")):
            check_click(browser, work, "program.py:main", wanted, "--mode=cpu", "--python=only",
                        *options)


def test_hostile_names():
    require_recording()
    with Workspace() as work:
        tried = hostile_files(work, "py")
        names = [*tried, work.file("plain", SECRET), "../../../etc/shadow", *OTHERS]
        texts, refused = recorded(work, *names, options=["--sources=hit"])
        expect("files", {text["path"] for text in texts} & set(names), set())
        expect("secrets", SECRET.strip() in "".join(text["text"] for text in texts), False)
        # A sample of the loader may name a file of the C library's.
        expect("refused", {name for name in refused if name.startswith(str(work.path))}, set(tried))
        expect("others", refused & {"../../../etc/shadow", *OTHERS}, set())


def test_files_that_the_user_may_not_read():
    require_recording()
    if os.geteuid() != 0:
        skip("root", "only root can record as another user")
    if not others_may_enter(pathlib.Path(PYTHON).resolve().parent):
        raise Skip(f"others may not enter the directory of {PYTHON}")
    with Workspace() as work:
        work.path.chmod(0o755)
        secret = work.path / "secret.py"
        secret.write_text(SECRET + TEXT)
        secret.chmod(0o600)
        shared = work.path / "shared.py"
        shared.write_text(TEXT)
        shared.chmod(0o644)
        texts, _ = recorded(work, secret, shared, options=["--sources=hit", "--user", "nobody"])
        paths = {text["path"] for text in texts}
        expect("files", (str(shared) in paths, str(secret) in paths), (True, False))
        texts, _ = recorded(work, secret, options=["--sources=hit"])
        expect("as root", str(secret) in {text["path"] for text in texts}, True)


CALLER, GROUP = 12345, 12346
WITHOUT_SUDO = {name: value for name, value in os.environ.items()
                if name not in ("SUDO_UID", "SUDO_GID")}
WITH_SUDO = {**WITHOUT_SUDO, "SUDO_UID": str(CALLER), "SUDO_GID": str(GROUP)}


def file_in_a_home(work, name, text, user, group, mode):
    """A file in a home of mode 0700. Root needs capabilities to enter it, its owner does not."""
    if os.geteuid() != 0:
        skip("root", "only root is called by sudo")
    home = work.path / "home"
    if not home.exists():
        work.path.chmod(0o755)
        home.mkdir(0o700)
        os.chown(home, CALLER, CALLER)
    path = home / name
    path.write_text(text)
    os.chown(path, user, group)
    path.chmod(mode)
    return str(path)


def test_root_reads_as_the_user_who_called_sudo():
    require_recording()
    with Workspace() as work:
        own = file_in_a_home(work, "own.py", TEXT, CALLER, CALLER, 0o600)
        shared = file_in_a_home(work, "shared.py", TEXT, 0, GROUP, 0o640)
        secret = file_in_a_home(work, "secret.py", SECRET + TEXT, 0, 0, 0o600)
        names = {own, shared, secret}
        for what, wanted, env, options in (
                ("sudo", {own, shared}, WITH_SUDO, ()),
                ("no sudo", set(), WITHOUT_SUDO, ()),
                ("malformed", set(), {**WITH_SUDO, "SUDO_UID": f"{CALLER}x"}, ()),
                ("no group", set(), {**WITHOUT_SUDO, "SUDO_UID": str(CALLER)}, ()),
                ("a program of nobody", set(), WITH_SUDO, ("--user", "nobody"))):
            texts, refused = recorded(work, *names, options=["--sources=hit", *options], env=env)
            expect(f"files: {what}", {text["path"] for text in texts} & names, wanted)
            expect(f"refused: {what}", refused & names, names - wanted)
            expect(f"secrets: {what}", SECRET.strip() in "".join(text["text"] for text in texts), False)


# Its debug information says that Spin is in lines 30 to 34 of another file.
NATIVE_PROGRAM = """#include <stdlib.h>
#include <time.h>
static unsigned long long value = 1;
#line 30 "NAME"
static void __attribute__((noinline)) Spin(void) {
  for (int i = 0; i < 100000; ++i) {
    value = value * 3 + 1;
  }
}
int main(int count, char **arguments) {
  const double seconds = count > 1 ? atof(arguments[1]) : 0.4;
  while (clock() < seconds * CLOCKS_PER_SEC) Spin();
  return value == 0;
}
"""


def compiled(work, source):
    """A program that says it is made from this file."""
    compiler = shutil.which("gcc")
    if compiler is None:
        skip("gcc", "no compiler")
    text = work.file("native.c", NATIVE_PROGRAM.replace("NAME", str(source)))
    program = str(work.path / "native")
    subprocess.run([compiler, "-O1", "-g", "-o", program, text], check=True)
    return program


def native_texts(work, program, *options, env=None):
    result = work.record("--cpu-only", "-F", "499", *options, "--", program, env=env)
    expect(f"status ({result.stderr})", result.returncode, 0)
    capture = work.capture()
    return {text["path"]: text for text in capture.source_texts}, capture.losses()


def test_lines_of_native_code():
    require_recording()
    with Workspace() as work:
        source = work.file("elsewhere.c", TEXT)
        program = compiled(work, source)
        texts, losses = native_texts(work, program, "--sources=hit")
        expect("losses", losses, {})
        expect("files", list(texts), [source])
        # 20 lines before the first that occurs and after the last. Most samples are in the loop, lines
        # 31 and 32. Line 30 is just before the loop's first instruction, which may be a return address
        # for all the recorder knows; main is sampled in line 37.
        first = texts[source]["first_line"]
        expect(f"first line: {first}", first in (10, 11), True)
        lines = texts[source]["text"].splitlines()
        expect("lines", lines, TEXT.splitlines()[first - 1:first - 1 + len(lines)])
        expect(f"last line: {lines[-1]}", 52 <= first - 1 + len(lines) <= 57, True)
        webdriver.require_browser()
        with webdriver.Browser() as browser:
            check_click(browser, work, "Spin", "> line 3", "--mode=cpu", "--lines")  # 31 or 32, its loop
        # Lines come from debug information, which --symbols=slice leaves out.
        texts, losses = native_texts(work, program, "--sources=hit", "--symbols=slice")
        expect("without lines", (texts, losses), ({}, {}))


def test_native_code_names_a_file_of_another_user():
    require_recording()
    if os.geteuid() != 0:
        skip("root", "only root can record as another user")
    with Workspace() as work:
        work.path.chmod(0o755)
        secret = work.path / "secret.c"
        secret.write_text(SECRET * 100)
        secret.chmod(0o600)
        program = compiled(work, secret)
        texts, losses = native_texts(work, program, "--sources=hit", "--user", "nobody")
        expect("as nobody", (texts, losses), ({}, {"sources_not_stored": 1}))
        texts, losses = native_texts(work, program, "--sources=hit")
        expect("as root", (list(texts), losses), ([str(secret)], {}))


def test_native_code_names_a_file_of_the_user_who_called_sudo():
    require_recording()
    with Workspace() as work:
        source = file_in_a_home(work, "own.c", TEXT, CALLER, CALLER, 0o600)
        program = compiled(work, source)
        texts, losses = native_texts(work, program, "--sources=hit", env=WITH_SUDO)
        expect("with sudo", (list(texts), losses), ([source], {}))
        expect_in("text", "line 31\n", texts[source]["text"])
        texts, losses = native_texts(work, program, "--sources=hit", env=WITHOUT_SUDO)
        expect("without", (texts, losses), ({}, {"sources_not_stored": 1}))


if __name__ == "__main__":
    main(globals())

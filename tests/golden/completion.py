"""Shells complete what the programs take: each option of --help, each fixed value, captures.

completion.py DIRECTORY PROGRAM...: DIRECTORY has the files of bash and zsh. Line editors are typed into
on a pseudo-terminal."""

import contextlib
import functools
import os
import pathlib
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

from xpu_testing import Workspace, expect, expect_in, main, skip

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "lint"))

from man import options_of_help  # noqa: E402

DIRECTORY = pathlib.Path(sys.argv[1]).resolve()
PROGRAMS = {pathlib.Path(path).name: os.path.abspath(path) for path in sys.argv[2:]}
del sys.argv[1:]

# Completes the words of a command line, the last of which is the one with the cursor.
REPLIES = """
set -u
. "$1/${2##*/}"; shift
read -r _ _ function _ < <(complete -p "$1")
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
"$function" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""


def replies(*words, cwd="/"):
    result = subprocess.run(["bash", "-c", REPLIES, "bash", str(DIRECTORY), *words], cwd=cwd,
                            capture_output=True, text=True)
    expect(f"stderr for {words}", result.stderr, "")
    return set(result.stdout.split("\n")) - {""}


@functools.cache
def replies_elsewhere(program):
    with tempfile.TemporaryDirectory() as empty:
        return replies(program, "", cwd=empty)


def choices_of(program, option):
    """What bash offers after the option and nowhere else, except users."""
    if option == "--user":
        return set()
    with tempfile.TemporaryDirectory() as empty:
        return replies(program, option, "", cwd=empty) - replies_elsewhere(program)


def test_every_option_is_completed():
    for program, path in PROGRAMS.items():
        expect(program, replies(program, "-"), options_of_help(path))
        expect("the rest of a word", replies(program, "--no-p"),
               {o for o in options_of_help(path) if o.startswith("--no-p")})


def takes(*command):
    """Whether it is answered (--help), or the next mistake, an unknown option or no such capture,
    is the one that is reported."""
    with tempfile.TemporaryDirectory() as empty:
        result = subprocess.run(command, cwd=empty, capture_output=True, text=True)
    return "--nothing" in result.stderr or result.returncode in (0, 1)


def test_every_value_is_taken():
    counts = {}
    others = {"xpu-record": [["--nothing"], ["--check", "--nothing"]],
              "xpu-report": [["-o", "/x/x", "/x/y"], ["--folded"], ["--top"], ["--diff", "x"],
                             ["--folded", "--mode", "memory"]]}
    for program, path in PROGRAMS.items():
        for option in sorted(o for o in options_of_help(path) if o.startswith("--")):
            for value in choices_of(program, option):
                begun = {"fifo:": "fifo:x", "nvtx:": "nvtx:x"}.get(value, value)
                expect(f"{option}={value} is taken",
                       any(takes(path, f"{option}={begun}", *more) for more in others[program]),
                       True)
                counts[option] = counts.get(option, 0) + 1
    expect("options with fixed values", sorted(counts),
           ["--by", "--call-graph", "--capture-range", "--control", "--correlate",
            "--cuda-graph-trace", "--event", "--export", "--format", "--graph-stacks", "--help",
            "--import", "--kernel-names", "--launch-stacks", "--memory", "--mode", "--python", "--sources",
            "--symbols", "--table", "--unit"])


def test_values():
    expect("--mode", replies("xpu-report", "--mode", ""),
           {"merge", "gpu", "cpu", "idle", "probe", "off", "wall", "critical", "memory"})
    expect("--mode=", replies("xpu-report", "--mode", "="),
           {"merge", "gpu", "cpu", "idle", "probe", "off", "wall", "critical", "memory"})
    expect("--mode=g", replies("xpu-report", "--mode", "=", "g"), {"gpu"})
    expect("--help", replies("xpu-record", "--help", ""),
           {"control", "cpu", "gpu", "output", "general", "all"})
    expect("a list", replies("xpu-record", "-e", "cycles,context-s"), {"cycles,context-switches"})
    expect("a number", replies("xpu-record", "-F", ""), set())


def test_files():
    with Workspace() as work:
        for name in ["a.xpu", "b c.xpu", "d.txt"]:
            work.file(name, "")
        (work.path / "folder").mkdir()
        captures = {"a.xpu", "b c.xpu", "folder"}
        expect("captures", replies("xpu-report", "--folded", "", cwd=work.path), captures)
        expect("of --diff", replies("xpu-report", "--diff", "", cwd=work.path), captures)
        expect("others", replies("xpu-report", "--import", "cupti-text", "d", cwd=work.path),
               {"d.txt"})
        expect("output", replies("xpu-report", "-o", "d", cwd=work.path), {"d.txt"})
        expect("folders", replies("xpu-report", "--symfs", "", cwd=work.path), {"folder"})


def test_the_recorded_program():
    expect_in("a program", "true", replies("xpu-record", "-F", "99", "tru"))
    expect_in("behind --", "true", replies("xpu-record", "--uprobe", "libc", ":", "malloc", "--",
                                           "tru"))
    expect_in("behind a value", "true", replies("xpu-record", "--output", "=", "x.xpu", "tru"))
    with Workspace() as work:
        work.file("input", "")
        expect("its words", replies("xpu-record", "-q", "cat", "-o", "inp", cwd=work.path),
               {"input"})
        expect("its options", replies("xpu-record", "cat", "--cpu", cwd=work.path), set())


@contextlib.contextmanager
def shell(*command, cwd):
    """Types into a shell: yields type(text, wanted), which waits until `wanted` is on its screen."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        os.environ.update(PS1="$ ", TERM="dumb", HISTFILE="/dev/null", HOME=str(cwd), ENV="")
        os.execvp(command[0], command)
    screen = ""

    def type_text(text, wanted):
        nonlocal screen
        screen = ""
        os.write(terminal, text.encode())
        end = time.monotonic() + 60
        while wanted not in screen:
            if not select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r}: {wanted!r} is not in {screen!r}")
            screen += os.read(terminal, 4096).decode(errors="replace")

    try:
        yield type_text
    finally:
        os.close(terminal)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def type_some(type_text):
    for program in PROGRAMS:
        expect_in("made", program, os.listdir(DIRECTORY))
    type_text("xpu-report --flam\t", "--flamegraph ")
    type_text("--mod\t", "--mode")
    type_text("\x15xpu-report --folded --mode id\t", "idle ")
    type_text("\x15xpu-report only-\t", "only-one.xpu ")
    type_text("\x15xpu-record -e context-s\t", "context-switches")
    type_text("\x15xpu-record --launch-stacks=upr\t", "uprobe ")
    type_text("\x15xpu-record -o \"only-o\t", "only-one.xpu")


def test_bash_on_a_terminal():
    with Workspace() as work:
        work.file("only-one.xpu", "")
        with shell("bash", "--norc", "--noprofile", "-i", cwd=work.path) as type_text:
            type_text(f"for f in {DIRECTORY}/xpu-*; do [ -x $f ] || . $f; done; echo rea''dy\n",
                      "ready")
            type_some(type_text)


def require_zsh():
    if not shutil.which("zsh"):
        skip("zsh", "no zsh here")


# The arguments of _arguments: one specification each.
SPECIFICATIONS = """
_arguments() { print -rl -- "$@" }
. "$1"
"""


def test_zsh_has_every_option():
    require_zsh()
    for program, path in PROGRAMS.items():
        file = DIRECTORY / f"_{program}"
        subprocess.run(["zsh", "-n", str(file)], check=True)
        lines = subprocess.run(["zsh", "-fc", SPECIFICATIONS, "zsh", str(file)], check=True,
                               capture_output=True, text=True).stdout.splitlines()
        options = set()
        for line in lines:
            behind = line[line.index(")") + 1:] if line.startswith("(") else line.lstrip("*")
            if behind.startswith("-") and behind != "-S":
                options.add(behind.split("[")[0].rstrip("=+"))
        expect(program, options, options_of_help(path))


def test_zsh_on_a_terminal():
    require_zsh()
    with Workspace() as work:
        work.file("only-one.xpu", "")
        with shell("zsh", "-f", "-i", cwd=work.path) as type_text:
            type_text(f"fpath=({DIRECTORY} $fpath); autoload -U compinit; compinit -u -D; bindkey -e; "
                      "echo rea''dy\n", "ready")
            type_some(type_text)


if __name__ == "__main__":
    main(globals())

"""Source text in captures (--sources=hit): the lines around those that occur in Python stacks, also
of files that are gone at the end; and never what a program only says is a source."""

import os
import pathlib
import sys

from xpu_testing import Workspace, expect, expect_in, main, report, require_recording

# Runs the same code under each of these file names.
PROGRAM = '''import os
import sys
import time


def run(name):
    lines = ["\\n"] * 29 + ["def spin(until):\\n", "    import time\\n",
                          "    while time.monotonic() < until:\\n", "        sum(range(1000))\\n"]
    space = {}
    exec(compile("".join(lines), name, "exec"), space)
    space["spin"](time.monotonic() + 0.4)


def main():
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        sum(range(1000))  # the line that runs
    for name in sys.argv[1:]:
        run(name)
    for name in sys.argv[1:]:
        if "gone" in name:
            os.unlink(name)


main()
'''
SECRET = "secret:that:nobody:may:see\n"
TEXT = "".join(f"line {number}\n" for number in range(1, 101))


def recorded(work, *names, options=(), script=None):
    script = script or work.file("program.py", PROGRAM)
    result = work.record("--cpu-only", "-F", "499", *options, "--", sys.executable, script,
                         *map(str, names))
    expect(f"status ({result.stderr})", result.returncode, 0)
    return work.capture()


def test_lines_that_occur():
    require_recording()
    with Workspace() as work:
        gone = work.path / "gone.py"
        gone.write_text(TEXT)
        capture = recorded(work, gone, options=["--sources=hit"])
        texts = {text["path"]: text for text in capture.source_texts}
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
        capture = recorded(work)
        expect("texts", capture.source_texts, [])
        expect("page", "# the line that runs" in report("--flamegraph", work.file("capture.xpu")),
               False)


def hostile_names(work):
    names = {}

    def place(name):
        names[name] = str(work.path / name)
        return work.path / name
    os.mkfifo(place("fifo.py"))
    place("huge.py").write_bytes(b"x = 1\n" * 400_000)
    place("binary.py").write_bytes(b"x = 1\n\0" + SECRET.encode())
    place("link.py").symlink_to(work.file("secret", SECRET))
    place("shadow.py").symlink_to("/etc/shadow")
    place("directory.py").mkdir()
    place("null.py").symlink_to("/dev/null")
    pathlib.Path(work.file("plain", SECRET))
    return [*names.values(), work.file("plain"), "/etc/shadow", "/proc/self/environ",
            "/dev/zero", "../../../etc/shadow", "/proc/1/environ"]


def test_hostile_names():
    require_recording()
    with Workspace() as work:
        names = hostile_names(work)
        capture = recorded(work, *names, options=["--sources=hit"])
        expect("files", {text["path"] for text in capture.source_texts} & set(names), set())
        expect("secrets", SECRET.strip() in "".join(t["text"] for t in capture.source_texts), False)
        expect_in("counted", "sources_not_stored", capture.losses())
        whole = (work.path / "capture.xpu").read_bytes()
        expect("root's password", b"root:" in whole and b"shadow" not in whole, False)


def test_files_that_the_user_may_not_read():
    require_recording()
    if os.geteuid() != 0:
        return
    with Workspace() as work:
        work.path.chmod(0o755)
        secret = work.path / "secret.py"
        secret.write_text(SECRET + TEXT)
        secret.chmod(0o600)
        shared = work.path / "shared.py"
        shared.write_text(TEXT)
        shared.chmod(0o644)
        capture = recorded(work, secret, shared, options=["--sources=hit", "--user", "nobody"])
        paths = {text["path"] for text in capture.source_texts}
        expect("files", (str(shared) in paths, str(secret) in paths), (True, False))
        capture = recorded(work, secret, options=["--sources=hit"])
        expect("as root", str(secret) in {t["path"] for t in capture.source_texts}, True)


if __name__ == "__main__":
    main(globals())

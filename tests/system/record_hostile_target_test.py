"""A program that does what it can to the recorder, which is root, does it no harm.

Each test also sees that the program ended as it does alone: that it was not held up for ever, and
that the capture is whole.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, recorder, report,
                         require_recording, skip)

MEGABYTE = 1 << 20
MOST_MEMORY = 700 * MEGABYTE  # of the recorder, which takes some 60 without unwind tables


def puppet():
    return find("tests/system/xpu_hostile_puppet")


def library(work, pad_bytes=0):
    """A library of the test's own, larger than what would be read whole."""
    path = work.file("libown.so")
    shutil.copy(find("tests/fuzz/libseed_library.so"), path)
    os.truncate(path, os.path.getsize(path) + pad_bytes)
    return path


class Recorded:
    def __init__(self, work, *command, options=("--cpu-only",), most_memory=MOST_MEMORY):
        """Runs the recorder, and notes the most memory that it took."""
        self.peak = 0
        process = subprocess.Popen(
            [recorder(), "-F", "997", *options, "-o", work.file("capture.xpu"), "--", puppet(),
             *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work.path)
        watcher = threading.Thread(target=self.watch, args=(process,))
        watcher.start()
        try:
            self.stdout, self.stderr = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise AssertionError(f"{command}: the recorder hangs") from None
        finally:
            watcher.join()
        self.status = process.returncode
        expect(f"{command}: least memory seen", self.peak > 0, True)
        expect(f"{command}: {self.peak} bytes", self.peak < most_memory, True)

    def watch(self, process):
        path = pathlib.Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            try:
                for line in path.read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        self.peak = max(self.peak, int(line.split()[1]) * 1024)
            except (OSError, ValueError):
                pass
            time.sleep(0.02)


def functions(work):
    """The names of the capture alone: the files it names may lie."""
    return report("--folded", "--mode=cpu", "--unit=samples", work.file("capture.xpu"))


def test_a_library_that_is_cut_while_it_is_read():
    require_recording()
    for _ in range(5):
        with Workspace() as work:
            recorded = Recorded(work, "cut", library(work, 80 * MEGABYTE),
                                options=("--cpu-only", "--symbols=full"))
            os.kill(int(recorded.stdout), signal.SIGKILL)
            expect(f"status ({recorded.stderr})", recorded.status, 0)
            expect("has ended", len(work.capture().recording_end), 1)


def test_a_library_whose_path_is_something_else_now():
    require_recording()
    # A device whose opening acts would be worse than one that has no end.
    for target in ["fifo", "/dev/zero", "/proc/kcore", "/proc/self/mem", "/etc/shadow"]:
        with Workspace() as work:
            recorded = Recorded(work, "replace", library(work), target)
            expect(f"{target}: status ({recorded.stderr})", recorded.status, 0)
            # The file itself is still mapped, and found by that.
            expect_in(target, "Choose", functions(work))


def test_a_library_of_a_terabyte():
    require_recording()
    with Workspace() as work:
        # To read it all would take longer than PATIENCE_S.
        recorded = Recorded(work, "grow", library(work))
        expect(f"status ({recorded.stderr})", recorded.status, 0)


def test_code_maps_of_other_users_are_not_read():
    require_recording()
    if os.getuid() != 0:
        skip("root", "files of another user are made by root")
    with Workspace() as work:
        for kind, path, name in [("file", "", "own_function"), ("fifo", "", None),
                                 ("link", work.file("secret"), None), ("user", "4711", None)]:
            recorded = Recorded(work, "code", kind, path)
            expect(f"{kind}: status ({recorded.stderr})", recorded.status, 0)
            os.unlink(recorded.stdout.strip())
            names = functions(work)
            expect(f"{kind}: secret", "secret_function" in names, False)
            expect(kind, "own_function" in names, name is not None)


def test_max_size_bounds_the_names_of_generated_code():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "code", "many", options=("--cpu-only", "--max-size=1M"))
        os.unlink(recorded.stdout.strip())
        expect(f"status ({recorded.stderr})", recorded.status, 0)
        size = os.path.getsize(work.file("capture.xpu"))
        expect(f"{size} bytes", size < 2 * MEGABYTE, True)
        expect("counted", work.capture().ledger()["generated_code_cut"], 1)


def test_a_hole_in_a_code_map_is_not_read():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "code", "hole")
        os.unlink(recorded.stdout.strip())
        expect(f"status ({recorded.stderr})", recorded.status, 0)
        expect_in("name beyond the hole", "own_function", functions(work))


def test_names_cannot_control_the_terminal():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "names", options=("--cpu-only", "-v"))
        os.unlink(recorded.stdout.strip())
        expect("status", recorded.status, 0)
        expect("to standard error", "\x1b" in recorded.stderr, False)
        # In files too: a view is often shown by other programs.
        expect_in("frame", "\\x1b]0:title\\x07\\xc2\\x9b2Jname", functions(work))
        for view in [(), ("--top",), ("--script",), ("--folded", "--mode=cpu"), ("--dump",),
                     ("--top", "--format=csv"), ("--top", "--format=json")]:
            shown = on_terminal(work, *view)
            for code in ["\x1b[2J", "\x1b]", "\x07", "\x9b"]:
                expect(f"{view} writes {code!r}", code in shown, False)
            escape = "\\u009b" if "--format=json" in view else "\\xc2\\x9b"
            expect_in(f"{view}", escape + "2Jname", shown)


def on_terminal(work, *options):
    """What xpu-report writes to a terminal."""
    script = shutil.which("script")
    if script is None:
        skip("script", "no script(1) to have a terminal")
    command = " ".join([find("report/xpu-report"), "--no-pager", *options,
                        work.file("capture.xpu")])
    return subprocess.run([script, "-qec", command, "/dev/null"], check=True, capture_output=True,
                          stdin=subprocess.DEVNULL,
                          env=dict(os.environ, TERM="xterm")).stdout.decode(errors="replace")


def test_messages_that_lie():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "wire", "garbage", options=())
        expect(f"status ({recorded.stderr})", recorded.status, 3)
        expect("counted", work.capture().ledger()["wire_invalid"] >= 20, True)


def test_a_flood_of_messages():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "wire", "flood", options=())
        expect(f"status ({recorded.stderr})", recorded.status, 3)
        report(work.file("capture.xpu"))


def test_a_crowd_that_fills_the_memory():
    """They have one bound together, and a newcomer has room for its stacks."""
    require_recording()
    with Workspace() as work:
        # 1 GiB, and what the recorder takes itself.
        recorded = Recorded(work, "wire", "crowd", options=("--gpu-only",),
                            most_memory=1600 * MEGABYTE)
        expect(f"status ({recorded.stderr})", recorded.status, 3)
        capture = work.capture()
        launches = [launch for launch in capture.launch_stacks if launch["instance"] == 100]
        expect("launches of the newcomer", [len(launch["stack"]) for launch in launches],
               [100] * 100)
        ledger = capture.ledger()
        expect("counted", ledger.get("process_memory_full", 0) > 10_000, True)
        expect("without sense", ledger.get("wire_invalid", 0), 0)


def test_a_process_that_connects_repeatedly():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "wire", "many", options=())
        expect(f"status ({recorded.stderr})", recorded.status, 3)
        expect("rings", int(recorded.stdout), 16)
        # 84 are refused, 16 did nothing with their ring.
        expect("not reached", work.capture().ledger()["process_not_reached"], 100)


def test_a_process_that_claims_to_be_another():
    require_recording()
    with Workspace() as work:
        recorded = Recorded(work, "wire", "twins", options=())
        expect(f"status ({recorded.stderr})", recorded.status, 3)
        expect("who got rings", recorded.stdout.split(), ["1", "0"])
        expect("instances", len({p["instance"] for p in work.capture().gpu_processes}), 1)


if __name__ == "__main__":
    main(globals())

"""What the system tests share: finding the binaries, recording, reading captures, skipping.

XPU_BUILD_DIR is a build tree; XPU_BIN_DIR, where it is set, is the bin directory of an installed xpu
(then the test helpers are looked for beside it too). XPU_TEST_STRICT=root,gpu turns a skip for the
lack of that ability into a failure.

Root's tests run programs as other users, which may not enter a build tree below a home directory
of mode 0700 or read one made with umask 077: there find() returns copies that everybody can run.
"""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

# Tests set what they need; files that they make without a mode are for everybody to read.
os.umask(0o022)

SKIP = 77
# Ends what hangs, well before CTest does. Nothing is expected to take a certain time: on a loaded
# machine a second can become a minute.
PATIENCE_S = 600
# format/stack.h
STACK_TRUNCATED = 2
STACK_COMPLETE = 32
STACK_TABLE_NOT_READY = 64


class Skip(Exception):
    """Ends the test that raises it; raised elsewhere, as in what all of them need, the program."""


def end_program(kind, error, trace):
    if not issubclass(kind, Skip):
        sys.__excepthook__(kind, error, trace)
        return
    print(f"skipped: {error}", flush=True)
    sys.exit(SKIP)


# Here, so that no program of tests has to catch what it calls before main().
sys.excepthook = end_program


def skip(ability, reason):
    if ability in os.environ.get("XPU_TEST_STRICT", "").split(","):
        raise AssertionError(f"{ability} is demanded, but: {reason}")
    raise Skip(reason)


def others_may_enter(directory):
    """Whether it and all above it let other users pass."""
    return all(os.stat(place).st_mode & 0o011 == 0o011 for place in (directory, *directory.parents))


def others_may_run(path):
    """Whether other users may do with the file what its owner may: read and run it."""
    mode = os.stat(path).st_mode
    return others_may_enter(path.parent) and mode == with_modes_for_others(mode)


def with_modes_for_others(mode):
    may = mode >> 6 & 0o5
    return mode | may << 3 | may


@functools.cache
def temporary_directory():
    """Where other users can run what tests put there, and set-user-id bits count, if there is such
    a directory: $TMPDIR may be private, and /tmp mounted noexec or nosuid."""
    def shortcomings(directory):
        flags = os.statvfs(directory).f_flag
        return (not others_may_enter(directory), bool(flags & os.ST_NOEXEC),
                bool(flags & os.ST_NOSUID))

    directories = [pathlib.Path(directory).resolve()
               for directory in (tempfile.gettempdir(), "/tmp", "/var/tmp") if os.path.isdir(directory)]
    return min((directory for directory in directories if os.access(directory, os.W_OK)), key=shortcomings)


def require_set_user_id():
    """Skips where the system ignores set-user-id bits and capabilities of files that tests make."""
    if os.statvfs(temporary_directory()).f_flag & os.ST_NOSUID:
        skip("suid", f"{temporary_directory()} is mounted nosuid")


@functools.cache
def copies_of(root):
    """A directory for copies of parts of `root`, as long as this process lives: its libraries are
    there already, for programs find them by their place beside them."""
    copies = pathlib.Path(tempfile.mkdtemp(prefix="xpu-test-", dir=temporary_directory()))
    copies.chmod(0o755)
    atexit.register(shutil.rmtree, copies, ignore_errors=True)
    for library in [*root.rglob("*.so"), *root.rglob("*.so.*")]:
        copy_for_others(library, copies / library.relative_to(root))
    return copies


def copy_for_others(source, target):
    """Other threads and processes see the whole copy or none. cp writes it: a program cannot be
    executed as long as anybody has it open for writing, which would be, beside this process, each
    child that another thread forks meanwhile, until its exec. It belongs to this user: root's
    recorder loads no library that another one can write."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        part = target.with_name(f"{target.name}.{threading.get_native_id()}")
        subprocess.run(["cp", "-d", "--preserve=mode,timestamps", source, part], check=True)
        if not part.is_symlink():
            part.chmod(with_modes_for_others(part.stat().st_mode))
        with contextlib.suppress(FileExistsError):
            os.link(part, target, follow_symlinks=False)
        part.unlink()
    return target


def places_of(*names):
    """(root, path) for each place where a path below the build tree or the bin directory may be."""
    places = []
    if "XPU_BIN_DIR" in os.environ:
        binaries = pathlib.Path(os.environ["XPU_BIN_DIR"])
        places += [(binaries.parent, binaries / pathlib.Path(name).name) for name in names]
    if "XPU_BUILD_DIR" in os.environ:
        build = pathlib.Path(os.environ["XPU_BUILD_DIR"])
        places += [(build, build / name) for name in names]
    return places


def is_built(name):
    return any(place.exists() for _, place in places_of(name))


def find(*names, own=False):
    """The first of these paths below the build tree or the bin directory. `own`: a copy of it,
    beside copies of the libraries: what is done to the files is done to no other test's."""
    places = places_of(*names)
    for root, place in places:
        if place.exists():
            root, place = root.resolve(), place.resolve()
            hidden = os.geteuid() == 0 and not others_may_run(place)
            if (own or hidden) and place.is_relative_to(root):
                place = copy_for_others(place, copies_of(root) / place.relative_to(root))
            return str(place)
    looked_for = ", ".join(str(place) for _, place in places)
    raise AssertionError(f"not built: {looked_for or 'XPU_BUILD_DIR is not set'}")


def recorder(env=None):
    """The shipped xpu-record; if the environment has switches for tests, the one that reads them
    (recorder_for_tests.cpp)."""
    switches = {"XPU_TEST_DROP", "XPU_TEST_WITHOUT", "XPU_TEST_TABLE_DELAY_MS",
                "XPU_TEST_SOURCE", "XPU_TEST_DEVICE_BUFFERS", "XPU_TEST_HANG_MS", "XPU_TEST_GPU_LIBRARIES"} & {*os.environ, *(env or {})}
    return find("record/xpu-record-for-tests" if switches else "record/xpu-record")


def workload(name, own=False):
    return find(f"tests/workloads/{name}", own=own)


def own_mounts(*namespaces):
    """The command that gives a program mounts of its own, and these namespaces. Skips where there are
    none: in containers that forbid it, and in a chroot whose directory is not a mount."""
    command = ["unshare", "--mount", *namespaces]
    probe = subprocess.run([*command, "true"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip("mount", probe.stderr.strip())
    return command


@functools.cache
def missing_for_recording():
    """What --check misses; None: nothing that a recording needs."""
    check = subprocess.run([recorder(), "--check"], capture_output=True, text=True)
    if check.returncode == 0:
        return None
    return "; ".join(line for line in check.stdout.splitlines() if line.startswith("missing"))


def require_recording():
    """Skips where this user or this kernel cannot record."""
    if (missing := missing_for_recording()) is not None:
        skip("root", missing)


# IsAboutStacks (format/losses.h): in the loader's first instructions for instance, a stack may end
# early in any recording.
ABOUT_STACKS = {"stack_truncated", "stack_unreadable", "stack_no_rule", "stack_rule_unsupported",
                "stack_bad_return", "stack_stuck", "stack_not_called", "unwind_table_not_ready",
                "unwind_table_failed", "python_truncated", "python_unreadable",
                "python_code_missing", "python_not_walked"}


class Capture:
    """Every event of a capture as a dictionary, by list."""

    last = None  # that was read

    def __init__(self, path):
        text = subprocess.run([find("tests/system/xpu_capture_json"), str(path)], check=True,
                              capture_output=True, text=True).stdout
        self.events = {}
        for line in text.splitlines():
            event = json.loads(line)
            self.events.setdefault(event.pop("list"), []).append(event)
        Capture.last = self

    def __getattr__(self, name):
        return self.events.get(name, [])

    def losses(self):
        """The recorder's ledger, without the reasons why stacks are incomplete."""
        return {name: count for name, count in self.ledger().items() if name not in ABOUT_STACKS}

    def ledger(self):
        totals = {}
        for loss in self.events.get("losses", []):
            totals[loss["name"]] = totals.get(loss["name"], 0) + loss["count"]
        return totals

    def details(self, name):
        """What the ledger says of the losses of one kind, in its order."""
        return [loss["detail"] for loss in self.events.get("losses", []) if loss["name"] == name]

    def mapping_at(self, pid, address, time_ns):
        """The newest mapping that holds the address at that time; a fork inherits them."""
        while pid is not None:
            found = None
            for mapping in self.mappings:
                if (mapping["pid"] == pid and mapping["time_ns"] <= time_ns and
                        0 <= address - mapping["start_address"] < mapping["size_bytes"] and
                        (found is None or mapping["time_ns"] > found["time_ns"])):
                    found = mapping
            if found:
                return found
            pid, time_ns = self.parent_at_fork(pid, time_ns)
        return None

    def parent_at_fork(self, pid, time_ns):
        for event in self.process_events:
            if (event["kind"] == 1 and event["pid"] == pid and event["tid"] == pid and
                    event["parent_pid"] != pid and event["time_ns"] <= time_ns):
                return event["parent_pid"], event["time_ns"]
        return None, 0


class Symbols:
    """Functions of an ELF file by address, read with nm."""

    def __init__(self, path):
        self.symbols = []
        self.segments = []
        listing = subprocess.run(["nm", "-C", "--defined-only", "-S", path], check=True,
                                 capture_output=True, text=True).stdout
        for line in listing.splitlines():
            fields = line.split(None, 3)
            if len(fields) == 4 and fields[2] in "tTwW":
                self.symbols.append((int(fields[0], 16), int(fields[1], 16), fields[3]))
        headers = subprocess.run(["readelf", "-lW", path], check=True, capture_output=True,
                                 text=True).stdout
        for line in headers.splitlines():
            fields = line.split()
            if fields and fields[0] == "LOAD":
                self.segments.append(tuple(int(f, 16) for f in (fields[1], fields[2], fields[4])))

    @functools.cache
    def name_at(self, file_offset):
        for offset, address, size in self.segments:
            if offset <= file_offset < offset + size:
                link_address = file_offset - offset + address
                for start, length, name in self.symbols:
                    if start <= link_address < start + length:
                        return name.split("(")[0]
        return None


@functools.cache
def symbols_of(path):
    return Symbols(path)


def run_report(*arguments, **options):
    """The finished process of xpu-report with these arguments."""
    options.setdefault("timeout", PATIENCE_S)
    return subprocess.run([find("report/xpu-report"), *map(str, arguments)], capture_output=True,
                          text=True, **options)


def report(*arguments, status=0, **options):
    """What xpu-report prints with these arguments."""
    done = run_report(*arguments, **options)
    expect(f"xpu-report {arguments}: status ({done.stderr})", done.returncode, status)
    return done.stdout


CAPTURES = pathlib.Path(__file__).resolve().parents[1] / "captures"
LARGE_BYTES = 200_000


@functools.cache
def is_sanitized():
    return "sanitizers" in report("--version")


def is_left_out(path):
    """Sanitizers make each view of a large capture take many seconds, and find nothing there that
    they do not find in the others."""
    return is_sanitized() and path.stat().st_size >= LARGE_BYTES


def of_large_captures(test):
    """Decorates a test of large captures' content: sanitizers see the same code in the tests of
    every capture."""
    @functools.wraps(test)
    def unless_sanitized():
        if is_sanitized():
            raise Skip("it reads large captures, and this build has sanitizers")
        test()
    return unless_sanitized


def real_captures(directory="."):
    """Those of tests/captures."""
    return [path for path in sorted((CAPTURES / directory).glob("*.xpu")) if not is_left_out(path)]


def folded(*arguments):
    """Value by stack, as xpu-report --folded prints them."""
    lines = (line.rsplit(" ", 1) for line in report("--folded", *arguments).splitlines())
    return {stack: int(value) for stack, value in lines}


def table_rows(path, name, *arguments):
    """All rows of a table of xpu-report --top."""
    return json.loads(report("--top", "--table", name, "-n", "0", "--format", "json", *arguments,
                             path))[name]


def status_of(pid):
    """The fields of /proc/PID/status, each a text."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return {name: value.strip() for name, value in
            (line.split(":", 1) for line in lines if ":" in line)}


def resident_kb(pid):
    return int(status_of(pid)["VmRSS"].split()[0])


def program_of(recorder_pid, path):
    """The pid of the program that a recorder has started; None: not yet, or not any more."""
    with open(f"/proc/{recorder_pid}/task/{recorder_pid}/children", encoding="utf-8") as children:
        for child in children.read().split():
            with contextlib.suppress(FileNotFoundError):
                if os.readlink(f"/proc/{child}/exe") == os.path.realpath(path):
                    return int(child)
    return None


class Workspace:
    """A temporary directory; records into it."""

    def __init__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="xpu-test-", dir=temporary_directory()))

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name, text=None, mode=0o644):
        path = self.path / name
        if text is not None:
            path.write_text(text)
            path.chmod(mode)
        return str(path)

    def record(self, *arguments, output="capture.xpu", **options):
        """Runs xpu-record -o FILE with these arguments; returns the finished process."""
        options.setdefault("timeout", PATIENCE_S)
        options.setdefault("cwd", self.path)
        return subprocess.run([recorder(options.get("env")), "-o", str(self.path / output),
                               *arguments],
                              capture_output=True, text=True, **options)

    def capture(self, name="capture.xpu"):
        return Capture(self.path / name)


def expect(what, actual, wanted):
    if actual != wanted:
        raise AssertionError(f"{what}: {actual!r}, expected {wanted!r}")


def expect_in(what, part, whole):
    if part not in whole:
        raise AssertionError(f"{what}: {part!r} is not in {whole!r}")


def run_alone():
    """Begins again in a pid namespace, where -a sees no programs but the test's; only root can."""
    if "XPU_TEST_ALONE" in os.environ or os.geteuid() != 0:
        return
    alone = own_mounts("--pid", "--fork", "--mount-proc", "--kill-child")
    os.environ["XPU_TEST_ALONE"] = "1"
    os.execvp(alone[0], [*alone, sys.executable, *sys.argv])


def main(namespace):
    """Runs every function test_* of the namespace; the exit status says how it went."""
    failed = 0
    skipped = 0
    tests = [(n, f) for n, f in namespace.items() if n.startswith("test_") and callable(f)]
    chosen = sys.argv[1:]
    for name, test in tests:
        if chosen and name not in chosen:
            continue
        begin, began_with = time.monotonic(), os.times()
        Capture.last = None
        try:
            test()
            print(f"ok      {name} ({time.monotonic() - begin:.1f} s, of a CPU "
                  f"{sum(os.times()[:4]) - sum(began_with[:4]):.1f} s)", flush=True)
        except Skip as reason:
            skipped += 1
            print(f"skipped {name}: {reason}", flush=True)
        except Exception:
            failed += 1
            print(f"FAILED  {name}", flush=True)
            traceback.print_exc(file=sys.stdout)
            for loss in Capture.last.events.get("losses", []) if Capture.last else []:
                print(f"        ledger: {loss['count']} x {loss['name']} ({loss['detail']})")
    if failed:
        sys.exit(1)
    sys.exit(SKIP if skipped == len(tests) else 0)

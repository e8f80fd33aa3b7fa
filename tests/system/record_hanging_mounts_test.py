"""Files of file systems whose server does not answer any more. Nothing ends a thread that waits for
one, not even SIGKILL: the recorder must not become such a thread."""

import contextlib
import ctypes
import os
import pathlib
import signal
import struct
import subprocess

import xpu_testing
from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, require_recording, skip, workload

# ---- a FUSE file system of one file, FILE, whose server can stop answering: what a network mount
# does when its server is gone. As root.
LIBC = ctypes.CDLL(None, use_errno=True)
LOOKUP, FORGET, GETATTR, OPEN, READ, RELEASE, INIT, OPENDIR, INTERRUPT, BATCH_FORGET = (
    1, 2, 3, 14, 15, 18, 26, 27, 36, 42)
ENOSYS = 38
LAZILY = 2  # MNT_DETACH
FILE = "file"
FILE_NODE = 2


def attributes(node, size, mode):
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode,
                       1, 0, 0, 0, 4096, 0)


def serve(device, content):
    of_file = attributes(FILE_NODE, len(content), 0o100755)
    of_root = attributes(1, 0, 0o40755)
    while True:
        try:
            request = os.read(device, 1 << 20)
        except OSError:
            return  # unmounted
        _, operation, number, node = struct.unpack_from("<IIQQ", request)

        def reply(data=b"", error=0):
            os.write(device, struct.pack("<IiQ", 16 + len(data), -error, number) + data)

        if operation == INIT:
            reply(struct.pack("<IIIIHHIIHH", 7, 31, 1 << 17, 0, 12, 9, 1 << 17, 1, 0, 0)
                  .ljust(64, b"\0"))
        elif operation == LOOKUP:
            # Believed for no time: each look at the path asks the server.
            reply(struct.pack("<QQQQII", FILE_NODE, 0, 0, 0, 0, 0) + of_file)
        elif operation == GETATTR:
            reply(struct.pack("<QII", 0, 0, 0) + (of_root if node == 1 else of_file))
        elif operation in (OPEN, OPENDIR):
            reply(struct.pack("<QII", 1, 0, 0))
        elif operation == READ:
            offset, size = struct.unpack_from("<QI", request, 40 + 8)
            reply(content[offset:offset + size])
        elif operation == RELEASE:
            reply()
        elif operation not in (FORGET, INTERRUPT, BATCH_FORGET):
            reply(error=ENOSYS)


@contextlib.contextmanager
def mounted(place, content):
    """Gives the process of the server, which SIGSTOP silences."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    if LIBC.mount(b"hanging", os.fsencode(place), b"fuse.hanging", 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")
    server = os.fork()
    if server == 0:
        serve(device, content)
        os._exit(0)
    os.close(device)
    try:
        yield server
    finally:
        # With the server's end whoever waits for it gets an error.
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
        LIBC.umount2(os.fsencode(place), LAZILY)


# ---- recordings of programs that use it
# Maps a file as code, whose server is silent by then, and burns.
MAPS_IT = """
import ctypes, os, signal, sys, time
server, path = int(sys.argv[1]), sys.argv[2]
os.close(os.open(path, os.O_RDONLY))  # the server does without news of closed files, as it says now
file = os.open(path, os.O_RDONLY)
size = os.fstat(file).st_size
os.kill(server, signal.SIGSTOP)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
PROT_READ_EXEC, MAP_PRIVATE = 5, 2
assert libc.mmap(None, size, PROT_READ_EXEC, MAP_PRIVATE, file, 0) != 2**64 - 1
while time.process_time() < 1: pass
os._exit(7)
"""


def require_fuse():
    require_recording()
    if not os.path.exists("/dev/fuse") or os.geteuid() != 0:
        skip("FUSE", "needs /dev/fuse and root")


def record(*command):
    """Its status and stderr; fails where it does not end."""
    process = subprocess.Popen([xpu_testing.recorder(), *command], stderr=subprocess.PIPE, text=True)
    try:
        return process.wait(PATIENCE_S), process.stderr.read()
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError("the recorder hangs") from None


def test_mapped_file():
    require_fuse()
    with Workspace() as work:
        place = work.path / "mount"
        place.mkdir()
        content = pathlib.Path(workload("cpu_hot")).read_bytes()
        with mounted(place, content) as server:
            status, stderr = record("--cpu-only", "-F", "499", "-o", work.path / "capture.xpu", "--",
                                    "python3", work.file("maps.py", MAPS_IT), str(server),
                                    str(place / FILE))
        expect(f"status ({stderr})", status, 7)
        capture = work.capture()
        expect("samples of the program", len(capture.cpu_samples) > 200, True)
        expect("the file is mapped",
               any(mapping["path"].endswith(FILE) for mapping in capture.mappings), True)
        expect_in("the ledger", "does not respond", str(capture.details("unwind_table_failed")))


def test_output():
    require_fuse()
    with Workspace() as work:
        place = work.path / "mount"
        place.mkdir()
        with mounted(place, b"") as server:
            os.kill(server, signal.SIGSTOP)
            status, stderr = record("--cpu-only", "-o", place / "capture.xpu", "--", "true")
        expect("status", status != 0, True)
        expect_in("what it says", "the file system (fuse.hanging) does not respond", stderr)


def test_mount_that_answers():
    """Its code is known like any other."""
    require_fuse()
    with Workspace() as work:
        place = work.path / "mount"
        place.mkdir()
        with mounted(place, pathlib.Path(workload("cpu_hot")).read_bytes()):
            status, stderr = record("--cpu-only", "-F", "499", "-o", work.path / "capture.xpu", "--",
                                    place / FILE, "--seconds", "1")
        expect(f"status ({stderr})", status, 0)
        capture = work.capture()
        expect("files without a table", capture.losses().get("unwind_table_failed", 0), 0)
        expect("samples of the program", len(capture.cpu_samples) > 200, True)


if __name__ == "__main__":
    xpu_testing.main(globals())

"""A FUSE file system of one file, FILE, whose server can stop answering: what a network mount does
when its server is gone. As root."""

import contextlib
import ctypes
import os
import signal
import struct

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

"""xpu-record for users without privileges, and with system calls forbidden."""

import ctypes
import errno
import os
import shutil
import struct
import subprocess

from xpu_testing import recorder, skip

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}
PERF_EVENT_OPEN, BPF = 298, 321  # on x86-64


def readable_copy(work, env=None):
    """A copy of xpu-record and its library that everybody can read, and out, a directory for all."""
    if os.geteuid() != 0:
        skip("root", "only root becomes another user")
    source = recorder(env)
    os.makedirs(work.path / "bin", exist_ok=True)
    os.makedirs(work.path / "lib" / "xpu", exist_ok=True)
    shutil.copy(source, work.path / "bin" / "xpu-record")
    directory = os.path.dirname(os.path.dirname(source))
    for place in ("lib/xpu", "cupti_inject"):
        library = os.path.join(directory, place, "libxpu_inject.so")
        if os.path.exists(library):
            shutil.copy(library, work.path / "lib" / "xpu")
            break
    os.makedirs(work.path / "out", exist_ok=True)
    for path in (work.path, work.path / "out"):
        os.chmod(path, 0o777)
    return str(work.path / "bin" / "xpu-record")


def as_nobody(work, *arguments, **options):
    return subprocess.run([readable_copy(work, options.get("env")), *arguments], text=True,
                          capture_output=True, cwd=work.path / "out", **NOBODY, **options)


FAIL, KILL = 0x00050000 | errno.EACCES, 0x80000000  # what a filter does


def forbid(*calls, action=FAIL):
    """From now on they fail in this process, as in a container or at Debian's level 3, or kill it."""
    pr_set_no_new_privs, pr_set_seccomp, seccomp_mode_filter = 38, 22, 2
    load_word, jump_if_equal, give_back = 0x20, 0x15, 0x06
    allow = 0x7FFF0000
    program = [(load_word, 0, 0, 0)]
    program += [(jump_if_equal, len(calls) - i, 0, call) for i, call in enumerate(calls)]
    program += [(give_back, 0, 0, allow), (give_back, 0, 0, action)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in ((pr_set_no_new_privs, 1, 0, 0, 0),
                      (pr_set_seccomp, seccomp_mode_filter, header)):
        if library.prctl(*arguments) != 0:
            raise OSError(ctypes.get_errno(), "prctl")

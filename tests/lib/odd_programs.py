"""Programs that do odd things to themselves (tests/system/odd_program.cpp)."""

import json
import os

from xpu_testing import find, skip


def odd(*steps):
    return [find("tests/system/xpu_odd_program"), *steps]


def require_root():
    if os.geteuid() != 0:
        skip("root", "only root may do this")


def view(line):
    """What a program prints of itself, flat. From its first thread on, which is the injected
    library's, its C library handles a signal of its own (32 or 33, of which it tells nobody)."""
    seen = json.loads(line)
    status = seen.pop("status")
    for name in ("SigCgt", "SigIgn"):
        status[name] = int(status[name], 16) & ~(3 << 31)
    status["TracerPid"] = status["TracerPid"] != "0"
    return {**seen, **status}

"""Whether the return addresses of a capture's stacks follow call instructions, by the files' bytes.

    call_sites.py CAPTURE...    prints the stacks that fail, by file, and how many hold
"""

import collections
import functools
import os
import sys

from unwind_stacks import COMPLETE, Stacks
from xpu_testing import Capture

LONGEST_CALL = 9  # with prefixes


def length_of_indirect_call(code):
    """Of `call *operand`, ff /2 and its operand bytes; 0: it is something else."""
    if len(code) < 2 or code[0] != 0xff or code[1] >> 3 & 7 != 2:
        return 0
    mode, register = code[1] >> 6, code[1] & 7
    if mode == 3:
        return 2
    length = 2
    base = register
    if register == 4:
        if len(code) < 3:
            return 0
        length, base = 3, code[2] & 7
    if mode == 0:
        return length + (4 if base == 5 else 0)
    return length + (1 if mode == 1 else 4)


def ends_with_call(code):
    """Whether the last bytes are a call; prefixes before them do not matter."""
    if len(code) >= 5 and code[-5] == 0xe8:
        return True
    return any(length_of_indirect_call(code[-n:]) == n for n in range(2, min(7, len(code)) + 1))


class Code:
    """The bytes before file offsets of mapped files."""

    def __init__(self, path):
        self.file = open(path, "rb")  # pylint: disable=consider-using-with

    @functools.cache
    def follows_call(self, offset):
        start = max(0, offset - LONGEST_CALL)
        self.file.seek(start)
        return ends_with_call(self.file.read(offset - start))


@functools.cache
def code_of(path):
    return Code(path) if path.startswith("/") and os.path.isfile(path) else None


def invented_frames(stacks, sample):
    """The user frames of a sample, (place, mapping, file offset), that no call returns to. A
    signal's trampoline and what it interrupted are not return addresses."""
    user = [int(f[1:], 16) for f in sample["stack"] if f[0] == "u"]
    after_signal = False
    for place, address in enumerate(user):
        if place == 0:
            continue
        mapping = stacks.mapping_at(sample["pid"], address - 1, sample["time_ns"])
        if mapping is None:
            yield place, None, address
            continue
        code = code_of(mapping["path"])
        if code is None:
            continue
        offset = address - mapping["start_address"] + mapping["file_offset"]
        if after_signal:
            after_signal = False
            continue
        code.file.seek(offset - 1)
        # mov $15 (rt_sigreturn), %rax: a trampoline is written one byte after its start
        if code.file.read(7) == bytes.fromhex("48c7c00f000000"):
            after_signal = True
            continue
        if not code.follows_call(offset):
            yield place, mapping, offset


def main():
    for path in sys.argv[1:]:
        capture = Capture(path)
        stacks = Stacks(type("Part", (), {
            "cpu_samples": [], "mappings": capture.mappings,
            "parent_at_fork": capture.parent_at_fork}))
        user = [s for s in capture.cpu_samples if any(f[0] == "u" for f in s["stack"])]
        complete = sum(1 for s in user if s["stack_flags"] & COMPLETE)
        wrong = collections.Counter()
        samples = 0
        for sample in user:
            found = [(m["path"] if m else "unmapped", o) for _, m, o in
                     invented_frames(stacks, sample)]
            samples += bool(found)
            wrong.update(found)
        print(f"{path}: {complete} of {len(user)} stacks complete "
              f"({100 * complete / max(1, len(user)):.1f} %), {samples} with frames that no call "
              f"returns to; ledger {capture.ledger()}")
        for (file, offset), count in wrong.most_common(20):
            print(f"    {count} x {file}+{offset:#x}")


if __name__ == "__main__":
    main()

"""The stacks of a capture by name, and how they compare with what a program says of itself."""

import collections
import os

from unwind_symbols import names_of

# format/stack.h
TRUNCATED, USER_FAILED, TABLES, COMPLETE, NOT_READY = 1 << 1, 1 << 2, 1 << 4, 1 << 5, 1 << 6

BELOW_MAIN = ["__libc_start_call_main", "__libc_start_main", "_start"]
BELOW_THREAD = ["start_thread", "clone3"]
# Local functions of libc: named only where its debug symbols are installed.
HIDDEN = {"__libc_start_call_main", "start_thread", "__start_context"}
HIDDEN_IN = "[libc.so.6]"

# names: a set of aliases per frame; file: that of the innermost.
Stack = collections.namedtuple("Stack", "pid time_ns flags names file")


def is_function(names, wanted):
    return wanted in names or (wanted in HIDDEN and HIDDEN_IN in names)


def is_path(stack, path):
    return len(stack) == len(path) and all(map(is_function, stack, path))


def text_of(names):
    return ";".join(min(aliases) for aliases in names)


class Stacks:
    """Every CPU sample of a capture with the names of its user frames, innermost first."""

    def __init__(self, capture, twins=None):
        self.capture = capture
        self.twins = {os.path.realpath(k): v for k, v in (twins or {}).items()}
        self.files = {}
        self.mappings = {}
        self.cache = {}
        self.all = [self.stack_of(sample) for sample in capture.cpu_samples]

    def stack_of(self, sample):
        user = [int(f[1:], 16) for f in sample["stack"] if f[0] == "u"]
        names = []
        file = ""
        for i, address in enumerate(user):
            mapping = self.mapping_at(sample["pid"], address - (1 if i else 0), sample["time_ns"])
            name = self.names_in(mapping, address - (1 if i else 0))
            file = file if i else (mapping or {}).get("path", "")
            # Inside the vdso one function may call another: neither has a name.
            if not (name == {"[vdso]"} and names and names[-1] == name):
                names.append(name)
        return Stack(sample["pid"], sample["time_ns"], sample["stack_flags"], names, file)

    def mappings_of(self, pid):
        """Newest first, those of the parent before a fork included."""
        if pid not in self.mappings:
            own = [m for m in self.capture.mappings if m["pid"] == pid]
            own.sort(key=lambda m: m["time_ns"], reverse=True)
            parent, forked_ns = self.capture.parent_at_fork(pid, 1 << 63)
            if parent is not None:
                own += [m for m in self.mappings_of(parent) if m["time_ns"] <= forked_ns]
            self.mappings[pid] = own
        return self.mappings[pid]

    def mapping_at(self, pid, address, time_ns):
        key = pid, address
        if key not in self.cache:
            self.cache[key] = [m for m in self.mappings_of(pid)
                               if 0 <= address - m["start_address"] < m["size_bytes"]]
        for mapping in self.cache[key]:
            if mapping["time_ns"] <= time_ns:
                return mapping
        return None

    def names_in(self, mapping, address):
        if mapping is None:
            return {"[unmapped]"}
        path = mapping["path"]
        if path.startswith("[") or not os.path.exists(path):
            return {path if path.startswith("[") else "[generated]"}
        if path not in self.files:
            self.files[path] = names_of(path, self.twins.get(path))
        return self.files[path].names_at(address - mapping["start_address"] +
                                         mapping["file_offset"])

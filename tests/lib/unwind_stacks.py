"""The stacks of a capture by name, and how they compare with what a program says of itself."""

import bisect
import collections
import functools
import os
import pathlib
import re
import subprocess

# ---- names of the code in ELF files, also of code that symbol tables do not name: the ends of
# stacks, signal trampolines, PLT entries

# Of _start in crt1.o, at most.
START_BYTES = 0x30


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def build_id(path):
    found = re.search(r"Build ID: ([0-9a-f]+)", output_of("readelf", "-n", path))
    return found.group(1) if found else ""


def plain(name):
    """Without version, parts that the compiler split off, and the word of an implementation."""
    return name.split("@")[0].split("(")[0].split(".")[0].removesuffix("_impl")


class ElfNames:
    """Functions of a file by file offset. `twin`: a file with the same layout that has the symbol
    table which this one lacks."""

    def __init__(self, path, twin=None):
        self.path = path
        self.short_name = f"[{os.path.basename(path)}]"
        self.segments = []
        self.functions = {}
        self.sections = []
        self.ranges = []  # that unwind tables mark
        self.read_segments()
        self.read_symbols("-D", path)
        self.read_symbols("", twin or path)
        identity = build_id(path)
        debug = pathlib.Path(f"/usr/lib/debug/.build-id/{identity[:2]}/{identity[2:]}.debug")
        if identity and debug.exists():
            self.read_symbols("", str(debug))
        self.read_sections(twin or path)
        if os.path.basename(path).startswith("libc.so"):
            self.read_frames()
        self.name_entry()
        self.starts = sorted(self.functions)

    def read_segments(self):
        for line in output_of("readelf", "-lW", self.path).splitlines():
            fields = line.split()
            if fields and fields[0] == "LOAD":
                self.segments.append(tuple(int(f, 16) for f in (fields[1], fields[2], fields[4])))

    def name_entry(self):
        """The program's first function, also where it is stripped."""
        header = output_of("readelf", "-hW", self.path)
        entry = int(re.search(r"Entry point address:\s+(0x\w+)", header).group(1), 16)
        if entry and "INTERP" in output_of("readelf", "-lW", self.path):
            self.functions.setdefault(entry, (START_BYTES, {"_start"}))

    def read_symbols(self, option, path):
        for line in output_of("nm", "--defined-only", "-S", *option.split(), path).splitlines():
            fields = line.split(None, 3)
            if len(fields) == 4 and fields[2] in "tTwWi":
                start, size = int(fields[0], 16), int(fields[1], 16)
                known_size, names = self.functions.get(start, (0, set()))
                self.functions[start] = (max(size, known_size), names | {plain(fields[3])})

    def read_sections(self, path):
        for line in output_of("readelf", "-SW", path).splitlines():
            found = re.match(r"\s*\[\s*\d+\]\s+(\.plt\S*)\s+\S+\s+(\w+)\s+\w+\s+(\w+)", line)
            if found:
                start = int(found.group(2), 16)
                self.sections.append((start, start + int(found.group(3), 16), "[plt]"))

    def read_frames(self):
        """Where a return address is undefined, a thread begins; 'S' marks signal trampolines."""
        signal_entries = set()
        entry, pc = None, None
        for line in output_of("readelf", "--debug-dump=frames", self.path).splitlines():
            found = re.match(r"([0-9a-f]+) \S+ \S+ (CIE|FDE)"
                             r"(?: cie=([0-9a-f]+) pc=(\w+)\.\.(\w+))?", line)
            if found:
                entry, kind = int(found.group(1), 16), found.group(2)
                pc = None
                if kind == "FDE":
                    pc = int(found.group(4), 16), int(found.group(5), 16)
                    if int(found.group(3), 16) in signal_entries:
                        self.ranges.append((*pc, "__restore_rt"))
            elif "Augmentation:" in line and "S" in line.split('"')[1]:
                signal_entries.add(entry)
            elif "DW_CFA_undefined: r16" in line and pc:
                self.ranges.append((*pc, "clone3"))

    def link_address(self, file_offset):
        for offset, address, size in self.segments:
            if offset <= file_offset < offset + size:
                return file_offset - offset + address
        return None

    def names_at(self, file_offset):
        """All names of the place: aliases are the same function."""
        address = self.link_address(file_offset)
        if address is None:
            return {self.short_name}
        marked = {name for start, end, name in self.ranges if start <= address < end}
        if "__restore_rt" in marked:
            return marked
        i = bisect.bisect_right(self.starts, address) - 1
        while i >= 0 and self.starts[i] > address - 0x10000:
            size, names = self.functions[self.starts[i]]
            if address < self.starts[i] + size:
                return names | marked
            i -= 1
        for start, end, name in self.sections:
            if start <= address < end:
                return {name}
        return marked or {self.short_name}


@functools.cache
def names_of_version(path, twin, _inode, _modified_ns):
    return ElfNames(path, twin)


def names_of(path, twin=None):
    """ElfNames of the file as it is now: of libraries, every recording asks the same."""
    status = os.stat(path)
    return names_of_version(path, twin, status.st_ino, status.st_mtime_ns)


# ---- stacks
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
        self.names = {}
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
        place = mapping["path"], address - mapping["start_address"] + mapping["file_offset"]
        if place not in self.names:
            self.names[place] = self.names_at(*place)
        return self.names[place]

    def names_at(self, path, file_offset):
        if path.startswith("[") or not os.path.exists(path):
            return {path if path.startswith("[") else "[generated]"}
        if path not in self.files:
            self.files[path] = names_of(path, self.twins.get(path))
        return self.files[path].names_at(file_offset)

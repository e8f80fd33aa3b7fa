"""What perf and gdb say of the same programs: the path to each leaf, as names."""

import collections
import re
import subprocess

HIDDEN = {"__libc_start_call_main", "start_thread", "clone3", "__restore_rt"}
UNNAMED = {"[unknown]", "??", "<signal handler called>"}


def is_same(found, path):
    """`found` may lack names that only debug symbols have."""
    return len(found) == len(path) and all(
        f == p or (p in HIDDEN and f in UNNAMED | {p, "__" + p}) for f, p in zip(found, path))


def plain(name):
    return re.sub(r"[ @(+.].*", "", name.strip()).removesuffix("_impl")


class Perf:
    TOOL = "perf"

    @staticmethod
    def paths_of(command, folder):
        """({leaf: its most frequent path}, the program's output)"""
        data = str(folder / "perf.data")
        # Without its cache of build-ids: perf 6.1 sometimes aborts while it fills that.
        run = subprocess.run(["perf", "record", "-q", "-B", "-N", "-e", "cpu-clock:u", "-F", "499",
                              "-o", data, "--call-graph", "dwarf,16384", *command],
                             capture_output=True, text=True, cwd=folder)
        script = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym", "--no-inline",
                                 "--max-stack", "512"],
                                capture_output=True, text=True).stdout
        counts = collections.defaultdict(collections.Counter)
        for event in script.split("\n\n"):
            lines = [line.split(None, 1) for line in event.splitlines() if line.strip()]
            path = tuple(plain(line[1]) for line in lines if len(line) == 2)
            if path:
                counts[path[0]][path] += 1
        return {leaf: paths.most_common(1)[0][0] for leaf, paths in counts.items()}, run.stdout


class Gdb:
    TOOL = "gdb"

    @staticmethod
    def paths_of(command, folder):
        """({leaf: the path at its first call}, the program's output)"""
        symbols = subprocess.run(["nm", command[0]], capture_output=True, text=True).stdout
        leaves = re.findall(r" [tT] (Leaf\w+)$", symbols, re.MULTILINE)
        script = ["set pagination off", "set confirm off", "set debuginfod enabled off",
                  "set backtrace past-main on", "set backtrace past-entry on",
                  "set width 0", "handle SIGALRM nostop noprint pass"]
        for leaf in leaves:
            script += [f"tbreak *{leaf}", "commands", "silent", "echo \\npath\\n", "bt",
                       "continue", "end"]
        script += [f"run {' '.join(command[1:])} > output.txt", "quit"]
        (folder / "gdb.txt").write_text("\n".join(script) + "\n")
        run = subprocess.run(["gdb", "-nx", "-batch", "-x", str(folder / "gdb.txt"), command[0]],
                             capture_output=True, text=True, cwd=folder,
                             stdin=subprocess.DEVNULL, timeout=120)
        found = {}
        for text in run.stdout.split("\npath\n")[1:]:
            path = [plain(re.sub(r"^#\d+ +(0x\w+ in )?", "", line)) if "<signal" not in line
                    else "<signal handler called>"
                    for line in text.splitlines() if line.startswith("#")]
            found.setdefault(path[0], path)
        return found, (folder / "output.txt").read_text()

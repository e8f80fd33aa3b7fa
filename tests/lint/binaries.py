"""Release binaries run on other distributions: what they need from the system is bounded."""

import re
import subprocess
import sys

# Ubuntu 22.04 for the tools; the injected library goes into any program's process.
LIMITS = {"xpu-record": (2, 35), "xpu-report": (2, 35), "libxpu_inject.so": (2, 34)}
NEEDED = {
    "xpu-record": {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"},
    "xpu-report": {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"},
    "libxpu_inject.so": {"libc.so.6", "ld-linux-x86-64.so.2"},
}
INJECT_EXPORTS = {"InitializeInjection", "InitializeInjectionNvtx2", "xpu_launch_marker"}


def objdump(*arguments):
    return subprocess.run(["objdump", *arguments], capture_output=True, text=True,
                          check=True).stdout


def problems_of(path):
    name = path.rsplit("/", 1)[-1]
    needed = set(re.findall(r"NEEDED\s+(\S+)", objdump("-p", path)))
    for library in sorted(needed - NEEDED[name]):
        yield f"{name}: needs {library}"
    symbols = objdump("-T", path)
    for major, minor in sorted(set(re.findall(r"GLIBC_(\d+)\.(\d+)", symbols))):
        if (int(major), int(minor)) > LIMITS[name]:
            users = re.findall(rf"GLIBC_{major}\.{minor}\)?\s+(\S+)", symbols)
            yield f"{name}: needs GLIBC_{major}.{minor} for {', '.join(users)}"
    if name == "libxpu_inject.so":
        defined = {line.split()[-1] for line in symbols.splitlines()
                   if " g " in line and "*UND*" not in line}
        if defined != INJECT_EXPORTS:
            yield f"{name}: exports {sorted(defined)}"
        if ".ctors" in objdump("-h", path):
            yield f"{name}: has static constructors"


def main():
    problems = [line for path in sys.argv[1:] for line in problems_of(path)]
    print("\n".join(problems) or "the binaries need only what they may")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

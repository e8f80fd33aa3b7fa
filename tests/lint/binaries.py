"""Release binaries run on other distributions: what they need from the system is bounded. They read
what others made, as root: they are hardened."""

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
INJECT_EXPORTS = {"InitializeInjection", "InitializeInjectionNvtx2",
                  "InitializeInjectionNvtxExtension", "xpu_inject_attach",
                  "xpu_launch_marker"}


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


def missing_hardening(path):
    """What the loader and the compiler do for a program that is attacked."""
    headers = subprocess.run(["readelf", "-Wld", path], capture_output=True, text=True,
                             check=True).stdout
    if "GNU_RELRO" not in headers or "BIND_NOW" not in headers:
        yield "full RELRO"
    if not re.search(r"GNU_STACK.* RW ", headers):
        yield "a stack that is not executable"
    if path.endswith(".so"):
        return
    if not re.search(r"FLAGS_1.*\bPIE\b", headers):
        yield "PIE"
    symbols = objdump("-T", path)
    if "__stack_chk_fail" not in symbols:
        yield "a stack protector"
    # Of level 3: a copy whose destination's size is known at run time only.
    if "__memcpy_chk" not in symbols:
        yield "_FORTIFY_SOURCE"
    # Ours begin so; what is linked statically need not, so the file as a whole may not say it.
    main = re.search(r"<main>:\n.*?\n", objdump("-d", "--disassemble=main", path))
    if main and "endbr64" not in main.group():
        yield "-fcf-protection"


def main():
    problems = [line for path in sys.argv[1:] for line in problems_of(path)]
    problems += [f"{path}: lacks {what}" for path in sys.argv[1:]
                 for what in missing_hardening(path)]
    print("\n".join(problems) or "the binaries need only what they may")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

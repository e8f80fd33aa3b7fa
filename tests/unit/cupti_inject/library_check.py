"""The injected library is fit for any program's process: what it exports, needs and runs by itself.

usage: library_check.py libxpu_inject.so
"""

import re
import subprocess
import sys

MARKER = bytes.fromhex("0f1f440000" "662e0f1f840000000000" "90" "c3")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def problems_of(path):
    exports = {}
    for line in output("readelf", "-W", "--dyn-syms", path).splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[6] not in ("UND", "Ndx") and fields[4] == "GLOBAL":
            exports[fields[7]] = int(fields[1], 16)
    if set(exports) != {"InitializeInjection", "InitializeInjectionNvtx2",
                        "InitializeInjectionNvtxExtension", "xpu_inject_attach",
                        "xpu_launch_marker"}:
        yield f"exports {sorted(exports)}"

    dynamic = output("readelf", "-W", "-d", path)
    needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
    if needed != ["libc.so.6"]:
        yield f"needs {needed}"
    if "NODELETE" not in dynamic:
        yield "could be unloaded while CUPTI calls it"
    for tag in ("INIT_ARRAY", "PREINIT_ARRAY", "(INIT)", "FINI_ARRAY", "(FINI)", "TEXTREL"):
        if tag in dynamic:
            yield f"has {tag}"

    versions = output("readelf", "-W", "-V", path)
    for major, minor in sorted(set(re.findall(r"GLIBC_(\d+)\.(\d+)", versions))):
        if (int(major), int(minor)) > (2, 34):
            yield f"needs GLIBC_{major}.{minor}"
    sections = output("readelf", "-W", "-S", path)
    if ".gcc_except_table" in sections:
        yield "has exception tables"
    tls = re.search(r"^\s*TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+0x([0-9a-f]+)",
                    output("readelf", "-W", "-l", path), re.MULTILINE)
    if not tls or int(tls.group(1), 16) > 256:
        yield f"takes {tls and tls.group(1)} bytes of static TLS"

    # The marker's bytes: the offsets where a probe goes depend on them.
    load = re.search(r"\.text\s+PROGBITS\s+([0-9a-f]+)\s+([0-9a-f]+)", sections)
    address, offset = (int(group, 16) for group in load.groups())
    marker = exports.get("xpu_launch_marker", 0)
    with open(path, "rb") as file:
        file.seek(marker - address + offset)
        code = file.read(len(MARKER))
    if code != MARKER:
        yield f"the marker is {code.hex()}"
    if marker % 16:
        yield f"the marker is at {marker:#x}, not at a multiple of 16"


def main():
    problems = list(problems_of(sys.argv[1]))
    print("\n".join(problems) or "the library is fit")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

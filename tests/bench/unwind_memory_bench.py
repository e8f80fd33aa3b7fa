"""Memory of the maps with unwind tables while a program runs, as the kernel accounts it.

    unwind_memory_bench.py BUILD_DIR [COMMAND...]

As root; needs bpftool. Without a command: every shared library of this machine's library directory
below 64 MiB, loaded by one Python process until 1.5 GiB are mapped, about what PyTorch maps. With
PyTorch: COMMAND is for instance `python3 -c 'import torch, time; time.sleep(5)'`.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

LOAD_MANY = """
import ctypes, glob, os, time
paths, mapped = [], 0
for path in sorted({os.path.realpath(p) for p in glob.glob('/usr/lib/x86_64-linux-gnu/*.so*') +
                    glob.glob('/usr/local/cuda/lib64/*.so*')}, key=os.path.getsize, reverse=True):
    if mapped > 1536 << 20: break
    try:
        ctypes.CDLL(path)
        mapped += os.path.getsize(path)
    except OSError:
        pass
print(f'{mapped >> 20} MiB of libraries', flush=True)
time.sleep(6)
"""


def maps():
    listing = subprocess.run(["bpftool", "-j", "map", "show"], check=True, capture_output=True,
                             text=True, env={**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
    return json.loads(listing.stdout)


def main():
    command = sys.argv[2:] or [sys.executable, "-c", LOAD_MANY]
    before = {m["id"] for m in maps()}
    with tempfile.TemporaryDirectory() as directory:
        recording = subprocess.Popen([f"{sys.argv[1]}/record/xpu-record", "-q", "--cpu-only", "-o",
                                      f"{directory}/bench.xpu", *command])
        most = {}
        while recording.poll() is None:
            now = {}
            for m in maps():
                if m["id"] in before:
                    continue
                name = m.get("name") or "?"
                name = name if name.startswith("unwind_") else "others"
                now[name] = now.get(name, 0) + m.get("bytes_memlock", 0)
            if sum(now.values()) > sum(most.values()):
                most = now
            time.sleep(0.2)
    for name, size in sorted(most.items(), key=lambda item: -item[1]):
        print(f"{name:20} {size / (1 << 20):8.1f} MiB")
    print(f"{'all':20} {sum(most.values()) / (1 << 20):8.1f} MiB")


if __name__ == "__main__":
    main()

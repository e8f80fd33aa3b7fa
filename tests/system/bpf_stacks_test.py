"""The BPF programs load on kernels that allow 512 bytes of stack for a whole chain of calls."""

import json
import subprocess

from xpu_testing import expect, find, main, require_recording

MOST = 512


def test_deepest_chains():
    require_recording()
    result = subprocess.run([find("tests/system/xpu_bpf_stacks")], capture_output=True, text=True)
    expect(f"status ({result.stderr})", result.returncode, 0)
    depths = {line["program"]: line["bytes"] for line in map(json.loads, result.stdout.splitlines())}
    for name in ("cpu_sample", "launch_stack", "probe_entry", "probe_session", "off_cpu_switch",
                 "note_waker"):
        expect(f"{name} walks a stack: {depths}", depths[name] > 256, True)
    expect("those that are too deep", {n: b for n, b in depths.items() if b > MOST}, {})


if __name__ == "__main__":
    main(globals())

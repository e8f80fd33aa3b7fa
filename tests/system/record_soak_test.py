"""Two recordings side by side for a long time, one whole and one in parts of which the last are kept:
nothing is lost, and the recorders' memory does not grow with what has been recorded.

XPU_TEST_SOAK_SECONDS is how long (default 10).
"""

import json
import os
import subprocess
import time

from gpu_capture import kernels_in
from simulated_gpu import simulated
from xpu_testing import (Workspace, expect, main, recorder, report, require_recording, resident_kb,
                         workload)

SECONDS = int(os.environ.get("XPU_TEST_SOAK_SECONDS", "10"))
LAUNCHES_A_SECOND = 2000
LOOKS = 50
# Pages that an allocator keeps or gives back.
GROWTH_BYTES = 8 << 20
MOST_BYTES = 200 << 20
PART_BYTES = 1 << 20
KEPT = 3
# Beside the launches, short processes: what is kept of one must go with it.
PROGRAM = """
"$0" --rate "$1" --seconds "$2" --threads 2 & launching=$!
while kill -0 $launching 2>/dev/null; do /bin/true; sleep 0.1; done
wait $launching
"""


def start(output, *options):
    return subprocess.Popen([recorder(), "-o", output, *options, "--", "sh", "-c", PROGRAM,
                             workload("paced_launches"), str(LAUNCHES_A_SECOND), str(SECONDS)],
                            env=simulated(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def watch(runs):
    """Memory of each over the time in which it records."""
    looks = {name: [] for name in runs}
    for _ in range(LOOKS):
        time.sleep(SECONDS / LOOKS * 0.95)
        for name, run in runs.items():
            looks[name].append(resident_kb(run.pid) * 1024)
    return looks


def test_memory_and_losses_over_time():
    require_recording()
    with Workspace() as work:
        runs = {"whole": start(work.file("whole.xpu")),
                "parts": start(work.file("c.xpu"), "--rotate-size", str(PART_BYTES),
                               "--rotate-keep", str(KEPT))}
        looks = watch(runs)
        truth = {}
        for name, run in runs.items():
            early, late = max(looks[name][:LOOKS // 2]), max(looks[name])
            print(f"        {name}: {early >> 20} MiB in the first half, {late >> 20} MiB at most",
                  flush=True)
            output, errors = run.communicate(timeout=120 + SECONDS / 10)
            expect(f"{name}: status ({errors})", run.returncode, 0)
            truth[name] = json.loads(output)["launches"]
            expect(f"{name}: memory grew from {early} to {late} bytes", late <= early + GROWTH_BYTES,
                   True)
            expect(f"{name}: {late} bytes of memory", late <= MOST_BYTES, True)

        report("--strict", work.path / "whole.xpu", status=0)
        expect("kernels", kernels_in(work.path / "whole.xpu"), truth["whole"])
        files = sorted(work.path.glob("c.*.xpu"))
        expect(f"parts {files}", len(files) <= KEPT, True)
        expect("bytes of the parts", sum(path.stat().st_size for path in files)
               <= KEPT * PART_BYTES * 1.1, True)
        # The last part is there to the end.
        expect("kernels in the parts", 0 < kernels_in(*files) <= truth["parts"], True)


if __name__ == "__main__":
    main(globals())

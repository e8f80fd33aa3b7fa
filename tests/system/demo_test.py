"""./bootstrap.sh demo, less the building: it records, reports, and says on what."""

import os
import pathlib
import subprocess

from xpu_testing import PATIENCE_S, Workspace, expect, expect_in, main, require_recording

DEMO = pathlib.Path(__file__).resolve().parent.parent / "workloads" / "demo.sh"


def test_demo():
    require_recording()
    with Workspace() as work:
        result = subprocess.run([DEMO, os.environ["XPU_BUILD_DIR"], str(work.path)],
                                capture_output=True, text=True, timeout=PATIENCE_S)
        expect(f"status ({result.stderr})", result.returncode, 0)
        expect_in("matches", "launches  15,200: 15,200 with their kernel, 0 pending",
                  result.stdout)
        expect_in("CPU samples", "\nCPU functions: ", result.stdout)
        expect("what is left", sorted(os.listdir(work.path)), ["demo.html", "demo.xpu"])
        expect_in("longest", "[GPU_Kernel]layer_norm_kernel", result.stdout)
        expect_in("what it ran on", "demo ran on the ", result.stdout.splitlines()[-1])


if __name__ == "__main__":
    main(globals())

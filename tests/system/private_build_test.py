"""Tests that run programs as other users pass in a build tree that only its owner may enter, as in a
home directory of mode 0700, and with such a TMPDIR."""

import os
import pathlib
import subprocess
import sys

from xpu_testing import PATIENCE_S, Workspace, expect, main, own_mounts, require_recording, skip

CHOSEN = [
    ("record_capabilities_test.py", "test_file_capabilities_record_everything"),
    ("record_gpu_test.py", "test_any_user_records_the_gpu"),
    ("record_inline_test.py", "test_any_user_gets_what_root_gets"),
    ("record_odd_programs_test.py", "test_other_user_and_other_root"),
    ("record_unreached_test.py", "test_library_that_the_user_may_not_read"),
    ("record_user_test.py", "test_gpu_and_cpu_are_recorded"),
]


def test_build_tree_that_others_may_not_enter():
    if os.geteuid() != 0:
        skip("root", "only root becomes another user")
    require_recording()
    with Workspace() as work:
        expect("mode", work.path.stat().st_mode & 0o777, 0o700)
        build, temporary = work.path / "build", work.path / "tmp"
        build.mkdir()
        temporary.mkdir()
        environment = {**os.environ, "XPU_BUILD_DIR": str(build), "TMPDIR": str(temporary)}
        for script, name in CHOSEN:
            result = subprocess.run(
                [*own_mounts(), "sh", "-ec", 'mount --bind "$1" "$2"; shift 2; exec "$@"', "sh",
                 os.environ["XPU_BUILD_DIR"], build, sys.executable,
                 pathlib.Path(__file__).with_name(script), name],
                capture_output=True, text=True, env=environment, timeout=PATIENCE_S)
            expect(f"status of {name} ({result.stdout}{result.stderr})", result.returncode, 0)


if __name__ == "__main__":
    main(globals())

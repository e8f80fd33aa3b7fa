"""What xpu-record leaves on the machine: only the capture and root's unwind tables, also when it is
killed; and what others see of it meanwhile: one socket with a random name."""

import os
import re
import shutil
import subprocess

from simulated_gpu import simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, find, main, own_mounts, recorder, require_recording,
                         skip, workload)

# A world of its own: directories that begin empty, a network and processes that nobody else has.
WORLD = """
mount -t tmpfs none /mnt
cp -rL "$1"/. /mnt
for directory in /tmp /run /dev/shm /var/tmp /var/cache; do
  test ! -d $directory || mount -t tmpfs none $directory
done
mount -t proc proc /proc
rm -rf /run/mount  # of mount itself
export LD_LIBRARY_PATH=/mnt/cuda
cd /mnt
cat > functions <<'END'
left() {
  echo "== $1"
  find /tmp /run /dev/shm /var/tmp /var/cache -mindepth 1 2>/dev/null | sort
  grep -o '@xpu-.*' /proc/net/unix | sort -u || true
  cat /proc/[0-9]*/comm 2>/dev/null | grep xpu || true
}
END
. ./functions
"""


def run(work, script):
    """Sections of what was there: name to lines."""
    if os.geteuid() != 0:
        skip("root", "only root has mounts of its own")
    require_recording()
    things = work.path / "things"
    os.makedirs(things / "bin")
    os.makedirs(things / "lib" / "xpu")
    shutil.copy(recorder(), things / "bin")
    shutil.copy(find("cupti_inject/libxpu_inject.so", "../lib/xpu/libxpu_inject.so"),
                things / "lib" / "xpu")
    shutil.copy(workload("exit_styles"), things)
    shutil.copytree(simulated()["LD_LIBRARY_PATH"], things / "cuda", symlinks=False)
    result = subprocess.run([*own_mounts("--net", "--pid", "--fork"), "sh", "-ec",
                             WORLD + script, "sh", str(things)], capture_output=True, text=True,
                            timeout=PATIENCE_S)
    expect(f"status ({result.stderr})", result.returncode, 0)
    sections = {}
    for line in result.stdout.splitlines():
        if line.startswith("== "):
            name = line[3:]
            sections[name] = []
        elif not line.startswith("{"):  # the program's own
            sections[name].append(line)
    return sections


def check_left(lines):
    """Tables by build-id are what stays, in directories of root alone."""
    for line in lines:
        if not re.fullmatch(r"/var/cache/xpu(/unwind(/[0-9a-f]{8,128})?)?", line):
            raise AssertionError(f"left behind: {line}")


def test_nothing_is_left():
    with Workspace() as work:
        seen = run(work, """
left before
cat > program <<'END'
. ./functions
left meanwhile
exec ./exit_styles --launches 20
END
bin/xpu-record -q -o c.xpu sh program
left after
test -s c.xpu
stat -c %a c.xpu /var/cache/xpu /var/cache/xpu/unwind
""")
        expect("before", seen["before"], [])
        expect("modes", seen["after"][-3:], ["600", "700", "700"])
        check_left(seen["after"][:-3])
        sockets = [line for line in seen["meanwhile"] if line.startswith("@")]
        expect("sockets", len(sockets), 1)
        expect("name", bool(re.fullmatch(r"@xpu-[0-9a-f]{16}", sockets[0])), True)
        others = [line for line in seen["meanwhile"] if not line.startswith("@")]
        # The recorder, and what sees signals to its process group.
        check_left([line for line in others if line != "xpu-record"])
        expect("processes", others.count("xpu-record") in (1, 2), True)


def test_home_that_sudo_keeps():
    if os.geteuid() != 0:
        skip("root", "only root has a cache of its own")
    require_recording()
    with Workspace() as work:
        for owner in (0, 65534):
            home = work.path / f"home-{owner}"
            os.mkdir(home)
            os.chown(home, owner, owner)
            result = work.record("--cpu-only", "-q", "true", env=dict(
                os.environ, HOME=str(home), XDG_CACHE_HOME=str(home / "cache")))
            expect(f"status ({result.stderr})", result.returncode, 0)
            expect("files in the home", os.listdir(home), [])


def test_recorder_that_is_killed():
    with Workspace() as work:
        seen = run(work, """
bin/xpu-record -q -o c.xpu ./exit_styles --launches 20 --linger-ms 30000 &
recorder=$!
i=0
while ! grep -qx exit_styles /proc/[0-9]*/comm 2>/dev/null && test $i -lt 400; do
  sleep 0.05; i=$((i + 1))
done
sleep 0.3
kill -9 $recorder
wait $recorder || true
i=0
while grep -qx xpu-record /proc/[0-9]*/comm 2>/dev/null && test $i -lt 400; do
  sleep 0.05; i=$((i + 1))
done
left killed
echo "== program"
cat /proc/[0-9]*/comm | grep exit_styles
test -s c.xpu
""")
        check_left(seen["killed"])
        expect("the program runs on", seen["program"], ["exit_styles"])


def test_program_that_is_killed():
    with Workspace() as work:
        seen = run(work, """
bin/xpu-record -q -o c.xpu ./exit_styles --launches 20 --how=sigkill || true
left after
""")
        check_left(seen["after"])


if __name__ == "__main__":
    main(globals())

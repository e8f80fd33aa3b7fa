"""Recordings under Debian's kernels in a virtual machine without hardware support: BPF programs pass
the verifier of an older kernel and do there what they do here. The kernels are unpacked packages,
each in a directory of build/kernels or of XPU_TEST_KERNELS (`./bootstrap.sh test` fetches one)."""

import gzip
import lzma
import os
import pathlib
import resource
import shlex
import shutil
import subprocess
import sys
import time

import record_python_test
import xpu_testing
from xpu_testing import Workspace, expect, main, skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = pathlib.Path(os.environ.get("XPU_TEST_KERNELS", ROOT / "build/kernels"))
VIRTIOFSD = "/usr/lib/qemu/virtiofsd"
BUSYBOX = "/bin/busybox"
# Each needs those before it; what is built in has no file.
MODULES = ("virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
           "fuse", "virtiofs", "overlay")
CASES = ("record_cpu_test test_frames_are_innermost_first_kernel_then_user",
         "record_gpu_test test_every_launch_has_its_stack",
         "record_probe_test test_shared_cudart",
         "record_python_test test_launches_by_uprobe",
         "record_off_cpu_test test_waits_have_their_wakers",
         "record_off_cpu_test test_a_deadlock_shows_both_threads_and_their_locks")
# Of the virtual machine; each has its share of the cases. They take turns on one thread
# (thread=single), which takes no longer: with a thread for each, the emulated kernel once locked up
# while it booted (soft lockup, no timer interrupts).
CPUS = 2
# Twice what virtiofsd opens: one for each file and directory that the virtual machine knows.
OPEN_FILES = 4096
# Several times what it takes on a machine with other work; ends what hangs.
LIMIT_S = 1700

# The root of this machine, under a layer in memory: nothing is written to it.
INIT = f"""#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for name in {" ".join(MODULES)}; do [ -f /modules/$name.ko ] && insmod /modules/$name.ko; done
mkdir -p /host /above /merged
mount -t virtiofs -o ro host /host || poweroff -f
mount -t tmpfs above /above
mkdir -p /above/upper /above/work
mount -t overlay -o lowerdir=/host,upperdir=/above/upper,workdir=/above/work overlay /merged
for place in proc sys dev; do mount --move /$place /merged/$place; done
mount -t tmpfs tmp /merged/tmp
mkdir -p /merged/dev/shm /merged/dev/pts
mount -t tmpfs shm /merged/dev/shm
mount -t devpts pts /merged/dev/pts
mount -t tracefs tracing /merged/sys/kernel/tracing
ip link set lo up
cp /run.sh /merged/tmp/
chroot /merged /bin/bash /tmp/run.sh
poweroff -f
"""


def script():
    """What runs in the virtual machine: a line for each case."""
    environment = {name: value for name, value in os.environ.items()
                   if name.startswith("XPU_") or name in ("PATH", "PYTHONPATH", "HOME")}
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    # One interpreter: what differs here is the kernel.
    lines += [f"export XPU_TEST_PYTHON={record_python_test.PYTHON}",
              "export PYTHONDONTWRITEBYTECODE=1", f"cd {shlex.quote(str(ROOT))}", "uname -r",
              f"{shlex.quote(xpu_testing.recorder())} --check | grep -v ^ok"]
    for cpu in range(CPUS):
        lines.append("(")
        for case in CASES[cpu::CPUS]:
            name, test = case.split()
            lines.append(f"{sys.executable} tests/system/{name}.py {test} > /tmp/output{cpu} 2>&1 && "
                         f"echo \"CASE ok {case} ($SECONDS s)\" || {{ echo 'CASE failed {case}'; "
                         f"cut -c1-2000 /tmp/output{cpu}; }}")
        lines.append(") &")
    return "\n".join(lines) + "\nwait\n"


def initrd(kernel, directory):
    files = directory / "initrd"
    for name in ("bin", "modules", "proc", "sys", "dev"):
        (files / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, files / "bin/busybox")
    for name in MODULES:
        for path in kernel.glob(f"lib/modules/*/**/{name}.ko*"):
            content = path.read_bytes()
            (files / "modules" / f"{name}.ko").write_bytes(
                lzma.decompress(content) if path.suffix == ".xz" else content)
    (files / "init").write_text(INIT)
    (files / "init").chmod(0o755)
    (files / "run.sh").write_text(script())
    names = "\n".join(str(path.relative_to(files)) for path in sorted(files.rglob("*")))
    archive = subprocess.run(["cpio", "--quiet", "-o", "-H", "newc"], cwd=files, check=True,
                             input=names.encode(), stdout=subprocess.PIPE).stdout
    (directory / "initrd.gz").write_bytes(gzip.compress(archive, 1))
    return directory / "initrd.gz"


def run_under(kernel, directory):
    """What the virtual machine prints."""
    socket = directory / "host.sock"
    with subprocess.Popen([VIRTIOFSD, f"--socket-path={socket}", "-o", "source=/", "-o",
                           "cache=auto", "-o", "sandbox=chroot"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        while not socket.exists() and server.poll() is None:
            time.sleep(0.05)
        [image] = kernel.glob("boot/vmlinuz-*")
        try:
            result = subprocess.run(
                ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max,cx16=off", "-smp", str(CPUS),
                 "-m", "3G", "-object", "memory-backend-memfd,id=memory,size=3G,share=on", "-numa",
                 "node,memdev=memory", "-chardev", f"socket,id=host,path={socket}", "-device",
                 "vhost-user-fs-pci,chardev=host,tag=host", "-nic", "none", "-nographic",
                 "-no-reboot", "-kernel", str(image), "-initrd", str(initrd(kernel, directory)),
                 "-append", "console=ttyS0 quiet panic=-1"], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
            return result.stdout.decode(errors="replace")
        except subprocess.TimeoutExpired as hung:
            return f"{(hung.stdout or b'').decode(errors='replace')}\nended after {LIMIT_S} s"
        finally:
            server.kill()


def allow_open_files():
    """Root too may lack the capability to raise the limit."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = max(most, OPEN_FILES)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, wanted))
    except ValueError:
        skip("files", f"virtiofsd needs {OPEN_FILES} open files, {most} are allowed (ulimit -Hn)")


def test_recordings_under_older_kernels():
    if os.geteuid() != 0:
        skip("root", "virtiofsd needs root")
    kernels = [path.parent for path in KERNELS.glob("*/boot")]
    tools = [VIRTIOFSD, BUSYBOX, "qemu-system-x86_64", "cpio"]
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing or not kernels:
        skip("kernel", f"{', '.join(missing)} are not here" if missing else
             f"no kernels in {KERNELS}")
    allow_open_files()
    if ROOT.is_relative_to("/tmp"):
        skip("kernel", "the sources lie below /tmp, which is another one in the virtual machine")
    for kernel in kernels:
        with Workspace() as work:
            output = run_under(kernel, work.path)
        results = {f"{name} {test}": state for state, name, test in
                   (line.split()[1:4] for line in output.splitlines() if line.startswith("CASE "))}
        expect(f"under {kernel.name}: {output[-6000:]}", results, dict.fromkeys(CASES, "ok"))
        lines = [line for line in output.splitlines() if line.startswith(("missing", "absent"))]
        expect(f"what --check does not find under {kernel.name} ({output[-3000:]})",
               [line for line in lines if "NVIDIA driver" not in line], [])


if __name__ == "__main__":
    main(globals())

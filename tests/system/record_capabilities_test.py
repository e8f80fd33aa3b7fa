"""xpu-record as nobody, with exactly the capabilities that are said to be enough: CAP_BPF and
CAP_PERFMON; CAP_SYSLOG for the names of kernel functions; CAP_SYS_PTRACE for others' processes."""

import json
import os
import shutil
import struct
import subprocess

from odd_programs import odd, view
from other_users import NOBODY, readable_copy
from simulated_gpu import keys, simulated
from xpu_testing import (PATIENCE_S, STACK_COMPLETE, STACK_TRUNCATED, Workspace, expect, expect_in,
                         main, own_mounts, report, require_recording, require_set_user_id, skip, workload)

NUMBERS = {"sys_ptrace": 19, "syslog": 34, "perfmon": 38, "bpf": 39}
ENOUGH = ("bpf", "perfmon")
HIDDEN = {"kernel_symbols_hidden": 0}  # however many


def as_nobody_with(names, *command, bounds=()):
    """Ambient ones: what becomes effective in a program without bits of its own. `bounds`: what
    programs with bits may get besides."""
    listed = ",".join(["-all", *(f"+{name}" for name in names)])
    bounding = ",".join([listed, *(f"+{name}" for name in bounds)])
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={listed}",
            f"--ambient-caps={listed}", f"--bounding-set={bounding}", *command]


def record(work, names, *arguments, status=0, env=None, bounds=(), **options):
    command = as_nobody_with(names, readable_copy(work, env), "-o", "c.xpu", *arguments, bounds=bounds)
    if os.path.exists(work.path / "out" / "c.xpu"):
        os.unlink(work.path / "out" / "c.xpu")
    environment = dict(env or simulated(), HOME=str(work.path / "out"))
    result = subprocess.run(command, capture_output=True, text=True, cwd=work.path / "out",
                            timeout=PATIENCE_S, env=environment, **options)
    expect(f"status ({result.stderr})", result.returncode, status)
    return result


def captured(work):
    return work.capture("out/c.xpu")


def require():
    if os.geteuid() != 0:
        skip("root", "only root becomes another user")
    require_recording()


def test_cpu_samples_with_complete_stacks():
    require()
    with Workspace() as work:
        # The second time: by then the tables are on disk, in the user's own directory.
        for _ in range(2):
            record(work, ENOUGH, "-F", "999", workload("cpu_hot"), "--seconds", "0.5")
        capture = captured(work)
        expect("losses", {**capture.losses(), "kernel_symbols_hidden": 0}, HIDDEN)
        users = [s for s in capture.cpu_samples if s["stack_flags"] & STACK_COMPLETE]
        expect("whole stacks", len(users) > 0.5 * len(capture.cpu_samples) > 50, True)
        expect("cut", [s for s in users if s["stack_flags"] & STACK_TRUNCATED], [])
        stacks = report("--folded", work.file("out/c.xpu"))
        expect_in("stacks", ";HotHalf", stacks.replace("(unsigned long)", ""))
        expect("tables", len(os.listdir(work.path / "out/.cache/xpu/unwind")) > 0, True)


def with_tracefs(options, *command, **more):
    """In a mount namespace of its own; but who may read its files is one thing for the machine."""
    script = ("! mountpoint -q /sys/kernel/tracing || umount /sys/kernel/tracing; "
              f"mount -t tracefs -o {options} none /sys/kernel/tracing && exec \"$@\"")
    return subprocess.run([*own_mounts(), "sh", "-ec", script, "sh", *command],
                          capture_output=True, text=True, timeout=PATIENCE_S, **more)


def test_tracepoints_if_tracefs_is_readable():
    """The mount that the hint tells: without it the refusal is no missing tracepoint."""
    require()
    with Workspace() as work:
        command = as_nobody_with(ENOUGH, readable_copy(work), "-o", "c.xpu", "--cpu-only",
                                 "--tracepoint", "sched:sched_process_exec", "sh", "-c",
                                 "true & exec true")
        more = {"cwd": work.path / "out", "env": {**os.environ, "HOME": str(work.path)}}
        try:
            refused = with_tracefs("gid=0,mode=755", *command, **more)
            works = with_tracefs("gid=65534,mode=750", *command, **more)
        finally:
            with_tracefs("gid=0,mode=700", "true")
        expect(f"status ({refused.stderr})", refused.returncode, 125)
        expect_in("message", "sched/sched_process_exec/id: Permission denied", refused.stderr)
        expect_in("hint", "gid=$(id -g),mode=750", refused.stderr)
        expect(f"status ({works.stderr})", works.returncode, 0)
        expect("is there a hit", len(captured(work).probe_hits) > 0, True)


def test_names_of_the_kernel():
    require()
    command = ("-e", "page-faults:k", "-c", "1", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M",
               "count=20")
    with Workspace() as work:
        result = record(work, ENOUGH, *command)
        capture = captured(work)
        hidden = capture.losses().get("kernel_symbols_hidden", 0)
        expect("hidden", hidden > 0, True)
        expect_in("message", f"kernel_symbols_hidden: {hidden} kernel addresses without a name. Run "
                  "as root or with CAP_SYSLOG", result.stderr)
        text = report("--folded", "--mode=cpu", work.file("out/c.xpu"))
        expect_in("frames", ";[kernel]_[k]", text)
        record(work, (*ENOUGH, "syslog"), *command)
        expect("losses", captured(work).losses(), {})
        text = report("--folded", "--mode=cpu", work.file("out/c.xpu"))
        expect("frames without a name", "[kernel]" in text, False)


def test_launches_by_each_source():
    require()
    with Workspace() as work:
        for arguments in ((), ("--gpu-only",), ("--launch-stacks=uprobe",),
                          ("--gpu-only", "--launch-stacks=uprobe"), ("--cuda-graph-trace=node",)):
            result = record(work, ENOUGH, *arguments, workload("two_kernels"), "--mode=processes")
            launches = sum(actor["launches"] for actor in json.loads(result.stdout)["actors"])
            capture = captured(work)
            what = " ".join(arguments)
            expect(f"{what}: losses", {**capture.losses(), "kernel_symbols_hidden": 0}, HIDDEN)
            expect(f"{what}: kernels", len(capture.kernels), launches)
            expect(f"{what}: without a stack", keys(capture.kernels) - keys(capture.launch_stacks),
                   set())
        result = record(work, ENOUGH, "--no-inject", "--gpu-only",
                        workload("two_kernels", own=True), "--mode=processes")
        expect("losses", captured(work).losses(), {})
        expect("probed", len(captured(work).probe_hits) >= launches, True)


def test_probes_in_libraries():
    require()
    with Workspace() as work:
        record(work, ENOUGH, "--cpu-only", "--uprobe", f"{workload('cpu_fork')}:ChildBurn",
               workload("cpu_fork"), "--children", "3", "--threads", "1", "--ms", "20")
        expect("hits", len(captured(work).probe_hits), 3)


def test_uprobes_of_older_kernels():
    """Placed one by one they take more than is given here, which is said; root has it."""
    require()
    one_by_one = simulated(XPU_TEST_WITHOUT="uprobe_multi")
    with Workspace() as work:
        result = record(work, ENOUGH, "--launch-stacks=uprobe", "touch", "started", status=125,
                        env=one_by_one)
        expect_in("cure", "before Linux 6.6 a uprobe needs root (CAP_SYS_ADMIN)", result.stderr)
        expect("started", os.path.exists(work.path / "out/started"), False)
        result = work.record("--launch-stacks=uprobe", workload("empty_launches"), env=one_by_one)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("kernels", len(capture.kernels), json.loads(result.stdout)["launches"])
        expect("without a stack", keys(capture.kernels) - keys(capture.launch_stacks), set())


def test_one_is_missing():
    require()
    with Workspace() as work:
        for names, missing in ((("bpf",), "CAP_PERFMON"), (("perfmon",), "CAP_BPF")):
            result = record(work, names, "touch", "started", status=125)
            expect("first line", result.stderr.splitlines()[0],
                   f"xpu-record: CPU samples need {missing}, which this process lacks")
            expect("files", [f for f in os.listdir(work.path / "out") if f != ".cache"], [])


def test_program_has_the_capabilities_that_it_would_have():
    require()
    require_set_user_id()
    with Workspace() as work:
        program = readable_copy(work)
        # Ambient ones are inherited, also without a recorder.
        recorded = view(record(work, ENOUGH, "-q", *odd("view")).stdout)
        plain = view(subprocess.run(as_nobody_with(ENOUGH, *odd("view")), check=True,
                                    capture_output=True, cwd=work.path / "out").stdout)
        # Those of the recorder's own file are not.
        both = sum(1 << NUMBERS[name] for name in ENOUGH)
        os.setxattr(program, "security.capability",
                    struct.pack("<IIIII", 0x02000001, both & 0xffffffff, 0, both >> 32, 0))
        result = subprocess.run([program, "-q", "-o", "d.xpu", *odd("view")], **NOBODY, text=True,
                                capture_output=True, cwd=work.path / "out")
        expect(f"status ({result.stderr})", result.returncode, 0)
        from_file = view(result.stdout)
        for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            expect(f"ambient: {name}", recorded[name], plain[name])
            expect(f"of the file: {name}", int(from_file[name], 16), 0)
        expect("dumpable", (recorded["dumpable"], from_file["dumpable"]), ("1", "1"))
        samples = work.capture("out/d.xpu").process_events
        expect("recorded", [e["name"] for e in samples if e["kind"] == 2], ["xpu_odd_program"])


def test_file_capabilities_record_everything():
    require()
    require_set_user_id()
    with Workspace() as work:
        program = readable_copy(work)
        bits = sum(1 << NUMBERS[name] for name in (*ENOUGH, "syslog"))
        os.setxattr(program, "security.capability",
                    struct.pack("<IIIII", 0x02000001, bits & 0xffffffff, 0, bits >> 32, 0))
        for arguments in ((), ("--launch-stacks=uprobe",)):
            result = subprocess.run([program, "-o", "d.xpu", *arguments, workload("two_kernels"),
                                     "--mode=processes"], **NOBODY, text=True, capture_output=True,
                                    cwd=work.path / "out", env=simulated(), timeout=PATIENCE_S)
            expect(f"status ({result.stderr})", result.returncode, 0)
            launches = sum(actor["launches"] for actor in json.loads(result.stdout)["actors"])
            capture = work.capture("out/d.xpu")
            expect("losses", capture.losses(), {})
            expect("kernels", len(capture.kernels), launches)


def test_programs_that_the_kernel_does_not_let_be_sampled():
    require()
    require_set_user_id()
    with Workspace() as work:
        with_bits, unreadable = work.file("with_bits"), work.file("unreadable")
        for program in (with_bits, unreadable):
            shutil.copy(odd()[0], program)
        net_raw = 1 << 13
        os.setxattr(with_bits, "security.capability",
                    struct.pack("<IIIII", 0x02000001, net_raw, 0, 0, 0))
        os.chmod(unreadable, 0o711)
        # That cannot be had: the exec fails, as it does without us.
        record(work, ENOUGH, with_bits, status=126)
        result = record(work, ENOUGH, with_bits, status=125, bounds=["net_raw"])
        expect_in("message", "gains the privileges of capabilities (setcap)", result.stderr)
        for program in (with_bits, unreadable):
            record(work, ENOUGH, "sh", "-c", f"{program} status=3; test $? = 3 && exit 5",
                   status=5, bounds=["net_raw"])
            losses = captured(work).losses()
            losses.pop("kernel_symbols_hidden", 0)
            expect(program, losses, {"privileges_gained": 1})


def test_context_switches():
    require()
    with Workspace() as work:
        record(work, ENOUGH, "--cpu-only", "--off-cpu", "--off-cpu-min", "50ms", "-d", "300ms",
               "sh", "-c", "sleep 0.1; sleep 3")
        capture = captured(work)
        unreported = {"off_cpu_events_missed": 0}  # by some kernels, under load
        expect("losses", {**capture.losses(), "kernel_symbols_hidden": 0, **unreported},
               {**HIDDEN, **unreported})
        expect("whole stacks, also of waits that have not ended",
               {(w["is_open"], bool(w["stack_flags"] & STACK_COMPLETE))
                for w in capture.off_cpu_waits}, {(0, True), (1, True)})


def test_processes_of_others():
    require()
    with Workspace() as work:
        for names in ((*ENOUGH, "sys_ptrace"), ENOUGH):
            others = subprocess.Popen([workload("cpu_hot"), "--seconds", "2"], user=12345,
                                      group=12345, extra_groups=[], stdout=subprocess.DEVNULL)
            try:
                arguments = as_nobody_with(names, readable_copy(work), "-o", "p.xpu", "--cpu-only",
                                           "-p", str(others.pid))
                result = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S,
                                        cwd=work.path / "out")
            finally:
                others.kill()
                others.wait()
            # Until it ended: however fast the machine is, there is something to sample.
            if "sys_ptrace" in names:
                expect(f"status ({result.stderr})", result.returncode, 0)
                capture = work.capture("out/p.xpu")
                expect("losses", {**capture.losses(), "kernel_symbols_hidden": 0}, HIDDEN)
                whole = [s for s in capture.cpu_samples if s["stack_flags"] & STACK_COMPLETE]
                expect("whole stacks", len(whole) > 0.5 * len(capture.cpu_samples) > 5, True)
            elif result.returncode != 0:
                # Newer kernels let CAP_PERFMON read what is mapped.
                expect_in("message", f"-p {others.pid}: no permission to examine the process",
                          result.stderr)
                expect_in("cure", "CAP_SYS_PTRACE", result.stderr)


if __name__ == "__main__":
    main(globals())

"""--check reports each missing ability with a hint, and so does a recording that needs it: on machines
that lack it as far as this process can see, in a mount namespace of its own or under a filter."""

import json
import os
import resource
import shutil
import subprocess

from other_users import BPF, NOBODY, PERF_EVENT_OPEN, forbid, readable_copy
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, own_mounts, recorder,
                         require_recording, skip)

REFUSED = "Permission denied"  # of forbid


def require():
    if os.geteuid() != 0:
        skip("root", "only root changes what it sees of the machine")
    require_recording()


def seen(work, mounts, *command, **options):
    """Runs it where each directory or file of `mounts` holds something else."""
    script = []
    for place, content in mounts.items():
        other = work.file(place.replace("/", "-"), content)
        if os.path.isdir(place):
            script.append(f"mount -t tmpfs none {place}")
        elif os.path.exists(place):
            script.append(f"mount --bind {other} {place}")
        else:
            directory, _ = os.path.split(place)
            if not os.path.isdir(directory):
                skip("mount", f"there is no {directory} here")
            script.append(f"mount -t tmpfs none {directory} && cp {other} {place}")
    script.append('exec "$@"')
    return subprocess.run([*own_mounts(), "sh", "-ec", "\n".join(script), "sh", *command],
                          capture_output=True, text=True, cwd=work.path, timeout=PATIENCE_S, **options)


def line(result, name):
    lines = [l for l in result.stdout.splitlines() if l.split(None, 1)[1].startswith(f"{name}: ")]
    expect(f"lines of {name}", len(lines), 1)
    return lines[0]


def check_both(work, mounts, *texts, missing, program=recorder, **options):
    """--check says it, with status 1; a recording says it before the program is started."""
    result = seen(work, mounts, program(), "--check", **options)
    expect("status", result.returncode, 1)
    for name in missing:
        expect(name, line(result, name).split()[0], "missing")
        for text in texts:
            expect_in(name, text, line(result, name))
    result = seen(work, mounts, program(), "-o", "c.xpu", "touch", "started", **options)
    expect("status of a recording", result.returncode, 125)
    for text in texts:
        expect_in("message", text, result.stderr)
    expect("the program was not started", os.path.exists(work.path / "started"), False)


def test_no_types():
    require()
    with Workspace() as work:
        check_both(work, {"/sys/kernel/btf": ""},
                   "no kernel type information: /sys/kernel/btf/vmlinux: No such file",
                   "a kernel built with CONFIG_DEBUG_INFO_BTF=y",
                   missing=["kernel types (BTF)", "CPU samples"])


def test_seccomp_filter():
    require()
    with Workspace() as work:
        check_both(work, {}, f"bpf: {REFUSED}: a seccomp filter forbids it",
                   "docker run --security-opt seccomp=unconfined", missing=["BPF", "CPU samples"],
                   preexec_fn=lambda: forbid(BPF))
        check_both(work, {}, f"perf_event_open: {REFUSED}: a seccomp filter forbids it",
                   missing=["perf events", "CPU samples"],
                   preexec_fn=lambda: forbid(PERF_EVENT_OPEN))


def test_json_says_what_the_text_says():
    require()

    def check(work, *arguments, **options):
        return seen(work, {}, recorder(), "--check", *arguments, **options)

    def result_of(work, *arguments, **options):
        """As JSON, and whether the exit status agrees."""
        result = check(work, *arguments, "--format", "json", **options)
        answer = json.loads(result.stdout)
        expect("status", result.returncode, 0 if answer["works"] else 1)
        return answer

    def lines_of(answer):
        return [f"{a['state']:<8} {a['name']}: {a['detail']}" +
                (f" -- {a['hint']}" if "hint" in a else "") for a in answer["abilities"]]

    with Workspace() as work:
        answer = result_of(work, "--cpu-only")
        expect("lines", lines_of(answer), check(work, "--cpu-only").stdout.splitlines())
        expect("all works", (answer["works"], answer["gpu_only_works"]), (True, False))
        answer = result_of(work)
        expect("all works", (answer["works"], answer["gpu_only_works"]), (True, True))
        answer = result_of(work, preexec_fn=lambda: forbid(BPF))
        expect("without BPF", (answer["works"], answer["gpu_only_works"]), (False, True))
        lines = check(work, preexec_fn=lambda: forbid(BPF)).stdout.splitlines()
        expect("the last line", lines[-1],
               "only CPU samples need what is missing: xpu-record --gpu-only works")
        answer = result_of(work, "--gpu-only", preexec_fn=lambda: forbid(BPF))
        expect("its GPU side", (answer["works"], answer["gpu_only_works"]), (True, True))


def test_sandbox():
    require()
    version = "Linux version 4.19.0-gvisor #1 SMP Sun Jan 10 15:06:54 PST 2016\n"
    with Workspace() as work:
        check_both(work, {"/proc/version": version}, "gVisor (runsc)", "outside the sandbox",
                   missing=["BPF", "CPU samples", "perf events"],
                   preexec_fn=lambda: forbid(BPF, PERF_EVENT_OPEN))
        # Nothing is refused here: then it does not matter what the kernel calls itself.
        result = seen(work, {"/proc/version": version}, recorder(), "--check")
        expect(f"status ({result.stdout})", result.returncode, 0)


def test_lockdown():
    require()
    words = "none integrity [confidentiality]\n"
    with Workspace() as work:
        place = "/sys/kernel/security/lockdown"
        check_both(work, {place: words}, "the kernel is locked down (confidentiality)",
                   "boot with lockdown=integrity", missing=["BPF", "CPU samples"],
                   preexec_fn=lambda: forbid(BPF))
        result = seen(work, {place: words}, recorder(), "--check")
        expect_in("line", "absent   lockdown: confidentiality -- ", line(result, "lockdown"))
        result = seen(work, {place: "none [integrity] confidentiality\n"}, recorder(), "--check")
        expect("line", line(result, "lockdown"), "ok       lockdown: integrity")


def test_user_namespace():
    require()
    with Workspace() as work:
        if subprocess.run(["unshare", "--user", "--map-root-user", "true"]).returncode != 0:
            skip("userns", "there are no user namespaces here")
        result = subprocess.run(["unshare", "--user", "--map-root-user", recorder(), "--check"],
                                capture_output=True, text=True)
        expect("status", result.returncode, 1)
        for name in ("BPF", "CPU samples"):
            expect_in(name, "those of a user namespace", line(result, name))
        result = subprocess.run(["unshare", "--user", "--map-root-user", recorder(), "true"],
                                capture_output=True, text=True, cwd=work.path)
        expect("status", result.returncode, 125)
        expect_in("message", "hint: record as root on the host", result.stderr)


def test_limits():
    """A missing ability is reported by its name, not by what fails without it."""
    require()
    for limit, value, *texts in (
            (resource.RLIMIT_NOFILE, 20, "RLIMIT_NOFILE: 20 descriptors are allowed", "ulimit -n"),
            (resource.RLIMIT_AS, 200 << 20, "RLIMIT_AS: ", "ulimit -v"),
            (resource.RLIMIT_AS, 60 << 20, "RLIMIT_AS: ", "ulimit -v"),
            (resource.RLIMIT_DATA, 40 << 20, "RLIMIT_DATA: ", "ulimit -d"),
            (resource.RLIMIT_FSIZE, 1 << 20, "RLIMIT_FSIZE: files of 1.0 MiB", "--cpu-only")):
        with Workspace() as work:
            check_both(work, {}, *texts, missing=["limits"],
                       preexec_fn=lambda: resource.setrlimit(limit, (value, value)))
    result = subprocess.run(["prlimit", f"--data={1 << 20}", recorder(), "true"],
                            capture_output=True, text=True)
    expect("status", result.returncode, 125)
    expect_in("message", "RLIMIT_DATA: ", result.stderr)
    # So little that not even the message is sure: it ends as its own failure, not by a signal.
    for value in range(8 << 20, 40 << 20, 4 << 20):
        result = subprocess.run(["prlimit", f"--as={value}", recorder(), "--check"],
                                capture_output=True, text=True)
        expect(f"{value}: {result.stderr}", result.returncode in (1, 125, 127), True)


def test_a_recording_works_within_the_limits_that_are_enough():
    require()
    with Workspace() as work:
        cpus = os.cpu_count()
        result = subprocess.run(["prlimit", f"--as={700 + 16 * cpus << 20}",
                                 f"--nofile={72 + 3 * cpus}", recorder(), "-o", "c.xpu", "true"],
                                capture_output=True, text=True, cwd=work.path)
        expect(f"status ({result.stderr})", result.returncode, 0)


def test_a_report_needs_no_thread():
    with Workspace() as work:
        os.chmod(work.path, 0o755)
        shutil.copy(find("report/xpu-report"), work.path)
        shutil.copy(f"{os.path.dirname(__file__)}/../captures/pytorch_mlp_graph.xpu", work.path)
        os.chmod(work.path / "pytorch_mlp_graph.xpu", 0o644)
        texts = []
        # Root's processes have no limit.
        user = (["setpriv", f"--reuid={NOBODY['user']}", "--clear-groups"] if os.geteuid() == 0
                else [])
        for limit in ([], ["prlimit", "--nproc=0"]):
            command = [*user, *limit, "./xpu-report", "--folded", "pytorch_mlp_graph.xpu"]
            result = subprocess.run(command, capture_output=True, text=True, cwd=work.path)
            expect(f"status ({result.stderr})", result.returncode, 0)
            texts.append(result.stdout)
        expect("the same", texts[0] == texts[1] != "", True)


def test_a_part_that_is_not_recorded_is_not_checked():
    require()
    with Workspace() as work:
        text = seen(work, {}, recorder(), "--check", "--cpu-only").stdout
        expect_in("CPU", "CPU samples: ", text)
        expect_in("off CPU", "ok       off-CPU times: ", text)
        for name in ("NVIDIA driver", "libcupti", "injected library", "launch marker"):
            expect(name, name in text, False)


def test_profiling_is_kept_to_root():
    require()
    with Workspace() as work:
        # As seen where there is a driver, which is nowhere else.
        parameters = work.file("params", "RmProfilingAdminOnly: 1\n")
        driver = [*own_mounts(), "sh", "-ec", f"""mount -t tmpfs none /proc/driver
            mkdir -p /proc/driver/nvidia && cp {parameters} /proc/driver/nvidia/params
            exec "$@\"""", "sh"]

        def check(*command):
            return subprocess.run([*driver, *command], capture_output=True, text=True,
                                  cwd=work.path, timeout=PATIENCE_S)
        result = check(recorder(), "--check")
        for name in ("GPU counters", "GPU code samples"):
            expect_in(name, f"ok       {name}: allowed, with CAP_SYS_ADMIN", line(result, name))
        program = readable_copy(work)
        nobody = ["setpriv", f"--reuid={NOBODY['user']}", "--clear-groups", program]
        result = check(*nobody, "--check", "--gpu-samples")
        refused = "only root may read them (NVreg_RestrictProfilingToAdminUsers=1)"
        expect_in("counters", f"absent   GPU counters: {refused}", line(result, "GPU counters"))
        expect_in("samples", f"missing  GPU code samples: {refused}",
                  line(result, "GPU code samples"))
        expect_in("hint", "NVreg_RestrictProfilingToAdminUsers=0", line(result, "GPU counters"))
        expect("status", result.returncode, 1)
        work.file("params", "RmProfilingAdminOnly: 0\n")
        result = check(*nobody, "--check", "--gpu-samples")
        expect_in("for all", "ok       GPU code samples: open to all users",
                  line(result, "GPU code samples"))


def test_no_cpu_events():
    require()
    with Workspace() as work:
        program = readable_copy(work)
        result = seen(work, {}, "setpriv", f"--reuid={NOBODY['user']}", "--clear-groups", program,
                      "--check", preexec_fn=lambda: os.chmod(work.path, 0o777))
        expect_in("events", "absent   CPU events: none: perf_event_open(cpu-clock): Permission",
                  line(result, "CPU events"))
        expect_in("probes", "without CAP_BPF and CAP_PERFMON", line(result, "probes"))


def test_level_of_paranoia():
    require()
    with Workspace() as work:
        program = readable_copy(work)
        prefix = ["setpriv", f"--reuid={NOBODY['user']}", "--clear-groups", program]
        level = {"/proc/sys/kernel/perf_event_paranoid": "4\n"}
        result = seen(work, level, *prefix, "--check",
                      preexec_fn=lambda: os.chmod(work.path, 0o777))
        expect_in("BPF", "without CAP_BPF and CAP_PERFMON", line(result, "BPF"))
        expect_in("others", "absent   processes of other users: without CAP_SYS_PTRACE",
                  line(result, "processes of other users"))
        expect_in("privileges", "setcap", line(result, "privileges"))
        # What is refused at the real level is the kernel's own events.
        result = seen(work, level, "setpriv", f"--reuid={NOBODY['user']}", "--clear-groups",
                      "--inh-caps=-all,+bpf", "--ambient-caps=-all,+bpf", program, "--check")
        expect_in("privileges", "without CAP_PERFMON", line(result, "privileges"))


if __name__ == "__main__":
    main(globals())

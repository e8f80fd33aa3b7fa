"""A program is not changed by being recorded: what it does, how it ends and how it sees itself are
the same with xpu-record and without, also of programs that do odd things to themselves; and what
is recorded of them is right, or the loss is reported."""

import grp
import os
import pwd
import resource
import shutil
import signal
import subprocess

from control_testing import Fifos, finish, start
from odd_programs import odd, require_root, view
from simulated_gpu import keys, simulated
from xpu_testing import (PATIENCE_S, Workspace, expect, expect_in, find, main, program_of, recorder,
                         require_recording, require_set_user_id, skip)

# How the steps of odd_program end up in a capture: kernels, and losses of the ledger.
WHOLE = {}


def run_both(command, *options, env=None, prefix=(), work, **arguments):
    """The program alone, then recorded: the same status and output. Returns the recorder's run."""
    arguments = {"cwd": work.path, "env": env or simulated(), "timeout": 240, **arguments}

    def run(name, *words):
        # A file: a pipe would have another number each time.
        with open(work.path / name, "wb") as output:
            done = subprocess.run([*prefix, *words], stdout=output, stderr=subprocess.PIPE,
                                  stdin=subprocess.DEVNULL, **arguments)
        return done, (work.path / name).read_bytes()

    os.makedirs(work.path / "alone", exist_ok=True)
    alone, plain_output = run("out", *command)
    recorded, output = run("out", recorder(), "-o", work.file("capture.xpu"), *options, "--",
                           *command)
    what = " ".join(command[1:]) or command[0]
    compare(what, output, plain_output)
    expect(f"{what}: status ({recorded.stderr.decode()})", recorded.returncode, alone.returncode)
    return recorded


def compare(what, recorded, plain):
    """Outputs: of views each part of its own."""
    recorded, plain = recorded.splitlines(), plain.splitlines()
    expect(f"{what}: lines", len(recorded), len(plain))
    for line, wanted in zip(recorded, plain):
        if wanted.startswith(b"{\"status\""):
            line, wanted = view(line), view(wanted)
            expect(f"{what}: view", line.keys(), wanted.keys())
            for key in wanted:
                expect(f"{what}: {key}", line[key], wanted[key])
        else:
            expect(f"{what}: output", line, wanted)


def check_capture(work, what, kernels, losses=WHOLE):
    capture = work.capture()
    expect(f"{what}: losses", capture.losses(), losses)
    expect(f"{what}: kernels", len(capture.kernels), kernels)
    expect(f"{what}: kernels without a stack", keys(capture.kernels) - keys(capture.launch_stacks),
           set())
    return capture


def check(work, *steps, kernels=0, losses=WHOLE, options=(), **arguments):
    run_both(odd(*steps), *options, work=work, **arguments)
    return check_capture(work, " ".join(steps), kernels, losses)


def test_program_sees_itself_as_usual():
    """Ids, capabilities, signals, limits, descriptors, environment; before and after CUDA is loaded."""
    require_recording()
    with Workspace() as work:
        check(work, "view", "launch=20", "view", kernels=20)
        check(work, "view", options=("--cpu-only",))
        check(work, "view", "launch=20", "view", kernels=20, options=("--launch-stacks=uprobe",))
        check(work, "view", "launch=5", "view", kernels=5, options=("--gpu-only",))


def test_what_is_unusual_is_inherited():
    require_recording()
    require_root()

    def prepare():
        os.umask(0o137)
        os.nice(5)
        os.setsid()
        for name, value in ((resource.RLIMIT_CORE, 4096), (resource.RLIMIT_STACK, 1 << 20),
                            (resource.RLIMIT_NOFILE, 200), (resource.RLIMIT_MEMLOCK, 65536)):
            # Root too may lack the capability to raise a limit.
            most = resource.getrlimit(name)[1]
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.setrlimit(name, (value, value))
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGRTMIN + 3])
        for ignored in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD,
                        signal.SIGTTOU):
            signal.signal(ignored, signal.SIG_IGN)
        os.dup2(1, 77)
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("123")
        with open("/proc/self/coredump_filter", "w") as file:
            file.write("0x7")

    with Workspace() as work:
        for env in (simulated(), {"LD_LIBRARY_PATH": simulated()["LD_LIBRARY_PATH"], "EMPTY": "",
                                  "LD_PRELOAD": "", "A": "=b\n"}):
            # The session is the program's own each time.
            recorded = subprocess.run(
                [recorder(), "-o", work.file("capture.xpu"), *odd("view", "launch=3", "view")],
                preexec_fn=prepare, restore_signals=False, env=env, cwd=work.path, pass_fds=[],
                close_fds=False, capture_output=True, text=True)
            plain = subprocess.run(odd("view", "launch=3", "view"), preexec_fn=prepare,
                                   restore_signals=False, env=env, cwd=work.path, close_fds=False,
                                   capture_output=True, text=True)
            expect(f"status ({recorded.stderr})", recorded.returncode, 0)
            for line, wanted in zip(recorded.stdout.splitlines(), plain.stdout.splitlines()):
                line, wanted = view(line), view(wanted)
                # Of their own session each time: one leads it, the other is in the recorder's.
                expect("in a group and session", line.pop("group") == line.pop("session"),
                       wanted.pop("group") == wanted.pop("session"))
                for key in wanted:
                    expect(key, line[key], wanted[key])
            check_capture(work, "unusual", 3)


def test_standard_descriptors_that_are_closed():
    require_recording()
    with Workspace() as work:
        for closed in ("<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"):
            script = f'exec {closed}; "$@"; echo $? > status'
            seen = []
            for prefix in ((), (recorder(), "-q", "-o", work.file("capture.xpu"))):
                inner = "ls -l /proc/self/fd | sed 's/.*:.. //; s/:.*//' | grep -v /proc > seen; exit 3"
                subprocess.run(["sh", "-c", script, "sh", *prefix, "sh", "-c", inner],
                               cwd=work.path, check=True, timeout=PATIENCE_S)
                expect(f"{closed}: status", (work.path / "status").read_text(), "3\n")
                seen.append((work.path / "seen").read_text())
            expect(f"{closed}: descriptors", seen[1], seen[0])
            expect(f"{closed}: ends", len(work.capture().recording_end), 1)


def test_ways_to_end():
    require_recording()
    with Workspace() as work:
        check(work, "launch=10", "status=42", kernels=10)
        for end in ("_exit=7", "abort"):
            run_both(odd("launch=10", end), work=work)
            expect("kernels and losses", kernels_told(work), 10)


def kernels_told(work):
    """Recorded, or counted as lost."""
    capture = work.capture()
    return len(capture.kernels) + capture.losses().get("cupti_not_delivered", 0)


def test_descriptors_are_closed():
    require_recording()
    with Workspace() as work:
        check(work, "close-all", "launch=20", "close-all", "launch=30", "view", kernels=50)


def test_seccomp():
    require_recording()
    with Workspace() as work:
        # What CUDA starts with is open already: the rest works without new descriptors.
        for action in ("errno", "kill"):
            check(work, "launch=20", f"seccomp={action}", "launch=50", kernels=70)
            check(work, "launch=20", f"no-network={action}", "launch=50", kernels=70)
            # For all threads: our own is one of them.
            check(work, "launch=20", f"seccomp-all={action}", "launch=50", kernels=70)
        # The library finds no way to the recorder.
        check(work, "no-network=errno", "launch=20", losses={"process_not_reached": 1})


def test_other_user_and_other_root():
    require_recording()
    require_root()
    with Workspace() as work:
        os.chmod(work.path, 0o755)
        check(work, "user=65534", "launch=20", kernels=20)
        check(work, "launch=20", "user=65534", "launch=20", "view", kernels=40)
        check(work, "user=65534", "fork", "launch=20", kernels=20)
        check(work, "user=65534", "vfork", "launch=20", "view", kernels=20)
        os.mkdir(work.path / "root")
        check(work, "launch=20", f"chroot={work.path}/root", "launch=20", kernels=40)


def test_limits():
    require_recording()
    with Workspace() as work:
        check(work, "limit=memlock:0", "launch=20", "view", kernels=20)
        check(work, "limit=nofile:16", "launch=20", "view", kernels=20)
        check(work, "launch=5", "limit=nofile:3", "launch=20", kernels=25)
        check(work, f"limit=as:{1 << 30}", "launch=20", kernels=20)


def test_address_space_is_the_programs():
    """The library takes none where there is little: what the program needs it finds."""
    require_recording()
    with Workspace() as work:
        for mebibytes in (60, 80, 215, 400):
            run_both(odd(f"limit=as:{mebibytes << 20}", "launch=20",
                         f"allocate={mebibytes - 40}", "launch=20"), work=work)
            capture = check_capture(work, f"{mebibytes} MiB", 0, {"process_not_reached": 1})
            expect_in("reason", "RLIMIT_AS", capture.details("process_not_reached")[0])


def test_no_descriptor_is_free():
    require_recording()
    with Workspace() as work:
        # One is enough to load CUDA; the socket then takes the last one, and none is left for the ring.
        check(work, "limit=nofile:4", "launch=20", losses={"process_not_reached": 1})


def test_faults_are_the_programs_own():
    require_recording()
    with Workspace() as work:
        check(work, "faults=1000", "launch=20", "faults=1000", "launch=20", kernels=40,
              options=("-F", "999"))


def test_ten_thousand_threads():
    require_recording()
    with Workspace() as work:
        check(work, "threads=10000", kernels=10000)


def test_ten_thousand_processes():
    require_recording()
    with Workspace() as work:
        capture = check(work, "forks=10000", "launch=5", kernels=5)
        forks = [e for e in capture.process_events if e["kind"] == 1 and e["pid"] == e["tid"]]
        expect("forks", len(forks), 10000)


def test_cuda_is_unloaded():
    require_recording()
    with Workspace() as work:
        check(work, "launch=20", "unload", "launch=20", "unload", "view", kernels=40)


def test_ways_to_start_another():
    require_recording()
    with Workspace() as work:
        for way in ("fork", "vfork", "spawn", "thread-exec", "traced"):
            check(work, way, "launch=20", "view", kernels=20)
        # An image that is gone takes along what CUPTI had not delivered.
        run_both(odd("launch=20", "thread-exec", "launch=30"), work=work)
        expect("kernels and losses", kernels_told(work), 50)
        check(work, "vfork", "spawn", "traced", "thread-exec", "launch=7", "status=9", kernels=7)


def test_first_thread_has_ended():
    """The process goes on without it: started, and attached to."""
    require_recording()
    with Workspace() as work:
        check(work, "thread", "launch=10", kernels=10)
    with Workspace() as work, Fifos(work) as fifos:
        program = subprocess.Popen(odd("thread", "launch=5", "view", "wait", "launch=7"),
                                   env=simulated(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   cwd=work.path)
        program.stdout.readline()
        recording = start(work, "-p", str(program.pid), fifos.option, env=simulated())
        fifos.ask("ping")  # it records
        program.communicate(timeout=PATIENCE_S)
        finish(recording)
        check_capture(work, "attached to", 7)


def test_last_thread_ends():
    """The process ends then, although a thread of the library's is there."""
    require_recording()
    env = simulated(XPU_FAKE_WORKER="0")
    with Workspace() as work:
        check(work, "launch=10", "pthread-exit", kernels=10, env=env)
        check(work, "launch=10", "thread", "pthread-exit", kernels=10, env=env)


def test_signal_that_a_thread_waits_for():
    require_recording()
    with Workspace() as work:
        recording = start(work, "--", *odd("launch=10", "sigwait"), env=simulated(XPU_FAKE_WORKER="0"))
        expect("line", recording.stdout.readline(), "waits\n")
        os.kill(program_of(recording.pid, odd()[0]), signal.SIGTERM)
        output, _ = finish(recording, status=3)
        expect("output", output, "took 15\n")
        check_capture(work, "sigwait", 10)


def test_namespaces():
    require_recording()
    require_root()
    with Workspace() as work:
        shutil.copy(odd()[0], work.path / "program")
        os.chmod(work.path, 0o755)
        for names in (["--pid", "--fork", "--mount", "--mount-proc"], ["--user", "--map-root-user"],
                      ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"],
                      ["--ipc", "--uts", "--cgroup"]):
            if subprocess.run(["unshare", *names, "true"], capture_output=True).returncode != 0:
                skip("root", f"unshare {' '.join(names)} is not possible here")
            run_both(["unshare", *names, *odd("launch=20")], work=work)
            check_capture(work, str(names), 20)
        # The abstract socket is of the recorder's network.
        run_both(["unshare", "--net", *odd("launch=20")], work=work)
        check_capture(work, "--net", 0, {"process_not_reached": 1})


def test_whole_container_of_another_root():
    """Its own files, processes and users; the libraries it needs are mounted into it."""
    require_recording()
    require_root()
    with Workspace() as work:
        root = work.path / "root"
        libraries = simulated()["LD_LIBRARY_PATH"]
        inject = os.path.dirname(find("cupti_inject/libxpu_inject.so",
                                      "../lib/xpu/libxpu_inject.so"))
        mounts = ["/usr", libraries, inject, os.path.dirname(odd()[0])]
        for directory in (*mounts, "/proc", "/tmp"):
            os.makedirs(f"{root}/{directory}", exist_ok=True)
        for link in ("/bin", "/lib", "/lib64"):
            os.symlink(f"usr{link}", f"{root}{link}")
        script = ";".join([*(f"mount --bind {directory} {root}{directory}" for directory in mounts),
                           f"mount -t proc proc {root}/proc",
                           f"exec chroot {root} \"$@\""])
        command = ["unshare", "--pid", "--fork", "--mount", "sh", "-ec", script, "sh",
                   *odd("launch=20", "fork", "launch=20", "status=3")]
        if subprocess.run(command[:6] + ["true"], capture_output=True).returncode != 0:
            skip("root", "this machine lets nobody mount")
        run_both(command, work=work)
        expect("kernels", kernels_told(work), 20)


def gaining(work, *, owner=0, group=0, mode=0o755):
    """A copy of the program with these bits."""
    path = work.file("gaining")
    shutil.copy(odd()[0], path)
    os.chown(path, owner, group)
    os.chmod(path, mode)
    return path


def test_programs_that_gain_privileges():
    """The kernel ends the sampling of them: refused as the program, counted as one it starts."""
    require_recording()
    require_root()
    require_set_user_id()
    with Workspace() as work:
        os.chmod(work.path, 0o755)
        user, group = pwd.getpwuid(65534).pw_name, grp.getgrgid(65534).gr_name
        for gained, what in ((dict(owner=65534, mode=0o4755), f"user {user} (setuid)"),
                             (dict(group=65534, mode=0o2755), f"group {group} (setgid)")):
            program = gaining(work, **gained)
            result = work.record(program, "view", output="refused.xpu")
            expect("status", result.returncode, 125)
            expect("output", result.stdout, "")
            expect_in("message", f"{program}: gains the privileges of {what}",
                      result.stderr)
            expect_in("hint", "all processes as root with -a", result.stderr)
            expect("capture", os.path.exists(work.path / "refused.xpu"), False)
            # Nor does it load the library: it is as safe as without us.
            run_both(["sh", "-c", f"{program} view launch=20; exit 4"], work=work)
            check_capture(work, what, 0, {"privileges_gained": 1})
            run_both([program, "view"], "-a", work=work)


def test_bits_that_give_nothing():
    require_recording()
    require_root()
    require_set_user_id()
    with Workspace() as work:
        os.chmod(work.path, 0o755)
        for bits in (dict(mode=0o6755), dict(group=65534, mode=0o2745)):
            run_both([gaining(work, **bits), "view", "launch=20"], work=work)
            check_capture(work, str(bits), 20)
        program = gaining(work, owner=65534, mode=0o4755)
        run_both([program, "view", "launch=20"], work=work, prefix=["setpriv", "--no-new-privs"])
        check_capture(work, "no_new_privs", 20)
        script = work.file("script", f"#!/bin/sh\n{odd()[0]} view launch=20\n", 0o4755)
        os.chown(script, 65534, 65534)
        os.chmod(script, 0o4755)
        run_both([script], work=work)
        check_capture(work, "script", 20)


def test_static_and_32_bit_programs():
    require_recording()
    with Workspace() as work:
        # Without their pids.
        script = "\"$0\" 30 | sed 's/^.\"pid\":[0-9]*//'"
        run_both(["sh", "-c", script, find("tests/workloads/unwind/calls-static")], work=work)
        check_capture(work, "static", 0)
        source = work.file("small.c", """
void _start(void) {
  static const char text[] = "32 bits\\n";
  int result;
  for (volatile int i = 0; i < 200000000; ++i) {}
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(4), "b"(1), "c"(text), "d"(8));
  __asm__ volatile("int $0x80" : : "a"(1), "b"(5));
}
""")
        compiled = subprocess.run(["gcc", "-m32", "-O1", "-nostdlib", "-static", "-ffreestanding",
                                   "-fno-pic", "-o", work.file("small"), source],
                                  capture_output=True, text=True)
        if compiled.returncode != 0:
            skip("32", f"no compiler for 32 bits: {compiled.stderr}")
        # By a shell, whose status says it where the kernel refuses the exec.
        if subprocess.run(["sh", "-c", work.file("small")], capture_output=True).returncode != 5:
            skip("32", "this kernel runs no programs of 32 bits")
        run_both([work.file("small")], work=work)
        capture = check_capture(work, "32 bits", 0)
        expect("sampled", len(capture.cpu_samples) > 0, True)


if __name__ == "__main__":
    main(globals())

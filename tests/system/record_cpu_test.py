"""CPU recording: every thread and process is sampled, with the right shares, names and mappings."""

import json
import math
import os
import shutil
import subprocess

from xpu_testing import (Symbols, Workspace, expect, find, main, require_recording,
                         require_set_user_id, skip, workload)

FORK, EXEC, NAME, EXIT = 1, 2, 3, 4


def test_a_program_starts_when_its_tables_are_there():
    """Whatever they take of two seconds, where it is not their making: on a loaded machine for one."""
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", "997", workload("cpu_hot"), "--seconds", "0.1",
                             env={**os.environ, "XPU_TEST_TABLE_DELAY_MS": "150"})
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        expect("samples", len(capture.cpu_samples) > 0, True)
        expect("without a table", capture.ledger().get("unwind_table_not_ready", 0), 0)


def test_program_that_does_nothing():
    require_recording()
    with Workspace() as work:
        expect("status", work.record("--cpu-only", "/bin/true").returncode, 0)
        capture = work.capture()
        info = capture.recording_info[0]
        expect("command", info["command_line"], "/bin/true")
        expect("settings", info["settings"], f"-o {work.path}/capture.xpu --cpu-only /bin/true"
               .replace(" /bin/true", ""))
        expect("folder", info["working_directory"], str(work.path.resolve()))
        expect("cpus", info["cpu_count"], os.cpu_count())
        end = capture.recording_end[0]
        expect("wait status", end["wait_status"], 0)
        source = capture.sample_sources[0]
        expect("source", (source["source"], source["name"], source["frequency_hz"],
                          source["period"], source["unit"]), (1, "cpu-clock", 99, 10101010, "ns"))
        expect("losses", capture.losses(), {})
        kinds = [(e["kind"], e["name"]) for e in capture.process_events
                 if e["pid"] == end["target_pid"]]
        expect("events of the program", kinds, [(0, "xpu-record"), (EXEC, "true"), (EXIT, "")])
        paths = {m["path"]: m for m in capture.mappings}
        program = os.path.realpath("/bin/true")
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True).stdout
        build_id = notes.split("Build ID: ")[1].split()[0]
        expect("build-id", paths[program]["build_id"].encode("latin1").hex(), build_id)
        expect("protection", paths[program]["protection"] & 4, 4)
        expect("vdso", "[vdso]" in paths, True)


def test_wait_status_and_quoting_are_stored():
    require_recording()
    with Workspace() as work:
        work.record("--cpu-only", "sh", "-c", "exit 3", "it's")
        capture = work.capture()
        expect("wait status", capture.recording_end[0]["wait_status"], 3 << 8)
        expect("command", capture.recording_info[0]["command_line"],
               "sh -c 'exit 3' 'it'\\''s'")


def samples_by_function(capture, pid, program):
    """Counts of samples per innermost user function of the program's own text."""
    symbols = Symbols(program)
    counts = {}
    stacks = {}
    for sample in capture.cpu_samples:
        user = [frame for frame in sample["stack"] if frame[0] == "u"]
        if sample["pid"] != pid or not user:
            continue
        names = []
        for frame in user:
            address = int(frame[1:], 16)
            mapping = capture.mapping_at(pid, address, sample["time_ns"])
            inside = mapping is not None and mapping["path"] == os.path.realpath(program)
            offset = address - mapping["start_address"] + mapping["file_offset"] if inside else None
            names.append(symbols.name_at(offset) if inside else None)
        counts[names[0]] = counts.get(names[0], 0) + 1
        stacks.setdefault(names[0], []).append(names)
    return counts, stacks


# A round of cpu_hot takes about 1 ms: a period near a multiple of it would see one part of it only.
FREQUENCY = 307


def check_count(sampled, expected):
    """The clock ran in every thread. Beside other work the scheduler's turns may be in step with
    it for a while, so that the program gets more ticks than its share of the time."""
    if not 0.85 * expected < sampled < 1.4 * expected:
        raise AssertionError(f"{sampled} samples, about {expected:.0f} expected")


def check_shares(threads):
    require_recording()
    program = workload("cpu_hot")
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", str(FREQUENCY), program, "--seconds", "3", "--threads",
                             str(threads))
        expect("status", result.returncode, 0)
        truth = json.loads(result.stdout)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        counts, stacks = samples_by_function(capture, truth["pid"], program)
        total = sum(truth["cpu_ns"].values())
        sampled = sum(counts.values())
        for name, cpu_ns in truth["cpu_ns"].items():
            wanted = 100 * cpu_ns / total
            share = 100 * counts.get(name, 0) / sampled
            # Samples are drawn at random: five standard deviations of so many draws.
            deviation = math.sqrt(wanted * (100 - wanted) / sampled)
            if abs(share - wanted) > 5 * deviation:
                raise AssertionError(f"{name}: {share:.1f} % of the samples, {wanted:.1f} % of "
                                     f"the time; {counts}")
        check_count(sampled, FREQUENCY * total / 1e9)
        # GCC gives leaf functions no frame, so the direct caller may be missing; so it is in a
        # function's first and last instructions. Calibrate calls HotHalf too.
        whole = [n for n in stacks["HotHalf"] if "RunHotLoop" in n[1:3]]
        if len(whole) < 0.9 * len(stacks["HotHalf"]):
            raise AssertionError(f"{len(whole)} of {len(stacks['HotHalf'])} stacks are whole: "
                                 f"{stacks['HotHalf'][-1]}")


def test_shares_of_known_functions():
    check_shares(1)


def test_shares_of_known_functions_with_threads():
    check_shares(3)


def test_threads_forks_and_execs_are_all_sampled():
    """By the clocks of the CPUs, and by those of the threads."""
    require_recording()
    for frequency in (499, 999):
        check_threads_forks_and_execs(frequency)


def check_threads_forks_and_execs(frequency):
    program = workload("cpu_fork")
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", str(frequency), program, "--children", "2",
                             "--threads", "2", "--ms", "200")
        expect("status", result.returncode, 0)
        truth = json.loads(result.stdout)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        events = capture.process_events
        forks = [e for e in events if e["kind"] == FORK and e["pid"] != e["parent_pid"]]
        expect("forks", len(forks), truth["forks"])
        started = [e for e in events if e["kind"] == FORK]
        expect("threads", len(started) + 1, truth["threads"])
        execs = [e for e in events if e["kind"] == EXEC]
        expect("execs", len(execs), truth["execs"] + 1)
        exits = [e for e in events if e["kind"] == EXIT]
        expect("exits", len(exits), truth["threads"])
        # Every thread spent 200 ms in a function of its own, so its samples are known.
        threads = [(truth["pid"], truth["pid"], "RootBurn", truth["cpu_ns"])]
        for report in truth["reports"]:
            threads.append((report["pid"], report["pid"], report["function"], report["cpu_ns"]))
            threads += [(report["pid"], thread["tid"], thread["function"], thread["cpu_ns"])
                        for thread in report["threads"]]
        sampled = sum(check_thread(capture, program, *thread, frequency) for thread in threads)
        check_count(sampled, frequency * sum(thread[-1] for thread in threads) / 1e9)
        names = {(e["tid"], e["name"]) for e in events if e["kind"] == NAME}
        for report in truth["reports"]:
            expect("name", (report["pid"], report["comm"]) in names, True)
            for thread in report["threads"]:
                expect("name", (thread["tid"], thread["comm"]) in names, True)


def check_thread(capture, program, pid, tid, function, cpu_ns, frequency):
    samples = [s for s in capture.cpu_samples if (s["pid"], s["tid"]) == (pid, tid)]
    capture_of_thread = type("Samples", (), {"cpu_samples": samples,
                                             "mapping_at": capture.mapping_at})
    counts, unused = samples_by_function(capture_of_thread, pid, program)
    expected = frequency * cpu_ns / 1e9
    # The scheduler's turns may be in step with the clock for a while: those of one thread then hold
    # more ticks than their share, and those of another fewer.
    if not 0.6 * expected < counts.get(function, 0) < 1.4 * expected:
        raise AssertionError(f"{function} in {pid}/{tid}: {counts} of {len(samples)}, "
                             f"about {expected:.0f} expected")
    # Other threads' functions have no place here; libraries and the program's start have.
    others = [name for name in counts if name and name.endswith("Burn") and name != function]
    expect(f"functions of others in {pid}/{tid}", others, [])
    return counts[function]


def test_processes_shorter_than_a_period_are_sampled():
    """200 processes of 5 ms each at 99 Hz: none lives to the end of a sampling period."""
    require_recording()
    with Workspace() as work:
        loop = f"for i in $(seq 200); do {workload('cpu_hot')} --seconds 0.005; done"
        result = work.record("--cpu-only", "sh", "-c", loop)
        expect("status", result.returncode, 0)
        truth = [json.loads(line) for line in result.stdout.splitlines()]
        capture = work.capture()
        pids = {t["pid"] for t in truth}
        samples = len([s for s in capture.cpu_samples if s["pid"] in pids])
        # That many draws, so they spread; and the processes do more than they count themselves:
        # what starting and ending them takes, the system counts when they run alone.
        wanted = 99 * sum(sum(t["cpu_ns"].values()) for t in truth) / 1e9
        before = os.times()
        subprocess.run(["sh", "-c", loop], stdout=subprocess.DEVNULL, check=True)
        after = os.times()
        most = 99 * (after.children_user - before.children_user +
                     after.children_system - before.children_system)
        if not 0.6 * wanted < samples < 1.5 * max(most, wanted):
            raise AssertionError(f"{samples} samples, {wanted:.0f} to {most:.0f} expected")


RHYTHM = """
import time
begin = time.monotonic()
for step in range(300):
    time.sleep(max(0, begin + step / 100 - time.monotonic()))
    end = time.thread_time() + 0.002
    while time.thread_time() < end: pass
print(time.process_time())
"""


def test_a_program_that_wakes_as_often_as_samples_are_taken():
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", "100", "python3", "-c", RHYTHM)
        expect("status", result.returncode, 0)
        seconds = float(result.stdout)
        sampled = len(work.capture().cpu_samples) / 100
        expect(f"sampled {sampled} s of {seconds} s", 0.6 < sampled / seconds < 1.6, True)


def test_nothing_else_is_sampled():
    """The clocks are those of the CPUs, on which others run too: the program alone is recorded, from
    its exec on."""
    require_recording()
    with Workspace() as work:
        others = [subprocess.Popen([workload("cpu_hot"), "--seconds", "60"],
                                   stdout=subprocess.DEVNULL) for _ in range(os.cpu_count())]
        try:
            result = work.record("--cpu-only", "-F", "499", workload("cpu_fork"), "--children", "2",
                                 "--threads", "1", "--ms", "100")
        finally:
            for other in others:
                other.kill()
                other.wait()
        truth = json.loads(result.stdout)
        capture = work.capture()
        expect("losses", capture.losses(), {})
        expect("processes", {s["pid"] for s in capture.cpu_samples},
               {truth["pid"], *(report["pid"] for report in truth["reports"])})
        (begin,) = [e["time_ns"] for e in capture.process_events
                    if e["kind"] == EXEC and e["pid"] == truth["pid"]]
        expect("samples before the exec",
               [s for s in capture.cpu_samples if s["time_ns"] < begin], [])


def test_program_that_gains_privileges_is_not_sampled():
    """Nor are its children, whose mappings the kernel does not report. Its caller's other children are."""
    require_recording()
    if os.geteuid() != 0:
        skip("root", "only root makes such a program")
    require_set_user_id()
    with Workspace() as work:
        os.chmod(work.path, 0o755)
        gaining = work.file("gaining")
        shutil.copy(workload("cpu_fork"), gaining)
        os.chown(gaining, 65534, 65534)
        os.chmod(gaining, 0o4755)
        usual = workload("cpu_fork")
        burn = "--children 1 --threads 1 --ms 50"
        result = work.record("--cpu-only", "-F", "499", "sh", "-c",
                             f"{gaining} {burn}; {usual} {burn}; exit 7")
        expect("status", result.returncode, 7)
        out_of_reach, within = (json.loads(line) for line in result.stdout.splitlines())
        capture = work.capture()
        expect("losses", {**capture.losses(), "privileges_gained": 1}, {"privileges_gained": 1})
        # Until the end of its exec, inside the kernel, the process is one of the shell's own.
        begins = {e["pid"]: e["time_ns"] for e in capture.process_events if e["kind"] == EXEC}
        for process in (out_of_reach, *out_of_reach["reports"]):
            late = [s for s in capture.cpu_samples if s["pid"] == process["pid"]
                    and s["time_ns"] >= begins.get(process["pid"], 0)
                    and any(frame.startswith("u") for frame in s["stack"])]
            expect(f"samples of process {process['pid']}", late, [])
        sampled = {s["pid"] for s in capture.cpu_samples}
        for process in (within, *within["reports"]):
            expect(f"process {process['pid']} is sampled", process["pid"] in sampled, True)


def test_threads_that_the_kernel_makes_are_sampled():
    """Those of io_uring, which do a program's input and output, come without a fork."""
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", "499", find("tests/system/xpu_io_worker"), "0.4")
        if result.returncode == 77:
            skip("io_uring", "io_uring is not to be had here")
        expect("status", result.returncode, 0)
        capture = work.capture()
        pid = capture.recording_end[0]["target_pid"]
        samples = [s for s in capture.cpu_samples if s["pid"] == pid and s["tid"] != pid]
        # 200 less what the first thread takes, which starts the reads and waits for them.
        if not 100 < len(samples) < 250:
            raise AssertionError(f"{len(samples)} samples, less than 200 expected")


def test_pids_are_those_that_the_recorder_sees():
    """Also of a program in a pid namespace further inside."""
    require_recording()
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", "999", "unshare", "--pid", "--fork", "--mount-proc",
                             workload("cpu_hot"), "--seconds", "0.3")
        if "unshare" in result.stderr:
            skip("root", result.stderr.strip())
        expect("the program's own pid", json.loads(result.stdout)["pid"], 1)
        capture = work.capture()
        (pid,) = [e["pid"] for e in capture.process_events
                  if e["kind"] == EXEC and e["name"] == "cpu_hot"]
        samples = [s for s in capture.cpu_samples if (s["pid"], s["tid"]) == (pid, pid)]
        expect("samples", len(samples) > 200, True)
        expect("samples of nobody", [s for s in capture.cpu_samples if s["pid"] == 0], [])


def test_threads_at_their_end_keep_their_numbers():
    """The kernel takes them back before the thread is done with the CPU."""
    require_recording()
    program = ("import threading\n"
               "for i in range(20000):\n"
               "  thread = threading.Thread(target=int); thread.start(); thread.join()")
    with Workspace() as work:
        result = work.record("--cpu-only", "-F", "499", "python3", "-c", program)
        expect("status", result.returncode, 0)
        capture = work.capture()
        pid = capture.recording_end[0]["target_pid"]
        threads = {(e["pid"], e["tid"]) for e in capture.process_events if e["kind"] == FORK}
        sampled = {(s["pid"], s["tid"]) for s in capture.cpu_samples}
        expect("threads", len(sampled) > 100, True)
        expect("unknown threads", sampled - threads - {(pid, pid)}, set())


def test_kernel_frames_have_names():
    require_recording()
    with Workspace() as work:
        work.record("--cpu-only", "-F", "999", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M",
                    "count=4000")
        capture = work.capture()
        symbols = sorted((s["address"], s["size_bytes"], s["name"]) for s in capture.kernel_symbols)
        kernel = set()
        for sample in capture.cpu_samples:
            kernel |= {int(f[1:], 16) for f in sample["stack"] if f[0] == "k"}
        expect("kernel frames", len(kernel) > 3, True)
        unnamed = [hex(a) for a in kernel
                   if not any(start <= a < start + size for start, size, _ in symbols)]
        expect("kernel frames without a name", unnamed, [])
        expect("a system call", any("read" in name for _, _, name in symbols), True)
        # Nothing but what occurs.
        unused = [name for start, size, name in symbols
                  if not any(start <= a < start + size for a in kernel)]
        expect("symbols that do not occur", unused, [])


def test_frames_are_innermost_first_kernel_then_user():
    require_recording()
    with Workspace() as work:
        work.record("--cpu-only", "-F", "999", "dd", "if=/dev/zero", "of=/dev/null", "bs=1M",
                    "count=2000")
        mixed = 0
        for sample in work.capture().cpu_samples:
            kinds = "".join(frame[0] for frame in sample["stack"])
            expect("order", kinds, "k" * kinds.count("k") + "u" * kinds.count("u"))
            mixed += 0 < kinds.count("k") < len(kinds)
        expect("stacks of both", mixed > 3, True)


def test_gpu_only_takes_no_samples():
    require_recording()
    with Workspace() as work:
        result = work.record("--gpu-only", "--launch-stacks=none", workload("cpu_hot"),
                             "--seconds", "0.3")
        expect("status", result.returncode, 0)
        capture = work.capture()
        expect("samples", capture.cpu_samples, [])
        expect("sources", capture.sample_sources, [])
        expect("execs", len([e for e in capture.process_events if e["kind"] == EXEC]), 1)


if __name__ == "__main__":
    main(globals())

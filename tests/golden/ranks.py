"""Jobs of ranks on hosts whose clocks are off and drift, with planted stragglers, missing ranks and
damaged captures, or recorded from the middle (make_job.cpp): what was planted is found."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

MAKE_JOB, REPORT = sys.argv[1:]
CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
RANKS, MISSING, STEPS = 64, {7, 30}, 60
TOLERANCE_NS = 20_000
CUT, FLIPPED, EMPTY = 50, 21, 33


def expect(what, actual, wanted):
    if actual != wanted:
        raise AssertionError(f"{what}: {actual!r}, expected {wanted!r}")


def table(directory, name):
    done = subprocess.run([REPORT, directory, "--table", name, "-n", "0", "--format", "json"],
                          capture_output=True, text=True, timeout=240, check=True)
    return json.loads(done.stdout)[name]


def check_clocks(directory, truth):
    rows = {row["Host"]: row for row in table(directory, "host_clock_sum")}
    expect("hosts", sorted(rows), [f"node{n}" for n in range(8)])
    for number, ahead_ns in enumerate(truth["ahead_ns"]):
        row = rows[f"node{number}"]
        if number == 0:
            continue
        off_ns = abs(row["Ahead (ns)"] - ahead_ns)
        expect(f"node{number}: off by {off_ns} ns", off_ns <= TOLERANCE_NS, True)
        expect(f"node{number}: residual", row["Residual (ns)"] <= 10_000, True)
        expect(f"node{number}: aligned by", row["Aligned By"], "collectives")


def arrivals(row):
    """By rank, since the first one; None: not in the captures."""
    pairs = (word.split(":") for word in row["Arrivals (rank:ns)"].split())
    return {int(rank): None if at == "?" else int(at) for rank, at in pairs}


def check_arrivals(directory, truth, whole):
    """`whole`: the ranks whose captures are complete. Returns the ranks of each collective."""
    rows = sorted(table(directory, "collective_trace"), key=lambda row: row["Seq"])
    expect("collectives", len(rows), 2 * STEPS)
    expect("ranks of the communicator", {row["Ranks"] for row in rows}, {RANKS})
    seen = []
    for row, planted in zip(rows, truth["arrivals_ns"]):
        found = {rank: at for rank, at in arrivals(row).items() if at is not None}
        expect(f"{row['Seq']}: ranks are missing", whole - set(found), set())
        # Against one rank: the first one is not the same with errors of the clocks.
        base = found[0] - planted[0]
        off = {rank: at - planted[rank] - base for rank, at in found.items()
               if abs(at - planted[rank] - base) > TOLERANCE_NS}
        expect(f"{row['Seq']}: arrivals that are off", off, {})
        seen.append(set(found))
    return rows, seen


def check_stragglers(directory):
    rows = table(directory, "straggler_sum")
    cpu, gpu = rows[:2]
    expect("late on the CPU", (cpu["Rank"], cpu["Host"], cpu["Last Times"], cpu["Cause"]),
           (13, "node1", 5, "CPU"))
    expect("its path", cpu["Path"].split(";")[-2:], ["train_step", "load_batch"])
    expect("late on the GPU", (gpu["Rank"], gpu["Host"], gpu["Last Times"], gpu["Cause"]),
           (42, "node5", 5, "GPU work"))
    expect("its path ends with", gpu["Path"].split(";")[-1], "[GPU_Kernel]slow_kernel")
    # The jitter of all others is 0.2 ms.
    expect("the next", rows[2]["Max Delay (ns)"] < 300_000, True)


def report(directory, *arguments):
    return subprocess.run([REPORT, *arguments, directory], capture_output=True, text=True,
                          timeout=240, check=True).stdout


def check_views(directory):
    groups = {line.split(";")[0] for line in report(directory, "--folded", "--by",
                                                    "rank").splitlines()}
    expect("ranks", groups, {f"rank{rank}" for rank in range(RANKS) if rank not in MISSING})
    hosts = {line.split(";")[0] for line in report(directory, "--folded", "--by", "host",
                                                   "--rank", "13,42").splitlines()}
    expect("hosts of two ranks", hosts, {"node1", "node5"})
    trace = json.loads(report(directory, "--chrome-trace", "--host", "node5", "--kernel",
                              "AllReduce"))["traceEvents"]
    names = {event["args"]["name"]: event["pid"] for event in trace
             if event["ph"] == "M" and event["name"] == "process_name"}
    groups = {name: pid for name, pid in names.items() if name.startswith("rank ")}
    expect("groups of tracks", sorted(groups), [f"rank {rank} on node5" for rank in range(40, 48)])
    slices = [event for event in trace if event.get("cat") == "collective"]
    expect("slices", len(slices), 8 * STEPS)
    late = [event for event in slices if event["args"]["sequence"] == 44 and
            event["pid"] == groups["rank 42 on node5"]]
    expect("the late rank did not wait", [event["args"]["waited_us"] for event in late], [0])
    arrows = report(directory, "--chrome-trace").count('"name":"wait"')
    expect("both ends of arrows", arrows, 2 * 2 * STEPS)


def check_summary(directory):
    text = " ".join(report(directory).split())
    for part in ("captures ... 62 in all", "ranks 0-6, 8-29, 31-63 of 64, on 8 hosts, job 4711",
                 "clocks of 8 hosts are aligned by collectives, to within",
                 "NCCL 120, 0 with all ranks", "13 on node1 (pid 1013)",
                 "... 54 more: --top --table rank_sum"):
        if part not in text:
            raise AssertionError(f"no {part!r} in {text[:3000]}")


def check_attached(ranks, steps):
    """Without NVTX, from another collective on in each rank, with losses and broadcasts."""
    late = min(13, ranks - 1)
    with tempfile.TemporaryDirectory() as place:
        truth = json.loads(subprocess.run([MAKE_JOB, place, str(ranks), str(steps), "attached"],
                                          capture_output=True, text=True, check=True,
                                          timeout=60).stdout)
        first = [rank * 7 % 21 for rank in range(ranks)]
        lost = [range(steps // 2, steps // 2 + 3) if rank % 5 == 4 else () for rank in range(ranks)]
        waited, times = 0, 0
        for step in range(3, steps, 7):
            there = [rank for rank in range(ranks)
                     if first[rank] <= step and step not in lost[rank]]
            if late not in there:
                continue
            arrivals = truth["arrivals_ns"][2 * step]
            waited += sum(arrivals[late] - arrivals[rank] for rank in there)
            times += 1
        worst, *others = table(place, "straggler_sum")
        expect(f"{ranks} ranks: the straggler", (worst["Rank"], worst["Cause"], worst["Last Times"]),
               (late, "CPU", times))
        expect("its path", worst["Path"].split(";")[-1], "load_batch")
        expect(f"waited {worst['Waited (ns)'] / waited:.4f} of what was planted",
               abs(worst["Waited (ns)"] / waited - 1) < 0.01, True)
        # The jitter of the others: 0.2 ms of each arrival.
        rest = sum(row["Waited (ns)"] for row in others)
        expect("waited for others", rest < ranks * steps * 400_000, True)
        rows = {row["Operation"]: row for row in table(place, "collective_sum")}
        expect("collectives", {name: row["Count"] for name, row in rows.items()},
               {"AllReduce": steps, "AllGather": steps, "Broadcast": steps // 10})
        expect("ranks", {row["Ranks"] for row in rows.values()}, {ranks})
        text = " ".join(report(place).split())
        for part in (f"Rank {late} came late to {times} collectives", "in main > train_step > load_batch"):
            if part not in text:
                raise AssertionError(f"no {part!r} in {text[:4000]}")
        lanes = strip_lanes(place)
        darkest = max(lanes, key=lambda lane: sum(lane["value"]))
        expect("lanes", len(lanes), min(ranks, 64))
        expect("the darkest lane", darkest["name"], f"rank{late} awaited")


def strip_lanes(directory):
    """The map of ranks by steps in the page."""
    page = report(directory, "--flamegraph")
    data = json.loads(page.split('type="application/json">', 1)[1].split("</script>", 1)[0])
    return [lane for lane in data["strip"]["lanes"] if lane.get("heat")]


def damage(directory):
    cut, flipped = (directory / f"node{rank // 8}.rank{rank}.xpu" for rank in (CUT, FLIPPED))
    cut.write_bytes(cut.read_bytes()[:cut.stat().st_size * 6 // 10])
    content = bytearray(flipped.read_bytes())
    middle = len(content) // 2
    for at in range(middle, middle + 16):
        content[at] ^= 0xff
    flipped.write_bytes(bytes(content))
    (directory / f"node{EMPTY // 8}.rank{EMPTY}.xpu").write_bytes(b"")


def check_real_ranks():
    """Two ranks of PyTorch on two GPUs: every collective, and the bandwidths that they measured."""
    accounts = json.loads((CAPTURES / "nccl_ranks.json").read_text())
    capture = CAPTURES / "nccl_ranks.xpu"
    rows = table(capture, "collective_sum")
    for i, truth in enumerate(accounts[0]["timed"]):
        (row,) = [row for row in rows if row["Operation"] == truth["operation"] and
                  row["Bytes"] == truth["bytes"]]
        expect(f"{truth['operation']}: count, complete, matched by",
               (row["Count"], row["Complete"], row["Matched By"]),
               (truth["calls"], truth["calls"], "NVTX"))
        bus = sum(account["timed"][i]["bus"] for account in accounts) / len(accounts)
        ratio = row["BusBW (GB/s)"] / bus
        expect(f"{truth['operation']}: bandwidth {ratio:.3f}", abs(ratio - 1) <= 0.05, True)
    trace = table(capture, "collective_trace")
    expect("ranks", {(row["Arrived"], row["Ranks"]) for row in trace}, {(2, 2)})
    expect("grouped", sum("grouped" in row["Matched By"] for row in trace),
           accounts[0]["grouped"])
    late = [row for row in trace if row["Bytes"] == accounts[0]["late_bytes"]]
    expect("late steps", [row["Last Rank"] for row in late], [1] * accounts[0]["late_steps"])
    least_ns = accounts[0]["late_ms"] * 1e6
    expect("skews", all(0.9 < row["Skew (ns)"] / least_ns < 1.5 for row in late), True)
    # It slept: without --off-cpu the stacks are those of the launches.
    worst = table(capture, "straggler_sum")[0]
    expect("straggler", (worst["Rank"], worst["Cause"], worst["Last Times"]), (1, "not running", 5))
    expect("its function", "nccl_collectives.py:late_steps" in worst["Path"], True)
    overlaps = table(capture, "comm_overlap_sum")
    expect("ranks that communicate", [row["Rank"] for row in overlaps], [0, 1])
    for row in overlaps:
        expect("communication", row["Communication (ns)"] > 0, True)


def check_real_attach():
    """Two ranks that were attached to one after the other: both were late at times that they wrote
    down, sometimes in the same step."""
    directory = CAPTURES / "ranks_attached"
    accounts = json.loads((directory / "late.json").read_text())
    (start_ns,) = re.findall(r"recording_info start_ns=(\d+)",
                             report(directory / "rank0.xpu", "--dump"))
    both = [row for row in table(directory, "collective_trace") if row["Arrived"] == 2]
    expect("of two ranks", {row["Ranks"] for row in both}, {2})
    begin, end = (int(start_ns) + both[at]["Start (ns)"] for at in (0, -1))
    first, second = ([ns for ns in account["late_ns"] if begin < ns < end]
                     for account in accounts)
    long_ns, short_ns = (account["late_ms"] * 1_000_000 for account in accounts)

    def is_near(ns, others):
        return any(abs(ns - other) < 10_000_000 for other in others)

    planted = [sum(long_ns - (short_ns if is_near(ns, second) else 0) for ns in first),
               sum(short_ns for ns in second if not is_near(ns, first))]
    rows = sorted(table(directory, "rank_sum"), key=lambda row: row["Rank"])
    for row, planted_ns in zip(rows, planted):
        ratio = row["Waited For (ns)"] / planted_ns
        expect(f"rank {row['Rank']}: waited for {ratio:.3f} of what it was late",
               abs(ratio - 1) < 0.05, True)
    text = " ".join(report(directory).split())
    for part in (f"Rank 0 came late to {len(first)} collectives", "late.py:decode_images",
                 "rank 1 came late to", "late.py:tokenize"):
        if part not in text:
            raise AssertionError(f"no {part!r} in {text[:3000]}")


def main():
    check_real_ranks()
    check_real_attach()
    check_attached(4, 200)
    check_attached(64, 120)
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        truth = json.loads(subprocess.run([MAKE_JOB, directory], capture_output=True, text=True,
                                          check=True, timeout=60).stdout)
        there = set(range(RANKS)) - MISSING
        check_clocks(directory, truth)
        rows, _ = check_arrivals(directory, truth, there)
        for row in table(directory, "collective_sum"):
            expect("count, complete", (row["Count"], row["Complete"]), (STEPS, 0))
        expect("last in step 12", rows[24]["Last Rank"], 13)
        expect("last in step 22", rows[44]["Last Rank"], 42)
        check_stragglers(directory)
        check_views(directory)
        check_summary(directory)
        # A rank that is late by 5 ms makes 61 others wait for nearly as long each.
        expect("waited", 61 * 4_700_000 < rows[24]["Waited (ns)"] < 61 * 5_300_000, True)
        damage(directory)
        check_clocks(directory, truth)
        _, seen = check_arrivals(directory, truth, there - {CUT, FLIPPED, EMPTY})
        expect("the one that was cut is there at first", [CUT in ranks for ranks in seen[:40]],
               [True] * 40)
        expect("and not at the end", CUT in seen[-1], False)
        flipped = [FLIPPED in ranks for ranks in seen]
        expect("the one with a hole is there around it",
               (all(flipped[:20]), all(flipped[-20:]), all(flipped)), (True, True, False))
        check_stragglers(directory)


if __name__ == "__main__":
    main()

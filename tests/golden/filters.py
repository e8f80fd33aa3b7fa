"""What options leave of captures recorded on GPUs: the views that are left agree with each other."""

import json
import re

from xpu_testing import CAPTURES, expect, expect_in, main, report, run_report, table_rows

LOADER = CAPTURES / "pytorch_loader.xpu"
KERNELS = CAPTURES / "gpu_code/stall_kernels.xpu"
RANKS = CAPTURES / "nccl_ranks.xpu"


def test_waits_of_scattered_steps():
    threads = len(table_rows(LOADER, "thread_sum"))
    slow = table_rows(LOADER, "step_sum")[0]
    for column in ("Median (ns)", "Slow (ns)"):
        # A wait that lasts over several steps counts in each with its part of it.
        waited = sum(row[column] for row in table_rows(LOADER, "off_cpu_sum", "--slow-steps"))
        expect(f"{column} of all waits: {waited}", 0 < waited < threads * slow["P99 (ns)"] / 2, True)


def test_threads_within_a_time():
    text = report("--time", "0-4.45", LOADER)
    [line] = [line for line in text.splitlines() if re.match(r"[ \d.]+ s  python3/2608$", line)]
    expect(f"the main thread ran: {line}", float(line.split()[0]) > 95, True)


def test_steps_of_a_range():
    [row] = table_rows(LOADER, "step_sum", "--step-range", "37")
    expect("one step", (row["Steps"], row["Kernels"]), (1, 48))
    trace = table_rows(LOADER, "step_trace", "--step-range", "10-12")
    expect("numbers", [row["Step"] for row in trace], [10, 11, 12])
    whole = {row["Step"]: row for row in table_rows(LOADER, "step_trace")}
    # The GPU is idle after the last one until the next one, which is not shown.
    expect("the same rows", trace[:-1], [whole[row["Step"]] for row in trace[:-1]])
    trace = table_rows(LOADER, "step_trace", "--time", "12-13")
    numbers = [row["Step"] for row in trace]
    expect("steps of a second", numbers, list(range(numbers[0], numbers[-1] + 1)))
    [row] = table_rows(LOADER, "step_sum", "--time", "12-13")
    expect("as many", row["Steps"], len(numbers))
    slow = report("--slow-steps", "--time", "12-13", LOADER)
    expect_in("of these", f" of {len(numbers)} steps, ", slow)
    named = re.search(r"on average: ([\d, ]+)", slow)[1]
    expect(f"slow ones are among them: {named}",
           {int(number) for number in named.split(",") if number.strip()} <= set(numbers), True)


def path_ns(capture, *options):
    return sum(row["Total Time (ns)"] for row in table_rows(capture, "critical_path_sum", *options))


def test_critical_paths_stay_inside():
    for begin, end in ((0, 4.45), (0, 10), (12, 12.002), (13, 15)):
        length = path_ns(LOADER, "--time", f"{begin}-{end}")
        expect(f"{length} ns from {begin} to {end} s", 0 < length <= (end - begin) * 1e9, True)
    expect("of a process that is not there", path_ns(LOADER, "--pid", "99"), 0)
    transformer = CAPTURES / "transformer.xpu"
    expect("kernels choose no process", path_ns(transformer, "--kernel", "zzz"),
           path_ns(transformer))


def test_samples_of_kernels():
    of_all = table_rows(KERNELS, "gpu_function_sum")
    of_one = [row for row in of_all if row["Kernel"].startswith("pointer_chase(")]
    rows = table_rows(KERNELS, "gpu_function_sum", "--kernel", "pointer_chase")
    columns = ("Function", "Samples", "Self Time (ns)")
    expect("functions", [[row[c] for c in columns] for row in rows],
           [[row[c] for c in columns] for row in of_one])
    stalls = table_rows(KERNELS, "gpu_stall_sum", "--kernel", "pointer_chase")
    expect("by stall", sum(row["Samples"] for row in stalls),
           sum(row["Samples"] for row in table_rows(KERNELS, "gpu_line_sum") if
               row["Kernel"].startswith("pointer_chase(")))
    expect("of none", table_rows(KERNELS, "gpu_line_sum", "--kernel", "zzz"), [])
    # When samples were taken is not known: of kernels that run then, all.
    rows = table_rows(KERNELS, "gpu_function_sum", "--time", "0.5-0.501")
    ran = table_rows(KERNELS, "cuda_gpu_kern_sum", "--time", "0.5-0.501")
    expect("kernels of a time", {row["Kernel"] for row in rows}, {row["Name"] for row in ran})
    expect("not all", 0 < len(rows) < len(of_all), True)
    expect_in("why none is annotated", "match --kernel zzz",
              run_report("--annotate", ".", "--kernel", "zzz", KERNELS).stderr)


def test_collectives():
    whole = table_rows(RANKS, "collective_trace")
    some = table_rows(RANKS, "collective_trace", "--time", "8-8.1")
    expect(f"{len(some)} of {len(whole)}", 0 < len(some) < len(whole), True)
    expect("they are the same", [row for row in some if row not in whole], [])
    for table in ("collective_sum", "collective_trace", "straggler_sum"):
        expect(f"{table} of no process", table_rows(RANKS, table, "--pid", "99"), [])


def test_the_first_events():
    trace = json.loads(report("--chrome-trace", "--max-events", "100", LOADER))
    slices = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
    steps = [e for e in slices if e.get("cat") == "step"]
    expect(f"{len(steps)} steps of {len(slices)} slices", len(steps) < 100, True)
    expect("other slices", len(slices) > len(steps), True)


def test_what_was_not_recorded():
    result = run_report("--folded", "--mode", "cpu", "--tid", "790",
                        CAPTURES / "gpu_code/compiled_model.xpu")
    expect_in("why", "the capture has no CPU samples", result.stderr)


if __name__ == "__main__":
    main(globals())

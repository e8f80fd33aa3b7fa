"""From the times of single runs to a table: medians, their spread, and ratios within rounds."""

import statistics


def middle(values):
    return statistics.median(values) if values else None


MANY = 12


def spread(values):
    """Half the distance of the largest to the smallest, over the median: +-x. Of many values,
    those of the middle half."""
    values = sorted(values)
    if len(values) >= MANY:
        values = values[len(values) // 4:-(len(values) // 4)]
    return (values[-1] - values[0]) / 2 / statistics.median(values) if len(values) > 1 else None


def ratio(runs, others):
    """The median over the rounds in which both ran of one's time over the other's. The machine
    drifts by more than what is measured: only adjacent runs may be compared."""
    rounds = sorted(set(runs) & set(others))
    return middle([runs[r] / others[r] for r in rounds])


def added_ns(runs, others):
    rounds = sorted(set(runs) & set(others))
    return middle([runs[r] - others[r] for r in rounds])


def time_text(ns):
    if ns is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}" if abs(ns) < 1000 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def percent(value):
    return "" if value is None else f"{value * 100:.1f} %"


def factor(value):
    return "" if value is None else f"{value:.3f}"


HEADER = ("run under", "time per {unit}", "±", "added", "× nothing", "× CUPTI alone", "file",
          "runs")


def rows(results):
    """Of one workload: `results` maps a way's name to its Result; see overhead.py."""
    nothing = results["nothing"].times if "nothing" in results else {}
    for name, result in results.items():
        times = list(result.times.values())
        if not times:
            yield (name, result.why or "not run", "", "", "", "", "", "0")
            continue
        floor = results[result.floor].times if result.floor in results else {}
        file_bytes = middle(result.file_bytes)
        yield (name, time_text(middle(times)), percent(spread(times)),
               "" if name == "nothing" else time_text(added_ns(result.times, nothing)),
               "" if name == "nothing" else factor(ratio(result.times, nothing)),
               factor(ratio(result.times, floor)),
               "" if file_bytes is None else f"{file_bytes:.3g} B",
               f"{len(times)}{' (then failed)' if result.why else ''}")


def table(title, unit, results):
    if results["nothing"].why:
        return f"### {title}\n\n{results['nothing'].why}\n"
    lines = [f"### {title}", "", " | ".join(HEADER).format(unit=unit), ""]
    lines[2] = f"| {lines[2]} |"
    lines[3] = "|---|" + "---:|" * (len(HEADER) - 1)
    lines += [f"| {' | '.join(row)} |" for row in rows(results)]
    notes = [f"- {name}: {note}" for name, result in results.items() for note in result.notes]
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def next_round(costs, rounds_done, wanted, left):
    """Which ways the next round has: `costs` has a way's seconds, those that matter most first.
    Until `wanted` rounds are done, ways are given up from the end so that the others get theirs;
    then a round is whole or not at all."""
    if rounds_done >= wanted:
        return list(costs) if sum(costs.values()) <= left else []
    names = list(costs)
    while names and sum(costs[n] for n in names) * (wanted - rounds_done) > left:
        names.pop()
    return names

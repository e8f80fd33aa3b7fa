"""Exported tables hold what --dump prints, in each format, and queries that users of nsys's exports
run give what the capture holds.

Each record kind is compared by its rows, the sums of its numbers and its texts."""

import csv
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile

import duckdb
import xpu_testing
from xpu_testing import expect, is_left_out, report, run_report

CAPTURES = pathlib.Path(__file__).resolve().parent.parent / "captures"
NAMES = ["graph_paths.xpu", "no_inject.xpu", "nvtx_ranges.xpu", "pytorch_mlp_graph.xpu",
         "pytorch_python.xpu", "two_kernels_fork.xpu"]
FIELD = re.compile(r'(\w+)=("(?:[^"\\]|\\.)*"|\[[^\]]*\]|\S*)')
PLAIN = re.compile(r'"([^"\\]*)"$')
FLAGS = ["frame_pointers", "truncated", "user_failed", "kernel_failed", "tables", "complete",
         "not_ready", "in_process"]
NOT_EVENTS = {"problems", "ledger"}
HEXADECIMAL = {"instance", "build_id", "tail", "uuid"}


def names():
    return [name for name in NAMES if not is_left_out(CAPTURES / name)]


def value_of(kind, name, text):
    """A number, a text, or None for what is compared otherwise."""
    if plain := PLAIN.match(text):
        return plain.group(1)
    if name == "stack_flags":
        return sum(1 << FLAGS.index(word) for word in text.split("+") if word != "none")
    if name in HEXADECIMAL or (kind, name) == ("raw_activity", "bytes"):
        return text
    if text[:1] in ('"', "["):
        return None
    return int(text, 0) if re.fullmatch(r"-?\d+|0x[0-9a-f]+", text) else text


def dumped(path):
    """Kind -> list of (field -> value)."""
    kinds = {}
    for line in report("--dump", path).splitlines():
        kind, _, rest = line.partition(" ")
        if kind not in NOT_EVENTS:
            kinds.setdefault(kind, []).append(
                {name: value_of(kind, name, text) for name, text in FIELD.findall(rest)})
    return kinds


def wanted(rows):
    """What is compared of a table: rows, then for each column its sum or its sorted texts."""
    result = {"rows": len(rows)}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if any(value is None for value in values):
            continue
        if all(isinstance(value, int) for value in values):
            result[name] = sum(values) % 2**64
        else:
            result[name] = sorted(str(value) for value in values)
    return result


def check_table(what, rows, table):
    target = wanted(rows)
    expect(f"{what}: rows", len(table), target.pop("rows"))
    if table:
        expect(f"{what}: columns", list(table[0]), list(rows[0]))
    for name, value in target.items():
        if isinstance(value, int):
            actual = sum(int(row[name]) for row in table) % 2**64
        else:
            actual = sorted(str(row[name]) for row in table)
        expect(f"{what}: {name}", actual, value)


def csv_rows(path):
    """Without the quote before what a spreadsheet would run."""
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: re.sub(r"^'(?=[=@]|[+-][A-Za-z])", "", cell) for name, cell in row.items()}
                for row in csv.DictReader(file)]


def ndjson_rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def open_database(path):
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    return database


def sqlite_rows(database, kind):
    texts = {row["from"] for row in database.execute(f'PRAGMA foreign_key_list("XPU_{kind}")')}
    names = [row["name"] for row in database.execute(f'PRAGMA table_info("XPU_{kind}")')]
    if not names:
        return []
    columns = ", ".join(f'(SELECT value FROM StringIds WHERE id = "{n}") AS "{n}"'
                        if n in texts else f'"{n}"' for n in names)
    return [dict(row) for row in database.execute(f'SELECT {columns} FROM "XPU_{kind}"')]


def export(capture, form, output):
    report(capture, "--export", form, "-o", output)
    return output


def test_every_table_holds_what_the_dump_prints():
    with tempfile.TemporaryDirectory() as directory:
        for name in names():
            place = pathlib.Path(directory) / name
            place.mkdir()
            capture = CAPTURES / name
            kinds = dumped(capture)
            database = open_database(export(capture, "sqlite", place / "a.sqlite"))
            export(capture, "csv", place / "csv")
            export(capture, "ndjson", place / "ndjson")
            for kind, rows in kinds.items():
                check_table(f"{name} sqlite {kind}", rows, sqlite_rows(database, kind))
                check_table(f"{name} csv {kind}", rows, csv_rows(place / f"csv/{kind}.csv"))
                check_table(f"{name} ndjson {kind}", rows,
                            ndjson_rows(place / f"ndjson/{kind}.ndjson"))
            for table in (place / "csv").iterdir():
                if table.stem not in kinds and len(csv_rows(table)) > 0:
                    rows = csv_rows(table)
                    expect(f"{table.stem}: rows in ndjson",
                           len(ndjson_rows(place / f"ndjson/{table.stem}.ndjson")), len(rows))
                    expect(f"{table.stem}: rows in sqlite",
                           len(sqlite_rows(database, table.stem)), len(rows))


def sums_in_duckdb(rows, path):
    """The query for what `wanted` holds of a table: of texts, how many and how long."""
    parts = ["count(*)"]
    for name, value in wanted(rows).items():
        if isinstance(value, int) and name != "rows":
            parts.append(f'sum("{name}"::HUGEINT)::VARCHAR')
        elif name != "rows":
            parts.append(f'count(DISTINCT "{name}")::VARCHAR || \' \' || sum(length("{name}"))')
    return f"SELECT {', '.join(parts)} FROM '{path}'"


def check_sums(what, rows, actual):
    target = wanted(rows)
    expect(f"{what}: rows", int(actual[0]), target.pop("rows"))
    for (name, value), found in zip(target.items(), actual[1:], strict=True):
        if isinstance(value, int):
            expect(f"{what}: {name}", int(found) % 2**64, value)
        else:
            expect(f"{what}: {name}", found, f"{len(set(value))} {sum(map(len, value))}")


def test_duckdb_reads_parquet_csv_and_ndjson():
    with tempfile.TemporaryDirectory() as directory:
        checks = []
        queries = []
        for name in names():
            capture = CAPTURES / name
            for form in ("parquet", "csv", "ndjson"):
                export(capture, form, f"{directory}/{name}-{form}")
            for kind, rows in dumped(capture).items():
                checks.append((f"{name} {kind}", rows))
                queries.append(sums_in_duckdb(rows, f"{directory}/{name}-parquet/{kind}.parquet"))
        for (what, rows), [row] in zip(checks, duckdb.rows_of(queries), strict=True):
            check_sums(f"parquet {what}", rows, row)
        [[[made_by]]] = duckdb.rows_of(
            [f"SELECT created_by FROM parquet_file_metadata('{directory}/{NAMES[0]}-parquet/work.parquet')"])
        expect("who wrote it", re.fullmatch(r"xpu-report version \d+\.\d+\.\d+", str(made_by)) is not None,
               True)
        # All formats alike: what calls and work are together.
        each = [[f"""SELECT call.name, work.kind, count(*)::INT, sum(duration_ns)::VARCHAR,
                         count(bytes)::INT
                     FROM '{directory}/{name}-{form}/work.{form}' AS work
                     LEFT JOIN '{directory}/{name}-{form}/call.{form}' AS call USING (call)
                     GROUP BY ALL ORDER BY ALL""" for name in names() if name != "no_inject.xpu"]
                for form in ("parquet", "csv", "ndjson")]
        results = [duckdb.rows_of(queries) for queries in each]
        expect("rows", all(len(rows) > 0 for rows in results[0]), True)
        for other in results[1:]:
            expect("calls and work", other, results[0])


def busy_ns(work):
    """The time in which any of the work ran."""
    busy = until = 0
    for start, end in sorted((row["start_ns"], row["end_ns"]) for row in work):
        busy += max(0, end - max(start, until))
        until = max(until, end)
    return busy


def test_queries_for_fleets():
    """Those of man/queries give what the captures hold, and find a kernel that became slower."""
    queries = {path.stem: path.read_text(encoding="utf-8")
               for path in (CAPTURES.parent.parent / "man/queries").glob("*.sql")}
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        for name in ("tables", "json", "before", "after"):
            (place / name).mkdir()
        names = ["pytorch_mlp", "pytorch_mlp_graph", "two_kernels_fork"]
        time_ns, busy = 0, {}
        for name in names:
            export(CAPTURES / f"{name}.xpu", "parquet", place / "tables" / name)
            export(CAPTURES / f"{name}.xpu", "ndjson", place / "json" / name)
            work = [row for row in ndjson_rows(place / f"json/{name}/work.ndjson")
                    if row["kind"] != "sync"]
            busy[name] = busy_ns(work)
            time_ns += sum(row["duration_ns"] for row in work if row["kind"] == "kernel")
        copies = []
        for number in range(6):
            side = "before" if number < 3 else "after"
            (place / side / str(number)).mkdir()
            slower = f"CASE WHEN name LIKE '%reduce_kernel%' AND {number} > 2 THEN 2 ELSE 1 END"
            copies.append(f"""
                COPY (SELECT * REPLACE (duration_ns * {slower} * (100 + {number % 3}) // 100
                                        AS duration_ns)
                      FROM 'tables/pytorch_mlp/work.parquet')
                TO '{side}/{number}/work.parquet' (FORMAT parquet)""")
        *_, hottest, hosts, regressions, idle = duckdb.rows_of(
            copies + [queries[name] for name in ("hottest_kernels", "time_by_host", "regressions",
                                                 "idle_gpus")], cwd=directory)
        expect("time of all kernels", sum(int(row[3]) for row in hottest), time_ns)
        expect("captures by host", sum(int(row[2]) for row in hosts), len(names))
        expect("busy time", {row[0]: int(row[3]) for row in idle}, busy)
        certain = [row for row in regressions if row[6] > 3]
        expect("slower kernels", bool(certain) and
               all("reduce_kernel" in row[0] and row[5] > 1.9 for row in certain), True)
        expect("others", [row for row in regressions
                          if "reduce_kernel" not in row[0] and abs(row[6]) > 1], [])


def test_queries_for_nsys():
    """As the documentation of nsys has them, and scripts since."""
    capture = CAPTURES / "pytorch_mlp_graph.xpu"
    kinds = dumped(capture)
    with tempfile.TemporaryDirectory() as directory:
        database = open_database(export(capture, "sqlite", pathlib.Path(directory) / "a.sqlite"))
        # Time by kernel.
        rows = database.execute("""
            SELECT count(*) AS num, sum(end - start) AS total, value AS name
            FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON mangledName = id GROUP BY name""")
        by_kernel = {}
        for kernel in kinds["kernel"]:
            num, total = by_kernel.get(kernel["name"], (0, 0))
            by_kernel[kernel["name"]] = (num + 1, total + kernel["end_ns"] - kernel["start_ns"])
        expect("time by kernel", {row["name"]: (row["num"], row["total"]) for row in rows},
               by_kernel)
        # Kernels and the calls that launched them.
        rows = database.execute("""
            SELECT names.value AS call, count(*) AS kernels
            FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel
            JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS api ON api.correlationId = kernel.correlationId
            JOIN StringIds AS names ON names.id = api.nameId GROUP BY call""").fetchall()
        expect("kernels with a call", sum(row["kernels"] for row in rows), len(kinds["kernel"]))
        expect("calls", "cudaLaunchKernel" in {row["call"] for row in rows}, True)
        # Calls by process and thread.
        rows = database.execute("""
            SELECT globalTid / 0x1000000 % 0x1000000 AS PID, globalTid % 0x1000000 AS TID,
                   count(*) AS num FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY globalTid""")
        expect("calls by process", sum(row["num"] for row in rows if row["PID"] == 1234),
               len(kinds["api_call"]))
        # Bytes by kind of copy.
        rows = database.execute("""
            SELECT label, sum(bytes) AS bytes FROM CUPTI_ACTIVITY_KIND_MEMCPY
            JOIN ENUM_CUDA_MEMCPY_OPER ON copyKind = id GROUP BY label""")
        expect("copied bytes", sum(row["bytes"] for row in rows),
               sum(copy["size_bytes"] for copy in kinds["memcpy"]))
        # Our stacks: each call that has one leads to it.
        [row] = database.execute("""
            SELECT count(*) AS num FROM CUPTI_ACTIVITY_KIND_RUNTIME
            JOIN XPU_stack ON callchainId = stack JOIN XPU_frame USING (frame)""")
        expect("calls with a stack", row["num"], len(kinds["launch_stack"]))


def test_ranges_for_nsys():
    capture = CAPTURES / "nvtx_ranges.xpu"
    [pushes, marks] = [sum(event["kind"] == kind for event in dumped(capture)["nvtx_event"])
                       for kind in ("push", "mark")]
    with tempfile.TemporaryDirectory() as directory:
        database = open_database(export(capture, "sqlite", pathlib.Path(directory) / "a.sqlite"))
        rows = dict(database.execute("SELECT eventType, count(*) FROM NVTX_EVENTS GROUP BY 1"))
        expect("pushed ranges and marks", (rows.get(59, 0), rows.get(34, 0)), (pushes, marks))
        [row] = database.execute("SELECT count(*) FROM NVTX_EVENTS WHERE end < start")
        expect("ranges that end before they start", row[0], 0)


def test_several_captures_as_one():
    """The ids of their stacks lie far apart: they are written without going through all between."""
    captures = [CAPTURES / name for name in ("graph_paths.xpu", "two_kernels_fork.xpu")]
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        report(*captures, "--export", "csv", "-o", place / "all")
        alone = []
        for number, capture in enumerate(captures):
            export(capture, "csv", place / str(number))
            alone += csv_rows(place / str(number) / "stack_node.csv")
        nodes = csv_rows(place / "all/stack_node.csv")
        expect("stack nodes", len(nodes), len(alone))
        ids = [int(node["stack"]) for node in nodes]
        expect("order of stack nodes", ids, sorted(ids))
        expect("callers", {int(node["caller"]) for node in nodes} <= {0, *ids}, True)


def test_outputs_that_cannot_be():
    capture = CAPTURES / "graph.xpu"
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory) / "file"
        file.write_text("text")
        for arguments in (["sqlite"], ["sqlite", "-o", "-"], ["csv", "-o", file],
                          ["sqlite", "-o", "/dev/null"], ["sqlite", "-o", f"{directory}/no/file"],
                          ["parquets", "-o", file]):
            result = run_report(capture, "--export", *arguments)
            expect(f"status of {arguments}", result.returncode in (1, 2), True)
        # A database that was there before is replaced as a whole.
        export(capture, "sqlite", file)
        export(capture, "sqlite", file)
        expect("tables", open_database(file).execute("PRAGMA integrity_check").fetchone()[0], "ok")


def test_damaged_and_hostile_captures():
    """No content of a capture makes an export fail, or text in it that is not UTF-8."""
    make_hostile = xpu_testing.find("tests/golden/make_hostile")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([make_hostile, directory, "200"], check=True)
        whole = (CAPTURES / "two_kernels_fork.xpu").read_bytes()
        for cut in range(1, 8):
            damaged = bytearray(whole[:len(whole) * cut // 8])
            damaged[len(damaged) // 2] ^= 0x55
            (pathlib.Path(directory) / f"cut{cut}.xpu").write_bytes(damaged)
        for capture in sorted(pathlib.Path(directory).glob("*.xpu")):
            database = open_database(export(capture, "sqlite", f"{capture}.sqlite"))
            for row in database.execute("SELECT value FROM StringIds"):
                expect("characters", [c for c in row[0] if ord(c) < 32], [])
            export(capture, "ndjson", f"{capture}.tables")
            export(capture, "parquet", f"{capture}.parquet")
            for table in pathlib.Path(f"{capture}.tables").iterdir():
                ndjson_rows(table)


if __name__ == "__main__":
    sys.exit(xpu_testing.main(globals()))

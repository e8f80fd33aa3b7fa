"""Tables of many captures: --each writes those of every capture on its own, queries by label, and
two ClickHouse servers as one table."""

import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import duckdb
import xpu_testing
from exports import CAPTURES, csv_rows, ndjson_rows, open_database
from xpu_testing import expect, report, run_report, skip

NAMES = ["graph_paths", "pytorch_mlp", "pytorch_mlp_graph", "two_kernels_fork"]
QUERIES = CAPTURES.parent.parent / "man/queries"


def files_of(directory):
    return {path.relative_to(directory): path.read_bytes()
            for path in sorted(pathlib.Path(directory).rglob("*")) if path.is_file()}


def each(captures, form, output, status=0):
    result = run_report(*captures, "--export", form, "--each", "-o", output)
    expect(f"status: {result.stderr}", result.returncode, status)
    return result.stderr


def test_each_capture_has_the_tables_that_it_has_alone():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        captures = [CAPTURES / f"{name}.xpu" for name in NAMES]
        for form in ("csv", "parquet"):
            each(captures, form, place / form)
            expect("directories", sorted(path.name for path in (place / form).iterdir()), NAMES)
            for name, capture in zip(NAMES, captures, strict=True):
                report(capture, "--export", form, "-o", place / f"{form} {name}")
                expect(f"{form} of {name}", files_of(place / form / name),
                       files_of(place / f"{form} {name}"))
        each(captures[:2], "sqlite", place / "sqlite")
        for name in NAMES[:2]:
            database = open_database(place / "sqlite" / f"{name}.sqlite")
            expect(f"rows of {name}",
                   database.execute("SELECT count(*) FROM XPU_work").fetchone()[0],
                   len(csv_rows(place / "csv" / name / "work.csv")))


def test_captures_that_cannot_be_read_are_named_and_left_out():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        whole = CAPTURES / "two_kernels_fork.xpu"
        (place / "empty.xpu").write_bytes(b"")
        (place / "text.xpu").write_text("no capture")
        (place / "cut.xpu").write_bytes(whole.read_bytes()[:whole.stat().st_size // 2])
        captures = [whole, place / "empty.xpu", place / "text.xpu", place / "cut.xpu",
                    place / "none.xpu"]
        said = each(captures, "csv", place / "tables", status=1)
        for capture in (place / "empty.xpu", place / "text.xpu", place / "none.xpu"):
            expect(f"{capture} in: {said}", f"left out: {capture}: " in said, True)
        expect(f"how many in: {said}", "3 of 5 captures were left out" in said, True)
        # What is left of a damaged one is there, and the others are whole.
        expect(f"losses in: {said}", "1 of 5 captures lost data" in said, True)
        expect("tables", {path.name for path in (place / "tables").iterdir() if
                          (path / "work.csv").exists()}, {"two_kernels_fork", "cut"})
        # --strict makes of them what it makes of one.
        result = run_report(place / "cut.xpu", "--export", "csv", "--each", "--strict", "-o",
                            place / "strict")
        expect("status with --strict", result.returncode, 3)


def test_a_directory_stands_for_the_captures_in_it():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        (place / "run").mkdir()
        for name in ("graph.xpu", "two_kernels_fork.xpu"):
            shutil.copy(CAPTURES / name, place / "run")
        each([place / "run"], "csv", place / "tables")
        expect("directories", sorted(path.name for path in (place / "tables").iterdir()),
               ["graph", "two_kernels_fork"])


def test_names_of_captures_in_several_directories():
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        for name in ("a", "b"):
            (place / "runs" / name).mkdir(parents=True)
            shutil.copy(CAPTURES / "graph.xpu", place / "runs" / name / "capture.xpu")
        shutil.copy(CAPTURES / "graph.xpu", place / "other.xpu")
        names = ["runs/a/capture.xpu", "./runs/b/capture.xpu", "other.xpu"]
        result = run_report(*names, "--export", "csv", "--each", "-o", "tables", cwd=place)
        expect(f"status: {result.stderr}", result.returncode, 0)
        expect("names", sorted(path.name for path in (place / "tables").iterdir()),
               ["other", "runs-a-capture", "runs-b-capture"])
        result = run_report("other.xpu", "./other.xpu", "--export", "csv", "--each", "-o",
                            "twice", cwd=place)
        expect("status of a capture that is named twice", result.returncode, 2)
        for arguments in (["--top", "--each"], ["--export", "csv", "--each"]):
            expect(f"status of {arguments}", run_report("other.xpu", *arguments, cwd=place).returncode,
                   2)


def test_labels_are_a_table_and_queries_group_by_them():
    scene = xpu_testing.find("tests/golden/make_scene")
    with tempfile.TemporaryDirectory() as directory:
        place = pathlib.Path(directory)
        subprocess.run([scene, place], check=True, capture_output=True)
        expect("in the summary", "\nlabels    commit=1a2b3c\n" in report(place / "scene.xpu"), True)
        facts = json.loads(report("--chrome-trace", place / "scene.xpu"))["otherData"]
        expect("in the trace", facts["label commit"], "1a2b3c")
        each([place / "scene.xpu", CAPTURES / "graph.xpu"], "parquet", place / "tables")
        each([place / "scene.xpu"], "ndjson", place / "json")
        [label] = ndjson_rows(place / "json/scene/label.ndjson")
        expect("label", (label["key"], label["value"]), ("commit", "1a2b3c"))
        query = (QUERIES / "time_by_commit.sql").read_text(encoding="utf-8")
        [rows] = duckdb.rows_of([query], cwd=place)
        expect("commits and captures", [(row[0], int(row[2])) for row in rows],
               [("1a2b3c", 1), (None, 1)])
        work = ndjson_rows(place / "json/scene/work.ndjson")
        expect("GPU time", rows[0][3],
               sum(row["duration_ns"] for row in work if row["kind"] != "sync"))


# Without a port for interserver traffic and without a user's files: nothing of the system's.
CLICKHOUSE = """<yandex>
<logger><level>warning</level><log>{place}/log</log><errorlog>{place}/errors</errorlog></logger>
<tcp_port>{port}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{place}/data/</path><tmp_path>{place}/tmp/</tmp_path><mark_cache_size>50000000</mark_cache_size>
<users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<remote_servers><fleet>{shards}</fleet></remote_servers>
</yandex>"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"
USERS = """<yandex><profiles><default></default></profiles><quotas><default></default></quotas>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users></yandex>"""
WORK = """CREATE TABLE work (work Int64, kind String, call Nullable(Int64), process Int64, pid Int64,
tid Int64, gpu Int64, stream Nullable(Int64), name String, start_ns Int64, end_ns Int64,
duration_ns Int64, is_timed UInt8, bytes Nullable(Int64), correlation_id Int64, stack Int64)
ENGINE = MergeTree ORDER BY (kind, start_ns)"""


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each_socket in sockets:
            each_socket.bind(("127.0.0.1", 0))
        return [each_socket.getsockname()[1] for each_socket in sockets]


def asked(port, query, data=b""):
    result = subprocess.run(["clickhouse-client", "--host", "127.0.0.1", "--port", str(port),
                             "--query", query], input=data, capture_output=True, timeout=120)
    expect(f"status of {query}: {result.stderr[:2000]}", result.returncode, 0)
    return [line.split("\t") for line in result.stdout.decode().splitlines()]


def start_clickhouse(place, port, ports, stack):
    place.mkdir()
    (place / "users.xml").write_text(USERS)
    (place / "config.xml").write_text(CLICKHOUSE.format(
        place=place, port=port, shards="".join(SHARD.format(port=p) for p in ports)))
    server = subprocess.Popen(["clickhouse-server", "--config-file=config.xml"], cwd=place,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    stack.callback(server.wait)
    stack.callback(server.kill)
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            skip("clickhouse", f"clickhouse-server ended: {(place / 'errors').read_text()[:500]}")
        time.sleep(0.1)
    skip("clickhouse", "clickhouse-server does not listen")


def test_two_clickhouse_servers_as_one_table():
    """As xpu-export(5) describes it."""
    for program in ("clickhouse-server", "clickhouse-client"):
        if not shutil.which(program):
            skip("clickhouse", f"{program} is not installed")
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        place = pathlib.Path(directory)
        names = ["pytorch_mlp", "pytorch_mlp_graph"]
        each([CAPTURES / f"{name}.xpu" for name in names], "ndjson", place / "tables")
        ports = free_ports(2)
        for number, port in enumerate(ports):
            start_clickhouse(place / str(number), port, ports, stack)
        all_work = []
        for name, port in zip(names, ports, strict=True):
            asked(port, WORK)
            asked(port, "CREATE TABLE all_work AS work ENGINE = Distributed(fleet, default, work)")
            table = place / f"tables/{name}/work.ndjson"
            asked(port, "INSERT INTO work FORMAT JSONEachRow", table.read_bytes())
            all_work += ndjson_rows(table)
        wanted = {}
        for row in all_work:
            count, time_ns, sizes = wanted.get(row["kind"], (0, 0, 0))
            wanted[row["kind"]] = (count + 1, time_ns + row["duration_ns"],
                                   sizes + (row["bytes"] is not None))
        for port in ports:
            rows = asked(port, "SELECT kind, count(), sum(duration_ns), count(bytes) FROM all_work "
                               "GROUP BY kind")
            expect("kinds of work", {kind: tuple(map(int, numbers)) for kind, *numbers in rows},
                   wanted)


if __name__ == "__main__":
    sys.exit(xpu_testing.main(globals()))

"""DuckDB, from the npm registry, into the build tree, where it is found again."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import xpu_testing

VERSION = "1.5.6-r.1"
QUERY = """
import { DuckDBInstance } from '@duckdb/node-api';
import { readFileSync } from 'node:fs';
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const all = [];
for (const query of JSON.parse(readFileSync(0, 'utf8'))) {
  all.push((await connection.runAndReadAll(query)).getRowsJson());
}
console.log(JSON.stringify(all));
"""


def fetch(place):
    result = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
         f"@duckdb/node-api@{VERSION}"], cwd=place, timeout=300, capture_output=True, text=True)
    if result.returncode != 0:
        reason = result.stderr.strip().splitlines() or ["no reason given"]
        xpu_testing.skip("duckdb", f"npm install @duckdb/node-api@{VERSION}: {reason[0]}")


def directory():
    """Where its module for node is."""
    for program in ("npm", "node"):
        if not shutil.which(program):
            xpu_testing.skip("duckdb", f"{program} is not installed, so DuckDB cannot be fetched")
    place = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / f"tests/duckdb-{VERSION}"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w", encoding="utf-8") as lock:  # tests run at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "fetched").exists():
            fetch(place)
            (place / "fetched").touch()
    return place


def rows_of(queries, cwd=None):
    """The rows of each query; DuckDB writes large numbers as text. Files are relative to `cwd`."""
    place = directory()
    with tempfile.NamedTemporaryFile("w", dir=place, suffix=".mjs") as script:
        script.write(QUERY)
        script.flush()
        result = subprocess.run(["node", script.name], input=json.dumps(queries),
                                capture_output=True, text=True, timeout=300, cwd=cwd)
    xpu_testing.expect(f"status of DuckDB: {result.stderr[:2000]}", result.returncode, 0)
    return json.loads(result.stdout)

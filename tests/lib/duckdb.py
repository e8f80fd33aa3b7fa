"""DuckDB, from the npm registry, into the build tree, where it is found again."""

import json
import os
import pathlib
import shutil
import subprocess

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


def directory():
    """Where its module for node is."""
    for program in ("npm", "node"):
        if not shutil.which(program):
            xpu_testing.skip("duckdb", f"{program} is not installed, so DuckDB cannot be fetched")
    place = pathlib.Path(os.environ["XPU_BUILD_DIR"]) / f"tests/duckdb-{VERSION}"
    if not (place / "fetched").exists():
        place.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(
            ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts",
             f"@duckdb/node-api@{VERSION}"], cwd=place, timeout=300, capture_output=True, text=True)
        if result.returncode != 0:
            reason = result.stderr.strip().splitlines() or ["no reason given"]
            xpu_testing.skip("duckdb", f"npm install @duckdb/node-api@{VERSION}: {reason[0]}")
        (place / "fetched").touch()
    return place


def rows_of(queries, cwd=None):
    """The rows of each query; DuckDB writes large numbers as text. Files are relative to `cwd`."""
    place = directory()
    script = place / "query.mjs"
    script.write_text(QUERY, encoding="utf-8")
    result = subprocess.run(["node", script], input=json.dumps(queries), capture_output=True,
                            text=True, timeout=300, cwd=cwd)
    xpu_testing.expect(f"status of DuckDB: {result.stderr[:2000]}", result.returncode, 0)
    return json.loads(result.stdout)

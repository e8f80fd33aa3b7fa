"""A source that the shipped recorder does not have (toy_source.cpp), recorded and reported: a source
is its two files and its line in a list."""

import os
import subprocess

import xpu_testing
from xpu_testing import Workspace, expect, expect_in, find, main


def record(work, *options):
    return work.record("--cpu-only", *options, "--", "sleep", "0.3",
                       env={**os.environ, "XPU_TEST_SOURCE": "toy"})


def test_its_events_are_in_the_capture_and_in_the_report():
    xpu_testing.require_recording()
    with Workspace() as work:
        result = record(work)
        expect(f"status ({result.stderr})", result.returncode, 0)
        capture = work.capture()
        expect("probes", [p["function"] for p in capture.probes], ["toy"])
        expect(f"ticks: {len(capture.probe_hits)}", len(capture.probe_hits) > 2, True)
        expect("losses", capture.losses(), {})
        report = subprocess.run([find("report/xpu-report"), "--top", "--table", "probe_sum",
                                 "--format", "csv", work.file("capture.xpu")], capture_output=True, text=True)
        expect_in(f"report ({report.stderr})", "toy", report.stdout)


def test_it_is_switched_like_the_others():
    xpu_testing.require_recording()
    with Workspace() as work:
        record(work, "--delay", "200ms")
        capture = work.capture()
        begin_ns = min(s["time_ns"] for s in capture.recording_switches if s["is_on"])
        expect("ticks before", [h for h in capture.probe_hits if h["time_ns"] < begin_ns], [])
        expect("ticks after", len(capture.probe_hits) > 0, True)


if __name__ == "__main__":
    main(globals())

"""Recordings on the simulated device (tests/fake_cuda)."""

import os

from xpu_testing import expect, find


def simulated(**variables):
    directory = os.path.dirname(find("tests/fake_cuda/lib/libcuda.so.1"))
    return dict(os.environ, LD_LIBRARY_PATH=directory, **variables)


def record(work, *arguments, env=None, status=0, **options):
    result = work.record(*arguments, env=env or simulated(), **options)
    expect(f"status ({result.stderr})", result.returncode, status)
    return result


def keys(events):
    return {(e["instance"], e["correlation_id"]) for e in events}

"""Runs in known places: for each span of time, the thread and the stack that Python says it had.

usage: python_tree.py LOG MILLISECONDS [--launch]

--launch clears memory of the GPU in each span, by libcudart.
"""

import asyncio
import ctypes
import functools
import json
import re
import sys
import threading
import time
import traceback

MILLISECONDS = int(sys.argv[2])
spans = []
launch = None


def spin(duration_ns):
    """Of processor time: on a busy machine too there are as many samples."""
    total = 0
    until_ns = time.thread_time_ns() + duration_ns
    while time.thread_time_ns() < until_ns:
        total += sum(i * i for i in range(20))
    return total


def busy(parts=1):
    """One span; the frames that are called from here come and go."""
    stack = [(f.name, f.filename, f.lineno) for f in traceback.extract_stack()]
    begin_ns = time.monotonic_ns()
    if launch:
        launch()
    spin(MILLISECONDS * 1_000_000 // parts)
    spans.append({"tid": threading.get_native_id(), "begin_ns": begin_ns,
                  "end_ns": time.monotonic_ns(), "stack": stack})


def recurse(depth):
    if depth > 0:
        return recurse(
            depth - 1)
    return busy()


class Shape:
    def __init__(self):
        busy()

    @staticmethod
    def area():
        busy()

    @functools.cached_property
    def größe(self):
        busy()
        return 1

    def __lt__(self, other):
        busy(4)
        return False


def numbers():
    for i in range(3):
        busy(3)
        yield i


def outer_numbers():
    yield from numbers()


async def inner_task():
    busy(2)
    await asyncio.sleep(0)
    busy(2)


async def outer_task():
    await inner_task()


async def tasks():
    await asyncio.gather(outer_task(), inner_task())


def called_back_from_c():
    re.sub("[ab]", lambda match: busy(2) or "c", "ab")
    functools.reduce(lambda a, b: busy(2), [1, 2, 3])
    sorted([Shape.__new__(Shape) for _ in range(3)])


def code_that_is_made_anew():
    # Each takes the place of the one before in memory.
    for i in range(8):
        scope = {"busy": busy}
        exec(f"def made_{i}():\n" + "\n" * i + "    busy(8)\n", scope)
        scope[f"made_{i}"]()


def in_threads():
    threads = [threading.Thread(target=recurse, args=(depth,)) for depth in (1, 5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    global launch
    if "--launch" in sys.argv:
        runtime = ctypes.CDLL("libcudart.so.13")
        memory = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(memory), ctypes.c_size_t(4096)) == 0
        launch = functools.partial(runtime.cudaMemset, memory, 0, ctypes.c_size_t(256))
    recurse(30)
    shape = Shape()
    shape.area()
    assert shape.größe == 1
    list(outer_numbers())
    asyncio.run(tasks())
    called_back_from_c()
    code_that_is_made_anew()
    in_threads()
    with open(sys.argv[1], "w", encoding="utf-8") as log:
        json.dump(spans, log)


main()

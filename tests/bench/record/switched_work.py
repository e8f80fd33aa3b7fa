"""switched_work.py RESULT CTL ACK PAIRS WORK: does a fixed piece of work again and again, in turns
with sampling switched on and off by the fifos of --control, and writes the CPU seconds of each pair
(on, off) into RESULT as JSON."""

import json
import os
import random
import re
import resource
import subprocess
import sys


def deep_stacks(depth=25, value=1):
    if depth:
        return deep_stacks(depth - 1, value)
    text = json.dumps({str(i): [value, {"k": i}] for i in range(400)}, indent=1)
    return len(re.findall(r'"(\d+)"', text)) + sum(sorted(map(len, json.loads(text))))


def loop():
    total = 0
    for i in range(30000):
        total += i % 7
    return total


def short_processes():
    subprocess.run(["true"], check=True)


class HandOver:
    """A word goes to another process and back: two switches between them on one CPU."""

    def __init__(self):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        there, self.to = os.pipe()
        self.back, here = os.pipe()
        if os.fork() == 0:
            os.close(self.to)
            while word := os.read(there, 1):
                os.write(here, word)
            os._exit(0)
        os.close(there)

    def __call__(self):
        for _ in range(500):
            os.write(self.to, b".")
            os.read(self.back, 1)


# With how often is about a tenth of a second.
WORKS = {"deep stacks": (lambda: deep_stacks, 60), "loop": (lambda: loop, 60),
         "short processes": (lambda: short_processes, 60), "handing over": (HandOver, 30)}


def cpu_seconds():
    return sum(usage.ru_utime + usage.ru_stime
               for usage in map(resource.getrusage, (resource.RUSAGE_SELF,
                                                     resource.RUSAGE_CHILDREN)))


def main():
    result, control, answer, pairs, name = sys.argv[1:]
    make, times = WORKS[name]
    work = make()
    to_recorder, from_recorder = os.open(control, os.O_WRONLY), os.open(answer, os.O_RDONLY)

    def measure(is_on):
        os.write(to_recorder, b"enable\n" if is_on else b"disable\n")
        os.read(from_recorder, 64)
        begin = cpu_seconds()
        for _ in range(times):
            work()
        return cpu_seconds() - begin

    measure(True)
    seconds = []
    for _ in range(int(pairs)):
        order = random.sample((True, False), 2)
        taken = {is_on: measure(is_on) for is_on in order}
        seconds.append((taken[True], taken[False]))
    with open(result, "w", encoding="utf-8") as file:
        json.dump(seconds, file)


if __name__ == "__main__":
    main()

"""Programs of the distribution, which are compiled without frame pointers: at least 98 % of their
user stacks are complete at 999 Hz.
"""

import collections
import os
import shutil
import sys

from unwind_stacks import COMPLETE, NOT_READY, Stacks, text_of
from xpu_testing import Workspace, expect, main, require_recording, skip

LEAST_SHARE = 98.0
LEAST_SAMPLES = 200

TEMPLATES = """
#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>
template <int N> struct Fold { static auto Of(auto x) { return Fold<N - 1>::Of(x + N); } };
template <> struct Fold<0> { static auto Of(auto x) { return x; } };
std::map<std::string, std::vector<std::unordered_map<int, std::string>>> all;
int main(int argc, char** argv) {
  all[argv[0]].emplace_back()[argc] = std::regex_replace(argv[0], std::regex("a*b"), "c");
  return Fold<100>::Of(argc) + Fold<50>::Of(1.5 * argc) + all.size();
}
"""

PYTHON = """
import json, re
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
class Node:
    def __init__(self, value): self.value = value
    def __lt__(self, other): return self.value < other.value
for i in range(8):
    fib(24)
    sorted(Node(i * 7919 % 10007) for i in range(40000))
    json.loads(json.dumps([{"key": [i, str(i)]} for i in range(20000)]))
    re.sub(r"(a|b)+c", lambda m: m.group(0)[::-1], "ababcabc" * 20000)
"""

NODE = """
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
const sorted = Array.from({length: 300000}, (_, i) => i * 7919 % 100003).sort((a, b) => a - b);
for (let i = 0; i < 20; ++i) JSON.parse(JSON.stringify(sorted.slice(0, 50000)));
console.log(fib(34), "ababcabc".repeat(50000).replace(/(a|b)+c/g, "x").length);
"""

SQL = """
create table numbers(value integer, name text);
with recursive counter(x) as (select 1 union all select x + 1 from counter where x < 300000)
  insert into numbers select x * 7919 % 100003, 'name ' || x from counter;
create index by_value on numbers(value);
select count(*), sum(a.value), max(length(b.name)) from numbers a join numbers b
  on a.value = b.value + 1 where a.name like '%7%';
select name, count(*) from numbers group by substr(name, -3) order by 2 desc limit 3;
"""

GIT = """
git init -q . && git config user.email a@b.c && git config user.name a
for i in $(seq 25); do
  for j in $(seq 40); do seq $i $((i * 40 + j * 3)) > file$j; done
  git add . && git commit -q -m $i
done
git log -p | wc -l
git gc -q --aggressive
git fsck
"""


def share(part, whole):
    return 100 * part / max(whole, 1)


def record(work, command, **options):
    result = work.record("--cpu-only", "--call-graph=eh", "-F", "999", *command, **options)
    expect("status", (result.returncode, result.stderr[-500:] if result.returncode else ""),
           (0, ""))
    return work.capture()


def fresh(directory):
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    return directory


def with_user_part(capture):
    """Without those before the tables of a process were there: on a busy machine, for a program as
    short as a git command, they are many."""
    return [s for s in capture.cpu_samples if any(frame[0] == "u" for frame in s["stack"])
            and not s["stack_flags"] & NOT_READY]


def check(command, least=LEAST_SHARE, **options):
    require_recording()
    with Workspace() as work:
        # The first recording of a large program may make its table while the program already runs;
        # the second finds it on the disk.
        for _ in range(2):
            capture = record(work, command, cwd=fresh(work.path / "empty"), **options)
        samples = with_user_part(capture)
        open_ends = [s for s in samples if not s["stack_flags"] & COMPLETE]
        complete = share(len(samples) - len(open_ends), len(samples))
        print(f"        {complete:5.1f} % of {len(samples)} stacks complete: "
              f"{' '.join(command)[:50]!r}", flush=True)
        if len(samples) < LEAST_SAMPLES:
            raise AssertionError(f"only {len(samples)} samples")
        if complete < least:
            raise AssertionError(f"{complete:.1f} % complete, ledger {capture.ledger()}"
                                 + ends_of(capture, open_ends))


def ends_of(capture, samples):
    """Where stacks that are not complete end, the most frequent first."""
    wanted = {id(s) for s in samples}
    named = Stacks(type("Part", (), {
        "cpu_samples": [s for s in capture.cpu_samples if id(s) in wanted],
        "mappings": capture.mappings, "parent_at_fork": capture.parent_at_fork}))
    counts = collections.Counter(f"{s.flags:#x} {text_of(s.names[-3:])}" for s in named.all)
    return "".join(f"\n    {count} x {text}" for text, count in counts.most_common(8))


def tool(name):
    path = shutil.which(name)
    if not path:
        skip(name, f"{name} is not installed")
    return path


def check_with_file(text, *command):
    with Workspace() as work:
        file = work.file("input.cpp", text)
        check([*command, file])


def test_gcc():
    check_with_file(TEMPLATES, tool("g++"), "-std=c++20", "-O1", "-c", "-o", "/dev/null")


def test_clang():
    check_with_file(TEMPLATES, tool("clang++"), "-std=c++20", "-O1", "-c", "-o", "/dev/null")


def test_python():
    for python in sorted({os.path.realpath(sys.executable), "/usr/bin/python3"}):
        if os.path.exists(python):
            check([python, "-c", PYTHON])


def test_node():
    check([tool("node"), "-e", NODE])


def test_openssl():
    # Seconds, not CPU time: on a loaded machine it runs for a small part of them.
    speed = [tool("openssl"), "speed", "-seconds", "4"]
    check([*speed, "-bytes", "16384", "-evp", "sha256"])
    check([*speed, "-bytes", "16384", "-evp", "aes-256-gcm"])
    check([*speed, "rsa2048"])


def test_sqlite():
    check([tool("sqlite3"), ":memory:", SQL])


def test_git():
    tool("git")
    # One sample in 80 is in the dynamic linker's resolver, where not every stack is followed.
    check(["sh", "-ec", GIT], least=97.0)


if __name__ == "__main__":
    main(globals())

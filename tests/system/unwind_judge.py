"""Holds the stacks of a capture against the paths that its program printed
(tests/workloads/unwind/unwind.h)."""

import collections

from unwind_stacks import (BELOW_MAIN, BELOW_THREAD, COMPLETE, HIDDEN, NOT_READY, TABLES,
                           TRUNCATED, USER_FAILED, is_function, is_path, text_of)

LIMIT = 512  # frames: XPU_MAX_USER_FRAMES in bpf/events.h
# Why stacks are not complete, in the ledger (format/losses.h).
REASONS = {"truncated": "stack_truncated", "no_rule": "stack_no_rule",
           "unsupported": "stack_rule_unsupported", "bad_return": "stack_bad_return",
           "stuck": "stack_stuck", "unreadable": "stack_unreadable",
           "not_called": "stack_not_called"}
ENDS = {"_start", "clone3", "clone", "__clone", "__clone3", "[ld-linux-x86-64.so.2]"}


class Judge:
    def __init__(self, stacks, expected):
        self.stacks = stacks
        self.expected = expected
        self.problems = []
        self.plt_samples = 0
        paths = [e["path"].split(";") for e in expected if e["path"]]
        below = set(BELOW_MAIN + BELOW_THREAD) | HIDDEN
        self.ends = ENDS | {e["path"].split(";")[-1] for e in expected
                            if e["path"] and e["end"] == "complete"}
        self.own = {n for path in paths for n in path if n not in below and n[0] != "["}
        parts = [self.own_part([{name} for name in path]) for path in paths]
        self.suffixes = {part[i:] for part in parts for i in range(len(part))}

    def own_part(self, names):
        """The program's own functions, recursion as one."""
        part = []
        for aliases in names:
            name = next(iter(aliases & self.own), None)
            if name and part[-1:] != [name]:
                part.append(name)
        return tuple(part)

    def problem(self, what, stacks=()):
        counts = collections.Counter(f"{s.flags:#x} {text_of(s.names)[:200]}" for s in stacks)
        examples = [f"\n    {count} x {text}" for text, count in counts.most_common(3)]
        self.problems.append(what + "".join(examples))

    def judge(self, least_samples, most_not_ready):
        """What is wrong, as a list of texts."""
        not_ready = [s for s in self.stacks.all if s.flags & NOT_READY]
        if len(not_ready) > most_not_ready:
            self.problem(f"{len(not_ready)} stacks before their tables were ready", not_ready)
        for leaf in self.expected:
            self.judge_leaf(leaf, least_samples)
        wrong = [s for s in self.stacks.all if s.flags & COMPLETE and not self.is_plausible(s)]
        # At the end of its work the unwinder of libgcc puts the landing pad in the place of its own
        # return address some instructions before it moves the stack pointer; CFI cannot tell.
        landing = [s for s in wrong if "/libgcc_s.so" in s.file]
        if len(landing) <= 5 + 0.02 * sum("/libgcc_s.so" in s.file for s in self.stacks.all):
            wrong = [s for s in wrong if s not in landing]
        # A compiler's own description is inexact at an instruction here and there.
        if len(wrong) > max(1, 0.002 * len(self.stacks.all)):
            self.problem(f"{len(wrong)} stacks called complete are wrong", wrong)
        self.judge_ledger()
        return self.problems

    def judge_leaf(self, leaf, least_samples):
        name, end = leaf["leaf"], leaf["end"]
        if name == "also":
            return
        if name.startswith("in:"):
            stacks = [s for s in self.stacks.all if f"/{name[3:]}" in s.file and
                      (self.own_part(s.names) or not s.flags & COMPLETE)]
            is_right = self.is_plausible
            least_samples = 0  # how often its own code is hit varies
        else:
            stacks = [s for s in self.stacks.all if s.names and name in s.names[0]]
            # A leaf may be called from several places.
            paths = [e["path"].split(";") for e in self.expected if e["leaf"] == name]

            def is_right(stack):
                return any(is_path(stack.names, path) for path in paths)
            if name in ("[plt]", "PltFunction0"):
                # Whether a processor takes an interrupt at a lone jump or return depends on where
                # it lies, and on what runs beside it.
                least_samples = 0
            if name == "[plt]":
                self.plt_samples = len(stacks)  # the variants of a program are counted together
        if len(stacks) < least_samples:
            self.problem(f"{name}: {len(stacks)} samples, at least {least_samples} expected")
        ready = [s for s in stacks if not s.flags & NOT_READY]
        wanted = TABLES | {"complete": COMPLETE, "truncated": TRUNCATED}.get(end, 0)
        mask = TABLES | COMPLETE | TRUNCATED
        good = [s for s in ready if is_right(s) and s.flags & mask in (wanted, TABLES | COMPLETE)
                and (end in ("complete", "unsupported") or not s.flags & COMPLETE)]
        if end == "unsupported":
            good += [s for s in ready if s.flags & mask == TABLES]
        if len(good) < 0.95 * len(ready) - 1:
            bad = [s for s in ready if s not in good]
            self.problem(f"{name}: {len(bad)} of {len(ready)} stacks are not ({end}) "
                         f"{leaf['path'][:200]}", bad)
        not_complete = [s for s in ready if not s.flags & COMPLETE]
        # Some of them may be for another reason; judge_ledger asks for each.
        if end in REASONS and self.lost(end) < 0.5 * len(not_complete) - 2:
            self.problem(f"{name}: {len(not_complete)} stacks are not complete, in the ledger as "
                         f"{REASONS[end]}: {self.lost(end)}")

    def is_plausible(self, stack):
        """Of a complete stack: the end is an end, and the program's part is the end of a path."""
        if not stack.names:  # between two programs: it has no stack
            return not stack.flags & TABLES
        if not any(is_function(stack.names[-1], end) for end in self.ends):
            return False
        part = self.own_part(stack.names)
        if "main" in part and not is_path(stack.names[-4:], ["main"] + BELOW_MAIN):
            return False
        return not part or part in self.suffixes

    def lost(self, reason):
        return self.totals()[REASONS[reason]]

    def totals(self):
        return collections.Counter(self.stacks.capture.ledger())

    def judge_ledger(self):
        """Every stack that is not complete is counted there, once."""
        totals = self.totals()
        counted = sum(totals[name] for name in REASONS.values())
        open_ends = [s for s in self.stacks.all
                     if not s.flags & COMPLETE and (s.names or s.flags & USER_FAILED)]
        ready = [s for s in open_ends if not s.flags & NOT_READY]
        if not len(ready) <= counted <= len(open_ends):
            self.problem(f"{len(ready)} stacks are not complete although their tables were ready, "
                         f"{counted} in the ledger: {dict(totals)}", ready)
        not_ready = [s for s in self.stacks.all if s.flags & NOT_READY]
        if totals["unwind_table_not_ready"] != len(not_ready):
            self.problem(f"{len(not_ready)} stacks before their tables were ready, in the ledger: "
                         f"{dict(totals)}", not_ready)
        cut = [s for s in self.stacks.all if s.flags & TRUNCATED]
        if totals["stack_truncated"] != len(cut):
            self.problem(f"{len(cut)} stacks are truncated, {totals['stack_truncated']} in the "
                         "ledger", cut)
        if any(len(s.names) > LIMIT for s in self.stacks.all):
            self.problem("stacks above the limit")

"""A workload that takes seconds to start: a process for each way, all at once, that take turns of a
fraction of a second. What the machine does meanwhile affects adjacent turns alike, and there is time
for many rounds."""

import dataclasses
import queue
import random
import subprocess
import threading
import time

import figures
import ways
from bench import Bench, Failed, account_of, ns_of_unit, say, why_it_failed

TURNS = 6           # for each of --rounds
START_SECONDS = 60  # PyTorch imported by all at once
END_SECONDS = 30    # profilers put together what they saw


class Player:
    """A process that does its work again for each line that it is sent."""

    def __init__(self, command, errors):
        self.errors = errors
        self.lines = queue.Queue()
        self.units = 0
        with open(errors, "w") as output:
            self.process = subprocess.Popen(
                command.arguments, env=ways.environment_of(command), text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def said(self):
        return self.errors.read_text().strip().splitlines()

    def ask(self):
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except OSError:
            pass  # its end is seen below

    def answer(self, timeout):
        """Nanoseconds a unit."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise Failed(f"took more than {timeout:.0f} s") from None
            if line is None:
                raise why_it_failed(self.process.wait(), self.said())
            if (account := account_of(line)) is not None:
                self.units += account["timed_units"]
                return ns_of_unit(account)

    def close(self):
        try:
            self.process.stdin.close()
        except OSError:
            pass

    def end(self, deadline):
        """Its status; None where it had to be ended."""
        for send in (lambda: None, self.process.terminate, self.process.kill):
            send()
            try:
                status = self.process.wait(timeout=max(5.0, deadline - time.monotonic()))
                return status if send not in (self.process.terminate, self.process.kill) else None
            except subprocess.TimeoutExpired:
                pass
        return None


class TurnsBench(Bench):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.players = {}   # by the way's name
        self.commands = {}

    def start(self, way):
        directory = self.tools.scratch / f"{self.workload.name}-{len(self.players)}"
        directory.mkdir()
        command = self.command(way, dataclasses.replace(self.tools, scratch=directory))
        self.commands[way.name] = command
        try:
            self.players[way.name] = Player(command, directory / "errors.txt")
        except OSError as error:
            self.fail(way, error)
            return
        self.players[way.name].ask()  # the first turn is none to be counted

    def fail(self, way, error):
        self.results[way.name].why = f"failed: {error}"
        say(f"{self.workload.name}: {way.name}: {error}")

    def turn(self, way, timeout):
        """None: it failed, which is noted."""
        try:
            return self.players[way.name].answer(timeout)
        except Failed as error:
            self.fail(way, error)
            return None

    def playing(self):
        return [way for way in self.ways
                if way.name in self.players and not self.results[way.name].why]

    def measure(self, deadline, after_run):
        try:
            for way in self.ways:
                if not self.results[way.name].why:
                    self.start(way)
            for way in self.playing():
                self.turn(way, START_SECONDS + self.options.timeout)
            self.take_turns(deadline - END_SECONDS, after_run)
        finally:
            self.finish()

    def take_turns(self, deadline, after_run):
        order = random.Random(self.workload.name)
        for number in range(self.options.rounds * TURNS):
            active = self.playing()
            order.shuffle(active)
            for way in active:
                if time.monotonic() > deadline:
                    return
                begin = time.monotonic()
                self.players[way.name].ask()
                ns = self.turn(way, self.options.timeout)
                if ns is not None:
                    self.results[way.name].times[number] = ns
                    self.results[way.name].seconds[number] = time.monotonic() - begin
            after_run()
            nothing = self.results["nothing"].times.get(number)
            say(f"{self.workload.name}: turn {number + 1}: {figures.time_text(nothing)} alone")

    def finish(self):
        for player in self.players.values():
            player.close()
        deadline = time.monotonic() + END_SECONDS
        for way in self.ways:
            if way.name not in self.players:
                continue
            player = self.players[way.name]
            status = player.end(deadline)
            result = self.results[way.name]
            if result.why:
                continue
            if status is None:
                result.notes.append(f"took more than {END_SECONDS} s to end")
                continue
            try:
                if status != 0:
                    raise why_it_failed(status, player.said())
                self.note(way, self.commands[way.name], player.units, player.said())
            except Failed as error:
                self.fail(way, error)

    def seconds_expected(self):
        turns = sum(self.run_seconds for way in self.ways if not self.results[way.name].why)
        return START_SECONDS / 2 + END_SECONDS / 2 + 10 * turns

"""Reads a trace of Perfetto's protobuf format by its published field numbers, and checks what its
description asks of a writer: texts, frames and stacks are defined before they are referred to, tracks
before their events, times do not go back, slices nest and end.

https://perfetto.dev/docs/reference/trace-packet-proto"""

import collections
import functools
import struct
import zlib

import protobuf_wire

SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
CLEARED, NEEDS_STATE = 1, 2
MONOTONIC = 3
MOST_BYTES_OF_A_BLOCK = 512 << 10

# Tables of InternedData.
CATEGORIES, NAMES, KEYS, FUNCTIONS, FRAMES, STACKS, PATHS, MAPPINGS, VALUES = (
    1, 2, 3, 5, 6, 7, 17, 19, 29)

REFERRING = {MAPPINGS: 1, FRAMES: 2, STACKS: 3}

Slice = collections.namedtuple("Slice", "track name category start end args stack")
Instant = collections.namedtuple("Instant", "track name category time args")
Counter = collections.namedtuple("Counter", "group name unit time value")
Sample = collections.namedtuple("Sample", "pid tid cpu time frames")


class Wrong(AssertionError):
    pass


def need(condition, what):
    if not condition:
        raise Wrong(what)


fields = functools.partial(protobuf_wire.fields, fixed64=True)


def signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def double(value):
    return struct.unpack("<d", value.to_bytes(8, "little"))[0]


def text(data):
    return data.decode("utf-8")


class Trace:
    """Times are nanoseconds since the first one. Tracks are (group, name): of threads the group is
    that of their process."""

    def __init__(self, data):
        self.tables = collections.defaultdict(dict)
        self.kinds = collections.defaultdict(set)  # of frames: the functions of each
        self.names = {}  # of tracks, by uuid
        self.groups = {}  # likewise: the uuid of the group
        self.threads = {}  # likewise: (pid, tid)
        self.processes = {}  # likewise: pid
        self.units = {}  # of counters, likewise
        self.open = collections.defaultdict(list)  # slices, by track
        self.slices, self.instants, self.counters, self.samples = [], [], [], []
        self.marks, self.attributes, self.flows, self.ended_flows = [], {}, {}, {}
        self.base = self.clock = None
        self.real_time = None
        for number, packet in fields(data):
            need(number == 1, f"field {number} of the trace")
            parts = list(fields(packet))
            if parts[0][0] != 50:
                self.read(parts)
                continue
            need(len(packet) < MOST_BYTES_OF_A_BLOCK, "a block of packets is too large")
            for inner, each in fields(zlib.decompress(parts[0][1])):
                need(inner == 1, f"field {inner} of a block")
                self.read(list(fields(each)))
        need(not any(self.open.values()), "slices without an end")

    def read(self, parts):
        packet = dict(parts)
        need(packet.get(10) == 1, "a packet of another sequence")
        if self.base is None:
            need(packet.get(13) == CLEARED and packet.get(87) == 1, "the first packet")
            self.start(packet)
            return
        need(packet.get(13, 0) != CLEARED, "the state is cleared again")
        # What refers to others of the same packet may come before them.
        for table, value in sorted(fields(packet.get(12, b"")), key=lambda f: REFERRING.get(f[0], 0)):
            self.define(table, value)
        if 8 in packet:
            need(packet[13] == NEEDS_STATE, "times need the clock of the sequence")
            time = self.time_of(packet)
        if 60 in packet:
            self.describe(dict(fields(packet[60])))
        elif 11 in packet:
            self.event(time, list(fields(packet[11])))
        elif 66 in packet:
            self.sample(time, dict(fields(packet[66])))
        elif 126 in packet:
            for _, attribute in fields(packet[126]):
                pair = dict(fields(attribute))
                self.attributes[text(pair[1])] = text(pair[3])

    def start(self, packet):
        need(dict(fields(packet[59])) == {58: 64}, "the clock of the sequence is the default")
        snapshot = list(fields(packet[6]))
        clocks = {c[1]: c for c in (dict(fields(v)) for n, v in snapshot if n == 1)}
        need(dict(snapshot)[2] == MONOTONIC, "the clock of the trace")
        need(clocks[64].get(3) == 1 and clocks[64][2] == clocks[MONOTONIC][2], "clocks agree")
        self.base = self.clock = clocks[64][2]
        self.real_time = clocks.get(1, {}).get(2)

    def time_of(self, packet):
        if 58 in packet:
            need(packet[58] == MONOTONIC, "a clock that is not defined")
            return packet[8] - self.base
        self.clock += packet[8]
        need(self.clock < 1 << 64, "a time that goes back")
        return self.clock - self.base

    def define(self, table, value):
        parts = list(fields(value))
        entry = dict(parts)
        need(entry[1] not in self.tables[table], f"number {entry[1]} of table {table} is there")
        if table == FRAMES:
            made = (self.tables[FUNCTIONS][entry[2]], self.tables[MAPPINGS][entry[3]])
            need(4 in entry, "a frame in a file without an address")
            self.kinds[entry.get(7, 0)].add(made[0])
        elif table == STACKS:
            made = tuple(self.tables[FRAMES][frame][0] for n, frame in parts if n == 2)
            need(made, "a stack without frames")
        elif table == MAPPINGS:
            made = "/".join(self.tables[PATHS][part] for n, part in parts if n == 7)
        else:
            made = text(entry.get(2, b""))
        self.tables[table][entry[1]] = made

    def describe(self, track):
        uuid = track[1]
        if uuid == 0:
            need(track == {1: 0, 11: 3, 19: 1, 20: 1}, "the root")
            return
        need(uuid not in self.names, f"track {uuid} is there")
        parent = track.get(5)
        need(parent is None or parent in self.names, f"the parent of track {uuid} is not there")
        self.groups[uuid] = parent or uuid
        if 3 in track:
            process = dict(fields(track[3]))
            self.names[uuid] = text(process.get(6, b""))
            self.processes[uuid] = process[1]
        elif 4 in track:
            thread = dict(fields(track[4]))
            self.names[uuid] = text(thread.get(5, b""))
            need(thread[1] == self.processes[parent], "a thread of another process")
            self.threads[uuid] = (thread[1], thread[2])
        else:
            self.names[uuid] = text(track[2])
        if 8 in track:
            self.units[uuid] = text(dict(fields(track[8]))[6])

    def track(self, uuid):
        need(uuid in self.names, f"track {uuid} is not there")
        return self.names[self.groups[uuid]], self.names[uuid]

    def event(self, time, parts):
        event = dict(parts)
        # Without one it is on the thread that the sequence described last.
        need(11 in event, "an event without a track")
        kind, uuid = event[9], event[11]
        if kind == SLICE_END:
            need(self.open[uuid], f"an end on track {uuid} of nothing")
            begun = self.open[uuid].pop()
            need(begun.start <= time, "an end before the begin")
            self.slices.append(begun._replace(end=time))
            return
        if kind == COUNTER:
            self.counters.append(Counter(self.names[self.groups[uuid]], self.names[uuid],
                                         self.units[uuid], time, double(event[44])))
            return
        name = self.tables[NAMES][event[10]] if 10 in event else text(event[23])
        args = dict(self.argument(v) for n, v in parts if n == 4)
        if uuid == 0:
            self.marks.append((name, time, args))
            return
        category = self.tables[CATEGORIES].get(event.get(3))
        for number, value in parts:
            flows = self.flows if number == 47 else self.ended_flows
            if number in (47, 48):
                need(value not in flows, f"flow {value} twice")
                need(number == 47 or value in self.flows, f"flow {value} has not begun")
                flows[value] = (uuid, time)
        if kind == INSTANT:
            self.instants.append(Instant(self.track(uuid), name, category, time, args))
            return
        need(kind == SLICE_BEGIN, f"an event of type {kind}")
        self.open[uuid].append(Slice(self.track(uuid), name, category, time, None, args,
                                     self.tables[STACKS][event[56]] if 56 in event else ()))

    def argument(self, data):
        parts = list(fields(data))
        entry = dict(parts)
        key = self.tables[KEYS][entry[1]] if 1 in entry else text(entry[10])
        return key, self.value(parts, entry)

    def value(self, parts, entry):
        if 12 in entry:
            return [signed(dict(fields(v))[4]) for n, v in parts if n == 12]
        if 17 in entry:
            return self.tables[VALUES][entry[17]]
        for number, read in ((3, int), (4, signed), (5, double), (6, text)):
            if number in entry:
                return read(entry[number])
        raise Wrong(f"an argument without a value: {entry}")

    def sample(self, time, sample):
        frames = self.tables[STACKS][sample[4]] if 4 in sample else ()
        self.samples.append(Sample(sample[2], sample[3], sample.get(1, 0), time, frames))

    def arrows(self):
        """(track and time where it begins, track and time where it ends)."""
        return [((self.track(begin[0]), begin[1]), (self.track(end[0]), end[1]))
                for number, end in self.ended_flows.items() for begin in [self.flows[number]]]

"""Reads messages of Protocol Buffers without their declarations."""


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data, fixed64=False):
    """Field number, value: an integer, bytes, or if `fixed64` eight bytes as an integer."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        wire_type = key & 7
        if wire_type == 0:
            value, at = varint(data, at)
        elif wire_type == 1 and fixed64:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        else:
            if wire_type != 2:
                raise AssertionError(f"wire type {wire_type}")
            size, at = varint(data, at)
            if at + size > len(data):
                raise AssertionError("a field is longer than its message")
            value, at = data[at:at + size], at + size
        yield key >> 3, value

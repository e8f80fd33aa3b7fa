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
    at, end = 0, len(data)
    while at < end:
        # Nearly all keys and sizes are one byte: they are read here, in half the time.
        key = data[at]
        at += 1
        if key >= 0x80:
            key, at = varint(data, at - 1)
        wire_type = key & 7
        if wire_type == 1 and fixed64:
            value, at = int.from_bytes(data[at:at + 8], "little"), at + 8
        elif wire_type in (0, 2):
            value = data[at]
            at += 1
            if value >= 0x80:
                value, at = varint(data, at - 1)
            if wire_type == 2:
                begin, at = at, at + value
                if at > end:
                    raise AssertionError("a field is longer than its message")
                value = data[begin:at]
        else:
            raise AssertionError(f"wire type {wire_type}")
        yield key >> 3, value

"""GPU code whose line tables say what a test wants."""

import struct

INSTRUCTION_BYTES = 16
_SECTION = struct.Struct("<IIQQQQIIQQ")  # of the headers
_OFFSET, _SIZE = 4, 5


def _name_at(strings, at):
    return strings[at:strings.index(b"\0", at)].decode()


def _lines(files, function_bytes):
    """A table of DWARF 2 of two functions, and where their addresses are in it."""
    standard = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1])  # operands of the opcodes 1 to 9
    names = b"".join(name.encode() + b"\0" + bytes(3) for name, _ in files) + b"\0"
    head = struct.pack("<BBbBB", 1, 1, -5, 14, len(standard) + 1) + standard + b"\0" + names
    program, addresses = b"", []
    for size in function_bytes:
        addresses.append(len(program) + 3)
        program += b"\0\x09\x02" + bytes(8)  # at an address that is relocated
        line = 1
        for number in range(size // INSTRUCTION_BYTES):
            file, wanted = number % len(files) + 1, files[number % len(files)][1]
            advance = (wanted - line) & 0xffffffff
            program += bytes([4, file, 3])  # file; lines, as a signed number of five bytes
            signed = advance - (1 << 32) if advance >> 31 else advance
            program += bytes((signed >> 7 * i & 0x7f) | (0x80 if i < 4 else 0) for i in range(5))
            program += bytes([1, 2, INSTRUCTION_BYTES])  # a row; the next instruction
            line = wanted
        program += b"\0\x01\x01"
    start = 10 + len(head)
    table = struct.pack("<IHI", 6 + len(head) + len(program), 2, len(head)) + head + program
    return table, [start + at for at in addresses]


def with_lines(cubin, files):
    """`cubin`: bytes of tests/captures/cubins/inlines.cubin. `files`: (name, line) pairs, which the
    instructions of its two functions come from in turns."""
    headers_at, = struct.unpack_from("<Q", cubin, 0x28)
    count, names_index = struct.unpack_from("<HH", cubin, 0x3c)
    headers = [list(_SECTION.unpack_from(cubin, headers_at + i * _SECTION.size))
               for i in range(count)]
    strings = cubin[headers[names_index][_OFFSET]:]
    sections = {_name_at(strings, header[0]): header for header in headers}
    functions = ("_Z9slow_warpPfi", "_Z9fma_chainPfi")  # as the relocations are ordered
    table, places = _lines(files, [sections[f".text.{name}"][_SIZE] for name in functions])
    made = bytearray(cubin)
    for number, place in enumerate(places):
        struct.pack_into("<Q", made, sections[".rela.debug_line"][_OFFSET] + number * 24, place)
    sections[".debug_line"][_OFFSET] = len(made)
    sections[".debug_line"][_SIZE] = len(table)
    for number, header in enumerate(headers):
        _SECTION.pack_into(made, headers_at + number * _SECTION.size, *header)
    return bytes(made) + table

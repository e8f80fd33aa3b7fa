"""Names that a program may give its sources, and that must not be read."""

import os

SECRET = "secret:that:nobody:may:see\n"
# Their names do not end as those of sources do.
OTHERS = ["/etc/shadow", "/proc/self/environ", "/proc/1/environ", "/dev/zero"]


def hostile_files(work, ending):
    """Makes files whose names end as those of sources do, and returns their paths."""
    paths = []

    def place(name):
        path = work.path / f"{name}.{ending}"
        paths.append(str(path))
        return path
    os.mkfifo(place("fifo"))
    place("huge").write_bytes(b"int x;\n" * 400_000)
    place("binary").write_bytes(b"int x;\n\0" + SECRET.encode())
    place("link").symlink_to(work.file("secret", SECRET))
    place("shadow").symlink_to("/etc/shadow")
    place("directory").mkdir()
    place("null").symlink_to("/dev/null")
    return paths

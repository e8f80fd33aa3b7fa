"""own_usage.py FILE COMMAND...: runs it, and writes its CPU and wall time into FILE as JSON."""

import json
import os
import sys
import time

begin = time.monotonic()
pid = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(pid, 0)
wall = time.monotonic() - begin
here = os.times()
with open(sys.argv[1], "w", encoding="utf-8") as file:
    json.dump({"cpu": usage.ru_utime + usage.ru_stime, "wall": wall,
               "own": here.user + here.system}, file)
sys.exit(os.waitstatus_to_exitcode(status))

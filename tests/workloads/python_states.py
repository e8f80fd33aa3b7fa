"""Work in places that only the thread state shows: in states that come and go, in several
interpreters, in greenlets.

usage: python_states.py LIBRARY SECONDS callbacks|idle|nested|greenlets
"""

import ctypes
import os
import sys
import time

LIBRARY, SECONDS, MODE = sys.argv[1], float(sys.argv[2]), sys.argv[3]

SHARED = """
import ctypes, time

def burn(rounds):
    x = 1
    for i in range(rounds):
        x = x * 3 % 1000003
    return x

def burn_for(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        burn(2000)
"""
exec(SHARED)


def library():
    states = ctypes.PyDLL(LIBRARY)  # without releasing the lock
    states.this_state.restype = states.new_interpreter.restype = ctypes.c_void_p
    states.run_in.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    return states


def from_thread():
    burn(60000)


def callbacks():
    states = ctypes.CDLL(LIBRARY)
    callback = ctypes.CFUNCTYPE(None)(from_thread)
    states.call_from_thread.argtypes = [ctypes.CFUNCTYPE(None), ctypes.c_double]
    states.call_from_thread(callback, SECONDS)


def idle():
    assert library().new_interpreter()
    burn_for(SECONDS)


def innermost():
    burn_for(SECONDS / 2)


def outermost(states, other):
    code = f"""{SHARED}
def between():
    states = ctypes.PyDLL({LIBRARY!r})
    states.run_in.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    assert states.run_in({states.this_state()}, b"innermost()") == 0
    burn_for({SECONDS / 2})

between()
"""
    assert states.run_in(other, code.encode()) == 0


def nested():
    states = library()
    outermost(states, states.new_interpreter())


def alpha():
    burn(3000)


def task(hub):
    while True:
        alpha()
        hub.switch()


def first_switch(work, hub):
    work.switch(hub)


def in_turns(work):
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        work.switch()


def greenlets():
    import greenlet
    hub = greenlet.getcurrent()
    work = greenlet.greenlet(task)
    # Its stack begins below functions that have ended when it goes on, where others run then.
    sorted([1], key=lambda _: first_switch(work, hub) or 0)
    in_turns(work)


globals()[MODE]()
os._exit(0)  # an interpreter that still exists would end the program with an error

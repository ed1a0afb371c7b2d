"""Run in a fresh interpreter: imports what it is told to and prints what that did, as JSON.

Usage: python -I -B watched_import.py MODULE
"""

import importlib
import json
import os
import sys
import threading

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
TOUCHY = (
    "socket.",
    "subprocess.",
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "os.mkdir",
    "os.remove",
)

events: list[str] = []
variables: list[str] = []


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, mode, flags = arguments
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if writes or (isinstance(flags, int) and flags & WRITES):
            events.append(f"open {path!r} for writing")
    elif event in {"_thread.start_new_thread", "sqlite3.connect"} or event.startswith(TOUCHY):
        events.append(event)


class WatchedEnvironment(type(os.environ)):
    """Notes every variable that is asked for."""

    def __getitem__(self, key: str) -> str:
        variables.append(key)
        return super().__getitem__(key)


os.environ.__class__ = WatchedEnvironment
sys.addaudithook(watch)
before = set(sys.modules)
importlib.import_module(sys.argv[1])
loaded = sorted(set(sys.modules) - before)
threads = [thread.name for thread in threading.enumerate()]
print(json.dumps({"events": events, "variables": variables, "loaded": loaded, "threads": threads}))

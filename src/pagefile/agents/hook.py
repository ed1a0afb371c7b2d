"""The command of a coding agent's hook: asks the running service, prints its answer, and ends within 300 ms whatever happens.

Run as `python -I -S hook.py URL AGENT PROJECT [SECONDS]`, with the hook's input on standard input; `-` is the folder that the input names. It
imports nothing but what starts fast. Where no service runs, or it is slow, it prints nothing: the agent goes on as without it.
"""

import json
import os
import socket
import sys
import threading
import time

#: With the start of Python, this stays below 300 ms.
DEADLINE_S = 0.25
#: More than any tool's output that a hook could replace.
MAX_BYTES = 8_000_000


def request_body(raw: bytes, agent: str, project: str) -> bytes:
    """The body of the request; empty if the input is not a hook's."""
    given: dict[str, object] = json.loads(raw) if len(raw) <= MAX_BYTES else {}
    session = given.get("session_id")
    folder = given.get("cwd") if project == "-" else project
    if not session or not folder:
        return b""
    body = {"agent": agent, "project": folder, "conversation_id": session, "input": given}
    return json.dumps(body).encode()


def answered(url: str, body: bytes, key: str | None, end: float) -> bytes:
    """What the service answers; empty where it says nothing."""
    host, _, port = url.partition("://")[2].strip("/").rpartition(":")
    head = [
        "POST /agents/hook HTTP/1.1",
        f"Host: {host}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *([f"Authorization: Bearer {key}"] if key else []),
    ]
    with socket.create_connection((host.strip("[]"), int(port)), timeout=left(end)) as connection:
        connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
        received = b""
        # A timeout is for one call: each gets what is left.
        connection.settimeout(left(end))
        while piece := connection.recv(1 << 16):
            received += piece
            if time.monotonic() > end:
                return b""
            connection.settimeout(left(end))
    top, _, text = received.partition(b"\r\n\r\n")
    return b"" if text == b"{}" or not top.startswith(b"HTTP/1.1 200") else text


def left(end: float) -> float:
    return max(0.001, end - time.monotonic())


def main(arguments: list[str]) -> None:
    """Print the answer; nothing if there is none before the deadline, whatever takes long: the input, a name's lookup, the service."""
    said: list[bytes] = []
    seconds = float(arguments[3]) if len(arguments) > 3 else DEADLINE_S
    asking = threading.Thread(target=ask, args=(arguments, time.monotonic() + seconds, said), daemon=True)
    asking.start()
    asking.join(seconds)
    # As bytes: not every terminal's encoding has all characters.
    sys.stdout.buffer.write(b"".join(said))


def ask(arguments: list[str], end: float, said: list[bytes]) -> None:
    try:
        url, agent, project = arguments[:3]
        body = request_body(sys.stdin.buffer.read(MAX_BYTES + 1), agent, project)
        if body:
            said.append(answered(url, body, os.environ.get("PAGEFILE_KEY"), end))
    except Exception:  # noqa: S110 - whatever it is, the agent must go on
        pass


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    finally:
        # Without waiting for the thread, which may still read.
        os._exit(0)

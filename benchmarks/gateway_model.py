"""`pagefile bench model`: twenty questions after a long talk, with a real model, through the gateway and without it.

The client is the same: it has the whole talk, with tool results, and sends it with each question. Without the gateway it has to
leave out the oldest messages until the rest fits the window, as they are or after it has cleared the tool results ("cleared", which
fills the window with what was said); with it, it sends everything. The talk itself is scripted, and goes
through the gateway turn by turn. Each question is asked on a copy of the memory, so that no question profits from another.

A small model on two cores takes minutes for a question: answers are appended to a file, and a run goes on where the last one ended.
"""

import json
import random
import shutil
import socket
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.gateway import serving
from benchmarks.report import Report, Row, machine_facts
from pagefile.service.workers import serve_one
from pagefile.settings import GatewaySettings, Settings
from pagefile.text.tokens import TokenCounter, open_counter

TALK = Path(__file__).parent / "model" / "talk.toml"
ANSWERS = Path(__file__).parent / "model" / "answers.jsonl"
#: The memory after the talk; it stays between runs, so that prompts begin alike and a server can reuse what it knows of the last.
MEMORY = Path(tempfile.gettempdir()) / "pagefile-bench-model"
ARMS = ("gateway", "without", "cleared")
_CLEARED = "[Old tool result cleared]"
KINDS = ("fact", "changed", "tool result", "recent")
WINDOW_TOKENS = 4_000
_ANSWER_TOKENS = 80
_SYSTEM = "You are the assistant of a small brewery. Answer briefly, from what was said in this conversation."
_NAMES = ("Linde", "Krone", "Adler", "Sonne", "Schwan", "Hirsch", "Rose", "Engel")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A line of the file of answers."""

    number: int
    kind: str
    arm: str
    answer: str
    right: bool
    #: As the model's server counted them.
    prompt_tokens: int
    model: str


def run(
    url: str, model: str, *, most: int, path: Path = ANSWERS, tell: Callable[[str], None] = print
) -> list[Answer]:
    """Ask up to `most` of the questions that have no answer of this model yet, and return all answers of it."""
    talk = tomllib.loads(TALK.read_text("utf-8"))
    known = [one for one in read(path) if one.model == model]
    asked = {(one.number, one.arm) for one in known}
    waiting = [
        (number, arm, question)
        # The arms apart: a server keeps the beginning of its last prompt.
        for arm in ARMS
        for number, question in enumerate(talk["question"], 1)
        if (number, arm) not in asked
    ][:most]
    if not waiting:
        return known
    history = [{"role": "system", "content": _SYSTEM}, *messages(talk["turn"])]
    if not MEMORY.exists():
        tell("the talk")
        _talk(history, MEMORY)
    for number, arm, question in waiting:
        body = {"model": model, "temperature": 0, "max_tokens": _ANSWER_TOKENS}
        said = {"role": "user", "content": question["text"]}
        sent = _cleared(history) if arm == "cleared" else history
        answer = _asked(url, {**body, "messages": [*sent, said]}, MEMORY if arm == "gateway" else None)
        text = str(answer["choices"][0]["message"].get("content") or "").strip()
        usage: Json = answer.get("usage") or {}
        tokens = int(usage.get("prompt_tokens", 0))
        one = Answer(number, question["kind"], arm, text, is_right(question, text), tokens, model)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
        known.append(one)
        tell(f"{number} {arm} {'right' if one.right else 'WRONG'}: {text[:100]}")
    return known


def report(answers: Sequence[Answer]) -> Report:
    """How many answers are right, by kind and arm."""
    rows: list[Row] = []
    for kind in KINDS:
        for arm in ARMS:
            mine = [one for one in answers if (one.kind, one.arm) == (kind, arm)]
            right, whole = sum(one.right for one in mine), max(1, len(mine))
            tokens = sum(one.prompt_tokens for one in mine) / whole
            wanted = kind == "tool result" and arm == "gateway" and len(mine) == 7
            bound = {"limit": 5, "bound": "at least", "ok": right >= 5} if wanted else {}
            note = f"of {len(mine)}, {arm}; {tokens:.0f} tokens of a prompt"
            rows.append(Row(f"right answers: {kind}", right, "", note=note, **bound))  # type: ignore[arg-type]
    return Report(rows, machine_facts(open_counter().name), quick=False, seconds=0.0)


def read(path: Path = ANSWERS) -> list[Answer]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [Answer(**json.loads(line)) for line in lines]


def is_right(question: Mapping[str, Any], answer: str) -> bool:
    """Whether it says what is wanted, and for what has changed nothing of before."""
    said = answer.casefold()
    return any(one.casefold() in said for one in question["accept"]) and not any(
        one.casefold() in said for one in question.get("reject", ())
    )


# -- the talk -----------------------------------------------------------------------------------------------------------


def messages(turns: Sequence[Mapping[str, Any]]) -> list[Json]:
    """The talk as the client has it."""
    said: list[Json] = []
    for number, turn in enumerate(turns):
        said.append({"role": "user", "content": turn["user"]})
        if "tool" in turn:
            function = {"name": turn["tool"], "arguments": json.dumps(turn["arguments"])}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            said.append({"role": "assistant", "content": None, "tool_calls": [call]})
            said.append({"role": "tool", "tool_call_id": f"call_{number}", "content": _result(turn)})
        said.append({"role": "assistant", "content": turn["assistant"]})
    return said


def _result(turn: Mapping[str, Any]) -> str:
    chosen = random.Random(turn["tool"])
    lines = [
        turn["line"].format(
            n=chosen.randrange(100, 5000),
            name=chosen.choice(_NAMES),
            day=chosen.randrange(1, 29),
            hour=chosen.randrange(24),
            minute=chosen.randrange(60),
            tank=chosen.randrange(1, 9),
            **{letter: chosen.randrange(1, 10) for letter in "abc"},
        )
        for _ in range(turn["rows"])
    ]
    lines.insert(chosen.randrange(len(lines) // 4, len(lines)), turn["found"])
    return "\n".join(lines)


def _talk(history: Sequence[Json], memory: Path) -> None:
    """Turn by turn through the gateway, with a provider that answers from the script."""
    unfinished = memory.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    with (
        serving(_scripted, history) as provider,
        serving(_gateway, unfinished, f"{provider.url}/v1") as gateway,
    ):
        for place, message in enumerate(history):
            if message["role"] == "assistant":
                body = {"model": "scripted", "messages": history[:place]}
                httpx.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=60).raise_for_status()
    unfinished.rename(memory)


def _scripted(listener: socket.socket, history: Sequence[Json]) -> None:
    places = [place for place, message in enumerate(history) if message["role"] == "assistant"]

    async def answer(request: Request) -> JSONResponse:
        del request
        choice = {"index": 0, "message": history[places.pop(0)], "finish_reason": "stop"}
        return JSONResponse({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]})

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listener])


def _gateway(listener: socket.socket, memory: Path, url: str) -> None:
    gateway = GatewaySettings(
        openai_url=url, window_tokens=WINDOW_TOKENS, deadline_s=60.0, timeout_s=3600.0, user_id="jonas"
    )
    serve_one(Settings(url=f"sqlite:///{memory / 'memory.db'}", gateway=gateway), listener)


# -- the questions --------------------------------------------------------------------------------------------------------


def _asked(url: str, body: Json, memory: Path | None) -> Json:
    if memory is None:
        counter = open_counter()
        fitting = list(trimmed(body["messages"], WINDOW_TOKENS - _ANSWER_TOKENS, counter))
        return _posted(url, {**body, "messages": fitting})
    with tempfile.TemporaryDirectory() as folder:
        copied = shutil.copytree(memory, Path(folder) / "copy")
        with serving(_gateway, copied, url) as gateway:
            # One that runs for a while has loaded its embedder.
            warm_up = {"query": "warm up", "user_id": "nobody"}
            httpx.post(f"{gateway.url}/v1/recall", json=warm_up, timeout=60).raise_for_status()
            return _posted(f"{gateway.url}/v1", body)


def _posted(url: str, body: Json) -> Json:
    response = httpx.post(f"{url}/chat/completions", json=body, timeout=3600)
    response.raise_for_status()
    if (status := response.headers.get("x-pagefile-status", "memory")) != "memory":
        raise SystemExit(f"The gateway did not use its memory: {status}.")
    return response.json()


def _cleared(history: Sequence[Json]) -> list[Json]:
    return [{**one, "content": _CLEARED} if one["role"] == "tool" else one for one in history]


def trimmed(history: Sequence[Json], most: int, counter: TokenCounter) -> Iterator[Json]:
    """The system text and the newest messages that fit; a result goes with its call."""
    first, *rest = history
    sizes = [counter.count(json.dumps(message, ensure_ascii=False)) for message in rest]
    left = most - counter.count(json.dumps(first))
    start = len(rest)
    while start and sizes[start - 1] <= left:
        start -= 1
        left -= sizes[start]
    while start < len(rest) and rest[start]["role"] != "user":
        start += 1
    yield first
    yield from rest[start:]

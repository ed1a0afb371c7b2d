"""`pagefile bench tools`: whether a model calls the right MCP tool, with the right arguments, and none where none is needed.

The model is given what a client gives it: the server's instructions and tools, as they are listed where no language is set. Half of the requests
("kept") are never looked at when descriptions are changed. Answers are appended to a file under a digest of the descriptions, so that a
run goes on where the last one ended, and earlier descriptions can be compared.
"""

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks.report import Report, Row, machine_facts
from pagefile.mcp.tools import listed
from pagefile.shapes.skeleton import as_object
from pagefile.standalone.tools import instructions
from pagefile.text.tokens import open_counter
from pagefile.window.wording import Language

_HERE = Path(__file__).parent
REQUESTS, ANSWERS = _HERE / "requests.toml", _HERE / "answers.jsonl"
HALVES = ("tuned", "kept")
#: Of the tools: the server does not know its user's before anything is said.
_LANGUAGE: Language = "en"
_ANSWER_TOKENS, _DIGEST_CHARS, _SHOWN_CHARS = 160, 8, 400

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Choice:
    """A line of the file of answers."""

    number: int
    half: str
    #: Which descriptions the model was given.
    digest: str
    model: str
    tool: str | None
    arguments: Json
    right: bool
    #: With arguments that the tool takes, and that say what the user said.
    well: bool


def run(
    url: str, model: str, *, most: int, path: Path = ANSWERS, tell: Callable[[str], None] = print
) -> list[Choice]:
    """Make up to `most` of the requests that have no answer with these descriptions yet, and return all answers of the model."""
    mark, known = digest(), [one for one in read(path) if one.model == model]
    asked = {one.number for one in known if one.digest == mark}
    waiting = [(number, request) for number, request in enumerate(requests(), 1) if number not in asked]
    for number, request in waiting[:most]:
        tool, arguments = _called(_answered(url, model, request))
        right, well = judged(request, tool, arguments)
        one = Choice(number, request["half"], mark, model, tool, arguments, right, well)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(one), ensure_ascii=False) + "\n")
        known.append(one)
        shown = json.dumps(arguments, ensure_ascii=False)[:_SHOWN_CHARS] if tool else ""
        tell(
            f"{number} {request['half']} {'well' if well else 'right' if right else 'WRONG'}: {tool} {shown}"
        )
    return known


def report(choices: Sequence[Choice]) -> Report:
    """How many tools and arguments are right, with the descriptions of now and with earlier ones."""
    now = digest()
    rows: list[Row] = []
    for mark in dict.fromkeys(one.digest for one in choices):
        for half in HALVES:
            mine = [one for one in choices if (one.half, one.digest) == (half, mark)]
            note = f"of {len(mine)}, {half}; {sum(one.well for one in mine)} with the right arguments"
            name = f"right tools, descriptions {mark}{' (now)' if mark == now else ''}"
            rows.append(Row(name, sum(one.right for one in mine), "", note=note))
    return Report(rows, machine_facts(open_counter().name), quick=False, seconds=0.0)


def requests(path: Path = REQUESTS) -> list[Json]:
    return tomllib.loads(path.read_text("utf-8"))["request"]


def read(path: Path = ANSWERS) -> list[Choice]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [Choice(**json.loads(line)) for line in lines]


def offered() -> tuple[str, list[Json]]:
    """What a client gives its model: the server's instructions, and its tools as functions."""
    tools = [
        {"name": one.name, "description": one.description, "parameters": one.input_schema}
        for one in listed(_LANGUAGE)
    ]
    return instructions(_LANGUAGE), [{"type": "function", "function": tool} for tool in tools]


def digest() -> str:
    """Names the descriptions."""
    return hashlib.sha256(json.dumps(offered()).encode()).hexdigest()[:_DIGEST_CHARS]


def judged(request: Mapping[str, Any], tool: str | None, arguments: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the tool is right, and whether its arguments are as well."""
    right = tool in request["right"] if request["right"] else tool is None
    if not right or tool is None:
        return right, right
    schema = next(one.input_schema for one in listed(_LANGUAGE) if one.name == tool)
    known = set(schema["required"]) <= set(arguments) <= set(schema["properties"])
    said = all(
        any(text in str(arguments.get(name, "")).casefold() for text in texts)
        for name, texts in request.get("says", {}).items()
    )
    return right, known and said


def _answered(url: str, model: str, request: Mapping[str, Any]) -> Json:
    system, tools = offered()
    said = [*request.get("before", ()), {"role": "user", "content": request["text"]}]
    body = {
        "model": model,
        "messages": [{"role": "system", "content": system}, *said],
        "tools": tools,
        "temperature": 0,
        "max_tokens": _ANSWER_TOKENS,
    }
    response = httpx.post(f"{url}/chat/completions", json=body, timeout=3600, trust_env=False)
    return response.raise_for_status().json()["choices"][0]["message"]


def _called(message: Mapping[str, Any]) -> tuple[str | None, Json]:
    """The name and the arguments of the first call; arguments that are no object are none."""
    calls: list[Json] = message.get("tool_calls") or []
    if not calls:
        return None, {}
    function: Json = calls[0]["function"]
    try:
        arguments = as_object(json.loads(function["arguments"]))
    except ValueError:
        arguments = None
    return function["name"], dict(arguments or {})

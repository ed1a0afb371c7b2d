"""The page of `pagefile bench peers`, written from its JSON alone: the same JSON, the same page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.peers_lines import IN_MEMORY, Line, Value

_COMMAND = "pagefile bench peers --out peers.json --svg peers.svg --page peers.md"


def page(made: Mapping[str, Any], picture: str | None = None) -> str:
    """A report as Markdown; `picture` is the name of its SVG file, if there is one."""
    return "\n".join(_parts(made, picture)) + "\n"


def _parts(made: Mapping[str, Any], picture: str | None) -> Iterator[str]:
    lines = [Line.from_json(line) for line in made["lines"]]
    yield "# Side by side"
    yield ""
    yield f"Written by `{_COMMAND}`; change nothing here by hand. [How it is measured](../benchmarks.md)."
    yield ""
    yield _setting(made)
    yield ""
    yield from _skipped(made)
    yield from _table(lines, _names(made))
    yield ""
    yield from _reasons(lines)
    if picture is not None:
        yield "## As the conversation grows"
        yield ""
        yield f"![Times, memory and disk of everybody as the conversation grows]({picture})"
        yield ""
        yield from _stopped(made)
        yield from _growth(made)
        yield ""
    yield "## Who was measured, and how"
    yield ""
    for peer in made["peers"]:
        version = f"{peer['package']} {peer['version']}" if peer["version"] else peer["package"]
        yield f"- **{peer['name']}** ({version}). {peer['used']}"
    yield ""
    yield _machine(made)


def _setting(made: Mapping[str, Any]) -> str:
    talk = made["conversation"]
    return (
        f"One conversation in English and Chinese with {talk['details']} details to find again; one turn in "
        f"{talk['result_every']} has a tool result of {talk['result_chars']:,} characters. Prompts, what is in them and what is lost: "
        f"over {talk['turns']} turns, each of which asks for a prompt of at most {made['budget_tokens']:,} tokens. Times, memory and "
        f"disk: as the conversation grows. Everybody has the same vectors ({made['embedder']}), made by another process, and no "
        "time is counted for them."
    )


def _names(made: Mapping[str, Any]) -> list[str]:
    return [peer["name"] for peer in made["peers"]]


def _skipped(made: Mapping[str, Any]) -> Iterator[str]:
    missing = [peer for peer in made["peers"] if peer["status"] != "measured"]
    for peer in missing:
        yield f"- **{peer['name']}: {peer['why']}**"
    if missing:
        yield ""


def _table(lines: Sequence[Line], names: Sequence[str]) -> Iterator[str]:
    yield f"| | who is ahead | {' | '.join(names)} |"
    yield f"|---|---|{'---:|' * len(names)}"
    for line in lines:
        values = [_value(line, name) for name in names]
        yield f"| {line.name} ({unit(line)}) | {', '.join(line.leaders) or line.verdict} | {' | '.join(values)} |"


def _value(line: Line, name: str) -> str:
    """A number of the table; that of the one who is ahead in bold."""
    shown = number(line.values.get(name), line.unit)
    return f"**{shown}**" if name in line.leaders else shown


def unit(line: Line) -> str:
    """What its numbers are, and which are good."""
    named = "%" if line.unit == "share" else line.unit
    return f"{named}, {line.better} is better"


def number(value: Value, of: str) -> str:
    """A number as a person reads it."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if of == "share":
        return f"{100 * value:.3g}"
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"


def _reasons(lines: Sequence[Line]) -> Iterator[str]:
    behind = [line for line in lines if line.ahead]
    yield "## Where Pagefile is not ahead"
    yield ""
    if not behind:
        yield "Nowhere in this run."
    for line in behind:
        yield f"- **{line.name}.** {line.why}"
    yield ""


def _stopped(made: Mapping[str, Any]) -> Iterator[str]:
    stopped = [peer for peer in made["peers"] if peer["growth"] and peer["growth"]["stopped"]]
    for peer in stopped:
        yield f"- {peer['name']} was stopped at {peer['growth']['stopped']:,} turns: the time for it was used up."
    if stopped:
        yield ""


_GROWN = (("record_ms", "record, ms"), ("context_ms", "prompt, ms"), ("recall_ms", "recall, ms"))


def _growth(made: Mapping[str, Any]) -> Iterator[str]:
    named = [name for _, name in _GROWN]
    yield f"| | turns | {' | '.join(named)} | peak, MB | disk, MB | said details found, % |"
    yield f"|---|---:|{'---:|' * len(named)}---:|---:|---:|"
    for peer in made["peers"]:
        points = peer["growth"]["points"] if peer["growth"] else ()
        on_disk = any(point["disk_bytes"] for point in points)
        for point in points:
            values = [number(point[what], "ms") for what, _ in _GROWN]
            values += [
                number(point["peak_mb"] - peer["base_mb"], "MB"),
                number(point["disk_bytes"] / 1e6 if on_disk else IN_MEMORY, "MB"),
                number(point["said_share"], "share"),
            ]
            yield f"| {peer['name']} | {point['turns']:,} | {' | '.join(values)} |"


def _machine(made: Mapping[str, Any]) -> str:
    facts = " · ".join(f"{name} {value}" for name, value in made["machine"].items())
    return f"{facts} · {made['seconds']:,.0f} s"

"""Archived pages for callers and models: loading whole, by question or by part, and the two tools for models.

What models are told about these tools is in `standalone/tools.toml`.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pagefile.engine.arguments import at_least
from pagefile.engine.engine import Engine
from pagefile.engine.log_queries import turn_in
from pagefile.errors import HandleNotFoundError, PagefileError
from pagefile.ports import ENDED, EntryQuery
from pagefile.records import JsonValue, Page, Scope, Turn, checked_text
from pagefile.text.passages import matching
from pagefile.text.sentences import clip
from pagefile.tiers import page_in
from pagefile.tiers.archive import Archive
from pagefile.window.placeholder import (
    LOAD_TOOL,
    SEARCH_TOOL,
    TURN_HANDLE,
    in_view_note,
    loaded_chars,
    short_placeholder,
    spoken_in,
)
from pagefile.window.wording import Wording

logger = logging.getLogger("pagefile")

#: Hits shown to a model that searches its history.
_HITS_SHOWN, _MOST_HITS = 5, 20
_PASSAGE_SHOWN, _QUERY_SHOWN = 400, 200
#: Turns read at a time when looking for one by its id.
_SLICE = 500


async def load_text(
    engine: Engine,
    scope: Scope,
    uuid: str,
    *,
    query: str | None,
    offset: int,
    limit: int | None,
    counted: bool = True,
    budget_tokens: int | None = None,
) -> str:
    """A page: whole, the passages that answer a query, or a part. With `counted=False` it does not count as a load.

    Passages take at most `budget_tokens`, by default a quarter of the window.
    """
    start = at_least(0, offset, "offset")
    most = None if limit is None else at_least(1, limit, "limit")
    if uuid.startswith(TURN_HANDLE):
        text = await _turn_text(engine, scope, uuid)
    else:
        load = engine.tier(Archive).load if counted else engine.store.pages.load
        _, text = await load(scope, page_in.checked_uuid(uuid))
    if query is None:
        return page_in.slice_of(text, start, most)
    if start > len(text):
        raise page_in.behind_the_end(start, text)
    asked = page_in.Asked(checked_text(query, "query"), start, most)
    budget = budget_tokens or engine.settings.window_tokens // 4
    return await engine.tier(Archive).part(scope, text, asked, budget)


async def call_tool(
    engine: Engine, scope: Scope, open_turn: Turn | None, name: str, arguments: Mapping[str, object]
) -> str:
    """The text the model reads as the result of its call; never an exception."""
    wording = await engine.languages.wording(scope, str(arguments.get("query") or ""))
    if name not in {LOAD_TOOL, SEARCH_TOOL}:
        return wording.answers["unknown_tool"].format(tool=repr(name))
    if (complaint := page_in.complaint(name, arguments, wording)) is not None:
        return complaint
    try:
        if name == LOAD_TOOL:
            return await _load(engine, scope, open_turn, arguments, wording)
        return await _search(engine, scope, page_in.Asked.by(arguments), wording)
    except HandleNotFoundError as error:
        return page_in.explained(error, arguments.get("uuid") or "", wording)
    except PagefileError as error:
        engine.failed("archive", error)
        return wording.answers["unavailable"]


async def _load(
    engine: Engine,
    scope: Scope,
    open_turn: Turn | None,
    arguments: Mapping[str, object],
    wording: Wording,
) -> str:
    archive, asked, uuid = engine.tier(Archive), page_in.Asked.by(arguments), str(arguments.get("uuid") or "")
    if uuid.startswith(TURN_HANDLE):
        text = await _turn_text(engine, scope, uuid)
        about = asked if asked.in_part else page_in.Asked((open_turn and open_turn.user) or "")
        room = about.room(engine.settings.window_tokens // 2)
        return (await page_in.part_of(text, about, room, engine.counter.count, wording)).text
    page, text = await archive.load(scope, uuid)
    if not asked.in_part and await archive.in_view(scope, open_turn, page.uuid):
        return in_view_note(page, wording)
    room = engine.settings.window_tokens // 2 - _loaded_tokens(open_turn)
    if room < page_in.LEAST_EXCERPT_TOKENS:
        return wording.answers["window_full"].format(uuid=page.uuid)
    return await _answer(engine, page, text, asked, open_turn and open_turn.user, room, wording)


async def _answer(
    engine: Engine,
    page: Page,
    text: str,
    asked: page_in.Asked,
    question: str | None,
    room: int,
    wording: Wording,
) -> str:
    """The part of a page that is asked for, within `room` tokens."""
    implied = not asked.in_part
    if implied:
        shown = await page_in.readable(text)
        if shown != text and engine.counter.count(shown) <= room:
            return shown
        if page.tokens <= room:
            return text
        asked = page_in.Asked(question or page.query_summary)
    else:
        room = asked.room(room)
    part = await page_in.part_of(text, asked, room, engine.counter.count, wording, implied=implied)
    if part.text == text or (asked.offset or 0) >= len(text):
        return part.text
    return part.text + _more(page, part.read_on, wording)


async def _turn_text(engine: Engine, scope: Scope, handle: str) -> str:
    """Both sides of a turn that a window showed in part, or one message of a turn, which may still be open."""
    turn_id = handle.removeprefix(TURN_HANDLE)
    whose, _, number = turn_id.rpartition("#")
    if whose and number.isdecimal():
        turn = await turn_in(engine.store.reader, EntryQuery(scope, limit=_SLICE), whose)
        if turn is not None and not turn.erased and int(number) < len(turn.messages):
            return turn.messages[int(number)].text
    turn = await turn_in(engine.store.reader, EntryQuery(scope, statuses=ENDED, limit=_SLICE), turn_id)
    if turn is None or not turn.counts:
        raise HandleNotFoundError(f"There is no turn {turn_id[:80]!r} in this conversation.")
    return turn.spoken.text


async def loaded_again(engine: Engine, scope: Scope, turn: Turn, number: int) -> str | None:
    """What a step of a turn loaded, read from its page again; None if the length differs from what was recorded."""
    step = turn.steps[number]
    if step.page is None:
        return None
    found = await engine.store.pages.load(scope, step.page)
    given: Mapping[str, JsonValue] = step.input if isinstance(step.input, Mapping) else {}
    asked = page_in.Asked.by(given)
    room, before = engine.settings.window_tokens // 2, replace(turn, steps=turn.steps[:number])
    wording = spoken_in(step.result)
    answers = [
        *await _by_hand(engine, scope, step.page, given),
        # Either the turn was recorded afterwards, or it was open when the tool was called.
        await _answer(engine, *found, asked, None, room, wording),
        await _answer(engine, *found, asked, turn.user, room - _loaded_tokens(before), wording),
    ]
    chars = loaded_chars(step.result)
    return next((text for text in answers if len(text) == chars), None)


async def _by_hand(engine: Engine, scope: Scope, uuid: str, asked: Mapping[str, Any]) -> list[str]:
    """What `load` returns for these arguments, unless it rejects them."""
    query, offset, limit = asked.get("query"), asked.get("offset") or 0, asked.get("limit")
    try:
        return [await load_text(engine, scope, uuid, query=query, offset=offset, limit=limit, counted=False)]
    except PagefileError:
        return []


def _more(page: Page, read_to: int, wording: Wording) -> str:
    """How to read on: a model continues only if it is told how."""
    if read_to >= page.length:
        return ""
    call = f'load_tool_history(uuid="{page.uuid}", offset={read_to}, limit=4000)'
    return "\n" + wording.answers["read_on"].format(chars=page.length, call=call)


async def _search(engine: Engine, scope: Scope, asked: page_in.Asked, wording: Wording) -> str:
    query = asked.query
    if not query:
        return wording.answers["missing"].format(name="query")
    home = scope if scope.user is None else Scope(scope.tenant, scope.user)
    hits = await engine.tier(Archive).search(home, query, min(asked.limit or _HITS_SHOWN, _MOST_HITS))
    if not hits:
        return wording.answers["nothing_found"].format(query=clip(query, _QUERY_SHOWN))
    return "\n\n".join(
        short_placeholder(hit.page, wording)
        + f"\n{hit.page.tool}: {hit.page.query_summary} ({hit.page.created:%Y-%m-%d})\n{matching(hit.passage, query, _PASSAGE_SHOWN)}"
        for hit in hits
    )


def _loaded_tokens(open_turn: Turn | None) -> int:
    steps = () if open_turn is None else open_turn.steps
    return sum(step.page_tokens for step in steps if step.tool == LOAD_TOOL)

"""Pagefile in `bench runs`: a conversation in a database; every prompt is a window of it."""

import json
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.corpus import url_of
from benchmarks.runs_data import Event, Run
from benchmarks.runs_messages import Chat, text_of
from benchmarks.runs_ruler import CHARS_PER_TOKEN, COMPARED, SPAN, Prompt
from benchmarks.runs_ways import Way
from pagefile.engine import Conversation, Memory
from pagefile.records import JsonObject, Turn
from pagefile.settings import ArchiveSettings, FactSettings, Settings
from pagefile.shapes.tool_arguments import large_values

#: Results leave by the rule for full windows alone, from this length on, and not because their turn ended.
PAGE_FROM, THRESHOLD = 400, 1_000_000
_DEFAULT_INPUTS = ArchiveSettings().inputs_from


class Point(NamedTuple):
    """A window and how far results are reduced when it is full; from how many characters on arguments leave, too; how many turns a
    checkpoint keeps, and when it takes effect.
    """

    window_tokens: int
    low_water: float
    inputs_from: int = _DEFAULT_INPUTS
    recent_turns: int = Settings().recent_turns
    threshold: float = Settings().threshold

    def __str__(self) -> str:
        changed = {
            "inputs from": (self.inputs_from, _DEFAULT_INPUTS),
            "recent turns": (self.recent_turns, Settings().recent_turns),
            "threshold": (self.threshold, Settings().threshold),
        }
        others = [f", {name} {value}" for name, (value, default) in changed.items() if value != default]
        return f"{self.window_tokens:,}, low water {self.low_water}{''.join(others)}"


def ruler_tokenizer(folder: Path) -> str:
    """A tokenizer that counts as the ruler does: a token for every four characters."""
    if find_spec("tokenizers") is None:
        return "o200k_base"
    pieces: JsonObject = {"Regex": rf"[\s\S]{{1,{CHARS_PER_TOKEN}}}"}
    spec: JsonObject = {
        "version": "1.0",
        "added_tokens": [],
        **dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder")),
        "pre_tokenizer": {"type": "Split", "pattern": pieces, "behavior": "Isolated", "invert": False},
        "model": {"type": "WordLevel", "vocab": {"?": 0}, "unk_token": "?"},
    }
    path = folder / "four-characters.json"
    path.write_text(json.dumps(spec), encoding="utf-8")
    return f"file:{path}"


class Pagefile(Way):
    """One conversation a run."""

    def __init__(self, folder: Path, point: Point) -> None:
        super().__init__(f"Pagefile, {point}")
        self._url = url_of(folder / f"runs-{'-'.join(map(str, point))}.db")
        self._settings = Settings(
            window_tokens=point.window_tokens,
            tokenizer=ruler_tokenizer(folder),
            language="en",
            synchronous="normal",
            calls_kept=0,
            recall="never",
            recent_turns=point.recent_turns,
            threshold=point.threshold,
            facts=FactSettings(enabled=False),
            archive=ArchiveSettings(
                threshold=THRESHOLD,
                page_from=PAGE_FROM,
                low_water=point.low_water,
                inputs_from=point.inputs_from,
            ),
        )
        self._opened = AsyncExitStack()
        self._memory: Memory | None = None
        self.chat: Conversation | None = None
        self._turn: Turn | None = None
        self._messages = Chat()
        #: The pages of the run, those of large arguments, too, and their texts.
        self.pages: dict[str, str] = {}

    async def begin(self, run: Run) -> None:
        if self._memory is None:
            opening = Memory.open(self._url, settings=self._settings)
            self._memory = await self._opened.enter_async_context(opening)
        self.chat = self._memory.conversation(run.id, user_id=run.id)
        self._turn, self._messages, self.pages = None, Chat(), {}

    async def add(self, event: Event) -> None:
        assert self.chat is not None
        if event.kind == "user":
            if self._turn is not None:
                await self.chat.complete(self._turn)
                # What happens in the background has time for it while a model answers.
                assert self._memory is not None
                await self._memory.settle()
                self._messages = Chat()
            self._turn = await self.chat.begin(event.text or "…")
            return
        messages = self._messages.messages(event)
        self._turn = await self.chat.extend(await self._running(), messages)
        call = messages[-1].get("tool_call_id")
        for step in self._turn.steps:
            if step.call_id == call and step.page:
                self.pages[step.page] = event.text
            if step.input_pages:
                values = large_values(step.input, self._settings.archive.inputs_from)
                self.pages.update({uuid: values[place] for place, uuid in step.input_pages.items()})

    async def _running(self) -> Turn:
        assert self.chat is not None
        return self._turn or await self.chat.begin("Continue.")

    async def prompt(self) -> Prompt:
        assert self.chat is not None
        self._turn = await self._running()
        return [text_of(message) for message in (await self.chat.context()).messages]

    async def leads_back(self, span: str, prompt: Prompt) -> tuple[bool, bool]:
        """Of a span that is not in view: whether a placeholder of its page is, and whether a search finds the page first."""
        assert self.chat is not None
        # What is compared of a span may be in two results, one behind the other: then either leads back.
        uuids = self._with(span[:COMPARED]) or self._with(span[:SPAN]) | self._with(span[-SPAN:])
        named = any(uuid in text for uuid in uuids for text in prompt)
        # The words of the call that it copies: of one that copies from many pages, only one could be the first for all its words.
        hits = await self.chat.search_tool_history(span, limit=1, here=True)
        return named, bool(hits) and hits[0].page.uuid in uuids

    def _with(self, words: str) -> set[str]:
        """The pages that have these words, whether a tool returned them or the agent wrote them itself."""
        return {uuid for uuid, text in self.pages.items() if words in text}

    async def close(self) -> None:
        await self._opened.aclose()

"""The language in which Pagefile speaks to a model: the one that was set, or else that of the conversation's first messages.

The first messages decide, not the newest, so that the beginning of the prompt stays the same from call to call. They
are read from the log: another process and a replay come to the same answer, and so does a window whose first turns
are covered by a checkpoint. While they say no more than "hi", the instructions, the answers and the user's other conversations tell.
"""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from typing import cast

from pagefile.errors import StoreError
from pagefile.lru import Lru
from pagefile.ports import ConversationQuery, EntryQuery, LogReader, LogView, ViewRequest
from pagefile.records import ConversationInfo, Scope, Status, Turn
from pagefile.text.sentences import Language, language, spoken_language
from pagefile.window.wording import WORDINGS, Choice, Wording

#: The number of turns that may decide; a conversation that has not said three words by then speaks as it did so far.
FIRST_TURNS = 16
_REMEMBERED = 10_000
#: A user's other conversations that are looked at when a new one says too little.
_OTHERS = 4
_LETTER = re.compile(r"[^\W\d_]")


class Languages:
    """The language of each conversation; once its first messages have decided, it is remembered."""

    def __init__(self, reader: LogReader, setting: Choice) -> None:
        self._reader, self._setting = reader, setting
        self._decided: Lru[tuple[Scope, int, int], Language] = Lru(_REMEMBERED)
        #: What handles were given, and the messages that are being written.
        self._chosen_for: Lru[Scope, str | None] = Lru(_REMEMBERED)
        self._heard: dict[Scope, str] = {}
        self._spoken: Lru[Scope, Language] = Lru(_REMEMBERED)
        #: What users speak in their other conversations.
        self._usual: Lru[Scope, Language] = Lru(_REMEMBERED)

    def choose(self, scope: Scope, choice: str | None) -> None:
        """The language that a handle was given, which the log may not know yet."""
        self._chosen_for[scope] = choice

    @contextmanager
    def hearing(self, scope: Scope, said: str | None) -> Generator[None]:
        """While a turn is written, its message counts, though it is not in the log yet; afterwards nothing is kept of it."""
        if said and self._setting == "auto":
            self._heard[scope] = said
        try:
            yield
        finally:
            self._heard.pop(scope, None)

    def default(self, choice: str | None = None) -> Language:
        """For a text that is made before any conversation is known, such as the schema of a tool."""
        return self._chosen(choice) or "en"

    def last(self, scope: Scope) -> Language:
        """The language last used in a conversation, without asking the log: for when it cannot be reached."""
        return self._spoken.get(scope) or self.default()

    async def of(self, scope: Scope, *seen: str, said: str | None = None) -> Language:
        """For a text that is made outside a window, such as a placeholder to be stored or the answer to a tool call.

        `said` is a message that is not in the log yet; `seen` are texts to go by until the first message,
        such as what a tool returned.
        """
        found = self._spoken[scope] = await self._of(scope, said or self._heard.get(scope), seen)
        return found

    async def _of(self, scope: Scope, said: str | None, seen: Sequence[str]) -> Language:
        choice = self._chosen_for.get(scope)
        if choice is not None and choice != "auto":
            return cast("Language", choice)
        if scope.conversation is None:
            # A page is read for its user, outside any conversation.
            return self._chosen(None) or self._seen(scope, *seen)
        try:
            head = (await self._reader.view(ViewRequest(scope, budget_tokens=0, min_turns=0))).head
            if (chosen := self._chosen(choice or head.language)) is not None:
                return chosen
            if (known := self._decided.get(_key(head))) is not None:
                return known
            return await self._decide(head, await self._first(head), said, *seen)
        except StoreError:
            # Whoever asks goes on without the store, or meets the same error.
            return self._spoken.get(scope) or self._chosen(choice) or self._seen(scope, said, *seen)

    async def wording(self, scope: Scope, *seen: str) -> Wording:
        return WORDINGS[await self.of(scope, *seen)]

    async def of_window(
        self, view: LogView, choice: str | None, current: str | None, instructions: str | None
    ) -> Language:
        """For a window: what was asked for with it, or set for its conversation or its memory, or else the first messages.

        If those are all in the view, which is the rule, nothing is read.
        """
        found = self._spoken[view.head.scope] = await self._of_window(view, choice, current, instructions)
        return found

    def of_day(
        self, view: LogView, choice: str | None, instructions: str | None, spoken: Language
    ) -> Language:
        """For the day at the end of the system text: that of the instructions before it, unless one was set.

        Conversations in two languages with the same instructions then begin alike, and share a prompt cache.
        """
        if self._chosen(choice or view.head.language) is not None:
            return spoken
        return spoken_language([instructions or ""]) or spoken

    async def _of_window(
        self, view: LogView, choice: str | None, current: str | None, instructions: str | None
    ) -> Language:
        head = view.head
        if (chosen := self._chosen(choice or head.language)) is not None:
            return chosen
        if (known := self._decided.get(_key(head))) is not None:
            return known
        first: Sequence[Turn] = view.turns
        if view.checkpoint is not None or len(view.turns) < head.live_turns:
            try:
                first = await self._first(head)
            except StoreError:
                return self._spoken.get(head.scope) or self._guessed(head.scope, current, instructions)
        return await self._decide(head, first, current, instructions=instructions)

    def _chosen(self, choice: str | None) -> Language | None:
        chosen = choice or self._setting
        return None if chosen == "auto" else cast("Language", chosen)

    async def _decide(
        self,
        head: ConversationInfo,
        first: Sequence[Turn],
        current: str | None,
        *seen: str,
        instructions: str | None = None,
    ) -> Language:
        """The language of the first turns; of what is about to be said, if they have not decided yet."""
        done = [turn for turn in first if turn.status == "done"][:FIRST_TURNS]
        said = [turn.user for turn in done if turn.user]
        found = spoken_language(said)
        if found is None and len(done) == FIRST_TURNS:
            found = self._seen(head.scope, "\n".join(said))
        if found is not None:
            self._decided[_key(head)] = self._usual[_owner(head.scope)] = found
            return found
        asked = [turn.user for turn in first if turn.user and turn.status == "open"]
        asked += [current] if current else []
        if (found := spoken_language(asked)) is not None:
            return found
        words = "\n".join([*said, *asked])
        answers = [turn.assistant for turn in done if turn.assistant]
        if _LETTER.search(words) and language(words) == "en":
            # "hi" and "ok" are said in every language.
            found = spoken_language([instructions or "", *answers]) or await self._of_user(head)
        return found or self._seen(head.scope, words, instructions, *seen, *answers)

    async def _of_user(self, head: ConversationInfo) -> Language | None:
        """The language of the user's other conversations, the newest first."""
        owner = _owner(head.scope)
        if owner.user is None or owner in self._usual:
            return self._usual.get(owner)
        # A window does without, while the store does not answer.
        with suppress(StoreError):
            for other in await self._reader.heads(ConversationQuery(owner, limit=_OTHERS)):
                first = () if other.scope == head.scope else await self._first(other)
                if (found := spoken_language([turn.user for turn in first if turn.user])) is not None:
                    self._usual[owner] = found
                    return found
        return None

    def _guessed(self, scope: Scope, current: str | None, instructions: str | None) -> Language:
        """While the store does not answer."""
        return spoken_language([current or ""]) or self._seen(scope, current, instructions)

    def _seen(self, scope: Scope, *texts: str | None) -> Language:
        """The language of the first text that has letters; if none has any, the one used so far."""
        text = next((text for text in texts if text and _LETTER.search(text) is not None), None)
        return self.last(scope) if text is None else language(text)

    async def _first(self, head: ConversationInfo) -> list[Turn]:
        """The first turns since the last reset, the open ones last."""
        statuses = frozenset[Status]({"done", "open"})
        query = EntryQuery(head.scope, statuses=statuses, after_seq=head.reset_seq, limit=FIRST_TURNS)
        return [entry for entry in await self._reader.entries(query) if isinstance(entry, Turn)]


def _owner(scope: Scope) -> Scope:
    return Scope(scope.tenant, scope.user)


def _key(head: ConversationInfo) -> tuple[Scope, int, int]:
    # A reset starts over, and an erasure may have taken the first messages.
    return head.scope, head.reset_seq, head.epoch

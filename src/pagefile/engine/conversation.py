"""A handle on one conversation: turns go in, windows come out."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast
from uuid import uuid4

from pagefile import records
from pagefile.content import JsonValue, Shape
from pagefile.engine import arguments as checks
from pagefile.engine import log_queries
from pagefile.engine.arguments import StepLike, checked_json, checked_message, checked_step
from pagefile.engine.engine import Engine
from pagefile.engine.fork import forked
from pagefile.engine.log_queries import KINDS, Kind
from pagefile.engine.messages import Desk, as_of, behind_erasures
from pagefile.engine.ownership import check_opens
from pagefile.engine.page_tools import call_tool, load_text
from pagefile.engine.replay import Cost, Explanation, Replay, costs_of, explained_call, found_call, replayed
from pagefile.engine.session_change import changed, checked_change
from pagefile.engine.windows import make_window
from pagefile.errors import ConflictError, NotFoundError
from pagefile.ports import NO_LABELS, AddStep, ConversationQuery, EntryQuery, Labels
from pagefile.shapes.parser import listed
from pagefile.tiers.archive import Archive
from pagefile.tiers.history import History
from pagefile.tiers.workspace import ToolRule, Workspace, Workspaces
from pagefile.window.budget import tool_texts, tools_tokens
from pagefile.window.measure import step_tokens
from pagefile.window.parts import Placement
from pagefile.window.receipt import Window
from pagefile.window.wording import Choice


class Conversation:
    """A cheap handle: making one reads and writes nothing."""

    def __init__(
        self, engine: Engine, scope: records.Scope, *, agent: str | None = None, labels: Labels = NO_LABELS
    ) -> None:
        self._any_engine = engine
        self._scope = scope
        self._open_turn: records.Turn | None = None
        self._desk = Desk(engine, scope, checks.id_or_none(agent, "agent"), labels)

    def __repr__(self) -> str:
        return f"Conversation({self.id!r}, user_id={self._scope.user!r}, tenant={self._scope.tenant!r})"

    @property
    def id(self) -> str:
        """The conversation's id."""
        return cast("str", self._scope.conversation)

    @property
    def scope(self) -> records.Scope:
        """Whose memory this is."""
        return self._scope

    @property
    def _engine(self) -> Engine:
        self._any_engine.check_open()
        return self._any_engine

    # -- turns in -------------------------------------------------------------------------------------------------

    async def record(
        self,
        user: str | None = None,
        assistant: str | None = None,
        *,
        messages: Iterable[object] | None = None,
        steps: Iterable[StepLike] = (),
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: records.JsonObject | None = None,
    ) -> records.Turn:
        """Write one done turn; when this returns, it is on disk.

        Either side may be missing, not both. Instead of the two sides and the steps, `messages` takes the
        turn as a provider's client has it: messages of OpenAI Chat, OpenAI Responses or Anthropic, from the
        user's to the last answer, which `messages()` returns as equal JSON. The same id with the same text
        returns the stored turn; with a different text it raises `ConflictError`.
        """
        self._any_engine.check_open()
        given = user, assistant, messages, steps
        turn = await self._desk.append("done", *given, turn_id=id, at=at, metadata=metadata)
        return await self._absorbed(turn)

    async def begin(
        self,
        user: str | None = None,
        *,
        messages: Iterable[object] | None = None,
        id: str | None = None,  # noqa: A002 - the word users write
        at: datetime | None = None,
        metadata: records.JsonObject | None = None,
    ) -> records.Turn:
        """Write the user's message before the answer exists; the turn stays open until `complete` or `abort`.

        `messages` takes what exists so far as a provider's client has it; `extend` adds the rest. The same id
        with the same message returns the stored turn as it is, with its steps and possibly its answer; with a
        different message it raises `ConflictError`.
        """
        self._any_engine.check_open()
        turn = await self._desk.append("open", user, None, messages, (), turn_id=id, at=at, metadata=metadata)
        self._open_turn = turn if turn.status == "open" else None
        await self._any_engine.absorb(turn)
        return turn

    async def step(
        self,
        turn: records.Turn | str,
        *,
        tool: str,
        input: object = None,  # noqa: A002 - the word users write
        result: object = None,
        call_id: str | None = None,
    ) -> records.Turn:
        """Add a tool call and its result to an open turn; a large result is archived on the way."""
        engine, desk, turn_id = self._engine, self._desk, checks.turn_id_of(turn)
        number = len(turn.steps) if isinstance(turn, records.Turn) else uuid4().int % 1_000_000_000
        given = {"tool": tool, "input": input, "result": result, "call_id": call_id}
        step = checked_step(given, turn_id, number, engine.settings.max_result_chars)
        raw = await desk.redacted_step(step)

        async def write() -> records.Turn:
            step, epoch = await desk.kept(
                raw, turn_id, turn.user if isinstance(turn, records.Turn) else None, is_open=True
            )
            change = AddStep(self._scope, turn_id, step, step_tokens(step), epoch)
            return await desk.written(turn_id, (step,), engine.store.log.advance(change))

        return self._seen(await behind_erasures(write))

    async def extend(
        self, turn: records.Turn | str, messages: Iterable[object], *, after: int | None = None
    ) -> records.Turn:
        """Add messages of a provider's client to an open turn: several calls in one message, results, reasoning, images.

        A tool result may answer a call from earlier messages. Pass the turn as the last call returned it, or
        say with `after` how many messages it had, and the same messages sent twice are added once; with a
        different result of a call they raise `ConflictError`. An empty list adds nothing.
        """
        self._any_engine.check_open()
        given = listed(messages)
        known = await self._found(turn)
        if not given:
            return known
        known = known if after is None else as_of(known, checks.at_least(0, after, "after"))
        try:
            return self._seen(await self._extended(given, known))
        except ConflictError:
            # The turn has grown since it was read: these messages follow the new ones, or are already among
            # them.
            now = await self._desk.found(known.id)
            known = await self._desk.since(given, now, len(known.messages))
        return self._seen(await self._extended(given, known))

    async def complete(self, turn: records.Turn | str, assistant: str | None = None) -> records.Turn:
        """Write the answer: the turn is done and takes its place in the log.

        For a turn made of messages, `assistant` may be omitted: the answer is then the last thing the
        assistant said in them.
        """
        text = checked_message(assistant, "assistant", self._engine.settings.max_message_chars)
        mine, turn_id = self._open_turn, checks.turn_id_of(turn)
        known = mine if mine is not None and mine.id == turn_id else await self._found(turn)
        try:
            changed = await self._ended(text, known)
        except ConflictError:
            # The turn has grown since it was read: the answer may be in the new messages.
            changed = await self._ended(text, await self._desk.found(known.id))
        return await self._absorbed(self._seen(changed))

    async def abort(self, turn: records.Turn | str) -> records.Turn:
        """Give up on a turn: what the user said stays in windows, summaries and recall, marked as unanswered.

        Also works, for a few seconds, while the caller is being cancelled.
        """
        return self._seen(await self._desk.given_up(turn))

    async def messages(self, turn: records.Turn | str, *, shape: Shape | None = None) -> list[dict[str, Any]]:
        """The messages of a turn, exactly as they were recorded, with every tool result, image and file in full.

        With a `shape` ("openai", "responses" or "anthropic") they are converted to what that provider
        accepts. A result whose page was purged is replaced by its placeholder, and an image or a file whose
        bytes are gone by its name. What was loaded from a page is read from it again; if that gives a
        different text than was recorded, the stored note is returned instead.
        """
        await self._opened()
        found = await self._found(turn)
        return await self._desk.given_back(found, checks.one_of(shape, checks.SHAPES, "shape"))

    async def fork(
        self,
        turn: records.Turn | str,
        *,
        id: str | None = None,  # noqa: A002 - the word users write
        before: bool = False,
    ) -> "Conversation":
        """A new conversation that continues from a turn of this one, which stays as it is.

        It holds a copy of the log up to and including the turn, or up to the one before it with `before`, to
        ask again or to ask something else. Turns keep their ids, and recall finds each of them once. Archived
        pages are copied too, so that forgetting one conversation leaves the other intact. An `id` that is
        taken raises `ConflictError`.
        """
        engine, turn_id = self._engine, checks.turn_id_of(turn)
        name = str(uuid4()) if id is None else records.checked_id(id, "conversation id")
        scope = await behind_erasures(lambda: forked(self._desk, turn_id, name=name, before=before))
        return Conversation(engine, scope, agent=self._desk.agent, labels=self._desk.labels)

    # -- windows out ----------------------------------------------------------------------------------------------

    async def context(
        self,
        query: str | None = None,
        *,
        turn: records.Turn | str | None = None,
        window_tokens: int | None = None,
        window_for: str | None = None,
        tools: Sequence[object] = (),
        answer_tokens: int | None = None,
        threshold: float | None = None,
        recent_turns: int | None = None,
        load: Sequence[str] = (),
        instructions: str | None = None,
        placement: Placement | None = None,
        run: str | None = None,
        language: Choice | None = None,
        timezone: str | None = None,
    ) -> Window:
        """The messages to send to the model, within one exact token budget, with the receipt.

        `query` is the user's message if it is not written yet. For a turn that was begun, leave it out: the
        turn this handle began last (or the one named by `turn`) is the current message, followed by its tool
        results. `load` names archived pages to show in full in this window only. `run` is the run whose
        workspace is shown.

        `window_for` names the model, whose context size becomes the budget and the upper limit of
        `window_tokens`. What the request contains besides its messages is taken from the budget: the schemas
        of `tools`, as OpenAI, Anthropic or MCP shape them (mappings or the vendors' objects), and
        `answer_tokens`, the room for the answer.

        `language` ("zh", "en", or "auto" for that of the conversation's first messages) is the language of what
        is written around the conversation: placeholders, the guide to them, labels. By default it is the
        conversation's own, or else the setting. So is the `timezone` ("Asia/Shanghai"), in which the window says what
        day it is.
        """
        request = checks.Request(
            self._engine.settings,
            # It is recorded with the window.
            query=await self._desk.redacted(query),
            turn_id=checks.current_turn_id(query, turn, self._open_turn),
            window_tokens=window_tokens,
            window_for=window_for,
            threshold=threshold,
            recent_turns=recent_turns,
            tools_tokens=tools_tokens(tool_texts(tools), self._engine.counter.count),
            answer_tokens=answer_tokens,
            load=load,
            instructions=await self._desk.redacted(instructions),
            placement=placement,
            run=run,
            language=language or self._desk.labels.language,
            project=self._desk.labels.project,
            agent=self._desk.agent,
            timezone=timezone or self._desk.labels.timezone,
        )
        return await make_window(self._engine, self._scope, request)

    async def recall(self, query: str, limit: int = 10, *, at: datetime | None = None) -> list[records.Hit]:
        """Past turns of this conversation that answer the query, best first, each with its neighbours.

        `at` is the time of the question, by default now: "last week" is relative to it.
        """
        scope, timezone = await self._opened(), self._desk.labels.timezone
        return await log_queries.recalled(self._engine, scope, query, limit, at, timezone)

    def workspace(self, run: str | None = None, *, rules: Iterable[ToolRule] = ()) -> Workspace:
        """The workspace of a run, with the tool results it has at hand: query it before calling a tool,
        update it afterwards.

        It lives in this process only. Without a name it is the conversation's own, which `step` and `record`
        fill; `rules` say what to remember of your own tools' results.
        """
        self._choose_language()
        workspace = self._engine.tier(Workspaces).of(self._scope, checks.run_name(run))
        workspace.add_rules(rules)
        return workspace

    # -- archived pages -----------------------------------------------------------------------------------------------

    async def load(
        self, uuid: str, *, query: str | None = None, offset: int = 0, limit: int | None = None
    ) -> str:
        """Page in an archived tool result: whole, or the passages that answer `query`, or a part.

        A part starts at `offset` and has at most `limit` characters; it ends before an image, a table, a code
        block or a value that would be cut, so reading on from `offset + len(part)` tiles the text exactly.
        With a `query`, passages are sought from `offset` on, and together have at most `limit` characters; without
        a `limit` they take at most a quarter of the window.
        """
        scope = await self._opened()
        self._choose_language()
        return await load_text(self._engine, scope, uuid, query=query, offset=offset, limit=limit)

    async def page(self, uuid: str) -> records.Page:
        """What is known about an archived page, without its text."""
        return await self._engine.tier(Archive).page(await self._opened(), uuid)

    async def pages(self, *, limit: int = 100, after: str | None = None) -> records.Listing[records.Page]:
        """The archived pages of this conversation, newest first."""
        return await log_queries.pages_of(self._engine, await self._opened(), limit=limit, after=after)

    async def search_tool_history(
        self, query: str, limit: int = 5, *, here: bool = False
    ) -> list[records.PageHit]:
        """Archived pages that answer a query, best first: of this user, or with `here` or no user, of this conversation."""
        scope = await self._opened()
        home = scope if here or scope.user is None else records.Scope(scope.tenant, scope.user)
        return await log_queries.pages_about(self._engine, home, query, limit)

    async def fetched(self, tool: str, input: object = None) -> records.Page | None:  # noqa: A002 - the word users write
        """The page of an equal call by the same user, if recent enough for the setting `archive.reuse_s`."""
        scope, value = await self._opened(), checked_json(input, "input")
        return await self._engine.tier(Archive).equal_call(scope, records.checked_text(tool, "tool"), value)

    async def pin(self, uuid: str, *, pinned: bool = True) -> records.Page:
        """Pin a page, so that it is in every window of its conversation and never purged, or unpin it."""
        return await self._engine.tier(Archive).pin(await self._opened(), uuid, pinned=pinned)

    async def call_tool(
        self, name: str, arguments: Mapping[str, object], *, turn: records.Turn | None = None
    ) -> str:
        """Answer a model's call of `load_tool_history` or `search_tool_history`.

        Always returns text for the model: an unknown, foreign, malformed or purged uuid is explained, not
        raised. A page that is too long for the window is reduced to the passages that answer the question.
        `turn` is the open turn that asks, by default the one this handle began last.
        """
        scope, open_turn = await self._opened(), turn or self._open_turn
        self._choose_language()
        return await call_tool(self._engine, scope, open_turn, name, arguments)

    # -- checkpoints and listings -----------------------------------------------------------------------------------

    async def checkpoint(
        self, summary: str | None = None, *, recent_turns: int | None = None
    ) -> records.Checkpoint:
        """Replace all but the last `recent_turns` turns in windows by a summary, yours or a generated one."""
        keep = self._engine.settings.recent_turns if recent_turns is None else recent_turns
        keep = checks.at_least(0, keep, "recent_turns")
        return await self._engine.tier(History).make_checkpoint(self._scope, summary, keep)

    async def reset(self) -> records.Reset:
        """Start over: what came before no longer enters the windows of this conversation, not even by recall.

        It stays in the log, and `recall()` and the model's own search find it; `memory.forget()` erases it.
        """
        self._engine.tier(Workspaces).reset(self._scope)
        return await self._engine.tier(History).checkpoints.reset(self._scope)

    async def turns(
        self, *, after: int | str = 0, limit: int = 100, newest: bool = False
    ) -> records.Listing[records.Turn]:
        """Turns in order, including open and aborted ones; pass `next` of the result as `after` to continue."""
        found = await self._entries(("turn",), after, limit, newest=newest)
        return cast("records.Listing[records.Turn]", found)

    async def log(
        self, *, kind: Kind | None = None, after: int | str = 0, limit: int = 100, newest: bool = False
    ) -> records.Listing[records.Turn | records.Checkpoint | records.Reset]:
        """Turns, checkpoints and resets in the order in which they were written, or those of one `kind`.

        Pass `next` of the result as `after` to continue; with a `kind`, the next slice may turn out empty.
        Open turns come last.
        """
        chosen: Kind | None = checks.one_of(kind, KINDS, "kind")
        if chosen is None:
            return await self._entries(KINDS, after, limit, newest=newest)
        # The next match may be far away, so it is not read.
        return await self._entries((chosen,), after, limit, newest=newest, ahead=0)

    async def head(self) -> records.ConversationInfo:
        """This conversation in one row; raises `NotFoundError` if it was never used or belongs to another user."""
        found = await self._engine.store.reader.heads(ConversationQuery(self._scope, 1))
        if not found:
            raise _nowhere()
        return found[0]

    async def session(self) -> records.JsonObject | None:
        """The session value of this conversation, or None; raises `NotFoundError` as `head` does."""
        try:
            value = await self._engine.sessions.get(self._scope)
        except ConflictError as error:
            # Do not reveal that it belongs to another user.
            raise _nowhere() from error
        if value is None:
            await self.head()
        return value

    async def put_session(self, value: Mapping[str, object]) -> records.JsonObject:
        """Set fields of the session value: what is known about the user, slots, intent, the pending action. Returns the whole of it.

        `value` has the sections `user_snapshot` and `global_state` with the fields to set; the others stay as they are. A session
        can be sent back as `session()` returned it: what comes from the log is not taken over. Allergies and histories
        are in the next window.
        """
        change = checked_change(await self._desk.redacted(value))
        now = int(self._engine.clock.now().timestamp())
        await self._engine.sessions.change(
            self._scope, lambda stored: changed(self._scope, stored, change, now)
        )
        return await self.session() or {}

    async def checkpoints(self) -> records.Listing[records.Checkpoint]:
        """Every checkpoint of this conversation, oldest first."""
        query = EntryQuery(self._scope, kinds=frozenset({"checkpoint"}), limit=10_000)
        found = await self._engine.store.reader.entries(query)
        return records.Listing([entry for entry in found if isinstance(entry, records.Checkpoint)])

    async def calls(
        self, *, limit: int = 50, after: str | None = None
    ) -> records.Listing[records.WindowRecord]:
        """The most recently recorded windows, newest first."""
        scope, count = await self._opened(), checks.at_least(1, limit, "limit")
        await self._engine.catch_up_calls()
        found = await self._engine.store.calls.list(scope, limit=count + 1, after=checks.cursor(after))
        return log_queries.listing(found, count, lambda call: call.id)

    async def explain(self, call_id: str) -> Explanation:
        """What the model saw in a recorded call, and why: the bill, every verdict, and the messages, rebuilt
        from the log.

        `exact` says whether they are byte for byte what was sent; if not, `why` says what differs.
        Nothing is written.
        """
        return await explained_call(self._engine, self._scope, await self._call(call_id))

    async def replay(self, call_id: str, /, **changes: JsonValue) -> Replay:
        """A recorded call as it would have been with other settings, compared with what it was. Nothing is written.

        `changes` are arguments of `context()` (`window_tokens=4000`), `tokenizer`, and settings that decide
        what a window contains, with two underscores for a dot (`archive__threshold=50_000`). Turns, facts and
        checkpoints are those of that moment.
        """
        return await replayed(self._engine, await self._call(call_id), changes)

    async def costs(self, *, limit: int = 50) -> list[Cost]:
        """What the newest calls cost, oldest first, each with what it would have cost without Pagefile."""
        newest = await self.calls(limit=limit)
        return await costs_of(self._engine, self._scope, newest[::-1])

    # -- inside -------------------------------------------------------------------------------------------------------

    def _choose_language(self) -> None:
        """Let texts made outside a window follow what this handle was given."""
        self._any_engine.languages.choose(self._scope, self._desk.labels.language)

    async def _opened(self) -> records.Scope:
        """The scope, unless it belongs to another user: for verbs that read beside the log, which checks that itself."""
        await check_opens(self._engine.store.reader, self._scope)
        return self._scope

    async def _entries(
        self, kinds: Sequence[Kind], after: int | str, limit: int, *, newest: bool, ahead: int = 1
    ) -> records.Listing[records.Entry]:
        """A slice of the log; reading one entry `ahead` tells whether there is more."""
        count, position = checks.at_least(1, limit, "limit"), checks.log_position(after)
        most = count if newest else count + ahead
        query = EntryQuery(self._scope, frozenset(kinds), after_seq=position, limit=most, newest=newest)
        found = await self._engine.store.reader.entries(query)
        more = len(found) == most and not newest and found[count - 1].seq is not None
        return records.Listing(found[:count], str(found[count - 1].seq) if more else None)

    async def _found(self, turn: records.Turn | str) -> records.Turn:
        return turn if isinstance(turn, records.Turn) else await self._desk.found(checks.turn_id_of(turn))

    async def _call(self, call_id: str) -> records.WindowRecord:
        return await found_call(self._engine, self._scope, records.checked_id(call_id, "call id"))

    async def _extended(self, messages: Sequence[object], known: records.Turn) -> records.Turn:
        change = await self._desk.addition(messages, known)
        steps = (*change.steps, *change.results.values())
        return await self._desk.written(known.id, steps, self._engine.store.log.advance(change))

    async def _ended(self, text: str | None, known: records.Turn) -> records.Turn:
        return await self._engine.store.log.advance(await self._desk.ending(text, known))

    async def _absorbed(self, turn: records.Turn) -> records.Turn:
        engine = self._any_engine
        engine.meter.count("pagefile_turns_total", status=turn.status)
        await engine.absorb(turn)
        return turn

    def _seen(self, turn: records.Turn) -> records.Turn:
        """Remember the state of the turn that this handle began last."""
        if self._open_turn is not None and self._open_turn.id == turn.id:
            self._open_turn = turn if turn.status == "open" else None
        return turn


def _nowhere() -> NotFoundError:
    return NotFoundError("There is no such conversation: the list of conversations shows the existing ones.")

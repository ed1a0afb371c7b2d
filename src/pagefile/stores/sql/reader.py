"""Reads the turn log. How views, entries and the neighbours of a turn are read depends on what a round trip costs: see `plain`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from pagefile.ports import (
    FEW_TURNS,
    ConversationQuery,
    EntryQuery,
    LogReader,
    MatchQuery,
    SinceRequest,
    TurnPlace,
    TurnRef,
    TurnSource,
)
from pagefile.records import ConversationInfo, Scope, Turn
from pagefile.stores import rules
from pagefile.stores.encoding import to_json
from pagefile.stores.erasure import check_epoch, written_keys
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, each, first, many, row, rows
from pagefile.stores.sql.rows import head_of, keys, part_of, spoken_of

T = TypeVar("T")


class SqlReader(SqlPort, LogReader, TurnSource):
    #: Over how many conversations one statement goes: more than one where each statement is a round trip.
    together = 1

    async def epoch(self, scope: Scope | None = None) -> int:
        return await self._player.read(lambda: epoch_now() if scope is None else newest_epoch(scope))

    async def owner(self, scope: Scope) -> Scope | None:
        rules.conversation_of(scope)
        return await self._player.read(lambda: owner_of(scope))

    async def heads(self, query: ConversationQuery) -> list[ConversationInfo]:
        return await self._player.read(lambda: _heads(query))

    async def matching(self, query: MatchQuery) -> list[TurnRef]:
        values = {
            "tenant": query.tenant,
            "names": list(query.conversations),
            "words": list(query.words),
            # As it is written in the JSON of the steps.
            "tool": None if query.tool is None else to_json(query.tool),
            "since": query.since,
            "before": query.until,
            "after_seq": query.after_seq,
            "before_seq": query.before_seq,
        }
        return await self._each("turns_matching", values, lambda one: TurnRef(*one))

    async def located(self, scope: Scope, turn_ids: Sequence[str]) -> Mapping[str, TurnPlace]:
        found: dict[str, TurnPlace] = {}
        for turn_id, name, owner, seq in await self._rows(
            "turns_located", {"tenant": scope.tenant, "ids": sorted(set(turn_ids))}
        ):
            place = Scope(scope.tenant, owner, name)
            if place.within(scope):
                found.setdefault(turn_id, TurnPlace(place, seq))
        return found

    async def since(self, request: SinceRequest) -> list[Turn]:
        statements = "turns_after", "turns_after_each"
        # By every window, which rarely finds more than a turn.
        often = ("since", request.scope) if request.limit <= FEW_TURNS else None
        return await self._player.read(
            lambda: since(request, statements, spoken_of, self.together), often=often
        )


def owner_of(scope: Scope) -> Play[Scope | None]:
    """The conversation with its owner; None before its first write."""
    return (yield from first("owner", keys(scope), lambda one: replace(scope, user=one[0])))


def check_owner(scope: Scope) -> Play[None]:
    """Refuse a conversation that exists and does not belong to this scope."""
    found = yield from row("owner", keys(scope))
    if found is not None:
        rules.check_owner(scope, found[0])


def since(
    request: SinceRequest,
    statements: tuple[str, str],
    make: Callable[[Row, Scope], T],
    together: int,
    **values: Any,
) -> Play[list[T]]:
    """The turns that count after those that are known, converted.

    There is a statement for one conversation, and one for up to `together` of them.
    """
    of_one, of_each = statements
    made: list[T] = []
    found = yield from rows(f"conversations_of_{part_of(request.scope)}", keys(request.scope))
    behind = [
        (Scope(request.scope.tenant, owner, name), request.known.get(name, 0), last_seq)
        for name, owner, last_seq in found
        if last_seq > request.known.get(name, 0) and rules.sees(request.scope, owner)
    ]
    for group in _groups(behind, together, request.limit):
        if len(made) >= request.limit:
            break
        (scope, known, _), asked = group[0], {**values, "limit": request.limit - len(made)}
        if len(group) == 1:
            asked |= {**keys(scope), "after_seq": known}
            made += [make(one, scope) for one in (yield from rows(of_one, asked))]
        else:
            scopes = {one.conversation: one for one, _, _ in group}
            asked |= {"tenant": scope.tenant, "names": [*scopes], "seqs": [known for _, known, _ in group]}
            made += [make(one[1:], scopes[one[0]]) for one in (yield from rows(of_each, asked))]
    return made


def _groups(
    behind: Sequence[tuple[Scope, int, int]], together: int, limit: int
) -> Iterator[list[tuple[Scope, int, int]]]:
    """Conversations to read by one statement, which sorts what it finds: not many more entries than are wanted."""
    group: list[tuple[Scope, int, int]] = []
    entries = 0
    for one in behind:
        _, known, last_seq = one
        if group and (len(group) == together or entries + last_seq - known > limit):
            yield group
            group, entries = [], 0
        group.append(one)
        entries += last_seq - known
    if group:
        yield group


def entry_values(query: EntryQuery) -> Values:
    """The parameters of the fragment `asked_for`, and how many entries are wanted."""
    kinds = {"kinds": sorted(query.kinds), "statuses": sorted(query.statuses)}
    return {**keys(query.scope), **kinds, "after_seq": query.after_seq, "limit": max(0, query.limit)}


def _heads(query: ConversationQuery) -> Play[list[ConversationInfo]]:
    scope, updated = query.scope, None
    if query.after is not None:
        last = yield from _head(scope, query.after)
        if last is None or scope.conversation not in {None, query.after}:
            raise rules.nothing_behind(query.after)
        updated = last.updated
    if scope.conversation is not None:
        head = None if query.after is not None else (yield from _head(scope, scope.conversation))
        return [head] if head is not None and query.limit > 0 else []
    values = {**keys(scope), "after": query.after, "updated": updated, "limit": max(0, query.limit)}
    return (
        yield from each(
            f"heads_of_{part_of(scope)}",
            values,
            lambda one: head_of(one[1:], replace(scope, conversation=one[0])),
        )
    )


def _head(scope: Scope, name: str) -> Play[ConversationInfo | None]:
    """A conversation, if a list for the scope shows it."""
    place = replace(scope, conversation=name)
    head = yield from first("head_of_conversation", keys(place), lambda one: head_of(one[1:], place))
    return head if head is not None and rules.sees(scope, head.scope.user) else None


# -- the numbers of erasures, in the caller's transaction


def check_writable(epoch: int | None, scopes: Iterable[Scope]) -> Play[None]:
    """`ErasedError` when one of the scopes was erased since that epoch; None is not checked.

    Blocks erasures of these tenants until the transaction ends. Called before any row is locked, as an erasure does.
    """
    if epoch is None:
        return
    asked = tuple(scopes)
    yield from rows("epoch_shared", {"names": sorted({scope.tenant for scope in asked})})
    check_epoch(epoch, (yield from newest_under(written_keys(asked))))


def epoch_now() -> Play[int]:
    """The number of the last erasure, 0 before the first."""
    found = yield from row("epoch_now", {})
    return found[0] if found else 0


def newest_epoch(scope: Scope) -> Play[int]:
    """The number of the last erasure of a scope, 0 when there was none."""
    return (yield from newest_under(written_keys([scope]))) or 0


def raise_epoch(scopes: Sequence[str]) -> Play[None]:
    """Note an erasure under the next number."""
    yield from row("epoch_next", {})
    number = 1 + (yield from epoch_now())
    yield from many("epoch_raise", [{"scope": scope, "epoch": number} for scope in scopes])


def newest_under(keys: Sequence[str]) -> Play[int | None]:
    """The number of the last erasure that is noted under one of these keys."""
    found = yield from row("epoch_newest", {"names": keys})
    return found[0] if found else None

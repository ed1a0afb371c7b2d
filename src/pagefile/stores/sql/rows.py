"""Rows become records, and records the values of a row."""

from datetime import datetime

from pagefile.records import Checkpoint, Entry, Fact, Head, Page, Reset, Scope, Turn, utc
from pagefile.stores.digests import page_digest
from pagefile.stores.encoding import from_json, text_messages, text_steps, text_time, to_json
from pagefile.stores.sql.plays import Row, Values

#: How many columns the fragments `head` and `entry` of log.sql have, and a summary in the statement `view`.
HEAD_COLUMNS = 14
ENTRY_COLUMNS = 15
CHECKPOINT_COLUMNS = 11


def keys(scope: Scope) -> Values:
    """The scope as the parameters that every statement calls alike."""
    return {"tenant": scope.tenant, "conversation": scope.conversation, "user": scope.user}


def moment(stored: datetime | str) -> datetime:
    """A time, which some drivers give as text."""
    return stored if isinstance(stored, datetime) else text_time(stored)


def head_of(row: Row, scope: Scope) -> Head:
    """The fragment `head`; the scope gets the conversation's owner."""
    owner, agent, created, updated, *rest = row
    owned = Scope(scope.tenant, owner, scope.conversation)
    return Head(owned, agent, moment(created), moment(updated), *rest)


def turn_of(row: Row, scope: Scope) -> Turn:
    """The fragment `entry` of a row of kind `turn`."""
    (
        _,
        turn_id,
        seq,
        status,
        query,
        answer,
        steps,
        at,
        created,
        user_tokens,
        assistant_tokens,
        tokens,
        counter,
        extra,
        messages,
    ) = row
    return Turn(
        turn_id,
        scope,
        seq,
        status,
        query,
        answer,
        # Most turns have neither: there are many of them in a window.
        text_steps(steps) if steps else (),
        moment(at),
        moment(created),
        user_tokens,
        assistant_tokens,
        tokens,
        counter,
        from_json(extra) if extra else {},
        None if messages is None else text_messages(messages, query, answer),
    )


def entry_of(row: Row, scope: Scope) -> Entry:
    """The fragment `entry` of any row."""
    kind, entry_id, seq, created = row[0], row[1], row[2], row[8]
    if kind == "turn":
        return turn_of(row, scope)
    if kind == "reset":
        return Reset(entry_id, scope, seq, moment(created))
    fields = from_json(row[13])
    return Checkpoint(
        id=entry_id,
        scope=scope,
        seq=seq,
        version=fields["version"],
        summary=fields["summary"],
        covered_through_seq=fields["covered_through_seq"],
        covered_turns=fields["covered_turns"],
        created=moment(created),
        tokens=row[11],
        counter=row[12],
        anchors=tuple(fields["anchors"]),
        archive_refs=tuple(fields["archive_refs"]),
    )


def checkpoint_of(row: Row, scope: Scope) -> Checkpoint:
    """The columns of `conversation_summaries` in the statement `view`."""
    summary_id, seq, version, summary, covered, covered_turns, created, tokens, counter, anchors, refs = row
    return Checkpoint(
        id=summary_id,
        scope=scope,
        seq=seq,
        version=version,
        summary=summary,
        covered_through_seq=covered,
        covered_turns=covered_turns,
        created=moment(created),
        tokens=tokens,
        counter=counter,
        anchors=tuple(from_json(anchors)),
        archive_refs=tuple(from_json(refs)),
    )


def page_of(row: Row, tenant: str) -> Page:
    """The fragment `page`."""
    uuid, user, conversation, tool, given, query_summary, result_summary, length, sources, *rest = row
    created, tokens, counter, content_hash, call_hash, thread, pinned, loads, last_load, purged, size = rest
    return Page(
        uuid=uuid,
        scope=Scope(tenant, user, conversation),
        tool=tool,
        input=from_json(given),
        query_summary=query_summary,
        result_summary=result_summary,
        length=length,
        sources=tuple(from_json(sources)),
        created=moment(created),
        tokens=tokens,
        counter=counter,
        content_hash=content_hash,
        call_hash=call_hash,
        thread=thread,
        pinned=bool(pinned),
        loads=loads,
        last_load=last_load and moment(last_load),
        purged=purged and moment(purged),
        stored_bytes=size,
    )


def page_values(page: Page) -> Values:
    """The parameters of the statement `page_put`, without its blob."""
    return {
        **keys(page.scope),
        "uuid": page.uuid,
        "thread": page.thread,
        "tool": page.tool,
        "input": to_json(page.input),
        "query_summary": page.query_summary,
        "result_summary": page.result_summary,
        "length": page.length,
        "sources": to_json(page.sources),
        "created": utc(page.created),
        "tokens": page.tokens,
        "counter": page.counter,
        "content_hash": page.content_hash,
        "call_hash": page.call_hash,
        "pinned": page.pinned,
        "loads": page.loads,
        "last_load": page.last_load and utc(page.last_load),
        "purged": page.purged and utc(page.purged),
        "stored_bytes": page.stored_bytes,
        "digest": page_digest(page),
    }


def fact_of(row: Row, tenant: str) -> Fact:
    """The fragment `fact`."""
    (
        fact_id,
        user,
        conversation,
        text,
        category,
        confidence,
        valid_from,
        valid_to,
        recorded,
        retracted,
        *rest,
    ) = row
    return Fact(
        fact_id,
        Scope(tenant, user, conversation),
        text,
        category,
        confidence,
        moment(valid_from),
        valid_to and moment(valid_to),
        moment(recorded),
        retracted and moment(retracted),
        *rest,
    )


def part_of(scope: Scope) -> str:
    """Which of the three statements of a list a scope asks for."""
    if scope.conversation is not None:
        return "conversation"
    return "tenant" if scope.user is None else "user"

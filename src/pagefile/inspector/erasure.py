"""Erases a conversation or a user from every tier, and shows the receipt."""

from contextlib import suppress
from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, el
from pagefile.inspector.page_request import PageRequest, Reader, chat_of
from pagefile.records import DEFAULT_TENANT, ConversationInfo, ErasureReceipt, Listing, Scope

#: How many of a user's conversations are counted.
_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Erasing:
    scope: Scope | None
    conversations: int
    more: bool
    turns: int


async def gather(memory: Memory, asked: PageRequest) -> Erasing:
    scope, heads = _target(asked), Listing[ConversationInfo]([])
    if asked.conversation_id is not None:
        with suppress(NotFoundError):
            heads = Listing([await chat_of(memory, asked).head()])
    elif scope is not None:
        heads = await memory.conversations(**asked.owner, limit=_COUNTED)
    return Erasing(scope, len(heads), heads.next is not None, sum(head.turns for head in heads))


def _target(asked: PageRequest) -> Scope | None:
    if asked.conversation_id is None and asked.user_id is None:
        return None
    return Scope(asked.tenant or DEFAULT_TENANT, asked.user_id, asked.conversation_id)


async def erase(memory: Memory, asked: PageRequest) -> ErasureReceipt:
    """Erase the named scope, if its name was typed as confirmation."""
    scope = _target(asked)
    if scope is None:
        raise InvalidArgumentError("Nothing was erased: name a conversation or a user.")
    if asked.text("confirm") != (scope.conversation or scope.user or "").strip():
        raise InvalidArgumentError("Nothing was erased: to confirm, type the name exactly as it is shown.")
    whose = {"user_id": scope.user, "conversation_id": scope.conversation, "tenant": scope.tenant}
    return await memory.forget(**whose, turn_id=asked.text("turn_id"), page=asked.text("page"))


def show(data: Erasing, reader: Reader) -> ui.View:
    say, scope, lead = reader.say, data.scope, reader.say("erase.lead")
    if scope is None:
        names = {"conv.conversation": "conversation_id", "field.user": "user_id"}
        fields = [ui.field_of(reader, key, name) for key, name in names.items()]
        choose = ui.asking_form(reader, "erase.title", fields, button=ui.button(reader, "erase.choose"))
        return ui.View(say("erase.title"), choose, lead=lead)
    name = scope.conversation or scope.user or ""
    what = say("erase.conversation" if scope.conversation else "erase.user", name=name)
    if data.conversations:
        body = _confirm(data, scope, what, reader)
    else:
        body, lead = ui.empty(say("erase.nothing", name=name)), what
    return ui.View(say("erase.title"), body, lead=lead)


def _confirm(data: Erasing, scope: Scope, what: str, reader: Reader) -> Content:
    say, number, more = reader.say, reader.number, "+" if data.more else ""
    conversations, turns = f"{number(data.conversations)}{more}", f"{number(data.turns)}{more}"
    counted = say("erase.counts", conversations=conversations, turns=turns)
    #: When only one turn or one page of the conversation is to be erased.
    names = {"erase.turn": "turn_id", "erase.page": "page"}
    alone = [ui.field_of(reader, key, name, autocomplete="off") for key, name in names.items()]
    inside: list[Content] = [
        el("p", say("erase.confirm"), " ", el("code", scope.conversation or scope.user)),
        alone if scope.conversation else None,
        ui.field_of(reader, "erase.name", "confirm", required=True, autocomplete="off"),
        ui.button(reader, "erase.go", "danger"),
    ]
    confirmed = ui.form(reader, reader.asked.here(urls.ERASE), *inside, class_="stacked-form")
    return [ui.notice([counted, " ", say("erase.final")], "bad"), ui.card(what, confirmed)]


def show_receipt(receipt: ErasureReceipt, reader: Reader) -> ui.View:
    say, scope = reader.say, receipt.scope
    columns = {"receipt.table": "row", "receipt.rows": "num"}
    rows = [(reader.known(f"erased.{name}", name), count) for name, count in receipt.counts.items() if count]
    total, marks = (say("receipt.total"), receipt.total), [*[None] * len(rows), "total"]
    counts = ui.table(reader, say("receipt.title"), columns, [*rows, total], row_classes=marks)
    name = el("code", scope.conversation or scope.user or scope.tenant)
    body: list[Content] = [
        ui.notice(say("receipt.erased"), "good"),
        [ui.notice([say("receipt.pending"), " ", left], "bad") for left in receipt.pending],
        ui.card(say("receipt.title"), el("p", name, " · ", reader.time(receipt.at, exact=True)), counts),
        el("p", reader.link(urls.CONVERSATIONS, say("conv.back"))),
    ]
    return ui.View(say("erase.title"), body, lead=say("receipt.lead"))

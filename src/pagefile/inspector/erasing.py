"""Erases a conversation or a user from every tier, and shows the receipt."""

from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.errors import InvalidTurnError, NotFoundError
from pagefile.inspector import places
from pagefile.inspector.asking import Asked, head_of
from pagefile.inspector.frame import View, asking_form, card, empty, field_of, form, notice, num, table, th
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.reader import Reader
from pagefile.records import DEFAULT_TENANT, ErasureReceipt, Head, Listing, Scope

#: How many of a user's conversations are counted.
_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Erasing:
    """What is about to be erased."""

    scope: Scope | None
    conversations: int
    more: bool
    turns: int


async def gather(memory: Memory, asked: Asked) -> Erasing:
    """What the named scope contains."""
    scope = _named(asked)
    if scope is None:
        return Erasing(None, 0, more=False, turns=0)
    heads = await _heads(memory, asked)
    turns = sum(head.turns for head in heads)
    return Erasing(scope, len(heads), more=heads.next is not None, turns=turns)


async def _heads(memory: Memory, asked: Asked) -> Listing[Head]:
    if asked.conversation_id is None:
        return await memory.conversations(user_id=asked.user_id, tenant=asked.tenant, limit=_COUNTED)
    try:
        return Listing([await head_of(memory, asked)])
    except NotFoundError:
        return Listing([])


def _named(asked: Asked) -> Scope | None:
    tenant = asked.tenant or DEFAULT_TENANT
    if asked.conversation_id is not None:
        return Scope(tenant, asked.user_id, asked.conversation_id)
    return Scope(tenant, asked.user_id) if asked.user_id is not None else None


async def erase(memory: Memory, asked: Asked) -> ErasureReceipt:
    """Erase the named scope, if its name was typed as confirmation."""
    scope = _named(asked)
    if scope is None:
        raise InvalidTurnError("Nothing is erased: name a conversation or a user.")
    name = scope.conversation or scope.user
    if asked.text("confirm") != (name or "").strip():
        raise InvalidTurnError("Nothing is erased: type the name exactly as it is shown, to confirm.")
    return await memory.forget(
        user_id=scope.user,
        conversation_id=scope.conversation,
        tenant=scope.tenant,
        turn_id=asked.text("turn_id"),
        page=asked.text("page"),
    )


def show(data: Erasing, reader: Reader) -> View:
    """The confirmation page."""
    say, asked = reader.say, reader.asked
    if data.scope is None:
        return View(say("erase.title"), [_choose(reader)], lead=say("erase.lead"))
    scope = data.scope
    name = scope.conversation or scope.user or ""
    what = say("erase.conversation" if scope.conversation else "erase.user", name=name)
    if not data.conversations:
        return View(
            say("erase.title"),
            [empty(say("erase.nothing", name=name))],
            lead=what,
            tabs=asked.conversation_id is not None,
        )
    more = "+" if data.more else ""
    counted = say(
        "erase.counts",
        conversations=f"{reader.number(data.conversations)}{more}",
        turns=f"{reader.number(data.turns)}{more}",
    )
    asked_again = form(
        reader,
        asked.here(places.ERASE),
        el("p", say("erase.confirm"), " ", el("code", name)),
        *(_alone(reader) if scope.conversation else ()),
        field_of(say("erase.name"), "confirm", required=True, autocomplete="off"),
        el("button", say("erase.go"), class_="danger"),
        class_="stacked-form",
    )
    body: list[Content] = [notice([counted, " ", say("erase.final")], "bad"), card(asked_again, title=what)]
    return View(say("erase.title"), body, lead=say("erase.lead"), tabs=asked.conversation_id is not None)


def _alone(reader: Reader) -> tuple[Element, Element]:
    """When only one turn or one page of the conversation is to be erased."""
    say = reader.say
    return (
        field_of(say("erase.turn"), "turn_id", autocomplete="off"),
        field_of(say("erase.page"), "page", autocomplete="off"),
    )


def _choose(reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    return asking_form(
        places.ERASE,
        field_of(say("conv.conversation"), "conversation_id"),
        field_of(say("field.user"), "user_id"),
        el("button", say("erase.choose"), class_="primary"),
        hidden={"tenant": asked.tenant},
        label=say("erase.title"),
    )


def show_receipt(receipt: ErasureReceipt, reader: Reader) -> View:
    """What was erased."""
    say, number = reader.say, reader.number
    head: list[Content] = [th(say("receipt.table")), th(say("receipt.rows"), number=True)]
    rows: list[Content] = [
        el("tr", el("th", el("code", name), scope="row"), num(number(count)))
        for name, count in receipt.counts.items()
    ]
    total = el("tr", el("th", say("receipt.total"), scope="row"), num(number(receipt.total)), class_="total")
    name = receipt.scope.conversation or receipt.scope.user or receipt.scope.tenant
    to_do = say("receipt.pending")
    body: list[Content] = [
        notice(say("done.erased"), "good"),
        *(notice(f"{to_do} {left}", "bad") for left in receipt.pending),
        card(
            el("p", el("code", name), " · ", reader.time(receipt.at, exact=True)),
            table(head, [*rows, total], caption=say("receipt.title")),
            title=say("receipt.title"),
        ),
        el("p", el("a", say("conv.back"), href=reader.asked.to(places.CONVERSATIONS))),
    ]
    return View(say("erase.title"), body, lead=say("receipt.lead"))

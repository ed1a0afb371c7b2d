"""Facts about a user: add, edit, retract, undo, with their history and origin."""

from dataclasses import dataclass

from pagefile.engine import Memory
from pagefile.errors import InvalidTurnError, NotFoundError
from pagefile.inspector import places
from pagefile.inspector.archive import done
from pagefile.inspector.asking import Asked
from pagefile.inspector.frame import View, asking_form, card, empty, field_of, form, num, table, th
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.pieces import badge
from pagefile.inspector.reader import Reader
from pagefile.inspector.recall import known_users, user_list
from pagefile.records import Fact, Revision

_CHANGES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Facts:
    """A user's facts and how they came to be."""

    user_id: str | None
    users: tuple[str, ...]
    facts: tuple[Fact, ...]
    #: Every change, newest first.
    revisions: tuple[Revision, ...]
    history: bool
    search: str | None


async def gather(memory: Memory, asked: Asked) -> Facts:
    """The facts of a user; without one, the known users."""
    users, history, search = await known_users(memory, asked), asked.flag("history"), asked.text("q")
    if asked.user_id is None:
        return Facts(None, users, (), (), history, search)
    found = await memory.facts(asked.user_id, asked.tenant, history=history)
    if search is not None:
        folded = search.casefold()
        found = [
            fact for fact in found if folded in f"{fact.text} {fact.category} {fact.attribute}".casefold()
        ]
    revisions = await memory.fact_revisions(asked.user_id, asked.tenant)
    return Facts(
        asked.user_id,
        users,
        tuple(reversed(found)),
        tuple(reversed(revisions[-_CHANGES_SHOWN:])),
        history,
        search,
    )


async def change(memory: Memory, asked: Asked) -> str:
    """Add, edit, retract or undo; returns the URL to continue at."""
    if asked.user_id is None:
        raise InvalidTurnError("Whose fact? Name the user.")
    match asked.choice("what", "add", "edit", "retract", "undo"):
        case "retract":
            await memory.retract(asked.text("fact_id") or "", user_id=asked.user_id, tenant=asked.tenant)
            outcome = "retracted"
        case "undo":
            number = asked.whole("revision", 0)
            await memory.undo(asked.user_id, number or None, tenant=asked.tenant)
            outcome = "undone"
        case "edit":
            outcome = await _edit(memory, asked, asked.user_id)
        case _:
            outcome = await _add(memory, asked, asked.user_id)
    return asked.to(places.FACTS, user_id=asked.user_id, done=outcome)


async def _add(memory: Memory, asked: Asked, user_id: str) -> str:
    fact = await memory.remember(
        asked.text("text") or "",
        user_id=user_id,
        tenant=asked.tenant,
        category=asked.text("category"),
        attribute=asked.text("attribute"),
    )
    return fact.outcome or "stored"


async def _edit(memory: Memory, asked: Asked, user_id: str) -> str:
    """Replace a fact's text: with an attribute the new fact supersedes it, otherwise the old one is retracted afterwards."""
    fact_id = asked.text("fact_id")
    old = next((fact for fact in await memory.facts(user_id, asked.tenant) if fact.id == fact_id), None)
    if old is None:
        raise NotFoundError("This fact is no longer held: look at the list again.")
    new = await memory.remember(
        asked.text("text") or "",
        user_id=user_id,
        tenant=asked.tenant,
        category=asked.text("category") or old.category,
        attribute=old.attribute,
        subject=old.subject,
    )
    if new.id != old.id and old.attribute is None:
        await memory.retract(old.id, user_id=user_id, tenant=asked.tenant)
    return "superseded"


# -- the page ----------------------------------------------------------------------------------------------------------


def show(data: Facts, reader: Reader) -> View:
    """The page."""
    say = reader.say
    body: list[Content] = [done(reader), _choose(data, reader)]
    if data.user_id is None:
        links = [el("li", reader.link(places.FACTS, user, user_id=user)) for user in data.users]
        body.append(
            card(el("ul", links, class_="chips"), title=say("facts.users"))
            if links
            else empty(say("facts.nobody"))
        )
    else:
        body += [_held(data, reader), _add_form(reader), _revisions(data, reader)]
        everything = reader.asked.to(places.ERASE, user_id=data.user_id)
        body.append(el("p", el("a", say("erase.user", name=data.user_id), href=everything, class_="danger")))
    lead: Content = say("facts.lead")
    if data.user_id is not None:
        lead = [el("span", data.user_id, class_="who"), " · ", reader.count("count.facts", len(data.facts))]
    query = {"q": data.search or "", "history": "yes" if data.history else ""}
    return View(say("nav.facts"), body, lead=lead, query=query)


def _choose(data: Facts, reader: Reader) -> Element:
    say, asked = reader.say, reader.asked
    who: Content = None
    if "user_id" not in asked.bound:
        who = [
            field_of(say("field.user"), "user_id", data.user_id, list="users", required=True),
            user_list(data.users),
        ]
    tick = el(
        "label",
        el("input", type="checkbox", name="history", value="yes", checked=data.history),
        say("facts.history"),
        class_="tick",
    )
    return asking_form(
        places.FACTS,
        who,
        field_of(say("facts.search"), "q", data.search, kind="search"),
        tick,
        el("button", say("ask.show"), class_="primary"),
        hidden={"tenant": asked.tenant},
        label=say("nav.facts"),
    )


def _held(data: Facts, reader: Reader) -> Element:
    say = reader.say
    if not data.facts:
        return card(empty(say("facts.none")), title=say("facts.held"))
    return card(
        el("ul", [_fact(fact, reader) for fact in data.facts], class_="facts"), title=say("facts.held")
    )


def _fact(fact: Fact, reader: Reader) -> Element:
    say = reader.say
    held = fact.retracted is None and fact.valid_to is None
    state: Content = None
    if fact.retracted is not None:
        state = badge(say("fact.retracted"), "gone")
    elif fact.valid_to is not None:
        state = badge(say("fact.superseded"), "gone")
    tags = [el("span", tag, class_="tag") for tag in (fact.category, fact.attribute) if tag]
    since = [say("fact.since"), " ", reader.time(fact.valid_from)]
    until: Content = [" ", say("fact.until"), " ", reader.time(fact.valid_to)] if fact.valid_to else None
    quote = el("blockquote", fact.source_quote, cite=None) if fact.source_quote else None
    return el(
        "li",
        el("p", fact.text, class_="text"),
        el(
            "p",
            state,
            tags,
            el("span", say("fact.confidence", share=reader.percent(fact.confidence)), class_="soft"),
            el("span", since, until, class_="soft"),
            el("span", say("fact.source"), " ", el("code", fact.source_turn), class_="soft")
            if fact.source_turn
            else None,
            class_="meta",
        ),
        quote,
        _changes(fact, reader) if held else None,
        class_=None if held else "past",
    )


def _changes(fact: Fact, reader: Reader) -> Element:
    say, place = reader.say, reader.asked.to(places.FACTS, user_id=fact.scope.user)
    named = el("input", type="hidden", name="fact_id", value=fact.id)
    edit = form(
        reader,
        place,
        named,
        el("input", type="hidden", name="what", value="edit"),
        el(
            "label",
            el("span", say("fact.text")),
            el("textarea", fact.text, name="text", rows=2, required=True),
            class_="field",
        ),
        el("button", say("fact.save"), class_="primary"),
        class_="stacked-form",
    )
    retract = form(
        reader,
        place,
        named,
        el("input", type="hidden", name="what", value="retract"),
        el("button", say("fact.retract")),
    )
    return el("div", el("details", el("summary", say("fact.edit")), edit), retract, class_="changes")


def _add_form(reader: Reader) -> Element:
    say = reader.say
    made = form(
        reader,
        reader.asked.to(places.FACTS, user_id=reader.asked.user_id),
        el("input", type="hidden", name="what", value="add"),
        el(
            "label",
            el("span", say("fact.text")),
            el("textarea", name="text", rows=2, required=True),
            class_="field",
        ),
        el(
            "div",
            field_of(say("fact.category"), "category"),
            field_of(say("fact.attribute"), "attribute", hint=say("fact.attribute_about")),
            class_="grid",
        ),
        el("button", say("fact.add"), class_="primary"),
        class_="stacked-form",
    )
    return card(made, title=say("fact.add_title"))


def _revisions(data: Facts, reader: Reader) -> Element | None:
    if not data.revisions:
        return None
    say = reader.say
    head: list[Content] = [
        th("#", number=True),
        th(say("revision.what")),
        th(say("revision.fact")),
        th(say("archive.when")),
        th(el("span", say("revision.undo"), class_="unseen")),
    ]
    rows: list[Content] = [_revision(one, reader) for one in data.revisions]
    return card(table(head, rows, caption=say("revision.title")), title=say("revision.title"))


def _revision(one: Revision, reader: Reader) -> Element:
    say = reader.say
    known = f"action.{one.action}"
    action = say(known) if known in _ACTIONS else one.action
    texts = [el("p", _change(before, after)) for before, after in zip(one.before, one.after, strict=False)]
    undo = form(
        reader,
        reader.asked.to(places.FACTS, user_id=one.scope.user),
        el("input", type="hidden", name="what", value="undo"),
        el("input", type="hidden", name="revision", value=one.number),
        el(
            "button",
            say("revision.undo"),
            aria_label=say("revision.undo_number", n=one.number),
            class_="quiet",
        ),
    )
    return el(
        "tr",
        num(one.number),
        el("td", action),
        el("td", texts, class_="reason"),
        el("td", reader.time(one.at), class_="when"),
        el("td", undo),
    )


_ACTIONS = frozenset(
    f"action.{word}" for word in ("stored", "superseded", "duplicate", "retracted", "imported", "undone")
)


def _change(before: Fact | None, after: Fact) -> Content:
    if before is None or before.text == after.text:
        return after.text
    return [el("del", before.text), " → ", el("ins", after.text)]

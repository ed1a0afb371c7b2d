"""Facts about a user: add, edit, retract, undo, with their history and origin."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pagefile.engine import Memory
from pagefile.engine.turn_search import turns_by_id
from pagefile.errors import InvalidArgumentError, NotFoundError
from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import PageRequest, Reader
from pagefile.inspector.recall import known_users
from pagefile.records import Fact, Revision, Turn
from pagefile.tiers.base import off_loop

_CHANGES_SHOWN = 50
#: The newest; others are found by searching.
_FACTS_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Facts:
    user_id: str | None
    users: tuple[str, ...]
    #: The newest that match, and how many more there are.
    facts: tuple[Fact, ...]
    more: int
    #: Every change, newest first.
    revisions: tuple[Revision, ...]
    history: bool
    search: str | None
    #: The turns that facts come from.
    sources: Mapping[str, Turn] = field(default_factory=dict[str, Turn])


async def gather(memory: Memory, asked: PageRequest) -> Facts:
    """The facts of a user; without one, the known users."""
    users, history, search = await known_users(memory, asked), asked.flag("history"), asked.text("q")
    if asked.user_id is None:
        return Facts(None, users, (), 0, (), history, search)
    found = await memory.facts(asked.user_id, asked.tenant, history=history)
    if search is not None:
        found = await off_loop(partial(_matching, found, search), len(found), _FACTS_SHOWN)
    revisions = (await memory.fact_revisions(asked.user_id, asked.tenant))[-_CHANGES_SHOWN:]
    shown, more = tuple(reversed(found[-_FACTS_SHOWN:])), max(0, len(found) - _FACTS_SHOWN)
    ids = sorted({fact.source_turn for fact in shown if fact.source_turn})
    turns = await turns_by_id(memory, ids, user_id=asked.user_id, tenant=asked.tenant)
    sources = {name: replace(turn, steps=(), layout=None) for name, turn in turns.items()}
    return Facts(asked.user_id, users, shown, more, tuple(reversed(revisions)), history, search, sources)


def _matching(facts: Sequence[Fact], search: str) -> list[Fact]:
    folded = search.casefold()
    texts = ((fact, f"{fact.text} {fact.category} {fact.attribute}") for fact in facts)
    return [fact for fact, text in texts if folded in text.casefold()]


async def change(memory: Memory, asked: PageRequest) -> str:
    if asked.user_id is None:
        raise InvalidArgumentError("Whose fact? Name the user.")
    remember = partial(memory.remember, asked.text("text") or "", user_id=asked.user_id, tenant=asked.tenant)
    match asked.choice("what", "add", "edit", "retract", "undo"):
        case "retract":
            await memory.retract(asked.text("fact_id") or "", **asked.owner)
            outcome = "retracted"
        case "undo":
            await memory.undo(asked.user_id, asked.whole("revision", 0) or None, tenant=asked.tenant)
            outcome = "undone"
        case "edit":
            outcome = await _edit(memory, asked, asked.user_id, remember)
        case _:
            fact = await remember(category=asked.text("category"), attribute=asked.text("attribute"))
            outcome = fact.outcome or "stored"
    return asked.to(urls.FACTS, user_id=asked.user_id, done=outcome)


async def _edit(
    memory: Memory, asked: PageRequest, user_id: str, remember: Callable[..., Awaitable[Fact]]
) -> str:
    """Replace a fact's text: with an attribute the new fact supersedes it, otherwise the old one is retracted afterwards."""
    fact_id = asked.text("fact_id")
    old = next((fact for fact in await memory.facts(user_id, asked.tenant) if fact.id == fact_id), None)
    if old is None:
        raise NotFoundError("This fact is no longer current: reload the list.")
    category = asked.text("category") or old.category
    new = await remember(category=category, attribute=old.attribute, subject=old.subject)
    if new.id != old.id and old.attribute is None:
        await memory.retract(old.id, user_id=user_id, tenant=asked.tenant)
    return "superseded"


# -- the page ----------------------------------------------------------------------------------------------------------


def show(data: Facts, reader: Reader) -> ui.View:
    say = reader.say
    lead: Content = say("facts.lead")
    if data.user_id is None:
        links = [el("li", reader.link(urls.FACTS, user, user_id=user)) for user in data.users]
        users = ui.card(say("facts.users"), el("ul", links, class_="chips"))
        body: list[Content] = [users if links else ui.empty(say("facts.nobody"))]
    else:
        lead = [
            el("span", data.user_id, class_="who"),
            " · ",
            reader.count("count.facts", len(data.facts) + data.more),
        ]
        everything = reader.asked.to(urls.ERASE, user_id=data.user_id)
        erase = el("a", say("erase.user", name=data.user_id), href=everything, class_="danger")
        facts = ui.some("ul", [_fact(fact, data, reader) for fact in data.facts], class_="facts")
        rest = el("p", say("facts.more", n=data.more)) if data.more else None
        held = ui.card(say("facts.held"), facts or ui.empty(say("facts.none")), rest)
        body = [held, _add_form(reader), _revisions(data, reader), el("p", erase)]
    user = ui.user_field(reader, data.users, required=True)
    search = ui.search_field(reader, "facts.search", data.search)
    past = ui.tick(reader, "facts.history", "history", checked=data.history)
    go = ui.button(reader, "ask.show")
    choose = ui.asking_form(reader, "nav.facts", user, search, past, button=go)
    return ui.View(say("nav.facts"), [ui.confirmation(reader), choose, *body], lead=lead)


def _fact(fact: Fact, data: Facts, reader: Reader) -> Element:
    say = reader.say
    state: Content = None
    if fact.retracted is not None:
        state = ui.badge(say("fact.retracted"), "gone")
    elif fact.valid_to is not None:
        state = ui.badge(say("fact.superseded"), "gone")
    tags = [el("span", tag, class_="tag") for tag in (fact.category, fact.attribute) if tag]
    time: list[Content] = [say("fact.since"), " ", reader.time(fact.valid_from)]
    if fact.valid_to:
        time += [" ", say("fact.until"), " ", reader.time(fact.valid_to)]
    turn = data.sources.get(fact.source_turn or "")
    origin = el("code", fact.source_turn) if turn is None else reader.turn(_place(turn), turn.id, turn.scope)
    source = ui.soft([say("fact.source"), " ", origin], "span")
    sure = ui.soft(say("fact.confidence", share=reader.percent(fact.confidence)), "span")
    about: list[Content] = [state, tags, sure, ui.soft(time, "span")]
    meta = el("p", about, source if fact.source_turn else None, class_="meta")
    told = el("p", fact.text, class_="text"), meta, ui.some("blockquote", fact.source_quote)
    return el("li", told, class_="past") if state else el("li", told, _changes(fact, reader))


def _place(turn: Turn) -> str:
    return f"{ui.short(turn.scope.conversation or '')} #{turn.seq}"


def _changes(fact: Fact, reader: Reader) -> Element:
    text, save = ui.text_field(reader, "fact.text", "text", fact.text), ui.button(reader, "fact.save")
    edit = _form(reader, text, save, class_="stacked-form", fact_id=fact.id, what="edit")
    retract = _form(reader, ui.button(reader, "fact.retract", None), fact_id=fact.id, what="retract")
    return el("div", el("details", el("summary", reader.say("fact.edit")), edit), retract, class_="changes")


def _form(reader: Reader, *inside: Content, class_: str | None = None, **hidden: object) -> Element:
    place = reader.asked.to(urls.FACTS, user_id=reader.asked.user_id)
    return ui.form(reader, place, *inside, class_=class_, **hidden)


def _add_form(reader: Reader) -> Element:
    text, add = ui.text_field(reader, "fact.text", "text"), ui.button(reader, "fact.add")
    hint = reader.say("fact.attribute_about")
    category = ui.field_of(reader, "fact.category", "category")
    attribute = ui.field_of(reader, "fact.attribute", "attribute", hint=hint)
    fields = el("div", category, attribute, class_="grid")
    made = _form(reader, text, fields, add, class_="stacked-form", what="add")
    return ui.card(reader.say("fact.add_title"), made)


def _revisions(data: Facts, reader: Reader) -> Element | None:
    if not data.revisions:
        return None

    def row(one: Revision) -> tuple[ui.Value, ...]:
        action = reader.known(f"action.{one.action}", one.action)
        texts = [el("p", change) for change in _revised(one)]
        label = reader.say("revision.undo_number", n=one.number)
        undo = ui.button(reader, "revision.undo", "quiet", aria_label=label)
        return str(one.number), action, texts, one.at, _form(reader, undo, what="undo", revision=one.number)

    title = reader.say("revision.title")
    change = {"revision.what": "", "revision.fact": "reason", "archive.when": "when"}
    columns = {"#": "num", **change, "revision.undo": "action"}
    return ui.card(title, ui.table(reader, title, columns, map(row, data.revisions)))


def _revised(one: Revision) -> list[Content]:
    """What a change did; a new statement that took the place of others is shown with them."""
    if one.action == "superseded" and one.before[-1] is None and len(one.after) > 1:
        gone = [el("del", fact.text) for fact in one.after[:-1]]
        return [[*(part for text in gone for part in (text, " → ")), el("ins", one.after[-1].text)]]
    return [_change(before, after) for before, after in zip(one.before, one.after, strict=False)]


def _change(before: Fact | None, after: Fact) -> Content:
    if before is None or before.text == after.text:
        return after.text
    return [el("del", before.text), " → ", el("ins", after.text)]

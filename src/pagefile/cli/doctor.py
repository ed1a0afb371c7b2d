"""`doctor` and `config`: what is installed and configured, what is broken, and what to do about it."""

import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Literal, cast

import anyio
import apsw
import typer

from pagefile.cli.invocation import Invocation, command, database_file
from pagefile.cli.maintenance import quiet, schema_of
from pagefile.cli.measures import number, plural
from pagefile.cli.output import say, show_table, visible
from pagefile.engine import Memory
from pagefile.engine.verification import Report, verify
from pagefile.errors import PagefileError, VectorIndexError
from pagefile.records import DEFAULT_TENANT, JsonObject, Scope
from pagefile.settings import Settings
from pagefile.settings.sources import DEFAULT, shown
from pagefile.stores.sqlite.driver import check_encrypts
from pagefile.text.tokens import open_counter
from pagefile.tiers.episodes import Episodes
from pagefile.tiers.turn_index import OtherModelError

_EXTRA = "extra "
#: How long to look for damaged data.
_LOOK_S = 5.0
_VERIFY = "Run `pagefile verify --full`: it names what is damaged, and what to do."
_REST = "The rest was not checked, to save time: `pagefile verify --full` checks everything."


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    state: Literal["ok", "note", "broken"]
    found: str
    #: What to do, if anything.
    advice: str = ""


@command(tenant=False)
def doctor(cli: Invocation) -> None:
    """Check the installation, the settings and the database; exit code 1 when something is broken.

    Examples:
        pagefile doctor
        pagefile doctor --db postgresql://pagefile@db/pagefile --json
    """
    checks = [
        Check("pagefile", "ok", metadata.version("pagefile")),
        Check("Python", "ok", platform.python_version()),
        Check("SQLite", "ok", f"{apsw.sqlite_lib_version()} (apsw {apsw.apsw_version()})"),
        *_in_force(cli),
        *_extras(),
    ]
    broken = sum(check.state == "broken" for check in checks)
    cli.answer({"ok": not broken, "checks": checks}, lambda: _show(checks, broken))
    if broken:
        raise typer.Exit(1)


def _show(checks: list[Check], broken: int) -> None:
    shown_checks = [one for one in checks if not _left_out(one)]
    advised = [(one, f"\n→ {visible(one.advice)}" if one.advice else "") for one in shown_checks]
    rows = [(one.state, one.name, visible(one.found) + advice) for one, advice in advised]
    if missing := [one.name.removeprefix(_EXTRA) for one in checks if _left_out(one)]:
        how = "→ To install one: pip install 'pagefile[NAME]', or in a clone pip install '.[NAME]'"
        rows.append(("", "other extras", f"not installed: {', '.join(missing)}\n{how}"))
    show_table(("", "what", "found"), rows)
    # A missing extra is a choice, not worth a note.
    notes = [one.name for one in shown_checks if one.state == "note"]
    if broken:
        say(f"\n{broken} broken.")
    elif notes:
        say(f"\nNothing is broken; worth reading: {plural(len(notes), 'note')} ({', '.join(notes)}).")
    else:
        say("\nAll is well.")


def _left_out(check: Check) -> bool:
    """Extras that are not installed are a line together; scripts get a check for each."""
    return check.name.startswith(_EXTRA) and check.state == "note"


@command(tenant=False)
def config(cli: Invocation) -> None:
    """Print the effective settings and where each came from; passwords are left out.

    Examples:
        pagefile config
        PAGEFILE_WINDOW_TOKENS=8000 pagefile config
    """
    found = cli.loaded(patient=False)
    values = {name: shown(value, name) for name, value in found.values().items()}
    file = None if found.file is None else str(found.file)
    rows = {name: {"value": value, "from": found.origins[name]} for name, value in values.items()}

    def shown_rows() -> None:
        say(f"Settings file: {file or 'none'}{'' if file else f'. {found.said}'}\n")
        written = [(name, _as_setting(value), found.origins[name]) for name, value in values.items()]
        show_table(("setting", "~value", "from"), written)

    cli.answer({"file": file, "settings": rows}, shown_rows)


def _as_setting(value: object) -> str:
    """A value as it would be written in a settings file."""
    if value is None:
        return "–"
    return str(value).lower() if isinstance(value, bool) else visible(str(value))


# -- checks --------------------------------------------------------------------------------------------------------------


def _in_force(cli: Invocation) -> Iterator[Check]:
    try:
        found = cli.loaded()
    except PagefileError as error:
        yield Check("settings", "broken", str(error), "Correct the settings, then run this again.")
        return
    changed = ", ".join(name for name, origin in found.origins.items() if origin != DEFAULT)
    said = f"set are {changed}" if changed else "all defaults"
    yield Check("settings", "ok", f"{found.file or 'no settings file here'}; {said}")
    yield _tokenizer(cli.settings)
    yield from _database(cli)


def _tokenizer(settings: Settings) -> Check:
    try:
        counter = open_counter(settings.tokenizer)
    except PagefileError as error:
        return Check("tokenizer", "broken", settings.tokenizer, str(error))
    if counter.exact:
        return Check("tokenizer", "ok", f"{counter.name}, exact counts")
    advice = "For exact counts: pip install bpe-openai" if settings.tokenizer != "estimate" else ""
    return Check("tokenizer", "note", f"{counter.name}, counts are estimates", advice)


def _database(cli: Invocation) -> Iterator[Check]:
    """The state of the database, erasures still pending in external stores, and how turns are found in it."""
    settings = cli.settings
    place, file = str(shown(settings.url)), database_file(settings.url)
    missing = file is not None and not file.exists()
    if file is not None and missing and not file.parent.is_dir():
        yield Check("database", "broken", place, f"Make the directory {str(file.parent)!r}.")
        return
    if missing:
        try:
            check_encrypts(settings.encryption_key_file)
        except PagefileError as error:
            yield Check("database", "broken", place, str(error))
            return
        advice = "It is created when the first turn is recorded."
        yield Check("database", "ok", f"{place}: not there yet", advice)
    elif old := _old(settings, place):
        # Opening it would migrate it.
        yield old
        return
    else:
        try:
            described = cli.run(lambda memory: memory.describe())
        except PagefileError as error:
            yield Check("database", "broken", place, str(error))
            return
        yield _described(place, cast("Mapping[str, object]", described["store"]))
        yield _data(cli)
        if settings.sessions:
            yield _sessions(cli)
        for store, count in cast("Mapping[str, int]", described["erasures_owed"]).items():
            yield Check(
                f"erasures in {store}",
                "note",
                f"{plural(count, 'scope')} still to be erased there: it could not be reached when they were erased here",
                "Start it, and a process that uses it, which erases them within a minute.",
            )
    if settings.embedder.name == "none" or settings.vectors == "none":
        yield Check("recall", "ok", "by word, as configured")
    elif not missing:
        yield _recall(cli)


def _old(settings: Settings, place: str) -> Check | None:
    """What to say of a database that is older than this version, or empty: looking at it must not change it."""
    try:
        schema = schema_of(settings)
    except PagefileError as error:
        return Check("database", "broken", place, str(error))
    if schema is None or schema.found == schema.newest:
        return None
    if schema.found is None:
        return Check("database", "ok", f"{place}: empty", "Its tables are created when the service starts.")
    found = (
        f"{place}: schema {schema.found}, and this version wants {schema.newest}; nothing else was looked at"
    )
    return Check(
        "database",
        "note",
        found,
        "`pagefile upgrade` copies and migrates it; so does, without a copy, whatever opens it.",
    )


def _data(cli: Invocation) -> Check:
    """Whether what is stored is intact, as far as that can be seen in a few seconds."""
    seen = (0, 0)

    def progress(done: int, total: int) -> None:
        nonlocal seen
        seen = done, total

    async def look(memory: Memory) -> tuple[Report, bool]:
        limit = anyio.CancelScope(deadline=anyio.current_time() + _LOOK_S)
        return await verify(memory.engine, progress=progress, within=limit), limit.cancelled_caught

    try:
        report, cut = cli.run(look, settings=quiet(cli.settings))
    except PagefileError as error:
        return Check("data", "broken", str(error), _VERIFY)
    if report.damage:
        places = {one.conversation for one in report.findings if one.level == "damage"} - {None}
        where = f" in {', '.join(sorted(filter(None, places))[:5])}" if places else ""
        return Check("data", "broken", f"{plural(report.damage, 'thing')} damaged{where}", _VERIFY)
    if cut:
        return Check("data", "ok", f"{number(seen[0])} of {number(seen[1])} rows checked, all intact", _REST)
    return Check("data", "ok", f"{plural(report.checked.get('rows', 0), 'row')} checked, all intact")


def _sessions(cli: Invocation) -> Check:
    """Whether the cache of session values answers."""

    async def asked(memory: Memory) -> tuple[bool, str | None]:
        cache = memory.engine.cache
        if cache is None:
            return True, None
        await cache.get(Scope(DEFAULT_TENANT, None, "doctor"))
        return not cache.errors, cache.failure

    place = str(shown(cli.settings.sessions))
    answers, failure = cli.run(asked, settings=quiet(cli.settings))
    if answers:
        return Check("sessions", "ok", f"{place} answers")
    advice = "Start it, or correct the setting `sessions`. Until then, sessions come from the database."
    return Check(
        "sessions", "note", f"{place} does not answer" + (f" ({failure})" if failure else ""), advice
    )


def _recall(cli: Invocation) -> Check:
    async def examined(memory: Memory) -> tuple[JsonObject, set[str]]:
        derivation = memory.engine.tier(Episodes).derivation
        found, vectors = await derivation.examine(), derivation.vectors
        return found, set() if vectors is None else {model.key for model in vectors.replaced}

    try:
        found, replaced = cli.run(examined)
    except OtherModelError as error:
        return Check("recall", "note", f"by word only: {error}", "Run `pagefile rebuild`.")
    except PagefileError as error:
        if isinstance(error, VectorIndexError) and not cli.settings.vectors:
            # A PostgreSQL without pgvector: the rest works, by design.
            advice = 'Recall by meaning needs it; without it, set vectors to "none".'
            return Check("recall", "note", f"by word only: {error}", advice)
        return Check("recall", "broken", f"by word only: {error}", 'Fix it, or set embedder.name to "none".')
    vectors = cast("Mapping[str, int]", found["vectors"])
    own = vectors.get(str(found["embedder"]), 0)
    told = f"by word and meaning: {found['embedder']} in {found['home']}, {plural(own, 'vector')}"
    if found["behind"]:
        told += f"; {plural(cast('int', found['behind']), 'conversation')} not read to the end yet"
    others = {model: number for model, number in vectors.items() if model != found["embedder"] and number}
    if not others:
        return Check("recall", "ok", told)
    left = ", ".join(f"{model} ({number:,})" for model, number in others.items())
    if others.keys() <= replaced:
        told += f"; vectors of {left} are made again in the background, and then removed"
        return Check("recall", "note", told, "`pagefile rebuild` does it at once.")
    told += f"; vectors of other embedders: {left}"
    return Check("recall", "note", told, "Run `pagefile rebuild` to remove them.")


def _described(place: str, store: Mapping[str, object]) -> Check:
    size = store.get("bytes")
    told = [f"{number(size)} bytes"] if isinstance(size, int) else []
    left_out = {"backend", "place", "bytes", "version", "read_only", "advice"}
    told += [f"{key} {value}" for key, value in store.items() if key not in left_out and value is not None]
    if store.get("read_only"):
        return Check("database", "note", f"{place}: read-only, {', '.join(told)}", "Nothing can be recorded.")
    advice = str(store.get("advice") or "")
    return Check("database", "note" if advice else "ok", f"{place}: {', '.join(told) or 'reachable'}", advice)


def _extras() -> Iterator[Check]:
    """Every extra in the package's own metadata, so that none can be forgotten here."""
    parts: dict[str, list[str]] = {}
    needs: dict[str, str] = {}
    for requirement in metadata.requires("pagefile") or []:
        match = re.match(r"([\w.-]+).*extra == ['\"]([\w-]+)['\"]", requirement)
        if match and match[1] != "pagefile" and match[2] != "all":
            parts.setdefault(match[2], []).append(match[1])
            needs[match[1]] = requirement
    for extra, names in sorted(parts.items()):
        found: list[str] = []
        missing: list[str] = []
        for name in names:
            try:
                found.append(f"{name} {metadata.version(name)}")
            except metadata.PackageNotFoundError:
                missing.append(name)
        if missing:
            # The packages themselves: whatever Pagefile was installed from, an index has them.
            advice = f"To install it: pip install {' '.join(repr(_plain(needs[name])) for name in missing)}"
            yield Check(f"{_EXTRA}{extra}", "note", f"not installed ({', '.join(missing)})", advice)
        else:
            yield Check(f"{_EXTRA}{extra}", "ok", ", ".join(found))


def _plain(requirement: str) -> str:
    """A requirement without the extra that it is for: `asyncpg>=0.30`."""
    return requirement.partition(";")[0].strip()

"""The settings in force, and where each comes from. Keys and passwords are masked."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from pagefile.errors import SettingsError
from pagefile.inspector import ui
from pagefile.inspector.markup import Content, Element, el
from pagefile.inspector.page_request import Reader
from pagefile.records import JsonValue
from pagefile.settings import Settings
from pagefile.settings.sources import DEFAULT, Loaded, load, shown

#: The origin of a value that neither a file nor a variable has: a flag, or the program that opened the memory.
AT_START = "start"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: JsonValue
    #: "default", a file, "$PAGEFILE_…" or "start".
    origin: str
    #: What a file or a variable says now, if that is something else: it applies after a restart.
    next: JsonValue = None


@dataclass(frozen=True, slots=True)
class Configuration:
    settings: tuple[Setting, ...]
    #: The file that a restart would read; None if there is none.
    file: str | None
    #: Why the file or the environment cannot be read now.
    problem: str | None


def gather(settings: Settings) -> Configuration:
    """Compared with what the file and the environment say now."""
    now, problem = None, None
    try:
        now = load()
    except SettingsError as error:
        problem = str(error)
    force = Loaded(settings, None, {}).values()
    file = None if now is None or now.file is None else str(now.file)
    return Configuration(tuple(_settings(force.items(), now)), file, problem)


def _settings(force: Iterable[tuple[str, object]], now: Loaded | None) -> Iterable[Setting]:
    values = {} if now is None else now.values()
    default = Loaded(Settings(), None, {}).values()
    for name, value in force:
        origin = DEFAULT if value == default[name] else AT_START
        told = _plain(shown(value, name))
        if now is None or name not in values:
            yield Setting(name, told, origin)
        elif values[name] == value:
            yield Setting(name, told, now.origins[name])
        elif now.origins[name] == DEFAULT:
            yield Setting(name, told, AT_START)
        else:
            yield Setting(name, told, origin, _plain(shown(values[name], name)))


def _plain(value: object) -> JsonValue:
    """A value as JSON; lists of names come as tuples."""
    if isinstance(value, tuple | list | set | frozenset):
        return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - whatever a setting holds
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def show(data: Configuration, reader: Reader) -> ui.View:
    say = reader.say
    body: list[Content] = []
    if data.problem is not None:
        body.append(ui.notice([say("settings.problem"), " ", data.problem], "bad"))
    changed = [one for one in data.settings if one.origin != DEFAULT or one.next is not None]
    if changed:
        body.append(ui.card(say("settings.changed"), _table(changed, say("settings.changed"), reader)))
    for section, group in groupby(data.settings, key=lambda one: one.name.rpartition(".")[0]):
        title = section or say("settings.general")
        body.append(ui.card(title, _table([*group], title, reader)))
    file = el("code", data.file) if data.file else say("settings.no_file")
    lead = [say("settings.lead"), " ", say("settings.file"), " ", file]
    return ui.View(say("nav.settings"), body, lead=lead)


def _table(settings: list[Setting], title: str, reader: Reader) -> Element:
    columns = {"settings.name": "row", "settings.value": "reason", "settings.origin": ""}

    def row(one: Setting) -> tuple[ui.Value, ...]:
        value: list[Content] = [el("code", _text(one.value))]
        if one.next is not None:
            value.append(el("small", reader.say("settings.next", value=_text(one.next))))
        known = reader.known(f"origin.{one.origin}", "")
        origin = ui.soft(known, "span") if one.origin == DEFAULT else known or el("code", one.origin)
        return el("code", one.name), value, origin

    return ui.table(reader, title, columns, map(row, settings), class_="settings")


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "–"
    return "–" if value is None or value == "" else str(value)

"""The people of the demo: a shop, a clinic, a research desk, a programmer and a traveller, each with an agent."""

from collections.abc import Sequence
from functools import cache

from pagefile.inspector.demo.data import read
from pagefile.inspector.demo.script import Data, Person, Said, Talk, played

_ORDER = ("marta", "lin", "okafor", "jonas", "wei")
_ABOUT = ("id", "agent", "began", "days", "window_tokens", "instructions")


def _person(name: str) -> Person:
    person = read(name)
    talks = tuple(_talk(person, talk) for talk in person["talks"])
    return Person(person["user_id"], person["language"], talks)


def _talk(person: Data, talk: Data) -> Talk:
    @cache
    def turns() -> Sequence[Said]:
        return tuple(played(person, talk))

    return Talk(**{name: talk[name] for name in _ABOUT}, turns=turns)


PEOPLE: tuple[Person, ...] = tuple(map(_person, _ORDER))

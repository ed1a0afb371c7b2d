"""What the wire takes and gives."""

import dataclasses
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

import pagefile.wire.windows  # noqa: F401 - its mirrors are tested too
from pagefile.records import Page, Scope
from pagefile.schema import Mirror
from pagefile.wire.requests import AskContext, PurgePages, RecordTurn
from pagefile.wire.responses import LoadOut, PageOut, PurgeOut, ToolAnswer

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)


def page(number: int = 0, *, text: str = "abcdef", purged: bool = False) -> Page:
    """A page of six characters."""
    return Page(
        uuid=f"00000000-0000-4000-8000-{number:012}",
        scope=Scope(user="王芳", conversation="门诊-1"),
        tool="search",
        input={"q": "血压"},
        query_summary="血压",
        result_summary="a to f",
        length=6,
        sources=("https://example.org",),
        created=NOW,
        tokens=3,
        counter="o200k_base",
        content_hash=text,
        purged=NOW if purged else None,
        stored_bytes=100,
    )


@pytest.mark.parametrize(
    ("offset", "text", "query", "following"),
    [
        (0, "abcdef", None, None),
        (2, "cd", None, 4),
        (4, "ef", None, None),
        (6, "", None, None),
        (0, "[characters 2-4] cd", "c", None),
        (0, "ab", "a", None),
    ],
)
def test_parts_of_a_page(offset, text, query, following):
    """`next` is where to go on, and null when there is no more or the text is passages."""
    part = LoadOut.of(page(), text, offset, query)
    assert (text, following, 6, query) == (part.text, part.next, part.length, part.query)


def test_a_page_says_whether_it_can_be_loaded():
    """A front end shows 已存档 for a page that is there, and not for a tombstone."""
    assert (True, None) == (PageOut.of(page()).archived, PageOut.of(page()).purged)
    gone = PageOut.of(page(purged=True))
    assert (False, NOW, "门诊-1", "王芳") == (gone.archived, gone.purged, gone.conversation_id, gone.user_id)


def test_equal_texts_are_counted_once():
    """Two tombstones of one text freed it once."""
    gone = PurgeOut.of([page(1), page(2), page(3, text="other")])
    assert (3, 200) == (len(gone.items), gone.stored_bytes)
    assert ((), 0) == (PurgeOut.of([]).items, PurgeOut.of([]).stored_bytes)


def test_what_cannot_be_sent_is_replaced():
    """A model may write half a surrogate pair; the answer that quotes it is still text."""
    assert "nothing about ?" == ToolAnswer.of("nothing about \ud800").text


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"uuids": "one"},
        {"uuids": [""]},
        {"older_than_s": -1},
        {"older_than_s": float("inf")},
        {"max_bytes": 1.5},
        {"max_bytes": True},
    ],
)
def test_a_purge_says_what_goes(wrong):
    """Nothing is purged by mistake."""
    with pytest.raises(ValidationError):
        PurgePages.model_validate({"user_id": "王芳", **wrong})


@pytest.mark.parametrize(
    "given", ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00", "2026-01-31T17:30:00+08:00"]
)
def test_a_time_is_utc(given):
    """A time names its zone, or is UTC."""
    turn = RecordTurn.model_validate({"conversation_id": "c", "user": "hi", "at": given})
    assert turn.at is not None
    assert "2026-01-31T09:30:00+00:00" == turn.at.isoformat()


@pytest.mark.parametrize(
    "wrong",
    [
        {"conversation_id": ""},
        {"conversation_id": "  "},
        {"conversation_id": "x" * 256},
        {"conversation_id": 5},
        {"conversation_id": "c", "recent_turns": True},
        {"conversation_id": "c", "recent_turns": 1.0},
        {"conversation_id": "c", "threshold": 0},
        {"conversation_id": "c", "placement": "middle"},
        {"conversation_id": "c", "format": "xml"},
        {"conversation_id": "c", "window_token": 5},
    ],
)
def test_nothing_is_converted_silently(wrong):
    """A number is a number, a text is a text, and an unknown field is an error."""
    with pytest.raises(ValidationError):
        AskContext.model_validate(wrong)


def mirrors(kind: type[Mirror] = Mirror) -> list[type[Mirror]]:
    """Every class that mirrors a record."""
    found = [one for child in kind.__subclasses__() for one in (child, *mirrors(child))]
    return sorted({one for one in found if one.record_type is not None}, key=lambda one: one.__name__)


@pytest.mark.parametrize("mirror", mirrors(), ids=lambda mirror: mirror.__name__)
def test_a_mirror_speaks_of_fields_that_its_record_has(mirror):
    """What is described or left out exists, and all else of the record is in the JSON."""
    names = {field.name for field in dataclasses.fields(mirror.record_type)}
    assert mirror.about.keys() <= names & mirror.model_fields.keys()
    assert mirror.without <= names
    assert names - mirror.without - {"scope"} <= mirror.model_fields.keys()

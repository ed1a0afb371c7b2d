"""Settings refuse at birth what cannot work, whoever makes them."""

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from pagefile.errors import SettingsError
from pagefile.settings import ArchiveSettings, FactSettings, ServiceSettings, Settings
from pagefile.settings.model import database_url, known_settings, replaced


def test_the_defaults_are_those_of_the_documents():
    """What nobody set has the value the documents give."""
    settings = Settings()
    assert (16_000, 0.75, 8, "full") == (
        settings.window_tokens,
        settings.threshold,
        settings.recent_turns,
        settings.synchronous,
    )
    assert FactSettings(True, 2000, 3, 0.6, 0.4) == settings.facts


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"window_tokens": 0}, "window_tokens must be at least 1, not 0."),
        ({"window_tokens": "many"}, "window_tokens must be a whole number, not 'many'."),
        ({"window_tokens": True}, "window_tokens must be a whole number, not True."),
        ({"window_tokens": 1.5}, "window_tokens must be a whole number, not 1.5."),
        ({"threshold": 0}, "threshold must be more than 0, not 0."),
        ({"threshold": 1.01}, "threshold must be at most 1, not 1.01."),
        ({"threshold": float("nan")}, "threshold must be a number, not nan."),
        ({"threshold": True}, "threshold must be a number, not True."),
        ({"recent_turns": 0}, "recent_turns must be at least 1, not 0."),
        ({"recall_max_share": -1}, "recall_max_share must be at least 0, not -1."),
        ({"synchronous": "off"}, "synchronous must be 'full' or 'normal', not 'off'."),
        ({"placement": None}, "placement must be 'tail' or 'head', not None."),
        ({"url": " "}, "url is empty."),
        ({"url": 3}, "url must be text, not 3."),
        ({"facts": 3}, "facts must be a section, FactSettings(…), not 3."),
        ({"langauge": "en"}, "There is no setting 'langauge'; did you mean 'language'?"),
        ({"archve": {}}, "There is no setting 'archve'; did you mean 'archive'?"),
        ({"port": 9000}, "There is no setting 'port'; did you mean 'service.port'?"),
        (
            {"archive": {"treshold": 10}},
            "There is no setting 'archive.treshold'; did you mean 'archive.threshold'?",
        ),
        ({"archive": {"threshold": -1}}, "archive.threshold must be at least 0, not -1."),
    ],
)
def test_a_value_that_cannot_work_is_refused(wrong: dict[str, object], says: str):
    """The error names the setting, what it must be and what it was."""
    with pytest.raises(SettingsError) as caught:
        Settings(**wrong)  # pyright: ignore[reportArgumentType]
    assert says == str(caught.value)


@pytest.mark.parametrize("key", ["", " " * 16, "short", "fifteen-letters", 1234567890123456])
def test_a_key_that_can_be_guessed_is_refused(key: Any):
    """An empty one would open the metrics to everybody; the error does not quote it."""
    says = "service.metrics_key must be text of at least 16 characters, such as what `openssl rand -hex 32` prints."
    with pytest.raises(SettingsError) as caught:
        ServiceSettings(metrics_key=key)
    assert says == str(caught.value)


def test_a_printed_setting_shows_no_key():
    """Every setting that is called a key, in every section; a traceback may print them."""
    secret = "not-to-be-shown-0123"
    names = [name for name in known_settings() if name.endswith(("api_key", "metrics_key"))]
    assert {"gateway.openai_api_key", "gateway.anthropic_api_key", "service.metrics_key"} < set(names)
    settings = replaced(Settings(), dict.fromkeys(names, secret))
    assert secret == settings.service.metrics_key
    assert secret not in repr(settings)


@pytest.mark.parametrize(
    ("section", "wrong", "says"),
    [
        (FactSettings, {"enabled": 1}, "facts.enabled must be true or false, not 1."),
        (
            FactSettings,
            {"similarity_weight": -0.1},
            "facts.similarity_weight must be at least 0, not -0.1.",
        ),
        (ArchiveSettings, {"threshold": -1}, "archive.threshold must be at least 0, not -1."),
        (ServiceSettings, {"port": 0}, "service.port must be at least 1, not 0."),
        (ServiceSettings, {"port": 65536}, "service.port must be at most 65535, not 65536."),
        (ServiceSettings, {"host": ""}, "service.host is empty."),
    ],
)
def test_sections_are_checked_too(section: type, wrong: dict[str, object], says: str):
    """A section says its own name, so that the key can be found in a file."""
    with pytest.raises(SettingsError) as caught:
        section(**wrong)
    assert says == str(caught.value)


def test_everything_wrong_is_said_at_once():
    """Nobody has to start a program three times to find three mistakes."""
    with pytest.raises(SettingsError) as caught:
        Settings(window_tokens=0, recent_turns=0)
    assert "window_tokens must be at least 1, not 0; recent_turns must be at least 1, not 0." == str(
        caught.value
    )


def test_known_settings_are_all_fields():
    """Every field of every section has a dotted name."""
    known = known_settings()
    assert {"url", "facts.enabled", "archive.threshold", "service.port"} <= set(known)
    assert sum(not is_dataclass(one.type) for one in fields(Settings)) == sum(
        "." not in name for name in known
    )


def test_a_section_may_be_a_dict():
    """As it would be written in pagefile.toml; what it leaves out keeps its default."""
    settings = Settings(archive={"threshold": 10}, facts={})  # pyright: ignore[reportArgumentType]
    assert ArchiveSettings(threshold=10) == settings.archive
    assert FactSettings() == settings.facts


@pytest.mark.parametrize(
    ("place", "url"),
    [
        ("plain.db", "sqlite:///plain.db"),
        ("data/my agent.db", "sqlite:///data/my%20agent.db"),
        ("/data/agent.db", "sqlite:////data/agent.db"),
        (Path("agent.db"), "sqlite:///agent.db"),
        (Path("memory"), "sqlite:///memory"),
        (":memory:", "sqlite://"),
        # Left as they are, and refused where they are opened: these are no names of files.
        ("sqlite:///agent.db", "sqlite:///agent.db"),
        ("postgresql://ada@db/agent", "postgresql://ada@db/agent"),
        ("memory", "memory"),
        ("sqlite:agent.db", "sqlite:agent.db"),
    ],
)
def test_a_database_may_be_named_by_its_path(place, url):
    """A file of SQLite needs no scheme; a word that names a kind of store is not taken for a file."""
    assert url == database_url(place)
    if isinstance(place, str):
        assert url == Settings(url=place).url

"""Settings come from defaults, a file, the environment and the caller, each stronger than the one before."""

from pathlib import Path

import pytest

from pagefile.errors import SettingsError
from pagefile.settings import FactSettings, Settings
from pagefile.settings.sources import load, load_settings, shown


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in an empty directory, with none of our variables set."""
    monkeypatch.chdir(tmp_path)


def written(name: str, text: str) -> Path:
    path = Path(name)
    path.write_text(text, encoding="utf-8")
    return path


def complaint(**sources: object) -> str:
    """What the settings error says."""
    with pytest.raises(SettingsError) as caught:
        load_settings(**({"environ": {}} | sources))  # pyright: ignore[reportArgumentType]
    return str(caught.value)


# -- each source --------------------------------------------------------------------------------------------------


def test_without_any_source_the_defaults_hold():
    """Nothing has to be configured."""
    assert Settings() == load_settings(environ={})


def test_toml_in_the_working_directory():
    """`pagefile.toml` is found by itself."""
    written("pagefile.toml", 'window_tokens = 8000\nthreshold = 1\n[service]\nhost = "0.0.0.0"\n')
    settings = load_settings(environ={})
    assert (8000, 1, "0.0.0.0") == (settings.window_tokens, settings.threshold, settings.service.host)


@pytest.mark.parametrize("name", ["pagefile.yaml", "pagefile.yml"])
def test_yaml_has_the_same_keys(name: str):
    """The `memory:` keys of a deer-flow config.yaml, in the section that is called `facts` here."""
    written(
        name,
        "facts:\n  enabled: true\n  max_injection_tokens: 1500  # ✅ 使用精确 token 计数\n"
        "  max_context_turns: 5\n  similarity_weight: 0.7\n  confidence_weight: 0.3\n",
    )
    assert FactSettings(True, 1500, 5, 0.7, 0.3) == load_settings(environ={}).facts


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "facts:\n  # all of it commented out\n", "{}"])
def test_an_empty_yaml_says_nothing(text: str):
    """A file whose lines are all commented out is a file of defaults."""
    written("pagefile.yaml", text)
    assert Settings() == load_settings(environ={})


def test_a_byte_order_mark_is_no_obstacle():
    """Some editors put one in front."""
    written("pagefile.toml", "\ufeffwindow_tokens = 9\n")
    assert 9 == load_settings(environ={}).window_tokens


def test_the_environment():
    """Strings become what the setting wants; two underscores lead into a section; an empty variable says nothing."""
    settings = load_settings(
        environ={
            "PAGEFILE_WINDOW_TOKENS": " 32_000 ",
            "PAGEFILE_THRESHOLD": "0.5",
            "PAGEFILE_FACTS__ENABLED": "No",
            "PAGEFILE_SYNCHRONOUS": "normal",
            "PAGEFILE_URL": "",
            "HOME": "elsewhere",
        }
    )
    assert (32_000, 0.5, False, "normal") == (
        settings.window_tokens,
        settings.threshold,
        settings.facts.enabled,
        settings.synchronous,
    )
    assert Settings().url == settings.url


def test_overrides_nested_dotted_and_not_given():
    """A flag that was not given is None and changes nothing."""
    settings = load_settings(
        environ={}, overrides={"url": None, "service.port": 9, "facts": {"enabled": False}}
    )
    assert (Settings().url, 9, False) == (settings.url, settings.service.port, settings.facts.enabled)


def test_the_process_environment_is_read_unless_another_is_given(monkeypatch: pytest.MonkeyPatch):
    """`load_settings()` alone is what a command does."""
    monkeypatch.setenv("PAGEFILE_RECENT_TURNS", "4")
    assert 4 == load_settings().recent_turns


# -- which is stronger ---------------------------------------------------------------------------------------------


def test_precedence_and_origins():
    """Defaults < file < environment < overrides, and each value knows where it came from."""
    written("pagefile.toml", "window_tokens = 1\nrecent_turns = 1\ndrain_s = 1\n")
    loaded = load(environ={"PAGEFILE_RECENT_TURNS": "2", "PAGEFILE_DRAIN_S": "2"}, overrides={"drain_s": 3})
    assert (1, 2, 3) == (
        loaded.settings.window_tokens,
        loaded.settings.recent_turns,
        loaded.settings.drain_s,
    )
    assert Path("pagefile.toml") == loaded.file
    assert ("pagefile.toml", "$PAGEFILE_RECENT_TURNS", "command line", "default") == tuple(
        loaded.origins[name] for name in ("window_tokens", "recent_turns", "drain_s", "url")
    )
    assert set(loaded.values()) == set(loaded.origins)


def test_which_file(tmp_path: Path):
    """An explicit path is stronger than `$PAGEFILE_CONFIG`, which is stronger than the working directory."""
    written("pagefile.toml", "window_tokens = 1\n")
    written("named.toml", "window_tokens = 2\n")
    written("given.yaml", "window_tokens: 3\n")
    named = {"PAGEFILE_CONFIG": "named.toml"}
    assert 1 == load_settings(environ={}).window_tokens
    assert 2 == load_settings(environ=named).window_tokens
    assert 3 == load_settings(environ=named, file=tmp_path / "given.yaml").window_tokens


def test_several_files_are_one_too_many():
    """Nobody should have to guess which one holds."""
    written("pagefile.toml", "")
    written("pagefile.yml", "")
    assert (
        complaint()
        == "There are several settings files here (pagefile.toml, pagefile.yml): keep one of them."
    )
    assert Settings() == load_settings(environ={}, file=Path("pagefile.yml"))


# -- what can be wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "a.toml",
            "widnow_tokens = 1",
            "a.toml: there is no setting 'widnow_tokens'; did you mean 'window_tokens'?",
        ),
        (
            "a.yaml",
            "facts:\n  max_injection_token: 1",
            "a.yaml: there is no setting 'facts.max_injection_token'; did you mean 'facts.max_injection_tokens'?",
        ),
        ("a.toml", "db = 'x'", "a.toml: there is no setting 'db'; did you mean 'url'?"),
        ("a.toml", "window_tokens = 0", "a.toml: window_tokens must be at least 1, not 0."),
        ("a.toml", "window_tokens = '9'", "a.toml: window_tokens must be a whole number, not '9'."),
        ("a.yaml", "window_tokens:", "a.yaml: window_tokens must be a whole number, not None."),
        ("a.yaml", "facts: true", "a.yaml: facts is a section: it must hold names and values, not bool."),
        ("a.toml", "[service]\nport = 99999", "a.toml: service.port must be at most 65535, not 99999."),
        ("a.toml", "[fact]\nextract = 'rules'", "a.toml: there is no section 'fact'; did you mean 'facts'?"),
        ("a.toml", "[url]\nx = 1", "a.toml: url must be text, not {'x': 1}."),
        (
            "a.yaml",
            "- 1\n- 2",
            "a.yaml: the file must hold names and values, such as `window_tokens: 16000`.",
        ),
        ("a.ini", "", "a.ini: a settings file must end in .toml, .yaml or .yml."),
    ],
)
def test_what_a_file_says_wrongly(name: str, text: str, says: str):
    """The complaint names the file, the key, what is wrong and what was probably meant."""
    assert says == complaint(file=written(name, text))


def test_an_unknown_name_that_resembles_nothing():
    """Then all known names are listed."""
    says = complaint(file=written("a.toml", "zzz = 1"))
    assert says.startswith("a.toml: there is no setting 'zzz'; known are url, sessions, tokenizer,")


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.toml", "window_tokens = 1\nthreshold = = 2\n", "line 2"),
        ("a.yaml", "window_tokens: 1\nmemory: [1,\n", "line 3"),
        ("a.yaml", "url: a\nurl2: @b\n", "line 2"),
    ],
)
def test_a_broken_file_is_told_with_its_line(name: str, text: str, line: str):
    """Where to look, in the file's own lines."""
    says = complaint(file=written(name, text))
    assert says.startswith(f"{name}: this is not {'TOML' if name == 'a.toml' else 'YAML'}: ")
    assert line in says


@pytest.mark.parametrize("text", ["a: \x01", "url: 2024-13-45", "a: &x [*y]"])
def test_odd_yaml_is_a_settings_error(text: str):
    """Whatever the YAML reader stumbles on."""
    assert complaint(file=written("a.yaml", text)).startswith("a.yaml: this is not YAML: ")


def test_not_utf8():
    """The line is named here as well."""
    Path("a.toml").write_bytes("# eins\n# zwei\nurl = 'münchen'\n".encode("latin-1"))
    assert "a.toml, line 3: this is not UTF-8 text, save the file as UTF-8." == complaint(file=Path("a.toml"))


def test_a_directory_and_nothing():
    """What is not a file cannot be read as one."""
    Path("b.toml").mkdir()
    assert "b.toml: this is a directory, name the file in it." == complaint(file=Path("b.toml"))
    assert "c.toml: there is no such settings file." == complaint(file=Path("c.toml"))
    assert "c.toml: there is no such settings file." == complaint(environ={"PAGEFILE_CONFIG": "c.toml"})
    assert complaint(file=Path("x" * 300 + ".toml")).endswith("cannot be read (File name too long).")


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("PAGEFILE_WINDOW_TOKENS", "many", "must be a whole number, not 'many'."),
        ("PAGEFILE_THRESHOLD", "inf", "must be a number, not inf."),
        ("PAGEFILE_THRESHOLD", "half", "must be a number, not 'half'."),
        ("PAGEFILE_FACTS__ENABLED", "maybe", "must be true or false, not 'maybe'."),
        ("PAGEFILE_SYNCHRONOUS", "off", "must be 'full' or 'normal', not 'off'."),
        (
            "PAGEFILE_FACTS_ENABLED",
            "1",
            "there is no setting of this name; did you mean $PAGEFILE_FACTS__ENABLED?",
        ),
        ("PAGEFILE_DB", "x", "there is no setting of this name; did you mean $PAGEFILE_URL?"),
        ("PAGEFILE_ZZZ", "x", "there is no setting of this name."),
        ("PAGEFILE_FACTS", "x", "facts is a section: it must hold names and values, not str."),
    ],
)
def test_what_a_variable_says_wrongly(variable: str, value: str, says: str):
    """The complaint names the variable."""
    assert f"${variable}: {says}" == complaint(environ={variable: value})


def test_all_problems_come_together():
    """One error, one line each, from every source."""
    written("pagefile.toml", "window_tokens = 0\nthresold = 1\n")
    says = complaint(environ={"PAGEFILE_RECENT_TURNS": "x"}, overrides={"service.port": 0})
    assert [
        "pagefile.toml: window_tokens must be at least 1, not 0.",
        "pagefile.toml: there is no setting 'thresold'; did you mean 'threshold'?",
        "$PAGEFILE_RECENT_TURNS: must be a whole number, not 'x'.",
        "overrides: service.port must be at least 1, not 0.",
    ] == says.splitlines()


def test_secrets_are_not_shown():
    """A password in an address, or in a variable nobody knows, is never repeated."""
    assert "postgresql://ann:***@db/x?sslmode=on" == shown("postgresql://ann:p@ss:w@db/x?sslmode=on")
    assert "redis://:***@cache" == shown("redis://:secret@cache")
    assert "postgresql://db/x?user=a&password=***&b=c" == shown(
        "postgresql://db/x?user=a&password=secret&b=c"
    )
    assert "sqlite:///a.db" == shown("sqlite:///a.db")
    assert 3 == shown(3)
    assert "secret" not in complaint(environ={"PAGEFILE_PASSWORD": "secret"})

"""How commands present themselves: in groups, with examples that can be run, and without the words of a program."""

import io
import re
import shlex
import subprocess
import sys

import pytest
import typer
from rich.cells import cell_len
from rich.console import Console

from pagefile.cli import app, output
from pagefile.cli.app import COMMANDS, GROUPS

from .cli_calling import pagefile


@pytest.fixture(autouse=True)
def _at_a_desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


ROOT = typer.main.get_command(app.app)


def every(group=ROOT, name=""):
    """Every command and group by its name; those of the benchmarks are for the repository's own people."""
    for known in group.list_commands(None):
        command = group.get_command(None, known)
        yield f"{name} {known}".strip(), command
        if hasattr(command, "list_commands") and known != "bench":
            yield from every(command, f"{name} {known}".strip())


ALL = dict(every())


@pytest.mark.parametrize("name", ALL)
def test_every_help_has_examples_that_can_be_run(name):
    """They fit 80 columns, and what they name is understood by the command."""
    examples = ALL[name].examples
    assert examples
    for example in examples:
        assert cell_len(example) <= 76, example
        words = shlex.split(example)
        words = words[words.index("pagefile") + 1 :]
        words = words[: words.index("|")] if "|" in words else words
        # `make_context` parses the words as a run would, and runs nothing; a group hands on to its command.
        command = ROOT
        while hasattr(command, "list_commands"):
            with command.make_context("pagefile", list(words)) as context:
                word, command, words = command.resolve_command(
                    context, [*context._protected_args, *context.args]
                )
            if word == "bench":
                return
        command.make_context(word, list(words)).close()


def test_an_example_that_is_wrong_is_noticed():
    """The test above can fail."""
    with pytest.raises(Exception, match="No such option"):
        ROOT.get_command(None, "recall").make_context("recall", ["x", "--usr", "ada"])


@pytest.mark.parametrize("name", ALL)
def test_values_have_names(name):
    """FILE and TEXT, not the types of a program; flags have none, and what is required has no braces to type."""
    said = pagefile(*name.split(), "--help").out
    assert [] == re.findall(r"<[a-z\[\] ]+>|\{\w+\}|\[\[", said)
    assert "Examples" in said


@pytest.mark.parametrize(
    ("typed", "meant"), [("recal", "'recall'"), ("serv", "'serve'"), ("expot", "'export'")]
)
def test_a_mistyped_command_is_recognised(typed, meant):
    done = pagefile(typed)
    assert 2 == done.code
    assert f"Did you mean {meant}" in done.err


def test_commands_are_listed_in_groups():
    """With what they do, taken from where it is written, without importing any of them."""
    said = pagefile("--help").out
    places = [said.index(f"─ {title} ─") for title in GROUPS]
    assert places == sorted(places)
    for name in COMMANDS:
        command = ROOT.get_command(None, name)
        first = command.help.partition("\n\n")[0]
        assert first == app.Listed(name, COMMANDS[name], "x").help
        assert first.split()[0] in said
    code = (
        "import sys; sys.argv = ['pagefile', '--help']\nfrom pagefile.cli import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "assert 'pagefile.engine' not in sys.modules, 'imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr


def test_the_version_imports_nothing():
    """It is asked for by scripts."""
    code = (
        "import sys; sys.argv = ['pagefile', '--version']\nfrom pagefile.cli import main\nmain()\n"
        "assert not {'typer', 'rich', 'anyio', 'pagefile.cli.app'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout.startswith("pagefile ")


def test_users_are_named_alike():
    """`--user` and `--user-id` everywhere but in `record`, where `--user` is what was said; `facts USER` as before."""
    pagefile("record", "c", "--user-id", "ada", "--user", "I keep bees in Oslo.", "--assistant", "Nice.")
    pagefile("remember", "Keeps bees.", "--user", "ada")
    for option in ("--user", "--user-id"):
        assert "bees" in pagefile("recall", "bees", option, "ada").out
        assert "Keeps bees." in pagefile("facts", option, "ada").out
        assert "c" in pagefile("show", option, "ada").out
        assert 3 == pagefile("archive", "search", "bees", option, "ada").code
    assert "Keeps bees." in pagefile("facts", "ada").out
    assert "Keeps bees." in pagefile("facts", "revisions", "--user", "ada").out
    assert 2 == pagefile("facts", "list").code
    assert 2 == pagefile("facts", "ada", "--user", "eve").code


def terminal(width):
    return Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system=None, markup=False, emoji=False
    )


def test_words_are_not_cut(monkeypatch):
    """On a terminal lines break between words; in a pipe they are as they were written."""
    console, text = terminal(20), "terminal lists episodes and everything"
    monkeypatch.setattr(output, "out", lambda: console)
    output.say(text)
    lines = console.file.getvalue().splitlines()
    assert text.split() == [word for line in lines for word in line.split()]
    assert all(cell_len(line) <= 20 for line in lines)
    piped = Console(file=io.StringIO(), width=20, markup=False)
    monkeypatch.setattr(output, "out", lambda: piped)
    output.say(text)
    assert f"{text}\n" == piped.file.getvalue()


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize(
    "text",
    [
        "The terminal lists every episode, and then it ends.",
        "我对青霉素过敏，请不要开阿莫西林，谢谢你的理解。",
        "药名是 amoxicillin 与 clarithromycin，两种都不要开。",
        "one\n\ntwo  three\nhttps://example.com/a/very/long/address/that/fits/nowhere end",
    ],
)
def test_an_answer_is_wrapped_as_it_comes(text, size):
    """In whatever pieces it comes: no word is cut that fits a line, Chinese takes two cells, and nothing is lost but blanks."""
    console = terminal(16)
    written = output.WordWrap(console)
    for at in range(0, len(text), size):
        written.feed(text[at : at + size])
    written.end()
    said = console.file.getvalue()
    assert "".join(text.split()) == "".join(said.split())
    long = [word for word in text.split() if cell_len(word) > 16]
    for line in said.splitlines():
        assert cell_len(line) <= 16 or any(part in line for part in long), line
    whole = [word for word in text.split() if word.isascii()]
    assert all(word in said for word in whole)


# -- keys ----------------------------------------------------------------------------------------------------------------


def test_to_have_no_key_is_no_error():
    """The usual state, on one's own machine."""
    pagefile("record", "c", "--user", "hi")
    said = pagefile("keys", "list")
    assert (0, True) == (said.code, "There is no key yet" in said.out)
    assert (0, []) == (pagefile("keys", "list", "--json").code, pagefile("keys", "list", "--json").json)


def test_whether_a_key_is_needed(monkeypatch):
    """Is said as the settings have it."""
    assert "no key is needed" in pagefile("keys", "add", "one").words
    monkeypatch.setenv("PAGEFILE_SERVICE__REQUIRE_KEYS", "true")
    assert "needed" not in pagefile("keys", "add", "two").words


def test_a_first_key_for_a_container(tmp_path):
    """Made once, and put where only its user can read it; an existing file is neither overwritten nor a reason for a key without one."""
    file = tmp_path / "first-key"
    said = pagefile("keys", "add", "first", "--if-none", "--file", str(file))
    assert (0, 0o600) == (said.code, file.stat().st_mode & 0o777)
    key = file.read_text(encoding="utf-8").strip()
    assert key.startswith("pf_")
    assert key not in said.out
    # As when the container starts again.
    again = pagefile("keys", "add", "first", "--if-none", "--file", str(file))
    assert (0, True) == (again.code, "none was made" in again.words)
    assert 1 == pagefile("keys", "add", "second", "--file", str(file)).code
    assert 1 == len(pagefile("keys", "list", "--json").json)
    assert key == file.read_text(encoding="utf-8").strip()

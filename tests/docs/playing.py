"""Plays a page: runs its blocks one after the other, as a reader would, in a folder of their own.

What the blocks may be, and how what varies is written, is told in docs/README.md.
"""

import contextlib
import io
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import CodeType
from typing import Any

import anyio
import asyncpg
import pytest
import yaml

from pagefile.cli import serve
from pagefile.cli.app import COMMANDS
from pagefile.service import workers
from pagefile.settings import Settings
from pagefile.settings.sources import load
from tests.acceptance.cli_calling import pagefile
from tests.acceptance.http_server import listening
from tests.servers.postgres import PostgresServer

from .pages import ROOT, Block
from .servers import SERVICE

#: What runs, or is held against what exists; anything else needs another word in front of it.
RUN = {"python", "console", "bash", "sh", "sql", "toml", "yaml", "json"}
#: What is only shown: outputs, pictures made of characters, a settings file that is deliberately wrong.
SHOWN = {"text", "html", "diff", "ts"}
COLUMNS = "92"
_SETTINGS_FILES = {None, "pagefile.toml", "pagefile.yaml", "pagefile.yml"}


class Player:
    """Runs the blocks of one page in order; they share a folder, Python names and, once started, a service."""

    def __init__(self, addresses: dict[str, str], stack: ExitStack) -> None:
        """`addresses` says what really is behind the addresses that the pages name."""
        self._addresses = dict(addresses)
        self._stack = stack
        self._superuser: str | None = None
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._environ: dict[str, str] = {}
        # As with a program: what lies beside it can be imported, and is gone afterwards.
        sys.path.insert(0, str(Path.cwd()))
        stack.callback(_forget_modules, sys.path[0])

    def play(self, found: list[Block]) -> None:
        """Run every block; the first that fails is named."""
        for number, block in enumerate(found):
            if block.not_run:
                continue
            after = found[number + 1] if number + 1 < len(found) else None
            output = after if after and after.follows and after.language in {"text", "json"} else None
            self._play(block, output)

    def _play(self, block: Block, output: Block | None) -> None:
        if block.title and block.language != "text":
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._real(block.text), encoding="utf-8")
        match block.language:
            case "python":
                self.printed(block, self._run_python(block), output)
            case "bash":
                self.printed(block, self._run_bash(block), output)
            case "console":
                self._run_console(block)
            case "sh":
                _check_shell(block)
            case "sql":
                self._run_sql(block)
            case "toml" | "yaml":
                self._check_settings(block)
            case "json":
                _check_json(block)
            case _:
                assert block.language in SHOWN, (
                    f"{block.where}: a block must say what it is, see docs/README.md"
                )
                assert "$ pagefile" not in block.text, f"{block.where}: a transcript is a ```console block"

    def _run_sql(self, block: Block) -> None:
        """As the superuser of a PostgreSQL that the blocks of the page share; each line may be a statement of its own."""
        if self._superuser is None:
            self._superuser = self._stack.enter_context(PostgresServer()).url()
        anyio.run(_executed, self._superuser, block.text)

    # -- addresses ---------------------------------------------------------------------------------------------

    def _real(self, text: str) -> str:
        for named, real in self._addresses.items():
            text = text.replace(named, real)
        return text

    def _named(self, text: str) -> str:
        for named, real in self._addresses.items():
            text = text.replace(real, named)
        return text

    # -- kinds of blocks ---------------------------------------------------------------------------------------

    def printed(self, block: Block, text: str, output: Block | None) -> None:
        """What was printed is what the page shows; what is not shown must not have been printed."""
        same(output.text if output else "", self.shown(text, output), block.where)

    def shown(self, text: str, output: Block | None) -> str:
        """What was printed, in the form of the block that shows it."""
        if output and output.language == "json":
            text = json.dumps(json.loads(text), ensure_ascii=False, indent=2) + "\n"
        return self._named(text)

    def compared(self, line: int, shown: str, text: str, where: str) -> None:
        """What a command printed is what is below it, at this line of the page."""
        same(shown, text, where)

    def _run_python(self, block: Block) -> str:
        code = _compiled(self._real(block.text), block)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(code, self._names)
        return said.getvalue()

    def _run_bash(self, block: Block) -> str:
        ran = subprocess.run(
            [
                "bash",
                "-euo",
                "pipefail",
                "-c",
                self._real(block.text).replace("curl ", "curl --silent --show-error "),
            ],
            capture_output=True,
            text=True,
            encoding="utf-8",
            env={**os.environ, **self._environ, "no_proxy": "*"},
            timeout=60,
            check=False,
        )
        assert ran.returncode == 0, f"{block.where}: {ran.stderr}"
        return ran.stdout

    def _run_console(self, block: Block) -> None:
        for line, command, shown in transcript(block):
            where = f"{block.page.relative_to(ROOT)}:{line}"
            printed = self._call(self._real(command), where, shown)
            self.compared(line, shown, self._named(printed), where)

    def _call(self, command: str, where: str, shown: str) -> str:
        """Run a line of a transcript: what it printed."""
        command, _, target = command.partition(" > ")
        words = shlex.split(command, comments=True)
        setting = {}
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            name, _, value = words.pop(0).partition("=")
            setting[name] = value
        match words:
            case ["export", assigned]:
                name, _, value = assigned.partition("=")
                self._environ[name] = value
                return ""
            case ["cat", *files]:
                printed = "".join(Path(file).read_text(encoding="utf-8") for file in files)
            case ["rm", *files]:
                for file in files:
                    Path(file).unlink()
                return ""
            case ["pagefile", *arguments]:
                printed = self._pagefile(arguments, setting, where, shown)
            case _:
                raise AssertionError(
                    f"{where}: a transcript can run pagefile, cat, rm and export, not {command!r}"
                )
        if target:
            Path(target).write_text(printed, encoding="utf-8")
            return ""
        return printed

    def _pagefile(self, arguments: list[str], setting: dict[str, str], where: str, shown: str) -> str:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {**self._environ, **setting}.items():
                patch.setenv(name, value)
            if "serve" in arguments:
                patch.setattr(serve, "_listening", lambda service: socket.create_server(("127.0.0.1", 0)))
                patch.setattr(workers, "check", lambda settings: None)
                for start in ("serve_one", "serve_many"):
                    patch.setattr(workers, start, lambda settings, listener: self._serve(settings))
            said = pagefile(*arguments)
        failed = re.search(r"^error: ", shown, re.MULTILINE) is not None
        assert failed == (said.code != 0), f"{where}: ended with {said.code}: {said.err}"
        return said.err + said.out if failed else said.out

    def _serve(self, settings: Settings) -> None:
        """From here on the page's own service answers, with the page's own database."""
        self._addresses[SERVICE] = self._stack.enter_context(listening(settings))

    def _check_settings(self, block: Block) -> None:
        if block.title not in _SETTINGS_FILES:
            parse = tomllib.loads if block.language == "toml" else yaml.safe_load
            parse(block.text)
            return
        file = Path(block.title or f"block.{block.language}")
        file.write_text(self._real(block.text), encoding="utf-8")
        load(file=file, environ={})
        if not block.title:
            file.unlink()


def _forget_modules(folder: str) -> None:
    sys.path.remove(folder)
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{folder}{os.sep}"):
            del sys.modules[name]


def _compiled(text: str, block: Block) -> CodeType:
    # Line numbers of a traceback are those of the page.
    source = "\n" * (block.line - 1) + text
    return compile(source, str(block.page), "exec")


def transcript(block: Block) -> Iterator[tuple[int, str, str]]:
    """The commands of a transcript: the line where each ends, the command, what is shown below it."""
    lines = block.text.splitlines()
    number = 0
    assert block.text.startswith("$ "), f"{block.where}: a transcript begins with `$ `"
    while number < len(lines):
        command = lines[number].removeprefix("$ ")
        number += 1
        while command.endswith("\\"):
            command = command[:-1] + lines[number].removeprefix("> ")
            number += 1
        at, shown = number - 1, []
        while number < len(lines) and not lines[number].startswith("$ "):
            shown.append(lines[number])
            number += 1
        yield block.line + at, command, "".join(f"{line}\n" for line in shown)


def same(shown: str, printed: str, where: str) -> None:
    """What was printed is what is shown, where `…` stands for anything on a line, and alone on a line for any lines."""
    if matches(shown, printed):
        return
    raise AssertionError(f"{where}: the page shows\n{shown}\nand this was printed\n{printed}")


def matches(shown: str, printed: str) -> bool:
    """Trailing blanks and blank lines at either end do not count."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == "…" else _pattern(line) + r"\n" for line in _tidy(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _tidy(printed))) is not None


def _pattern(line: str) -> str:
    # Blanks around it belong to it, so that columns may be where they stood.
    return ".*".join(re.escape(part) for part in re.split(r" *… *", line))


def _tidy(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip("\n").splitlines()]


# -- what is not run but held against what exists ---------------------------------------------------------------------


async def _executed(url: str, text: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for statement in filter(str.strip, text.split(";\n")):
            await connection.execute(statement)
    finally:
        await connection.close()


def _check_json(block: Block) -> None:
    if "…" not in block.text:
        json.loads(block.text)


def _check_shell(block: Block) -> None:
    """Commands that change the reader's machine: extras, targets and commands that they name exist."""
    for line in block.text.splitlines():
        words = shlex.split(line, comments=True)
        checks: dict[str, Callable[[list[str]], bool]] = {
            "pip": _is_installable,
            ".venv/bin/pip": _is_installable,
            "make": _is_target,
            "git": lambda words: words[1:2] == ["clone"],
            "uvx": lambda words: (
                words[1:4] == ["--from", "dist/pagefile-*.whl", "pagefile"] and _is_command(words[3:])
            ),
            "helm": lambda words: words[1] == "install" and (ROOT / words[3] / "Chart.yaml").is_file(),
            "cd": lambda words: len(words) == 2,
            "python": lambda words: words[1:] == ["-m", "venv", ".venv"] or (ROOT / words[1]).exists(),
            ".venv/bin/pagefile": _is_command,
        }
        if words:
            check = checks.get(words[0])
            assert check is not None, f"{block.where}: {words[0]!r} cannot be checked: say why it is not run"
            assert check(words), f"{block.where}: {line!r} names what is not there"


def _is_installable(words: list[str]) -> bool:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in words[2:]:
        package = re.fullmatch(r"(?:-e|\.|pagefile|dist/pagefile-\*\.whl)?(?:\[([\w,-]+)\])?", name)
        if package is None:
            return False
        extras = package[1].split(",") if package[1] else []
        if not set(extras) <= set(project["optional-dependencies"]):
            return False
    return words[1] == "install"


def _is_target(words: list[str]) -> bool:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [word for word in words[1:] if "=" not in word]
    return all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def _is_command(words: list[str]) -> bool:
    return words[1] in COMMANDS

"""What the page on running it says, and what compose.yaml names, is there."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from pagefile.settings.model import known_settings
from pagefile.settings.sources import load
from tests.acceptance.cli_calling import pagefile

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")


@pytest.fixture
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


def filled(text, **variables):
    """A value of compose.yaml with its variables filled in, as `docker compose` does it."""
    return re.sub(
        r"\$\{(\w+)(?::([-?])([^}]*))?\}",
        lambda found: variables.get(found[1]) or (found[3] if found[2] == "-" else f"<{found[1]}>"),
        str(text),
    )


def test_compose_names_settings_that_exist(compose):
    """All of them are understood, with and without the variables that a user may set."""
    given = compose["services"]["pagefile"]["environment"]
    for variables in ({}, {"PAGEFILE_VECTORS": "milvus://milvus:19530", "PAGEFILE_SERVICE__WORKERS": "2"}):
        environ = {name: filled(value, **variables) for name, value in given.items()}
        settings = load(environ=environ).settings
        assert settings.url.startswith("postgresql://pagefile:")
        assert settings.sessions == "redis://redis:6379/0"
        assert settings.vectors == variables.get("PAGEFILE_VECTORS")
        assert settings.service.workers == int(variables.get("PAGEFILE_SERVICE__WORKERS", 4))
        assert (settings.service.host, settings.service.hosts) == ("0.0.0.0", "pagefile")


def test_compose_is_whole(compose):
    """What a service depends on and mounts is in the file; nothing but loopback is published; Milvus is asked for."""
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= set(services)
        named = [mount.partition(":")[0] for mount in service.get("volumes", ())]
        assert set(named) <= set(compose["volumes"])
        assert {config["source"] for config in service.get("configs", ())} <= set(compose["configs"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
    assert services["milvus"]["profiles"] == ["milvus"]
    assert all("healthcheck" in services[name] for name in services["pagefile"]["depends_on"])


def test_the_image_names_settings_that_exist():
    """The variables of the Dockerfile are understood."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    environ = dict(re.findall(r"^ENV (PAGEFILE_\w+)=(\S+)$", text, re.MULTILINE))
    assert load(environ=environ).settings.service.host == "0.0.0.0"


def test_the_page_names_what_exists():
    """Settings, commands and their options."""
    blocks = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    named = [
        f"{section}.{name}"
        for block in blocks
        for section, given in tomllib.loads(block).items()
        for name in given
    ]
    assert named
    for name in named:
        assert name in known_settings()
    for name in re.findall(r"`((?:service|embedder)\.\w+)", PAGE):
        assert name in known_settings()
    for name in ("sessions", "vectors", "drain_s", "recall_cache_postings"):
        assert name in known_settings()
        assert f"`{name}" in PAGE
    for line in re.findall(r"^\$ pagefile (.+?)(?:\s+#.*)?$", PAGE, re.MULTILINE):
        command = re.match(r"[a-z]+(?: [a-z]+)?", line)[0].split()
        command = command if command[0] == "keys" else command[:1]
        said = pagefile(*command, "--help")
        assert said.code == 0
        assert [option for option in re.findall(r"--\w+", line) if option not in said.out] == []

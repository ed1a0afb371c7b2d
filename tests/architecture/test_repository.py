"""What is committed: nothing of one machine, nothing of one registry, and what a stranger looks for first."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .scans import ROOT, grouped

MAX_README_LINES = 150

# Written in pieces, so that this file does not contain what it forbids.
REGISTRIES = [
    r"\bpypi" + r"\.(org|io|python\.org)\b",
    "python" + "hosted",
    "npm" + r"js\.(org|com)\b",
    "registry" + r"\.[\w-]+\.\w+",
    "(docker|ghcr|quay)" + r"\.io/",
    "anaconda" + r"\.(org|com)\b",
    "(arti" + "factory|nex" + r"us)\.[\w-]+\.\w+",
    r"https?://[^\s\"'`)]+/" + r"simple\b",
]
MACHINES = [
    r"(?<![\w.~])/" + r"root/",
    r"(?<![\w.~])/" + r"home/\w+/",
    r"(?<![\w.~])/" + r"Users/\w+/",
    r"(?<![\w.~])/" + r"work/\w+",
    r"(?<![\w.~])/" + r"opt/(wheels|pypi)",
    r"[A-Z]:\\" + r"Users\\",
]


def tracked() -> list[str]:
    """The files of the repository, as git knows them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what is committed can only be checked in one")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def matches(patterns: list[str], text: str) -> list[str]:
    return [found.group() for pattern in patterns for found in re.finditer(pattern, text, re.IGNORECASE)]


def in_tracked_files(patterns: list[str]) -> list[str]:
    return [
        f"{name}: {found}"
        for name in tracked()
        for found in matches(patterns, (ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]


def test_no_registry_is_named():
    """Where packages come from is the business of the machine that installs them."""
    assert [] == in_tracked_files(REGISTRIES)


def test_no_machine_is_named():
    """A path of one machine helps nobody on another."""
    assert [] == in_tracked_files(MACHINES)


def test_patterns_match():
    """The tests above can fail."""
    for host in (
        "pypi" + ".org",
        "files.python" + "hosted.org",
        "registry.npm" + "js.org",
        "docker" + ".io/library/redis",
    ):
        assert matches(REGISTRIES, f"see https://{host}/x"), host
    assert matches(REGISTRIES, "http://10.0.0.1:3141/mirror/" + "simple")
    assert [] == matches(REGISTRIES, "a simple sentence about a registry; https://www.apache.org/licenses/")
    for path in ("/" + "home/me/x", "/" + "root/x", "/" + "work/main", "/" + "Users/me/x"):
        assert matches(MACHINES, f"in {path}"), path
    assert [] == matches(MACHINES, "GET /v1/conversations, ~/" + "work/notes, docs/home/index.md")


def test_no_uv_lock():
    """The lock is requirements.lock: uv's own would carry addresses."""
    assert [] == [name for name in tracked() if Path(name).name == "uv.lock"]


# -- the lock ----------------------------------------------------------------------------------------------------------


def locked(text: str) -> dict[str, str]:
    """Versions by distribution; a line that is neither a pin, nor a hash, nor a comment is an error."""
    pins: dict[str, str] = {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pin = re.fullmatch(
            r"([\w.-]+)(?:\[[\w,-]+\])?==([^\s;]+)( ; [^\\]*?)?((?:\s+--hash=sha256:[0-9a-f]{64})+)\s*", line
        )
        assert pin, f"not a pin with hashes: {line[:120]!r}"
        pins[canonicalize_name(pin[1])] = pin[2]
    return pins


#: What each lock is for: the extras and the groups of pyproject.toml that it has to cover.
LOCKS = {
    "requirements.lock": (["all"], ["dev"]),
    "requirements-serve.lock": (["openai", "mcp"], ["setup"]),
    "requirements-image.lock": (["postgres", "redis", "milvus", "openai", "otel", "mcp"], ["build"]),
    "requirements-check.lock": (["all", "claude"], ["dev", "check"]),
}
#: Those of `make frameworks`, with the extras that only they have.
FRAMEWORKS = {
    "openai-agents", "adk", "agent-framework", "llama-index", "agno", "smolagents", "strands", "crewai",
}  # fmt: skip
FRAMEWORK_LOCKS = {
    "locks/frameworks.lock": FRAMEWORKS - {"crewai"} | {"langchain", "langgraph", "pydantic-ai", "claude"},
    "locks/frameworks-lowest.lock": FRAMEWORKS - {"crewai"}
    | {"langchain", "langgraph", "pydantic-ai", "claude"},
    "locks/crewai.lock": {"crewai"},
    "locks/crewai-lowest.lock": {"crewai"},
}


def declared(lock: str) -> list[Requirement]:
    """What pyproject.toml asks for; peers that are only measured beside us are not locked."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras, groups = LOCKS[lock]
    optional = project["project"]["optional-dependencies"]
    (everything,) = [Requirement(text).extras for text in optional["all"]]
    named = {one for extra in extras for one in (everything if extra == "all" else [extra])}
    assert {*optional} - {"all", "bench", "claude", "service", "client"} - FRAMEWORKS == everything
    texts = [*project["project"]["dependencies"], *(text for extra in named for text in optional[extra])]
    texts += [text for group in groups for text in grouped(project, group)]
    return [Requirement(text) for text in texts]


def missing(requirements: list[Requirement], pins: dict[str, str]) -> list[str]:
    return [
        str(requirement)
        for requirement in requirements
        if not requirement.specifier.contains(
            pins.get(canonicalize_name(requirement.name), "0"), prereleases=True
        )
    ]


@pytest.mark.parametrize("lock", [*LOCKS, *FRAMEWORK_LOCKS])
def test_the_lock_has_no_addresses(lock: str):
    """Versions and hashes, and no address to take them from."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert [] == re.findall(r"\S*(?:://|--index|--extra-index|--find-links|file:)\S*", text)


@pytest.mark.parametrize("lock", LOCKS)
def test_the_lock_covers_what_is_declared(lock: str):
    """`make lock` was run after the last change of a dependency."""
    pins = locked((ROOT / lock).read_text(encoding="utf-8"))
    assert [] == missing(declared(lock), pins)


@pytest.mark.parametrize(("lock", "extras"), FRAMEWORK_LOCKS.items())
def test_the_frameworks_are_locked(lock: str, extras: set[str]):
    """`make frameworks-lock` was run after the last change of their bounds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional = project["project"]["optional-dependencies"]
    texts = [text for extra in sorted(extras) for text in optional[extra]] + project["project"][
        "dependencies"
    ]
    assert [] == missing(list(map(Requirement, texts)), locked((ROOT / lock).read_text(encoding="utf-8")))


def test_the_locks_agree():
    """What is served, and what is in the image, is what was tested: the same version everywhere."""
    light, *others, heavy = (locked((ROOT / lock).read_text(encoding="utf-8")) for lock in LOCKS)
    assert light == {name: heavy[name] for name in light}
    for other in others:
        assert other == {name: light[name] for name in other}


def test_make_and_the_image_use_the_locks():
    """With their hashes; `make lock` makes each of them."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for lock in LOCKS:
        assert f" -o {lock}\n" in makefile
    assert "--require-hashes $(1)" in makefile
    (extras,) = re.findall(r"^IMAGE_EXTRAS := (.+)$", makefile, re.MULTILINE)
    assert LOCKS["requirements-image.lock"][0] == extras.split()
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "--require-hashes -r requirements-image.lock" in image
    assert "--no-deps --no-build-isolation ." in image


def test_a_lock_that_lags_is_noticed():
    """The test above can fail: a dependency that is not there, one that is too old, one without a hash."""
    pins = locked(
        "a-b==1.0 ; python_full_version < '3.12' \\\n    --hash=sha256:" + "0" * 64 + "\n    # via c\n"
    )
    assert {"a-b": "1.0"} == pins
    assert ["c>=1", "A_b>=2"] == missing(
        [Requirement("c>=1"), Requirement("A_b>=2"), Requirement("a.b>=1")], pins
    )
    with pytest.raises(AssertionError, match="not a pin with hashes"):
        locked("a-b==1.0\n")


# -- what a stranger looks for first -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_readme_is_short(name: str):
    """At most 150 lines, in both languages."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert 10 < len(lines) <= MAX_README_LINES


def test_changelog_speaks_of_this_version():
    """What is about to be released, or this version, has a section."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = re.escape(project["project"]["version"])
    assert re.search(rf"^## \[(Unreleased|{version})\]", text, re.MULTILINE)


def test_the_licence_is_whole():
    """The Apache Licence 2.0, from its title to its appendix."""
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    for part in ("Version 2.0, January 2004", "9. Accepting Warranty", "END OF TERMS AND CONDITIONS"):
        assert part in text


def test_every_decision_is_in_the_index():
    """A decision record that nobody can find decides nothing."""
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(file.name for file in folder.glob("[0-9]*.md"))
    assert records == re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", index)
    assert [f"{number:04}" for number in range(1, len(records) + 1)] == [name[:4] for name in records]


# -- requirement ids ---------------------------------------------------------------------------------------------------

#: How requirements and the documents that they come from are numbered.
REQUIREMENT = re.compile(r"\b[Dd]ocuments? 00\d\b|\bS\d-\d\d\b")


def numbered(*folders: str) -> list[str]:
    """The lines that name a requirement or a document by its number, `standalone` aside, which implements them by name."""
    return [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in {".py", ".sql", ".md", ".toml"} and "standalone" not in path.parts
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if REQUIREMENT.search(line)
    ]


def test_requirements_are_named_where_they_are_kept():
    """A reader of the code sees the name of a capability, never the number of a document."""
    assert [] == numbered("src", "benchmarks", "examples")
    assert numbered("docs/requirements"), "the scan finds them"

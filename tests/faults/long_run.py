"""A long run of one tool: its settings and its results, for the test and for the process that it kills."""

from pagefile import Settings
from pagefile.settings import ArchiveSettings, FactSettings

SETTINGS = Settings(
    language="en",
    window_tokens=4000,
    facts=FactSettings(enabled=False),
    archive=ArchiveSettings(threshold=3000, page_from=300, inputs_from=300),
)


def result(n: int) -> str:
    """What a call returns: some are long enough to leave the log as well."""
    return "".join(f"part {n}, line {line}: entry_{n * line % 97}\n" for line in range(20 + n % 3 * 40))


def given(n: int) -> dict[str, object]:
    """The arguments of a call: every other one writes a script."""
    return {"part": n} | ({"script": f"# {n}\n" + "echo line\n" * 60} if n % 2 else {})

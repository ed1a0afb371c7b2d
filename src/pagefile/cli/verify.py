"""`verify`: prove that everything recorded is there, and rebuild derived data that is wrong."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated

import typer

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.output import plural, print_table, say, table, visible
from pagefile.cli.progress import counting
from pagefile.engine.verifying import Finding, Report
from pagefile.engine.verifying import verify as verified
from pagefile.plain import plain
from pagefile.settings import Settings

#: Notes shown to people; scripts get all of them.
_NOTES_SHOWN = 20
_WORDS = {"damage": "damaged", "derived": "derived", "note": "note"}
#: What is counted, in display order, with its singular.
_COUNTED = {
    "conversations": "conversation",
    "entries": "entry",
    "turns": "turn",
    "token counts": "token count",
    "terms": "term list",
    "vectors": "vector",
    "watermarks": "watermark",
    "sessions": "session",
    "calls": "recorded window",
    "references": "reference",
    "attachments": "attachment",
    "pages": "page",
    "page bytes": "page byte",
    "passages": "passage",
    "facts": "fact",
    "revisions": "revision",
    "items": "item",
}


@command(tenant=False)
def verify(
    cli: Invocation,
    *,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's, else everybody's.")] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Compare every value, not a sample; the database checks itself in full."),
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Make again what is derived and wrong; never touches what was recorded."
        ),
    ] = False,
) -> None:
    """Prove that everything recorded is still there; exit code 1 when something is wrong.

    Archived pages are proved byte for byte, by their SHA-256. Turns are proved complete, in order and readable; they, the rows of
    pages and facts are held against the digest that was kept with them, so that a change by hand is seen.
    Looks at checkpoints, facts, items and all indexes too. Only reports, unless told to repair.
    """
    with counting("Looking at every row") as told:
        report = cli.run(
            lambda memory: verified(memory.engine, tenant=tenant, full=full, repair=repair, progress=told),
            settings=_quiet(cli.settings),
        )
    cli.answer(_as_json(report), lambda: _show(report, repair=repair))
    if not report.whole:
        raise typer.Exit(1)


def _quiet(settings: Settings) -> Settings:
    """Settings that disable background writes: verifying must not change anything."""
    return replace(
        settings,
        indexing="manual",
        checkpoints="manual",
        memory=replace(settings.memory, extract="off"),
        archive=replace(settings.archive, retention_days=0.0, max_bytes=0),
    )


def _as_json(report: Report) -> dict[str, object]:
    findings = [{**_fields(finding), "advice": finding.advice} for finding in report.findings]
    return {
        "whole": report.whole,
        "full": report.full,
        "checked": report.checked,
        "damage": report.damage,
        "derived": report.derived,
        "mended": report.mended,
        "notes": report.notes,
        "other_windows": report.other_windows,
        "left_out": report.left_out,
        "findings": findings,
    }


def _fields(finding: Finding) -> dict[str, object]:
    fields = plain(finding)
    assert isinstance(fields, dict)
    return dict(fields)


def _show(report: Report, *, repair: bool) -> None:
    notes = [finding for finding in report.findings if finding.level == "note"]
    wrong = [finding for finding in report.findings if finding.level != "note"]
    shown = [*wrong, *notes[:_NOTES_SHOWN]]
    if shown:
        made = table("", "what", "found")
        for finding in shown:
            state = "mended" if finding.mended else _WORDS[finding.level]
            lines = [_where(finding), finding.what, *([] if finding.mended else [f"→ {finding.advice}"])]
            made.add_row(state, finding.kind, "\n".join(map(visible, lines)))
        print_table(made)
        say()
    left = report.damage + report.derived + report.notes - len(shown)
    if left:
        say(f"{plural(left, 'finding')} more; --json lists up to a thousand of each kind.")
    checked = ", ".join(plural(count, what) for what, count in _counted(report.checked))
    say(f"Looked at {checked or 'an empty database'}{'' if report.full else ' (values: a sample)'}.")
    say(_verdict(report, repair=repair))


def _counted(checked: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """What was checked, by its singular name, always in the same order."""
    known = {name: checked.get(name, 0) for name in _COUNTED}
    for name, count in {**known, **checked}.items():
        if count and name != "rows":
            yield _COUNTED.get(name, name.removesuffix("s")), count


def _where(finding: Finding) -> str:
    parts = (
        ("tenant", finding.tenant),
        ("user", finding.user),
        ("conversation", finding.conversation),
        ("turn", finding.turn),
        ("place", finding.seq),
        ("page", finding.page),
    )
    return " · ".join(f"{name} {value}" for name, value in parts if value is not None) or "database"


def _verdict(report: Report, *, repair: bool) -> str:
    told: list[str] = []
    if report.damage:
        told.append(f"{plural(report.damage, 'thing')} damaged, which nothing here can bring back.")
    left = report.derived - report.mended
    if left:
        told.append(
            f"{plural(left, 'derived thing')} wrong: {'try again' if repair else 'run it with --repair'}."
        )
    if report.mended:
        told.append(f"{plural(report.mended, 'derived thing')} mended.")
    windows = (
        f"{plural(report.other_windows, 'window')} can no longer be made again, see above"
        if report.other_windows
        else ""
    )
    if report.whole:
        told.append(f"Everything recorded is there{windows and '; ' + windows}.")
    elif windows:
        told.append(f"{windows}.")
    return " ".join(told)

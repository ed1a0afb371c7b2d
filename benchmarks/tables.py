"""The tables of `bench`."""

from collections.abc import Sequence

from benchmarks import frameworks as frameworks_bench
from benchmarks import history as history_bench
from benchmarks import pages as pages_bench
from benchmarks import peers as peers_bench
from benchmarks import recall as recall_bench
from benchmarks import runs as runs_bench
from benchmarks import summaries as summaries_bench
from benchmarks import vendors as vendors_bench
from benchmarks import window as window_bench
from benchmarks import workspace as workspace_bench
from benchmarks.history_costs import CLAIMS, WAYS
from benchmarks.peers_page import number, unit
from benchmarks.recall_scores import DEPTH, FIGURES, PUBLISHED
from benchmarks.replay import Replayed
from benchmarks.report import Report, Row
from benchmarks.scenario import SHOWN, Scenario
from pagefile.cli.output import print_table, say, table


def show_requests(report: history_bench.HistoryReport) -> None:
    """A conversation of 50 turns, as the design of conversation history estimates it."""
    say(f"A conversation of {len(report.tokens[WAYS[0]])} turns: tokens of the request that asks for a turn.")
    numbers = (*(f"turn {turn}" for turn in history_bench.SHOWN), "total", "saved", "document")
    made = table(*numbers, "way", right=numbers)
    for way, tokens in report.tokens.items():
        shown = [f"{tokens[turn - 1]:,}" for turn in history_bench.SHOWN]
        made.add_row(*shown, f"{sum(tokens):,}", f"{report.saved(way):.0%}", history_bench.CLAIMED[way], way)
    print_table(made)
    say()


def show_costs(report: history_bench.HistoryReport) -> None:
    """A month's costs as the design of conversation history estimates them, with what it assumes."""
    traffic, sizes = report.traffic, report.sizes
    say(
        f"A month of {traffic.conversations_a_day:,} conversations of {traffic.turns} turns a day, "
        f"{traffic.days} days, ${traffic.usd_per_million:g} for a million tokens. Calculated from {sizes.question:.0f} "
        f"tokens of system message and question, {sizes.turn:.0f} a turn, {sizes.summary:.0f} of summary, "
        f"{sizes.recalled:.0f} recalled; {sizes.window_turns} turns of window, a summary from turn "
        f"{sizes.first_summary_turns} on, {sizes.waiting_turns:g} turn waiting for it."
    )
    numbers = ("tokens a request", "calculated", "tokens a month", "cost", "saved")
    made = table(*numbers, "way", right=numbers)
    first = report.measured(WAYS[0])
    for way in WAYS:
        measured = report.measured(way)
        month = traffic.tokens(measured)
        made.add_row(
            f"{measured:,.0f}",
            f"{report.calculated(way):,.0f}",
            f"{month / 1e6:,.0f}M",
            f"${traffic.dollars(month):,.0f}",
            f"{1 - measured / first:.0%}",
            way,
        )
    for claim in CLAIMS:
        made.add_row(
            f"{claim.per_request(traffic):,.0f}",
            "",
            f"{claim.millions:g}M",
            f"${claim.dollars(traffic):,.0f}",
            f"{claim.saved():.0%}",
            f"the document's {claim.name}",
        )
    print_table(made)
    say()


def show_pages(report: pages_bench.PagesReport) -> None:
    """The judged set by kind and by language."""
    figures = pages_bench.scores(report.judged)
    say(f"{len(report.judged)} tool results and {figures[-3].of} questions, by kind and by language.")
    made = table("kind", *pages_bench.COLUMNS, right=pages_bench.COLUMNS)
    for kind, line in {**report.kinds, "all": figures}.items():
        shown = [f"{score.hits:g}/{score.of}" if score.of else "–" for score in line[:-1]]
        made.add_row(kind, *shown, f"{line[-1].share:.0%}" if line[-1].of else "–")
    print_table(made)
    say()


def show_summaries(report: summaries_bench.SummariesReport) -> None:
    """The judged conversations by window, language and half."""
    numbers = ("told", "still told", "tokens")
    made = table("conversations", *numbers, right=numbers)
    for name, figures in report.groups.items():
        told, stale = f"{figures.told}/{figures.holds}", f"{figures.stale}/{figures.gone}"
        made.add_row(name, told, stale, f"{figures.tokens:.0f}")
    print_table(made)
    say()


def show_walked(report: workspace_bench.WorkspaceReport) -> None:
    """The same questions in every way."""
    say(
        f"{report.questions} questions to 200 pages with a table of contents of {report.toc_chars:,} characters."
    )
    numbers = ("calls made", "reached", "get_toc", "reached", "prompt tokens", "repeated")
    made = table(*numbers, "way", right=numbers)
    for walked in report.walked:
        made.add_row(
            f"{walked.made.total():,}",
            f"{walked.reached.total():,}",
            f"{walked.made['get_toc']:,}",
            f"{walked.reached['get_toc']:,}",
            f"{walked.tokens:,}",
            f"{walked.repeated_share:.0%}",
            walked.way.name,
        )
    print_table(made)
    say()


def show_recall(sets: Sequence[recall_bench.Measured]) -> None:
    """A line for each figure and ranker: there may be many rankers, and a terminal is narrow."""
    numbers = ("mean", "ahead", "low", "high")
    for measured in sets:
        say(
            f"{measured.set}, {measured.questions:,} questions, {measured.turns:,} turns; how far {recall_bench.OURS} is "
            "ahead, and the bounds of 95 % of paired resamples of the questions:"
        )
        made = table(*numbers, "ranker", "figure", right=numbers)
        for figure in FIGURES[measured.set]:
            for ranker in measured.rankers:
                made.add_row(*_recall_cells(measured, figure, ranker), ranker, figure)
            for who, value in PUBLISHED.get(measured.set, {}).get(figure, {}).items():
                made.add_row(f"{value:.3f}", "", "", "", f"{who} (published, whole set)", figure)
        for ranker in measured.rankers:
            best = f"ms p50 for the best {DEPTH[measured.set]}"
            made.add_row(f"{measured.milliseconds(ranker):.1f}", "", "", "", ranker, best)
        print_table(made)
        say()


def _recall_cells(measured: recall_bench.Measured, figure: str, ranker: str) -> list[str]:
    mean = f"{measured.mean(figure, ranker):.3f}"
    if ranker == recall_bench.OURS:
        return [mean, "", "", ""]
    ahead = measured.ahead(figure, ranker)
    return [mean, *(f"{value:+.3f}" for value in (ahead.mean, ahead.low, ahead.high))]


def show_peers(report: peers_bench.PeersReport) -> None:
    """Everybody's number, line by line: there are too many of them for columns."""
    for line in report.lines:
        say(f"{line.name} ({unit(line)}): {line.verdict}")
        say("  " + " · ".join(f"{name} {number(value, line.unit)}" for name, value in line.values.items()))
        if line.why:
            say(f"  {line.why}")
    for why in report.skipped:
        say(why)
    machine = " · ".join(f"{name} {value}" for name, value in report.made["machine"].items())
    say(f"\n{machine} · {report.made['seconds']:.0f} s")


def show_replayed(lines: Sequence[Replayed]) -> None:
    """Prompt tokens of all model calls of the runs, a table for each way to end a turn and each threshold."""
    for turn_end, threshold in dict.fromkeys((line.turn_end, line.threshold) for line in lines):
        say(
            f"Recorded runs, results over {threshold:,} characters leave when the turn ends: with the {turn_end}."
        )
        numbers = ("tokens without", "with", "saved", "calls", "left", "pages")
        made = table(*numbers, "runs", right=numbers)
        for line in lines:
            if (line.turn_end, line.threshold) == (turn_end, threshold):
                made.add_row(*_replayed_cells(line))
        print_table(made)
        say()


def _replayed_cells(line: Replayed) -> list[str]:
    tally = line.tally
    cut = f", {tally.cut:,} prompts cut to the window" if tally.cut else ""
    return [
        f"{tally.without_tokens:,}",
        f"{tally.with_tokens:,}",
        f"{tally.saved:.1%}",
        f"{tally.calls:,}",
        f"{tally.left:,}",
        f"{tally.pages:,}",
        f"{line.source}, {line.runs:,}{cut}",
    ]


def show_scenario(measured: Scenario) -> None:
    """The tables in the design of the archive."""
    modes = table(
        "characters",
        "tokens",
        "mode of the search, and what the document says",
        right=("characters", "tokens"),
    )
    for mode in measured.modes:
        modes.add_row(f"{mode.chars:,}", f"{mode.tokens:,}", f"{mode.name}: {mode.claim} tokens")
    print_table(modes)
    say()
    say(
        f"Ten turns, each with a result of 50,000 characters ({measured.result_tokens:,} tokens) and "
        f"{measured.exchange_tokens:,} tokens of question and answer: tokens of the request that answers."
    )
    numbers = (*(f"turn {turn}" for turn in SHOWN), "total", "saved")
    made = table(*numbers, "way, and what the document says", right=numbers)
    for walked in measured.ways:
        cells = [f"{tokens:,}" for tokens in walked.shown()]
        made.add_row(*cells, f"{measured.saved(walked):.0%}", f"{walked.way.name}: {walked.way.claim}")
    print_table(made)
    say()


def show_machine(report: Report) -> None:
    machine = " · ".join(f"{name} {value}" for name, value in report.machine.items())
    say(f"\n{machine} · {report.seconds:.0f} s")


def show_rows(rows: Sequence[Row]) -> None:
    made = table("value", "ratio", "limit", "kept", "measured", right=("value", "ratio", "limit"))
    for row in rows:
        kept = {True: "yes", False: "NO", None: ""}[row.ok]
        ratio = "" if row.ratio is None else f"{row.ratio:,.2f}"
        limit = "" if row.limit is None else f"{'≤' if row.bound == 'at most' else '≥'} {row.limit:g}"
        told = f"{row.name}: {row.note}" if row.note else row.name
        made.add_row(f"{row.value:,.4g} {row.unit}", ratio, limit, kept, told)
    print_table(made)


def show_runs(report: runs_bench.RunsReport) -> None:
    """One table for each file of runs."""
    numbers = ("saved", "in view", "prefix", "leads back", "found first")
    for source in dict.fromkeys(line.source for line in report.lines):
        lines = [line for line in report.lines if line.source == source]
        say(
            f"{source}: {len(lines[0].scores)} runs, {lines[0].score.calls:,} calls, {lines[0].score.spans:,} copied spans."
        )
        made = table(*numbers, "way", right=numbers)
        for line in lines:
            score = line.score
            ours = (score.leads_back, score.finds) if line.way.startswith("Pagefile") else (None, None)
            shares = ("" if share is None else f"{share:.3f}" for share in ours)
            made.add_row(
                f"{score.saved:.3f}", f"{score.in_view:.3f}", f"{score.prefix:.3f}", *shares, line.way
            )
        print_table(made)
        say()


def show_window(report: window_bench.WindowReport) -> None:
    """A table for each set: who made the window, of how many tokens, and the means of its figures."""
    for name in dict.fromkeys(row.set for row in report.rows):
        rows = [row for row in report.rows if row.set == name]
        figures = list(dict.fromkeys(figure for row in rows for figure in row.figures))
        say(f"{name}:")
        made = table("way", "kind", "of", "count", *figures, right=("of", "count", *figures))
        for row in rows:
            cells = [_mean(row.figures.get(figure), figure) for figure in figures]
            made.add_row(
                row.way, row.kind or "all", f"{row.budget:,}" if row.budget else "", f"{row.count:,}", *cells
            )
        print_table(made)
        say()


def _mean(value: float | None, figure: str) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if figure in window_bench.IN_TOKENS else f"{value:.3f}"


def show_frameworks(report: frameworks_bench.FrameworksReport) -> None:
    """Each framework with its version, its vendor's suites, and our contract."""
    numbers = ("contract", "runs", "passed")
    made = table("framework", "version", *numbers[:2], "vendor's suite", "passed", right=numbers)
    for row in report.rows:
        first, *others = row.suites or (("", frameworks_bench.Count()),)
        made.add_row(row.framework, row.version, str(row.contract), str(row.runs), first[0], str(first[1]))
        for name, count in others:
            made.add_row("", "", "", "", name, str(count))
    print_table(made)
    for row in report.rows:
        for point, reason in row.contract.apart.items():
            say(f"{row.framework}, {point}: not applicable: {reason}")
    for name in report.missing:
        say(f"left out: {name} is not there: `make frameworks` makes it")


def show_vendors(report: vendors_bench.VendorsReport) -> None:
    """Each client with its version, what it called, and what came of it."""
    made = table("vendor", "client", "version", "calls", "passed", right=("calls", "passed"))
    for one in report.outcomes:
        passed = len(one.calls) - len(set(one.problems) & set(one.calls))
        made.add_row(one.client.vendor, one.client.client, one.version, str(len(one.calls)), str(passed))
    print_table(made)
    for one in report.outcomes:
        say(f"{one.client.client}: {', '.join(one.calls)}")
        for call, problem in one.problems.items():
            say(f"  failed: {call}: {problem}")
    for client, why in report.left_out.items():
        say(f"left out: {client}: {why}")

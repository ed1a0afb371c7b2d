"""`bench`: measures Pagefile on this machine; the benchmarks themselves are in `benchmarks`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Protocol, TypeVar

import typer

from benchmarks import archive as archive_bench
from benchmarks import beside_rules as beside_rules_bench
from benchmarks import core as core_bench
from benchmarks import facts as facts_bench
from benchmarks import frameworks as frameworks_bench
from benchmarks import gateway as gateway_bench
from benchmarks import gateway_model, pages_runs
from benchmarks import history as history_bench
from benchmarks import inspector as inspector_bench
from benchmarks import pages as pages_bench
from benchmarks import peers as peers_bench
from benchmarks import recall as recall_bench
from benchmarks import recall_speed as recall_speed_bench
from benchmarks import runs as runs_bench
from benchmarks import scale as scale_bench
from benchmarks import service as service_bench
from benchmarks import short_term as short_term_bench
from benchmarks import summaries as summaries_bench
from benchmarks import vendors as vendors_bench
from benchmarks import window as window_bench
from benchmarks import workspace as workspace_bench
from benchmarks.agents import run as agents_bench
from benchmarks.answers import judging
from benchmarks.answers import prompts as prompts_bench
from benchmarks.answers import run as answers_bench
from benchmarks.peers_chart import growth_chart
from benchmarks.peers_page import page as peers_page
from benchmarks.report import Report
from benchmarks.tables import (
    show_costs,
    show_frameworks,
    show_machine,
    show_pages,
    show_peers,
    show_recall,
    show_replayed,
    show_requests,
    show_rows,
    show_runs,
    show_scenario,
    show_summaries,
    show_vendors,
    show_walked,
    show_window,
)
from benchmarks.tool_choice import run as tool_choice
from pagefile.cli.json_output import print_json
from pagefile.cli.options import AsJson
from pagefile.cli.output import complain, err, say, visible, warn
from pagefile.engine.standard_tiers import named_embedder
from pagefile.records import JsonObject
from pagefile.settings import EmbedderSettings
from pagefile.settings.sources import bench_data

app = typer.Typer(no_args_is_help=True, add_completion=False)


@app.callback()
def bench() -> None:
    """Measure Pagefile on this machine."""


Encoder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Vectors by this embedder, as in the setting embedder.name, instead of the default.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="Smaller numbers, for a first look.")]


@app.command()
def core(
    *,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure the core, each number against something measured in the same run; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: core_bench.run(quick=quick, progress=tell))
    _tell(report, report, as_json=as_json)


@app.command()
def archive(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder of recorded runs, traj-*.jsonl.gz. Else $PAGEFILE_BENCH_DATA; without it they are skipped.",
        ),
    ] = None,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure what the archive saves and what it costs; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: archive_bench.run(data or bench_data(), quick=quick, progress=tell))
    if report.replayed is None:
        warn(archive_bench.NO_DATA)
    _tell(
        report,
        report.report,
        as_json=as_json,
        before=lambda: (show_replayed(report.replayed or ()), show_scenario(report.scenario)),
    )


@app.command()
def facts(
    *,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure the ranking of facts against scikit-learn's refit, and injection within its budget; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: facts_bench.run(quick=quick, progress=tell))
    if report.instead is not None:
        warn(report.instead)
    _tell(report, report.report, as_json=as_json)


@app.command()
def inspector(
    *,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure pages of a very long conversation against those of a short one; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: inspector_bench.run(quick=quick, progress=tell))
    _tell(report, report, as_json=as_json)


@app.command()
def pages(
    *,
    show: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Print one case as a model would see it, and judge nothing."),
    ] = None,
    failing: Annotated[bool, typer.Option("--failing", help="List everything that was missed.")] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Judge only whether the results of recorded runs in a folder can be shown in part; exit code 1 when one cannot.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Judge what a model learns of archived tool results: synopses, windows, loaded passages and searches."""
    if data is not None:
        shown = _measured(lambda tell: pages_runs.run(data, progress=tell))
        _tell(shown, shown, as_json=as_json)
        return
    if show is not None:
        try:
            say(visible(pages_bench.show(show), lines=True))
        except LookupError as error:
            complain(str(error.args[0]))
            raise typer.Exit(2) from None
        return
    report = _measured(pages_bench.run)
    if failing and not as_json:
        for line in report.failures():
            say(visible(line))
        say()
    _tell(report, report.report, as_json=as_json, before=lambda: show_pages(report))


@app.command()
def runs(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder of recorded runs, coding-runs*.jsonl.gz and traj-*.jsonl.gz. Else $PAGEFILE_BENCH_DATA.",
        ),
    ] = None,
    ways: Annotated[
        str, typer.Option(metavar="NAME", help="Only the ways whose name contains this, such as pagefile.")
    ] = "",
    part: Annotated[
        str, typer.Option(metavar="N/M", help="Only the Nth of M parts of the runs: 1/2 is every other one.")
    ] = "1/1",
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded agent runs call by call: tokens saved, what was in view when it was needed, unchanged prefixes."""

    def measure(tell: Callable[[str], None]) -> runs_bench.RunsReport:
        folder, some = data or bench_data(), runs_bench.Part.of(part)
        return runs_bench.run(folder, quick=quick, progress=tell, ways=ways, part=some)

    report = _measured(measure)
    for why in report.left_out:
        warn(why)
    if as_json:
        print_json(report.to_json())
    else:
        show_runs(report)


@app.command()
def service(
    *,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure the HTTP service against bare FastAPI routes that store and read the same rows; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: service_bench.run(quick=quick, progress=tell))
    _tell(report, report, as_json=as_json)


@app.command()
def scale(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL that is empty, or was grown by an earlier run. Else one is started here, where that is installed.",
        ),
    ] = None,
    turns: Annotated[
        list[int] | None,
        typer.Option(metavar="N", min=scale_bench.A_USER, help="Only this size; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fill a PostgreSQL with synthetic users at three sizes, and measure what of record, window and recall grows with them; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: scale_bench.run(url, turns or scale_bench.SIZES, progress=tell))
    _tell(report, report, as_json=as_json)


@app.command()
def gateway(
    *,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure the gateway against a bare proxy, in front of a provider that answers in 500 ms; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: gateway_bench.run(quick=quick, progress=tell))
    _tell(report, report, as_json=as_json)


@app.command()
def model(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A server with OpenAI's protocol, such as http://127.0.0.1:8791/v1. Else the kept answers are shown.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--model", metavar="NAME", help="Its model.")] = "qwen2.5-coder-1.5b",
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many questions to ask at most: the next run goes on.")
    ] = 40,
    as_json: AsJson = False,
) -> None:
    """Ask a real model about a long talk, through the gateway and without it; exit code 1 when it knows too few tool results."""
    answers = gateway_model.read() if url is None else gateway_model.run(url, name, most=most, tell=warn)
    report = gateway_model.report([one for one in answers if one.model == name])
    _tell(report, report, as_json=as_json)


@app.command()
def tools(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A server with OpenAI's protocol, such as http://127.0.0.1:8792/v1. Else the kept answers are shown.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--model", metavar="NAME", help="Its model.")] = "qwen2.5-coder-1.5b",
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many requests to make at most: the next run goes on.")
    ] = 24,
    as_json: AsJson = False,
) -> None:
    """Ask a real model which of the MCP tools it would call, with 24 requests in two languages."""
    choices = tool_choice.read() if url is None else tool_choice.run(url, name, most=most, tell=warn)
    mine = [one for one in choices if one.model == name]
    if not mine:
        raise typer.BadParameter(f"no answers of {name!r} are kept: name a server with --url")
    report = tool_choice.report(mine)
    _tell(report, report, as_json=as_json)


@app.command()
def beside_rules(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A server with OpenAI's protocol, such as http://127.0.0.1:8792/v1. Else the kept answers are judged.",
        ),
    ] = None,
    name: Annotated[str, typer.Option("--model", metavar="NAME", help="Its model.")] = "qwen2.5-coder-1.5b",
    as_json: AsJson = False,
) -> None:
    """Judge what a real model adds to the rules that extract facts and write summaries, in two languages."""
    report = beside_rules_bench.run(url, name, tell=warn)
    _tell(report, report, as_json=as_json)


@app.command()
def frameworks(
    *,
    lowest: Annotated[
        bool,
        typer.Option("--lowest", help="The lowest versions that our bounds allow, instead of the newest."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Only this framework, by its package, such as google-adk; may be repeated."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play the vendors' suites and our contract with every agent framework, in the environments that `make frameworks` makes; exit code 1 when a test fails."""
    report = _measured(lambda tell: frameworks_bench.run(lowest=lowest, progress=tell, only=only or ()))
    if as_json:
        print_json(report.to_json())
    else:
        show_frameworks(report)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def answers(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder with LoCoMo, LongMemEval-S and LifeBench-zh. Else $PAGEFILE_BENCH_DATA.",
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A server with OpenAI's protocol. Else the kept answers are shown."),
    ] = None,
    name: Annotated[str, typer.Option("--model", metavar="NAME", help="Its model.")] = "qwen2.5-coder-1.5b",
    sets: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME", help="Only this set; may be repeated.")
    ] = None,
    arms: Annotated[
        list[str] | None, typer.Option("--arm", metavar="NAME", help="Only this arm; may be repeated.")
    ] = None,
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many questions to ask at most: the next run goes on.")
    ] = 480,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep vectors in this folder for the next run.")
    ] = None,
    at_once: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests at once, for a server that shares its work.")
    ] = 1,
    judge: Annotated[
        bool,
        typer.Option("--judge", help="Judge the kept answers by the model itself, instead of asking more."),
    ] = False,
    prompts: Annotated[
        bool,
        typer.Option("--prompts", help="Ask no model: say how many prompts hold a right answer."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a real model about public sets, the same budget filled in four ways, the same questions for each."""
    if prompts:
        made = prompts_bench.measure(
            data or bench_data(), sets=sets or (), arms=arms or (), cache=cache, tell=warn
        )
        held = prompts_bench.report(made)
        _tell(held, held, as_json=as_json)
        return
    if url is not None and judge:
        answers_bench.judge(data or bench_data(), url, name, tell=warn)
    elif url is not None:
        answers_bench.measure(
            data or bench_data(),
            url,
            name,
            sets=sets or (),
            arms=arms or (),
            most=most,
            cache=cache,
            tell=warn,
            at_once=at_once,
        )
    report = answers_bench.report(
        [one for one in answers_bench.read() if one.model == name],
        [one for one in judging.read() if one.model == name],
        judging.labels(),
    )
    _tell(report, report, as_json=as_json)


@app.command()
def agents(
    *,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="A server with OpenAI's protocol. Else the kept runs are shown."),
    ] = None,
    name: Annotated[str, typer.Option("--model", metavar="NAME", help="Its model.")] = "qwen2.5-coder-1.5b",
    only: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="Only this agent; may be repeated."),
    ] = None,
    most: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many tasks to run at most: the next run goes on.")
    ] = 36,
    scripted: Annotated[
        bool,
        typer.Option("--scripted", help="Make the calls by script: the model answers the questions alone."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have a real model work through twelve tasks with tools, in a loop that trims, in LangChain and with Pagefile."""
    if url is not None:
        agents_bench.measure(url, name, agents=only or (), most=most, tell=warn, scripted=scripted)
    kept = agents_bench.measured_name(name, scripted=scripted)
    report = agents_bench.report([one for one in agents_bench.read() if one.model == kept])
    _tell(report, report, as_json=as_json)


@app.command()
def vendors(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Where the vendors' clients are installed and kept for the next time."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run other vendors' own clients against Pagefile, each in an environment of its own; exit code 1 when a call fails."""
    report = _measured(lambda tell: vendors_bench.run(folder, progress=tell))
    if as_json:
        print_json(report.to_json())
    else:
        show_vendors(report)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def short_term(
    *,
    url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="A PostgreSQL to measure on. Else one is started here, where that is installed.",
        ),
    ] = None,
    sessions: Annotated[
        str | None, typer.Option(metavar="URL", help="The Redis in front of it, redis://host:6379/0.")
    ] = None,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure short-term memory on PostgreSQL with Redis; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: short_term_bench.run(url, sessions, quick=quick, progress=tell))
    if report.instead is not None:
        warn(report.instead)
    _tell(report, report.report, as_json=as_json)


@app.command()
def recall(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder with LoCoMo, LongMemEval-S, LifeBench-zh, REALTALK, BEAM-100K or RealMem as json.gz. "
            "Else $PAGEFILE_BENCH_DATA.",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--sets", metavar="NAME", help="Only this set; may be said again. All that are there otherwise."
        ),
    ] = None,
    encoder: Encoder = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep vectors in this folder for the next run.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every question and how it was answered, as JSON lines."),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers", help="Compare with mem0, Chroma and LangGraph's store too, where installed."),
    ] = False,
    speed: Annotated[
        bool,
        typer.Option("--speed", help="How fast, instead of how well; exit code 1 if a limit is exceeded."),
    ] = False,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure how much of what answers a question is found, against plain BM25."""
    if speed:
        timed = _measured(lambda tell: recall_speed_bench.run(quick=quick, progress=tell))
        _tell(timed, timed, as_json=as_json)
        return
    report = _measured(
        lambda tell: recall_bench.run(
            data or bench_data(),
            quick=quick,
            progress=tell,
            peers=peers,
            embedder=named_embedder(EmbedderSettings(), encoder) if encoder else None,
            cache=cache,
            sets=sets or (),
        )
    )
    for why in report.left_out:
        warn(why)
    if out is not None:
        report.write(out)
    if as_json:
        print_json(report.to_json())
    else:
        show_recall(report.sets)


@app.command()
def peers(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Measure recall on the sets in this folder too, quickly: see `bench recall`. Else $PAGEFILE_BENCH_DATA.",
        ),
    ] = None,
    recalled: Annotated[
        Path | None,
        typer.Option(
            "--recall", metavar="FILE", help="Take recall from this file of `bench recall --peers --json`."
        ),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Compare with these only; can be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write everything that was measured, as JSON.")
    ] = None,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the curves as a picture.")] = None,
    page: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the page as Markdown.")] = None,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure Pagefile against mem0, LangGraph, LangChain, Chroma and LlamaIndex; exit code 1 when one of them fails."""
    report = _measured(
        lambda tell: peers_bench.run(
            quick=quick,
            only=only or (),
            recall=peers_bench.recall_report(data or bench_data(), recalled, tell),
            progress=tell,
        )
    )
    for why in report.skipped:
        warn(why)
    picture = svg.name if svg is not None else None
    for file, text in (
        (out, json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n"),
        (svg, growth_chart(report.made)),
        (page, peers_page(report.made, picture)),
    ):
        if file is not None:
            file.write_text(text, encoding="utf-8")
    if as_json:
        print_json(report.to_json())
    else:
        show_peers(report)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
def history(*, quick: Quick = False, as_json: AsJson = False) -> None:
    """Measure what recalling a long conversation costs and finds; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: history_bench.run(quick=quick, progress=tell))
    _tell(
        report,
        report.report,
        as_json=as_json,
        before=lambda: (show_requests(report), show_costs(report)),
    )


@app.command()
def summaries(
    *,
    show: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Print the summaries of one conversation, such as en/moving."),
    ] = None,
    failing: Annotated[
        bool, typer.Option("--failing", help="List what was missed and what no longer holds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge summaries without a model on conversations with corrections: what still holds is kept, what was corrected is not."""
    report = _measured(summaries_bench.run)
    if show is not None:
        say(visible("\n\n".join(report.summaries(show)), lines=True))
        return
    if failing and not as_json:
        for line in report.failures():
            say(visible(line))
        say()
    _tell(report, report.report, as_json=as_json, before=lambda: show_summaries(report))


@app.command()
def workspace(
    *,
    quick: Quick = False,
    as_json: AsJson = False,
) -> None:
    """Measure what a workspace saves an agent over a 200-page document; exit code 1 if a limit is exceeded."""
    report = _measured(lambda tell: workspace_bench.run(quick=quick, progress=tell))
    _tell(report, report.report, as_json=as_json, before=lambda: show_walked(report))


@app.command()
def window(
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A folder with LoCoMo, LongMemEval-S, LifeBench-zh, REALTALK, PrecisionMemBench or PersistBench. Else $PAGEFILE_BENCH_DATA.",
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--sets", metavar="NAME", help="Only this set; may be said again. All that are there otherwise."
        ),
    ] = None,
    encoder: Encoder = None,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep vectors in this folder for the next run.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep what is measured in this folder, and go on where a run of the same code stopped.",
        ),
    ] = None,
    peers: Annotated[
        bool,
        typer.Option(
            "--peers", help="Pack what mem0, Chroma and LangGraph's store find too, those that are installed."
        ),
    ] = False,
    quick: Quick = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each message, the means in the last one.")
    ] = False,
) -> None:
    """Measure whether what a message needs is in its window, what that costs, and whether the rest stays away."""
    report = _measured(
        lambda tell: window_bench.run(
            data or bench_data(),
            sets or (),
            quick=quick,
            peers=peers,
            cache=cache,
            resume=resume,
            progress=tell,
            embedder=named_embedder(EmbedderSettings(), encoder) if encoder else None,
        )
    )
    for why in report.left_out:
        warn(why)
    if as_json:
        for line in report.lines:
            print(json.dumps(line.to_json(), ensure_ascii=False))
        print(json.dumps(report.to_json(), ensure_ascii=False))
    else:
        show_window(report)


R = TypeVar("R")


class _Told(Protocol):
    """What a benchmark found out."""

    @property
    def ok(self) -> bool: ...
    def to_json(self) -> JsonObject: ...


def _measured(run: Callable[[Callable[[str], None]], R]) -> R:
    """What a benchmark returns; its progress is shown on the terminal meanwhile."""
    with err().status("Measuring…") as status:
        return run(lambda step: status.update(visible(step)))


def _tell(told: _Told, report: Report, *, as_json: bool, before: Callable[[], object] | None = None) -> None:
    """Print what was measured, the tables `before` the rows; exit code 1 if a limit is exceeded."""
    if as_json:
        print_json(told.to_json())
    else:
        if before is not None:
            before()
        show_rows(report.rows)
        show_machine(report)
    if not told.ok:
        raise typer.Exit(1)

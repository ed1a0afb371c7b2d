"""Two agents that fetch much: a research assistant and a coding agent."""

from collections.abc import Sequence
from functools import cache

from pagefile.inspector.demo import results
from pagefile.inspector.demo.script import Learnt, Picks, Said, Tool

_TOPICS = (
    "tidal energy at small harbours",
    "seaweed lines beside wind farms",
    "heat pumps in terraced houses",
    "storage of heat in gravel",
    "repairs of moorings in winter",
    "permits for floating platforms",
)
_QUESTIONS = (
    (
        "What do we know about {topic}? I need numbers, not opinions.",
        (
            "The reports agree on the order of magnitude: yields rose by {percent} percent over {years} years, at costs of {number} euros per "
            "unit. The spread between sites is larger than the trend, so I would quote a range."
        ),
    ),
    (
        "Which of the sites would you leave out, and why?",
        (
            "I would leave out the site with the repaired mooring: its record has a gap of {years} months, and everything after it is "
            "{percent} percent higher than before."
        ),
    ),
    (
        "Draft a paragraph on {topic} for the chapter on costs.",
        (
            "Costs of {topic} fell to about {number} euros per unit. Most of the fall, {percent} percent of it, came from work that moved to "
            "land; the sea itself has not become cheaper."
        ),
    ),
    (
        "Does that hold in winter too?",
        (
            "Only in part. Winter series are short ({years} seasons), and storms were left out of two of them; the {percent} percent should be "
            "read as an upper bound."
        ),
    ),
    (
        "Note the open question and go on.",
        "Noted: what the fall in cost owes to scale and what to {topic} itself. I go on with the next source.",
    ),
)


def _research_scenes() -> dict[int, Said]:
    return {
        0: Said(
            "I am Dr. Okafor. We are writing the energy chapter for the coastal report; deadline is the first of April.",
            "Understood: the energy chapter of the coastal report, due on the first of April.",
            learnt=(
                Learnt("Dr. Okafor writes the energy chapter of the coastal report"),
                Learnt("The chapter is due on the first of April", "deadline"),
            ),
        ),
        13: Said(
            "The deadline moved to the twentieth of April.",
            "Noted, the twentieth of April. That leaves room for the winter series.",
            learnt=(Learnt("The chapter is due on the twentieth of April", "deadline"),),
        ),
        21: Said(
            "Which report had the table on biofouling you found before?",
            "I loaded the report again: the table compares four sites and puts the loss between 4 and 19 percent, depending on how often the "
            "lines are cleaned.",
            loads="read_report",
            window=True,
        ),
        22: Said(
            "And what did it say about cleaning costs?",
            "Cleaning was paid per visit; the report gives the sum per season and warns that divers were counted twice at one site.",
            loads="read_report",
            window=True,
        ),
        30: Said("Compare all the reports on heat pumps side by side.", "", aborted=True),
        36: Said(
            "Always give me kilowatt hours, never megajoules.",
            "Kilowatt hours from now on.",
            learnt=(Learnt("Dr. Okafor wants kilowatt hours, never megajoules", category="correction"),),
        ),
    }


@cache
def research_turns() -> Sequence[Said]:
    """Reports of 50,000 characters, read once, put away, and loaded again when a detail matters."""
    picks = Picks(34)
    scenes = _research_scenes()
    turns: list[Said] = []
    for number in range(56):
        if number in scenes:
            turns.append(scenes[number])
            continue
        topic = picks.one(_TOPICS)
        slots = {
            "topic": topic,
            "percent": picks.number(4, 38),
            "years": picks.number(2, 9),
            "number": picks.number(60, 3_400),
        }
        asked, answered = _QUESTIONS[number % len(_QUESTIONS)]
        tools: tuple[Tool, ...] = ()
        if number % 4 == 1:
            tools = (Tool("web_search", {"query": topic}, results.hits(number, topic, 14_000)),)
        elif number % 4 == 3:
            tools = (
                Tool("read_report", {"topic": topic}, results.paper(number, topic.capitalize(), 50_000)),
            )
        turns.append(Said(asked.format(**slots), answered.format(**slots), tools, window=True))
    return turns


_FILES = ("billing/tax.py", "billing/invoices.py", "billing/rates.py", "jobs/nightly.py")
_CODING = (
    (
        "The nightly job is slow again. Look at the log.",
        (
            "The log shows {number} retries against the ledger between two and three o'clock; each waits {small} seconds. The job itself is "
            "fine, the connection pool is too small."
        ),
        "log",
    ),
    (
        "Read {path} and tell me where the rounding happens.",
        (
            "In `{path}` rounding happens in {small} places; only one of them takes the number of places as an argument. I would move the "
            "others behind it."
        ),
        "source",
    ),
    (
        "Do it, then run the tests.",
        "Done. {small} tests fail, all of them compare amounts with a cent of difference; the rest pass. I am looking at the first one now.",
        "tests",
    ),
    (
        "Why a cent?",
        (
            "Because the old code rounded twice: once per line, once per invoice. The new code rounds once, so sums of {number} lines can differ "
            "by a cent. The law asks for the second way."
        ),
        None,
    ),
    (
        "Commit it with a short message.",
        "Committed as {code}: \u201cRound invoices once, at the end\u201d. {small} files changed.",
        None,
    ),
)


def _coding_scenes() -> dict[int, Said]:
    return {
        0: Said(
            "I am Jonas. We use Python 3.11 and four spaces, and tests run with pytest.",
            "Good to know: Python 3.11, four spaces, pytest.",
            learnt=(
                Learnt("Jonas' team uses Python 3.11", "python version"),
                Learnt("Jonas' team runs tests with pytest", category="preference"),
            ),
        ),
        17: Said("Rewrite the whole tax module in one go.", "", aborted=True),
        29: Said(
            "We are on Python 3.13 since Monday.",
            "Noted, Python 3.13. I dropped the two compatibility lines in the tax module.",
            learnt=(Learnt("Jonas' team uses Python 3.13", "python version"),),
        ),
        44: Said(
            "What was the third error in the log from last night?",
            "I loaded the log again: the third error is an invoice without a currency, skipped by the nightly job.",
            loads="read_log",
            window=True,
        ),
        52: Said(
            "Never push to main directly, I told you before. Open a merge request.",
            "Understood, and sorry: merge requests only.",
            learnt=(Learnt("Never push to main directly: open a merge request", category="correction"),),
        ),
    }


@cache
def coding_turns() -> Sequence[Said]:
    """Two weeks in a repository: logs, files and test runs, each far longer than what is said about them."""
    picks = Picks(55)
    scenes = _coding_scenes()
    turns: list[Said] = []
    for number in range(100):
        if number in scenes:
            turns.append(scenes[number])
            continue
        path = picks.one(_FILES)
        slots = {
            "path": path,
            "number": picks.number(12, 480),
            "small": picks.number(2, 6),
            "code": f"{picks.number(10**6, 10**7):x}",
        }
        asked, answered, tool = _CODING[number % len(_CODING)]
        tools = (_coding_tool(tool, number, path, picks),) if tool is not None else ()
        turns.append(Said(asked.format(**slots), answered.format(**slots), tools, window=number % 2 == 0))
    return turns


def _coding_tool(kind: str, number: int, path: str, picks: Picks) -> Tool:
    if kind == "log":
        return Tool("read_log", {"service": "nightly", "lines": 400}, results.log(number, 24_000))
    if kind == "source":
        return Tool("read_file", {"path": path}, results.source(number, path, picks.number(4_000, 15_000)))
    return Tool("run_tests", {"args": ["-q"]}, results.tests(number, picks.number(1, 4), 9_000))

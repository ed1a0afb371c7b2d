"""The command line, as a person uses it: a visit to the doctor in Chinese, a trip in English."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from rich.cells import cell_len

from pagefile import Memory
from pagefile.cli.invocation import Invocation
from pagefile.records import Scope
from tests.acceptance.cli_calling import Said, pagefile, table_widths

QUESTION = "我对青霉素过敏，还有高血压，需要注意什么？"
ANSWER = "请避免使用青霉素类药物，并每天早晚各量一次血压。"


@pytest.fixture(autouse=True)
def _at_a_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty directory, 80 columns, no settings of the person who runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("PAGEFILE_URL", "PAGEFILE_CONFIG", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def desk() -> None:
    """Two conversations of two users, and a fact."""
    done = [
        pagefile("record", "门诊-1", "--user", QUESTION, "--assistant", ANSWER, "--user-id", "王芳"),
        pagefile(
            "record",
            "门诊-1",
            "--user",
            "阿司匹林呢？",
            "--assistant",
            "可以，但饭后吃。",
            "--user-id",
            "王芳",
        ),
        pagefile(
            "record",
            "trip",
            "--user",
            "Where did we stay in Lisbon?",
            "--assistant",
            "In Alfama.",
            "--id",
            "t1",
        ),
        pagefile("remember", "偏好简短的中文回答", "--user-id", "王芳", "--category", "preference"),
    ]
    assert [0] * 4 == [said.code for said in done]


# -- the story -----------------------------------------------------------------------------------------------------------


def test_record_says_what_it_wrote():
    """A person sees the turn's place, a script gets the whole turn."""
    said = pagefile("record", "门诊-1", "--user", QUESTION, "--assistant", ANSWER)
    assert said.out.startswith("Recorded turn 1 of 门诊-1: ")
    turn = pagefile("record", "门诊-1", "--user", "谢谢", "--at", "2026-01-02T03:04:05", "--json").json
    assert (2, "done", "谢谢", None) == (turn["seq"], turn["status"], turn["user"], turn["assistant"])
    assert "2026-01-02T03:04:05Z" == turn["at"]
    assert Path("pagefile.db").is_file()


@pytest.mark.usefixtures("desk")
def test_show_lists_conversations():
    """All of them, or those of one user."""
    said = pagefile("show")
    assert 0 == said.code
    # Each with what was said first below it.
    listed = said.out.splitlines()[2:]
    assert ["trip", "门诊-1"] == [line.split()[-1] for line in listed[::2]]
    assert QUESTION.startswith(listed[3].strip().removesuffix("…"))
    assert ["门诊-1"] == [
        head["conversation_id"] for head in pagefile("show", "--user-id", "王芳", "--json").json
    ]
    assert "--limit 10" in pagefile("show", "--limit", "1").words


@pytest.mark.usefixtures("desk")
def test_show_a_conversation():
    """Its turns with status, time and tokens; the newest when there are many."""
    said = pagefile("show", "门诊-1", "--full")
    assert "Conversation 门诊-1 of 王芳" in said.out
    assert QUESTION in said.out.replace("\n", "").replace(" ", "")
    assert 2 == said.out.count(" done ")
    newest = pagefile("show", "门诊-1", "--limit", "1", "--json").json
    assert (["阿司匹林呢？"], True) == ([turn["user"] for turn in newest["turns"]], newest["more"])


@pytest.mark.usefixtures("desk")
def test_context_shows_the_window_and_why():
    """Messages, a row for every candidate, totals; and nothing is written by looking."""
    said = pagefile("context", "门诊-1", "血压高能吃布洛芬吗？", "--instructions", "You are a doctor.")
    assert 0 == said.code
    for part in (
        "never cut",
        "fact:",
        "o200k_base",
        "full history",
        "prefix ",
        "framing ",
        "ratio 0.01",
        "█",
    ):
        assert part in said.out
    window = pagefile("context", "门诊-1", "血压高能吃布洛芬吗？", "--json").json
    assert "血压高能吃布洛芬吗？" == window["messages"][-1]["content"]
    assert window["tokens"] <= window["budget"] == 16_000
    assert {"current", "recent", "facts", "today"} == {
        verdict["block"] for verdict in window["receipt"]["verdicts"]
    }
    assert 2 == len(pagefile("show", "门诊-1", "--json").json["turns"])


@pytest.mark.usefixtures("desk")
def test_context_in_a_small_window():
    """What does not fit is in the receipt too, long runs of it in three lines."""
    for number in range(20):
        pagefile(
            "record", "long", "--user", f"Line {number} of a long story about nothing", "--assistant", "And?"
        )
    said = pagefile("context", "long", "Go on", "--window-tokens", "350", "--recent-turns", "2")
    assert " no " in said.out
    assert "more" in said.out
    assert "a checkpoint is due" in said.out
    assert 0 < pagefile("context", "long", "--window-tokens", "150", "--json").json["ratio"]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_dump_of_another_memory_without_its_name(indent: int | None):
    """Says what to add; a database or a damaged export is told as before."""
    dump = {"results": [{"memory": "喜欢绿茶", "user_id": "林"}]}
    Path("mem0.json").write_text(json.dumps(dump, indent=indent), "utf-8-sig")
    said = pagefile("import", "mem0.json")
    assert 1 == said.code
    assert "--from mem0 | redis-agent-memory | langchain" in said.err
    assert 0 == pagefile("import", "mem0.json", "--from", "mem0").code
    Path("damaged.jsonl").write_text('{"type":"pagefile-export","version":1}\n{')
    assert "--from" not in pagefile("import", "damaged.jsonl").err


def test_a_dump_of_which_nothing_can_be_taken_over_is_a_failure():
    """What is there already is no failure."""
    Path("none.json").write_text(json.dumps({"results": [{"memory": ""}, {"memory": None}]}))
    said = pagefile("import", "none.json", "--from", "mem0", "--user-id", "u")
    assert 1 == said.code
    assert "memories without text (2)" in said.words
    assert "nothing" in said.err.lower()
    said = pagefile("import", "none.json", "--from", "mem0", "--user-id", "u", "--json")
    assert (1, 0) == (said.code, said.json["fact"])
    Path("some.json").write_text(json.dumps({"results": [{"memory": "likes tea"}]}))
    for _ in range(2):
        assert 0 == pagefile("import", "some.json", "--from", "mem0", "--user-id", "u").code


@pytest.mark.usefixtures("desk")
def test_recall_finds_and_explains():
    """Hits of a user or of a conversation, with the score and its parts."""
    said = pagefile("recall", "青霉素", "--user-id", "王芳")
    assert 0 == said.code
    assert "words " not in said.out
    parts = pagefile("recall", "青霉素", "--user-id", "王芳", "--scores").out
    assert "words " in parts
    assert " 0.00" not in parts
    hits = pagefile("recall", "Lisbon", "-c", "trip", "--json").json
    assert ["t1"] == [hit["id"] for hit in hits]
    assert {"words", "coverage"} <= set(hits[0]["parts"])


@pytest.mark.usefixtures("desk")
def test_facts_are_listed():
    """What was remembered comes back."""
    assert "偏好简短的中文回答" in pagefile("facts", "王芳").out
    assert ["preference"] == [fact["category"] for fact in pagefile("facts", "王芳", "--json").json]


@pytest.mark.usefixtures("desk")
def test_export_then_import_elsewhere():
    """Another database has the same conversations afterwards."""
    said = "Exported 2 conversations, 2 sessions, 3 turns, 1 fact, 1 revision."
    assert said == pagefile("export", "all.jsonl").out.strip()
    assert 0 == pagefile("import", "all.jsonl", "--db", "elsewhere.db").code
    here, there = (pagefile("show", "门诊-1", "--json", *db).json for db in ((), ("--db", "elsewhere.db")))
    assert here == there
    assert 0 == pagefile("export", "all.jsonl").code, "an earlier export may be replaced"
    one = pagefile("export", "one.jsonl", "-c", "trip", "--json").json
    assert {"conversation": 1, "session": 1, "turn": 1} == one


@pytest.mark.usefixtures("desk")
def test_forget_erases_and_counts():
    """A receipt says what went; afterwards it is gone, and the rest is still there."""
    receipt = pagefile("forget", "--user-id", "王芳", "--yes", "--json").json
    assert (2, 1) == (receipt["counts"]["ai_message"], receipt["counts"]["facts"])
    assert receipt["total"] == sum(receipt["counts"].values())
    assert 3 == pagefile("show", "门诊-1").code
    said = pagefile("forget", "trip", "-y")
    assert "Erased conversation 'trip'" in said.out
    assert "in all" in said.out


# -- where: --db, --config, the environment -----------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["a b#c%20?.db", "sqlite:///a.db"])
def test_db_before_or_behind_the_command(place: str):
    """A bare path means SQLite, whatever characters it has."""
    assert 0 == pagefile("--db", place, "record", "c", "--user", "hi").code
    assert 0 == pagefile("show", "c", "--db", place).code
    assert [place.removeprefix("sqlite:///")] == [path.name for path in Path().glob("*.db")]


def test_config_says_where_settings_come_from(monkeypatch: pytest.MonkeyPatch):
    """File, environment and flag, in the order of their strength; a password is not printed."""
    Path("mine.toml").write_text("window_tokens = 5000\nrecent_turns = 3\n", encoding="utf-8")
    monkeypatch.setenv("PAGEFILE_RECENT_TURNS", "4")
    found = pagefile(
        "config", "--config", "mine.toml", "--db", "postgresql://ann:secret@host/db", "--json"
    ).json
    assert "mine.toml" == found["file"]
    assert {"value": 5000, "from": "mine.toml"} == found["settings"]["window_tokens"]
    assert {"value": 4, "from": "$PAGEFILE_RECENT_TURNS"} == found["settings"]["recent_turns"]
    assert {"value": "postgresql://ann:***@host/db", "from": "command line"} == found["settings"]["url"]
    said = pagefile("--config", "mine.toml", "config")
    assert "Settings file: mine.toml" in said.out
    assert "facts.enabled true default" in said.words


def test_doctor_on_a_fresh_machine():
    """Nothing is there yet, and nothing is broken; looking makes no database."""
    said = pagefile("doctor")
    assert 0 == said.code
    for part in ("Python", "SQLite", "o200k_base", "not there yet", "All is well."):
        assert part in said.out
    assert [] == list(Path().iterdir())


def test_doctor_names_what_is_worth_reading():
    """A note about the installation at hand; what is not installed is a choice, and is in the list alone."""
    Path("pagefile.toml").write_text('tokenizer = "estimate"\n')
    said = pagefile("doctor")
    assert (0, True) == (said.code, "Nothing is broken; worth reading: 1 note (tokenizer)." in said.out)
    assert "All is well." not in said.out


@pytest.mark.usefixtures("desk")
def test_doctor_looks_into_the_database():
    """Size and schema as the database itself tells them."""
    found = pagefile("doctor", "--json").json
    assert found["ok"]
    database = next(check for check in found["checks"] if check["name"] == "database")
    assert "schema" in database["found"]
    assert "synchronous full" in database["found"]


# -- how it looks ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "门诊-1"),
        ("show", "门诊-1", "--full"),
        ("recall", "青霉素", "--user-id", "王芳"),
        ("recall", "青霉素", "--user-id", "王芳", "--scores"),
        ("facts", "王芳"),
        ("config",),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_chinese_lines_up(arguments: tuple[str, ...]):
    """Every line of a table is as wide as its rule, and a terminal of 80 columns holds it."""
    said = pagefile(*arguments)
    body = "\n".join(line for line in said.out.splitlines() if line != "All is well.")
    widths = table_widths(body)
    assert 1 == len(widths), said.out
    assert max(widths) <= 80


@pytest.mark.usefixtures("desk")
def test_a_window_lines_up():
    """Both tables of `context`, the messages and the receipt."""
    lines = pagefile("context", "门诊-1", "血压高能吃布洛芬吗？").out.splitlines()
    rules = [number for number, line in enumerate(lines) if line and not line.strip("─")]
    assert 2 == len(rules)
    for rule in rules:
        end = lines.index("", rule)
        assert {cell_len(lines[rule])} == {cell_len(line) for line in lines[rule - 1 : end]}
        assert cell_len(lines[rule]) <= 80


def test_what_people_said_cannot_touch_the_terminal():
    """Escape sequences and markup are shown, not obeyed."""
    pagefile("record", "c", "--user", "\x1b[31mred\x1b[0m [bold]x[/bold] :smile:", "--assistant", "a\tb")
    said = pagefile("show", "c", "--full")
    assert "\x1b" not in said.out
    assert r"\x1b[31mred\x1b[0m [bold]x[/bold] :smile:" in said.words


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(
    "arguments",
    [
        ("show", "--json"),
        ("show", "trip", "--json"),
        ("context", "trip", "--json"),
        ("recall", "Lisbon", "-c", "trip", "--json"),
        ("facts", "王芳", "--json"),
        ("export", "e.jsonl", "--json"),
        ("config", "--json"),
        ("doctor", "--json"),
    ],
    ids=" ".join,
)
def test_json_is_pure(arguments: tuple[str, ...]):
    """Stdout is JSON and nothing else, stderr is quiet, Chinese stays readable."""
    said = pagefile(*arguments)
    assert "" == said.err
    json.loads(said.out)
    assert "\\u" not in said.out


def test_facts_change_and_change_back(tmp_path):
    """Superseded, listed as of a time, undone, retracted, imported; `facts USER` lists."""
    for city in ("杭州", "上海"):
        said = pagefile("remember", f"用户住在{city}", "--user-id", "李雷", "--attribute", "residence")
    assert said.out.startswith("Remembered instead of what was known before")
    assert ["用户住在上海"] == [fact["text"] for fact in pagefile("facts", "李雷", "--json").json]
    assert 2 == len(pagefile("facts", "李雷", "--history", "--json").json)
    assert "until" in pagefile("facts", "list", "李雷", "--history").out
    assert 3 == pagefile("facts", "李雷", "--as-of", "2001-01-01").code
    assert ["stored", "superseded"] == [
        one["action"] for one in pagefile("facts", "revisions", "李雷", "--json").json
    ]
    assert "superseded" in pagefile("facts", "revisions", "李雷").out
    assert "Undone" in pagefile("facts", "undo", "李雷").out
    (fact,) = pagefile("facts", "李雷", "--json").json
    assert "用户住在杭州" == fact["text"]
    assert "Retracted" in pagefile("facts", "retract", fact["id"]).out
    file = tmp_path / "memory.json"
    file.write_text('{"facts": [{"content": "Prefers pytest"}, {"content": " "}]}', encoding="utf-8")
    assert (
        "1 stored, 0 duplicate, 0 superseded, 1 rejected."
        == pagefile("facts", "import", str(file), "--user-id", "李雷").out.strip()
    )
    assert "password" in complaint(pagefile("remember", "my password is hunter2", "--user-id", "李雷"), 1)


# -- exit codes -----------------------------------------------------------------------------------------------------------


def test_version_and_help():
    """Both are there and end well."""
    assert pagefile("--version").out.startswith("pagefile ")
    assert "recall" in pagefile("--help").out
    assert "core" in pagefile("bench", "-h").out


def complaint(said: Said, code: int) -> str:
    """The one line on stderr of a command that failed; stdout stays empty."""
    assert (code, "") == (said.code, said.out)
    assert said.err.startswith("error: ")
    return said.err.removeprefix("error: ").strip()


def test_nothing_there_is_3():
    """A database, a conversation, a hit, a fact that is not there; and none of it is made by asking."""
    assert "There is no database at 'pagefile.db'" in complaint(pagefile("show"), 3)
    assert [] == list(Path().iterdir())
    pagefile("record", "c", "--user", "hi")
    assert "There is no conversation 'nope'" in complaint(pagefile("show", "nope"), 3)
    assert "There is no conversation 'nope'" in complaint(pagefile("context", "nope", "q"), 3)
    assert "Nothing recorded here answers" in complaint(pagefile("recall", "zebra", "-c", "c"), 3)
    assert "Nothing is known about" in complaint(pagefile("facts", "nobody"), 3)
    assert "nothing to forget" in complaint(pagefile("forget", "nope", "--yes"), 3)
    assert "nothing to export" in complaint(pagefile("export", "e.jsonl", "-c", "nope"), 3)
    # A backup of the wrong tenant is not taken for a backup.
    assert "in tenant 'shop'" in complaint(pagefile("export", "e.jsonl", "--tenant", "shop"), 3)
    assert "There is no file" in complaint(pagefile("import", "missing.jsonl"), 3)
    assert "Nothing is recorded in tenant 'other' yet." in complaint(pagefile("show", "--tenant", "other"), 3)
    said = pagefile("recall", "zebra", "-c", "c", "--json")
    assert (3, []) == (said.code, said.json)


def test_a_fact_is_named_as_it_is_listed():
    """Eight characters are enough; a beginning of several is refused with all of them, and a wrong one says where to look."""
    for text in ("喜欢喝茶", "Likes rain"):
        pagefile("remember", text, "--user-id", "ann")
    tea, rain = (fact["id"] for fact in pagefile("facts", "ann", "--json").json)
    anyio.run(_twin_of, rain)
    (row,) = [line for line in pagefile("facts", "ann").out.splitlines() if "喜欢喝茶" in line]
    assert tea.startswith(row.split()[0])
    assert "Retracted: 喜欢喝茶" in pagefile("facts", "retract", tea[:8]).out
    told = complaint(pagefile("facts", "retract", rain[:8]), 1)
    assert f"{rain} (Likes rain)" in told
    assert f"{rain[:12]}-twin (Likes snow)" in told
    assert {rain[:13], f"{rain[:12]}-"} <= set(pagefile("facts", "ann").out.split())
    assert "Retracted: Likes rain" in pagefile("facts", "retract", rain[:14]).out
    for wrong in ("zzzzzzzz", rain[:3]):
        assert "`pagefile facts list USER` shows them" in complaint(pagefile("facts", "retract", wrong), 3)


async def _twin_of(fact_id: str) -> None:
    async with Memory.open("sqlite:///pagefile.db", embedder="none") as memory:
        facts = memory.engine.store.facts
        fact = await facts.get(Scope(), fact_id)
        await facts.put(replace(fact, id=f"{fact_id[:12]}-twin", text="Likes snow"))


def test_ids_that_others_take_are_shown_whole(monkeypatch: pytest.MonkeyPatch):
    """A conversation and a user can be copied from a list."""
    monkeypatch.setenv("COLUMNS", "200")
    conversation, user = "conversation-of-a-long-afternoon-0042", "somebody-with-a-long-name"
    pagefile("record", conversation, "--user", "zebras", "--user-id", user)
    assert {conversation, user} <= set(pagefile("show").out.split())
    assert conversation in pagefile("recall", "zebras", "--user-id", user).out.split()


def test_a_command_waits_for_a_slow_embedder(monkeypatch: pytest.MonkeyPatch):
    """It ends with its answer, so that it can; a service goes on without, and what was set holds for both."""
    seen: list[float] = []

    def looked(cli: Invocation, *_: object, **__: object) -> list[object]:
        seen.append(cli.settings.embedder.query_timeout_s)
        return []

    monkeypatch.setattr("pagefile.cli.invocation.Invocation.run", looked)
    assert 3 == pagefile("recall", "x", "-c", "c").code
    usual = pagefile("config", "--json").json["settings"]["embedder.query_timeout_s"]
    assert {"value": 1.0, "from": "default"} == usual
    monkeypatch.setenv("PAGEFILE_EMBEDDER__QUERY_TIMEOUT_S", "2")
    assert 3 == pagefile("recall", "x", "-c", "c").code
    assert [30, 2] == seen


def test_written_wrongly_is_2():
    """Usage errors, and a question that nobody can be asked."""
    pagefile("record", "c", "--user", "hi")
    wrong = [
        ("recall", "x"),
        ("recall", " ", "-c", "c"),
        ("archive", "search", "", "-c", "c"),
        ("record", "c", "--user", "x", "--at", "yesterday"),
        ("facts", "ann", "--as-of", "yesterday"),
        ("forget",),
        ("forget", "c"),
        ("show", "--limit", "0"),
        ("nonsense",),
        ("context",),
    ]
    assert [2] * len(wrong) == [pagefile(*arguments).code for arguments in wrong]
    assert "--yes" in pagefile("forget", "c", stdin="y\n").err
    assert "2026-01-31" in pagefile("record", "c", "--user", "x", "--at", "yesterday").err
    assert 1 == len(pagefile("show", "c", "--json").json["turns"])
    said = pagefile("record", "c", "--user", "x", "--at", "2026-01-31T09:30+08:00", "--json").json
    assert "2026-01-31T01:30:00Z" == said["at"]
    assert 0 == pagefile("show", "c").code


def test_errors_are_1_and_one_line():
    """Each says what to do, and nothing is lost."""
    pagefile("record", "c", "--user", "hi", "--id", "1", "--user-id", "ann")
    Path("broken.db").write_bytes(b"this is not a database" * 100)
    Path("broken.jsonl").write_text("{}\n", encoding="utf-8")
    Path("bad.toml").write_text("window_tokens = -1\n", encoding="utf-8")
    assert "directory" in complaint(pagefile("record", "c", "--user", "x", "--db", "no/where.db"), 1)
    Path("adir").mkdir()
    for command in (("show",), ("record", "c", "--user", "x")):
        assert "is a directory: name a file in it" in complaint(pagefile(*command, "--db", "adir"), 1)
    assert "'broken.db'" in complaint(pagefile("show", "--db", "broken.db"), 1)
    assert "both are missing" in complaint(pagefile("record", "c"), 1)
    assert "NUL" in complaint(pagefile("record", "c", "--user", "a\0b"), 1)
    assert complaint(pagefile("record", "c", "--user", "else", "--id", "1"), 1)
    assert "another user" in complaint(pagefile("record", "c", "--user", "x", "--user-id", "eve"), 1)
    assert "window_tokens must be at least 1" in complaint(pagefile("show", "--config", "bad.toml"), 1)
    assert "placement must be" in complaint(pagefile("context", "c", "--placement", "side"), 1)
    assert "raise window_tokens" in complaint(
        pagefile("context", "c", "long " * 50, "--window-tokens", "9"), 1
    )
    assert "not a record of a Pagefile export" in complaint(pagefile("import", "broken.jsonl"), 1)
    assert "No store is known" in complaint(pagefile("show", "--db", "nosql://x"), 1)
    assert ["hi"] == [turn["user"] for turn in pagefile("show", "c", "--json").json["turns"]]


def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch):
    """Ctrl-C while something runs leaves a word, no traceback."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pagefile.cli.invocation.Invocation.run", interrupted)
    said = pagefile("show")
    assert (130, "", "Interrupted.\n") == (said.code, said.out, said.err)


def test_serve_says_what_is_in_its_way():
    """A broken database, a taken port, a port that cannot be: before it serves."""
    Path("broken.db").write_bytes(b"this is not a database" * 100)
    assert "'broken.db'" in complaint(pagefile("serve", "--db", "broken.db"), 1)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = pagefile("serve", "--port", str(port))
    assert complaint(said, 1).startswith(f"127.0.0.1:{port} is in use: ")
    assert "service.port must be at most 65535" in complaint(pagefile("serve", "--port", "70000"), 1)


def test_an_export_never_replaces_something_else():
    """`pagefile export pagefile.db` is a mistake, not a wish."""
    pagefile("record", "c", "--user", "hi")
    assert "is not an export" in complaint(pagefile("export", "pagefile.db"), 1)
    assert 0 == pagefile("show", "c").code


def test_doctor_names_what_is_broken():
    """With the cure; exit code 1."""
    Path("broken.db").write_bytes(b"this is not a database" * 100)
    Path("bad.toml").write_text("windowtokens = 1\n", encoding="utf-8")
    for arguments in (("--db", "broken.db"), ("--db", "no/where.db"), ("--config", "bad.toml")):
        said = pagefile("doctor", *arguments)
        assert 1 == said.code
        assert "broken" in said.out
    assert "did you mean 'window_tokens'?" in said.words


def test_an_export_goes_back_to_its_tenant(tmp_path):
    """Unless another is named; the command says where it went."""
    pagefile("record", "trip", "--user", "I paddle", "--assistant", "Noted", "--tenant", "clinic")
    pagefile("export", "clinic.jsonl", "--tenant", "clinic")
    said = pagefile("import", "clinic.jsonl", "--db", "other.db")
    assert "into tenant 'clinic'" in said.out
    assert (
        "into tenant 'second'"
        in pagefile("import", "clinic.jsonl", "--db", "other.db", "--tenant", "second").out
    )
    for tenant in ("clinic", "second"):
        assert "I paddle" in pagefile("show", "trip", "--db", "other.db", "--tenant", tenant).out
    assert 3 == pagefile("show", "trip", "--db", "other.db").code

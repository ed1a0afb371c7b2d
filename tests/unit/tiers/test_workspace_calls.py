"""Which calls are the same call, what a tool does by its name, and which answers outlive a change."""

import pytest

from pagefile.tiers.workspace.cache import CallCache
from pagefile.tiers.workspace.calls import ToolCall, bound, defaults_of
from pagefile.tiers.workspace.effects import affects, touches
from pagefile.tiers.workspace.rules import (
    DEFAULT_RULES,
    FRESH_S,
    WEB_FRESH_S,
    ToolRule,
    parsed_rules,
    rule_for,
)
from pagefile.tiers.workspace.tool_names import only_reads


def call(tool: str, **given: object) -> ToolCall:
    return ToolCall.of(tool, given)


# -- spellings ---------------------------------------------------------------------------------------------------------


def get_toc(reg_id, max_depth=None, *, pages=True, **more):
    """A tool with every kind of argument."""


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("manual",), {}),
        ((), {"reg_id": "manual"}),
        (("manual", None), {}),
        ((), {"max_depth": None, "reg_id": "manual"}),
        (("manual",), {"pages": True}),
    ],
)
def test_every_spelling_is_the_same_call(args, kwargs):
    """By position, by name, with defaults left out or spelled out."""
    assert {"reg_id": "manual"} == bound(get_toc, args, kwargs)


def test_what_is_asked_otherwise_is_another_call():
    """Another value, a default that was changed, a name that only `**more` takes; a null that is no default."""
    assert {"reg_id": "a", "max_depth": 2, "pages": False, "lang": "en"} == bound(
        get_toc, ("a", 2), {"pages": False, "lang": "en"}
    )
    assert {"reg_id": "a", "pages": "null"} == bound(get_toc, ("a",), {"pages": None})


def test_a_call_that_does_not_fit_is_the_tools_to_refuse():
    """The arguments as they came, and as they came for a tool without a signature."""
    assert {"x": 1, "args": [1, 2, 3]} == bound(lambda: None, (1, 2, 3), {"x": 1})
    assert {"args": ["a"]} == bound(type, ("a",), {})


@pytest.mark.parametrize(
    "given",
    [
        {"reg_id": "manual", "page": 3},
        {"page": "3", "reg_id": "manual"},
        {"reg_id": "manual", "page": 3, "max_depth": None},
        '{"reg_id": "manual", "page": 3}',
        {"reg_id": "manual", "page": 3, "lang": "zh"},
    ],
)
def test_a_models_spellings_are_the_same_call(given):
    """JSON text, numbers as text, nulls, and defaults that the tool's schema names."""
    schema = {"properties": {"lang": {"type": "string", "default": "zh"}, "reg_id": {"type": "string"}}}
    assert ToolCall("t", {"reg_id": "manual", "page": 3}) == ToolCall.of("t", given, defaults_of(schema))


def test_what_only_looks_alike_is_not_the_same():
    """A leading zero, another language, another tool; a null where the default is something else."""
    plain = ToolCall.of("t", {"id": 7})
    others = [ToolCall.of("t", {"id": "007"}), ToolCall.of("t", {"id": "7a"}), ToolCall.of("u", {"id": 7})]
    assert plain.key not in {other.key for other in others}
    assert ToolCall.of("t", {"lang": None}, {"lang": "zh"}) != ToolCall.of("t", {}, {"lang": "zh"})
    assert ToolCall.of("t", None) == ToolCall.of("t", "") == ToolCall.of("t", {}) != ToolCall.of("t", "a")
    assert {} == defaults_of(None) == defaults_of({"properties": 3}) == defaults_of({"reg_id": str})


# -- names -------------------------------------------------------------------------------------------------------------

READS = [
    ("web_search", {"query": "x"}, "search"),
    ("WebSearch", {"query": "x"}, "search"),
    ("mcp__docs__searchPages", {"query": "x"}, "search"),
    ("Grep", {"pattern": "x"}, "search"),
    ("knowledge_base_query", {"question": "x"}, "search"),
    ("检索知识库", {"问题": "x"}, "search"),
    ("Read", {"file_path": "/a.py"}, "page"),
    ("fetch_url", {"url": "https://example.org"}, "page"),
    ("jira_get_issue", {"key": "A-1"}, "page"),
    ("get_file_contents", {"path": "a"}, "page"),
    ("open_file", {"path": "a"}, "page"),
    ("cat", {"path": "a"}, "page"),
    ("读取文件", {"路径": "a"}, "page"),
    ("list_files", {}, "nothing"),
    ("Glob", {"pattern": "*.py"}, "nothing"),
    ("LS", {"path": "."}, "nothing"),
    ("get_outline", {"doc": "a"}, "toc"),
]
ACTS = [
    ("write_file", {"path": "a"}),
    ("Edit", {"file_path": "a"}),
    ("NotebookEdit", {}),
    ("send_email", {"to": "b"}),
    ("create_issue", {}),
    ("search_and_replace", {"path": "a"}),
    ("get_or_create_user", {"name": "a"}),
    ("fetch", {"url": "https://example.org", "method": "POST"}),
    ("Bash", {"command": "rm -r a"}),
    ("bash", {"command": "cat a > b"}),
    ("python", {"code": "1 + 1"}),
    ("query_database", {"sql": "DELETE FROM t"}),
    ("open_ticket", {"title": "a"}),
    ("build_search_index", {"name": "a"}),
    ("删除文件", {"路径": "a"}),
    ("frobnicate", {"x": 1}),
    ("", {}),
]
ASKED_ANEW = [
    ("get_current_time", {}),
    ("get_job_status", {"id": 1}),
    ("get_weather", {"city": "x"}),
    ("read_inbox", {}),
    ("search_emails", {"query": "x"}),
    ("list_processes", {}),
    ("get_input", {}),
    ("获取天气", {"城市": "x"}),
]


@pytest.mark.parametrize(("tool", "given", "remembers"), READS)
def test_tools_that_read_are_spared_a_second_time(tool, given, remembers):
    """By the words of their names, in both languages, whatever the spelling; for a while."""
    rule = rule_for(tool, DEFAULT_RULES, given)
    assert (remembers, True, False) == (rule.remembers, rule.cacheable, rule.changes)
    assert rule.fresh_s == (WEB_FRESH_S if "web" in tool.casefold() or "url" in given else FRESH_S)


@pytest.mark.parametrize(("tool", "given"), ACTS)
def test_tools_with_side_effects_always_run(tool, given):
    """Nothing of theirs is remembered or answered from before; and nobody knows what an unknown tool does."""
    rule = rule_for(tool, DEFAULT_RULES, given)
    assert ("nothing", False, True) == (rule.remembers, rule.cacheable, rule.changes)


@pytest.mark.parametrize(("tool", "given"), ASKED_ANEW)
def test_what_changes_by_itself_is_asked_again(tool, given):
    """A job's status, the time, the inbox: an agent that polls is not told what it heard before."""
    rule = rule_for(tool, DEFAULT_RULES, given)
    assert (False, False) == (rule.cacheable, rule.changes)


@pytest.mark.parametrize("tool", ["write_todos", "TodoWrite", "think", "calculator", "recall"])
def test_some_tools_touch_nothing(tool):
    """A list of things to do is no reason to read a file again."""
    rule = rule_for(tool, DEFAULT_RULES, {"x": 1})
    assert ("nothing", False, False) == (rule.remembers, rule.cacheable, rule.changes)


def test_each_tool_can_be_set_otherwise():
    """Off, on, or known to touch nothing; one line in the settings."""
    rules = (
        *parsed_rules("web_search=search, frobnicate=nothing+pure, tick=nothing+cache, *=nothing"),
        *DEFAULT_RULES,
    )
    told = [
        rule_for(tool, rules, {"q": 1})
        for tool in ("web_search", "frobnicate", "tick", "get_toc", "write_file")
    ]
    assert [(False, None), (False, False), (True, None), (False, False), (False, True)] == [
        (rule.cacheable, rule.changes) for rule in told
    ]
    with pytest.raises(ValueError, match="hide the change"):
        ToolRule("write_file", cacheable=True, changes=True)
    with pytest.raises(ValueError, match="fresh_s"):
        ToolRule("a", fresh_s=-1)


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("ls -la src", True),
        ("cd src && grep -rn main . | head", True),
        ("git log --oneline; git diff", True),
        ("find . -name '*.py'", True),
        ("SELECT name FROM t", True),
        ("find . -delete", False),
        ("echo a > b", False),
        ("git checkout main", False),
        ("cat $(rm a)", False),
        ("make", False),
        ("ls; make", False),
        ("sort a -o a", False),
        ("select 1; drop table t", False),
        ("", False),
    ],
)
def test_commands_that_only_read(command, reads):
    """Every part of the line has to be known."""
    assert reads == only_reads(command)


# -- changes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "read", "ends"),
    [
        (call("write_file", path="src/a.py"), call("read_file", path="src/a.py"), True),
        (call("write_file", path="./src/a.py"), call("read_file", path="/repo/src/a.py"), True),
        (call("write_file", path="src/a.py"), call("read_file", path="src/b.py"), False),
        (call("write_file", path="/repo/src/a.py"), call("read_file", path="src/b.py"), False),
        (call("write_file", path="src/a.py"), call("list_files", path="src"), True),
        (call("write_file", path="/repo/src/a.py"), call("list_files", path="src"), True),
        (call("write_file", path="src/a.py"), call("list_files", path="docs"), False),
        (call("write_file", path="src/a.py"), call("list_files"), True),
        (call("write_file", path="src/a.py"), call("glob", path="docs/*.py"), True),
        (call("write_file", path="src/a.py"), call("grep", pattern="x"), True),
        (call("write_file", path="src/a.py"), call("web_search", query="x"), False),
        (call("write_file", path="src/a.py"), call("get_toc", reg_id="manual"), False),
        (call("update_document", doc="manual"), call("get_toc", reg_id="manual"), True),
        (call("update_order", order_id=7), call("get_order", order_id=7), True),
        (call("update_order", order_id=7), call("get_order", order_id=8), False),
        (call("update_order", order_id=7), call("list_orders", status="open"), True),
        (call("bash", command="make"), call("read_file", path="src/a.py"), True),
        (call("bash", command="make"), call("fetch", url="https://example.org/a"), False),
        (
            call("bash", command="curl -X POST https://example.org/a"),
            call("fetch", url="https://example.org/a"),
            True,
        ),
        (call("bash", command="make"), call("fetch", url="http://localhost:8000/a"), True),
        (call("frobnicate", x=1), call("read_file", path="src/a.py"), True),
    ],
)
def test_an_answer_ends_unless_it_is_surely_about_something_else(change, read, ends):
    """Another file, another id, the web; everything else is read again."""
    assert ends == affects(change, read)


def test_what_was_read_from_a_file_that_changed_is_forgotten():
    """By its path; nothing else goes, and a command names no file."""
    change = call("write_file", path="src/a.py", text="x")
    assert [True, True, False, False] == [
        touches(change, source) for source in ("src/a.py", "/repo/src/a.py", "src/b.py", "manual P3")
    ]
    assert not touches(call("bash", cwd="src"), "src/a.py")
    assert not touches(call("write_file", path="."), "src/a.py")


def test_an_answer_that_was_fetched_during_a_change_is_not_kept():
    """Two calls at once: whether the file was read before or after the write, nobody knows."""
    now = [0.0]
    cache = CallCache[str](lambda: now[0])
    read, write = call("read_file", path="a"), call("write_file", path="a")
    assert cache.find(read) is None
    cache.changed(write)
    cache.keep(read, "old")
    assert cache.find(read) is None
    cache.keep(read, "new")
    now[0] = 10.0
    assert ("new", 10.0) == cache.find(read) == cache.find(read, 10)
    assert cache.find(read, 9) is None


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("query_database", {"query": "DELETE FROM users WHERE id = 1"}),
        ("mcp__db__query", {"query": "insert into t values (1)"}),
        ("graphql_query", {"query": "mutation { pay(id: 5) { ok } }"}),
        ("update_todo_file", {"path": "todo.md"}),
        ("git_fetch", {}),
        ("fetch_and_ack", {"id": 5}),
        ("crawl_site", {"url": "https://x.example", "output_dir": "out"}),
        ("remember", {"text": "a"}),
    ],
)
def test_what_may_write_is_run_every_time(tool, given):
    """Whatever its name or its argument is called."""
    rule = rule_for(tool, DEFAULT_RULES, given)
    assert (False, True) == (rule.cacheable, rule.changes)


@pytest.mark.parametrize("tool", ["get_approval", "get_user_feedback", "get_access_token"])
def test_people_are_asked_again(tool):
    """And what is made for a call is made for the next one."""
    assert not rule_for(tool, DEFAULT_RULES, {"question": "May I?"}).cacheable


@pytest.mark.parametrize(
    "command",
    [
        "ls & rm a.txt",
        "git diff --output=a.txt",
        "uniq a.txt b.txt",
        "sort -uo a.txt b",
        "find . -fls a.txt",
        "date -s 2020",
    ],
)
def test_commands_that_write_do_not_only_read(command):
    """However they are spelled."""
    assert not only_reads(command)


def test_a_pattern_with_spaces_is_another_pattern():
    """Indentation is what a search for code is often about."""
    assert ToolCall.of("grep", {"pattern": "    def"}).key != ToolCall.of("grep", {"pattern": "def"}).key


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (("http_delete", {"url": "https://api.x/items/5"}), ("fetch", {"url": "https://api.x/items"})),
        (("update_issue", {"id": 5}), ("get_issue", {"url": "https://git.x/issues/5"})),
        (("edit_file", {"path": "a.py"}), ("get_outline", {"path": "./a.py"})),
        (("write_file", {"path": "/data/p/a.txt"}), ("read_file", {"path": "~/p/a.txt"})),
    ],
)
def test_what_an_agent_changed_is_read_again(change, read):
    """On the web, in an outline, under another spelling of its path."""
    assert affects(ToolCall.of(*change), ToolCall.of(*read))


def test_equal_calls_at_once_keep_nothing_from_before_a_change():
    """Neither of the two."""
    cache, read = CallCache[str](lambda: 0.0), ToolCall.of("read_file", {"path": "a"})
    cache.find(read)
    cache.find(read)
    cache.changed(ToolCall.of("write_file", {"path": "a"}))
    cache.keep(read, "old")
    cache.keep(read, "old too")
    assert None is cache.find(read)
    cache.keep(read, "new")
    assert ("new", 0.0) == cache.find(read)

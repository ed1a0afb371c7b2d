"""Habits of the source that no linter knows."""

from collections.abc import Callable

import pytest

from .scans import (
    Finding,
    Source,
    broad_excepts,
    environment_reads,
    foreign_strings,
    hidden_imports,
    parsed_renderings,
    sources,
)

#: The only module that reads the process environment, and a script that runs without it and needs a key.
ENVIRONMENT = {"settings/sources.py", "agents/hook.py"}

#: Where a failure must not spread, and why. Each of these logs with a traceback or hands the failure on.
BROAD_EXCEPTS: dict[str, str] = {
    "agents/hook.py::ask": "a script that a coding agent waits for: whatever fails there, it prints nothing and the agent goes on",
    "edge/fail_open.py::FailOpen._contained": "the edge of a framework's hook: whatever fails there, the run goes on; it logs with traceback",
    "integrations/langgraph/nodes.py::retrieve_node": "whatever a user's retriever raises costs its block and never the answer; it logs with traceback, and the trace says so",
    "engine/engine.py::Engine.guarded": "the same, without a context manager for every window",
    "engine/engine.py::Engine.absorb": "the same, without a context manager for every turn that is recorded",
    "tiers/workspace/results.py::_Reading.read": "whatever an object that a tool returned raises when it is looked at; nothing is remembered of it",
    "tiers/base.py::guarded": "whatever foreign code raises: a model, an embedder, a vector store, a third-party tier, an object that a tool returned. The caller says what becomes of the failure: it is logged and counted, is in the receipt, is raised again outside of the task group, or the text says that not all is there",
    "service/background.py::_keep": "the copy of a process that has something else to do: nothing above may run in it; it says what failed and ends",
    "service/background.py::_Keeper._forked": "the same for the process that works: it says what failed and ends, and the keeper forks another",
    "service/chat_turn.py::ChatRun.run": "half an answer is out already: it logs where, and the stream ends with a problem",
    "service/request_guard.py::ErrorMiddleware.__call__": "the service's last handler: it logs and answers with a problem document",
    "stores/sqlite/lanes.py::_Job.run": "whatever a job raises belongs to the one who asked; the thread must live",
    "stores/sqlite/lanes.py::Writer._do_late": "whatever a rewriting raises, nobody waits for it, and without this thread all later writes would wait for ever; it is logged and tried again",
    "tiers/loading.py::_import": "whatever an import raises would close the memory under whoever uses it; it is logged",
    "text/tokens.py::ExactCounter._in_halves": "pyo3's PanicException is a BaseException and cannot be imported",
    "text/tokens.py::tells_the_truth": "a broken tokenizer may raise anything; the next source is asked",
}

#: Imports that may wait until they are needed, and why.
HIDDEN_IMPORTS: dict[str, str] = {
    "arrays.py::_Numpy.__getattr__": "numpy, a seventh of a second for whoever only imports Pagefile",
    "cli/invocation.py::Invocation.answer": "pydantic and the schemas, which only `--json` needs",
    "engine/memory.py::Memory.export": "pydantic and its shapes, a fifth of a second for whoever moves nothing",
    "engine/memory.py::Memory.import_": "the same, for the way in",
    "stores/quantised.py::_simsimd": "simsimd, which multiplies vectors, loaded with the first search as numpy is",
    "stores/registry.py::server_schema": "the extra postgres, which nobody needs who has a file",
    "cli/__init__.py::main": "most of a short command's time, and Ctrl-C is one line there too",
    "cli/chat.py::_lines": "readline, which not every Python has, and only a terminal needs",
    "cli/output.py::show_counts": "the words of the inspector, which only an erasure needs",
    "cli/tail.py::_print": "the schemas, which only `--json` needs",
    "settings/sources.py::_yaml": "it takes as long as the rest of a short command, and most have no YAML",
    "cli/app.py::_imported": "a command's module is imported once it is asked for",
    "cli/mcp.py::_serving": "the extra mcp, which `pagefile --help` and the settings of clients do without",
    "cli/bench.py::_found": "the benchmarks of a checkout, which no wheel has",
    "cli/serve.py::_serve": "the extra service, and half a second that no other command needs",
    "cli/quickstart.py::_started": "the extra service, and half a second that no other command needs",
    "cli/serve.py::_checked": "the extra service, which is there once the server is",
    "service/chat_hooks.py::_imported": "a router or retriever that the settings name by its import path",
    "service/app.py::_traces": "the extra otel, which nobody needs who makes no spans",
    "service/spans.py::_protobuf": "the extra otel, which nobody needs who sends spans as JSON, or none",
    "standalone/milvus_collection.py::_pymilvus": "the extra milvus, and three seconds that nobody needs who has no such client",
    "standalone/fact_injection.py::MemoryMiddleware.__new__": "a framework, asked for only where its agents are imported already",
    "standalone/fact_injection.py::MemoryMiddleware._message": "a framework, asked for only when a message is made",
    "stores/session_cache.py::open_sessions": "the extra redis, which nobody needs who has no such cache",
    "stores/milvus/driver.py::Driver._play": "the extra milvus brings it, and it takes its time",
    "stores/milvus/driver.py::_pymilvus": "the extra milvus, and three seconds of which the event loop must know nothing",
    "stores/registry.py::open_store": "the extra postgres, and half a second that nobody needs who keeps a file",
    "stores/registry.py::open_vectors": "the extra milvus, which nobody needs whose vectors live in the database",
    "text/tokens.py::_from_rs_bpe": "loads a vocabulary of megabytes, and is not there on Python 3.14",
    "text/tokens.py::_from_tiktoken": "asked only when rs-bpe cannot count; its import is slow",
    "models/embedders.py::_memory_encoder": "loads megabytes, which nobody needs who asks for no vector",
    "models/embedders.py::_universal_sentence_encoder": "the extra use; ships no types",
    "models/endpoint.py::Endpoint._openai": "the extra openai, and a second that nobody needs who has no endpoint",
    "models/extractors.py::_parsed": "pydantic, which importing Pagefile must not load; nobody needs it who has no model",
    "models/chat.py::_errors": "the extra openai brings both, and a second that nobody needs who has no model",
    "text/words.py::_cut": "reads a dictionary for a quarter of a second, which English never needs",
    "text/words.py::_Stemmers.__init__": "PyStemmer ships no types; the protocol beside it stands for them",
    "text/tokens.py::_optional": "the extras tokenizers, qwen and deepseek",
}


#: Where the tags of a window are known outside of `window/` and `shapes/`, and why.
PARSED_RENDERINGS: dict[str, str] = {
    "standalone/fact_injection.py::MemoryMiddleware.before_model": "its own message, which it writes and nothing reads",
}


def everywhere(scan: Callable[[Source], list[Finding]]) -> list[Finding]:
    return [finding for source in sources() for finding in scan(source)]


def unexpected(scan: Callable[[Source], list[Finding]], allowed: dict[str, str]) -> list[str]:
    return [
        f"{finding.path}:{finding.line} in {finding.function or 'the module'}: {finding.what}"
        for finding in everywhere(scan)
        if finding.place not in allowed
    ]


def test_only_settings_reads_the_environment():
    """Everything inside takes plain arguments."""
    assert {} == {
        finding.path: finding for finding in everywhere(environment_reads) if finding.path not in ENVIRONMENT
    }


def test_failures_are_caught_by_name():
    """A broad `except` is only where the list above says why."""
    assert [] == unexpected(broad_excepts, BROAD_EXCEPTS)


def test_imports_are_at_the_top():
    """An import inside a function is only where the list above says why."""
    assert [] == unexpected(hidden_imports, HIDDEN_IMPORTS)


def test_foreign_languages_live_in_their_own_files():
    """SQL and HTML over three lines are files beside the code."""
    assert [] == unexpected(foreign_strings, {})


def test_nothing_parses_a_rendering():
    """A window has parts: whoever wants one asks for it, and looks for no tag and counts no message."""
    found = [one for one in everywhere(parsed_renderings) if not one.path.startswith(("window/", "shapes/"))]
    assert [] == [one for one in found if one.place not in PARSED_RENDERINGS]


@pytest.mark.parametrize(
    ("scan", "allowed"),
    [
        (broad_excepts, BROAD_EXCEPTS),
        (hidden_imports, HIDDEN_IMPORTS),
        (parsed_renderings, PARSED_RENDERINGS),
    ],
    ids=["broad excepts", "hidden imports", "parsed renderings"],
)
def test_exceptions_are_argued_and_still_needed(
    scan: Callable[[Source], list[Finding]], allowed: dict[str, str]
):
    """An allow-list shrinks with the code, and each line of it has a reason."""
    assert set(allowed) == set(allowed) & {finding.place for finding in everywhere(scan)}
    assert [] == [place for place, reason in allowed.items() if len(reason) < 20]


@pytest.mark.parametrize(
    ("scan", "text", "expected"),
    [
        (environment_reads, "import os\nHOME = os.environ['HOME']", ["os.environ"]),
        (environment_reads, "import os\ndef f(): return os.getenv('HOME')", ["os.getenv"]),
        (environment_reads, "from os import environ as e", ["os.environ"]),
        (environment_reads, "import os\nos.path.join('a')", []),
        (broad_excepts, "try: f()\nexcept Exception: pass", ["except Exception"]),
        (broad_excepts, "try: f()\nexcept (ValueError, BaseException): g()", ["except BaseException"]),
        (broad_excepts, "try: f()\nexcept: g()", ["except everything"]),
        (broad_excepts, "try: f()\nexcept* Exception: g()", ["except Exception"]),
        (broad_excepts, "with contextlib.suppress(Exception): f()", ["suppress(Exception)"]),
        (broad_excepts, "try: f()\nexcept BaseException:\n    g()\n    raise", []),
        (broad_excepts, "try: f()\nexcept ValueError: pass", []),
        (hidden_imports, "def f():\n    import json", ["json"]),
        (hidden_imports, "class A:\n    async def f(self):\n        from a.b import c", ["a.b"]),
        (hidden_imports, "def f():\n    importlib.import_module('a')", ["import_module"]),
        (hidden_imports, "def f():\n    import_module('a')", ["import_module"]),
        (hidden_imports, "import json\nif json:\n    import a\nclass B:\n    import c", []),
        (foreign_strings, "Q = '''SELECT a\nFROM b\nWHERE c\nAND d'''", ["SQL"]),
        (foreign_strings, "Q = f'''SELECT {a}\nFROM b\nWHERE c\nAND d'''", ["SQL"]),
        (foreign_strings, "Q = ('SELECT a '\n 'FROM b '\n 'WHERE c '\n 'AND d')", ["SQL"]),
        (foreign_strings, "Q = '''<div>\n<p>\n</p>\n</div>'''", ["HTML"]),
        (parsed_renderings, "def f(t): return t.startswith('<memory>')", ["tags"]),
        (parsed_renderings, "def f(t): return f'{t}</facts>'", ["tags"]),
        (parsed_renderings, "def f(w): return w.messages[: w.prefix_messages]", ["prefix_messages"]),
        (parsed_renderings, "def f(w):\n    '''The `<memory>` block.'''\n    return w.messages[:2]", []),
        (foreign_strings, "Q = 'SELECT a FROM b'", []),
        (foreign_strings, "def f():\n    '''Runs\n    SELECT a FROM b\n    once\n    only.'''", []),
    ],
)
def test_scans_find_what_they_look_for(
    scan: Callable[[Source], list[Finding]], text: str, expected: list[str]
):
    """The tests above can fail."""
    assert expected == [finding.what for finding in scan(Source.of(text))]


def test_a_finding_names_its_function():
    """An allow-list names places by function, also inside classes and nested functions."""
    source = Source.of("class A:\n  def f(self):\n    def g():\n      import json\n", "room/a.py")
    assert ["room/a.py::A.f.g"] == [finding.place for finding in hidden_imports(source)]

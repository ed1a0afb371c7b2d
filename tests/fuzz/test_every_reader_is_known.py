"""Whoever adds a place where foreign text is read has to say here which test gives it bad input."""

import ast

import pytest

from tests.architecture.scans import ROOT, Finding, Source, sources

#: Calls that read a format, wherever they stand. Regular expressions are found and tried by test_bounded_time.
READING = {
    "loads", "load", "safe_load", "fromisoformat", "strptime", "validate_json", "model_validate_json", "urlsplit", "urlparse",
    "parse_qsl", "raw_decode", "literal_eval", "ip_address", "b64decode", "UUID",
}  # fmt: skip
_JSON_LIKE = {"json", "tomllib", "yaml"}

IMPORTS, RESULTS, STREAMS, FILES, TIME = (
    "test_imports.py", "test_tool_results.py", "test_streams_and_sessions.py", "test_settings_and_addresses.py", "test_bounded_time.py",
)  # fmt: skip
VENDORS = "tests/compat/test_any_request.py"
DUMPS, MESSAGES, GATEWAY, SPANS = "test_dumps.py", "test_messages.py", "test_gateway.py", "test_spans.py"
OWN = "reads only what Pagefile itself wrote or ships"

#: By place: the test that gives it bad input, or why none is needed.
READERS: dict[str, str] = {
    "agents/config_files.py::_parsed": "tests/mcp/test_install.py",
    "agents/config_files.py::json_change": OWN,
    "agents/config_files.py::_toml": "tests/mcp/test_install.py",
    "agents/coding_agents.py::service_address": "tests/agents/test_wrap.py",
    "compat/imports.py::_graph": "tests/compat/test_imports.py",
    "compat/memory_stores.py::_read_place": VENDORS,
    "integrations/langgraph_checkpoints.py::PagefileSaver._pending": OWN,
    "integrations/langgraph_checkpoints.py::PagefileSaver._put_writes": OWN,
    "integrations/langgraph_checkpoints.py::PagefileSaver._read": OWN,
    "mcp/proxy.py::_message": "tests/mcp/test_proxy.py",
    "agents/hook.py::request_body": "tests/agents/test_hooks.py",
    "agents/config_files.py::toml_change": "tests/mcp/test_install.py",
    "cli/measures.py::when": FILES,
    "client/transport.py::Caller._answered": "tests/acceptance/test_client.py",
    "client/transport.py::_problem": STREAMS,
    "client/remote.py::": OWN,
    "client/remote.py::Client.export": STREAMS,
    "client/transport.py::EventReader.read": STREAMS,
    "engine/annotations.py::_model_call": OWN,
    "engine/audit_log.py::AuditLog._files": OWN,
    "engine/audit_log.py::_entry": OWN,
    "engine/dead_writers.py::DeadWriters.maintain_all": OWN,
    "engine/experiments.py::_experiment": OWN,
    "engine/experiments.py::_experiment.row": OWN,
    "engine/importer.py::_check_redacted": IMPORTS,
    "inspector/page_request.py::PageRequest.day": "tests/acceptance/test_studio.py",
    "service/background.py::_receive": OWN,
    "service/mcp.py::_asked": "test_mcp.py",
    "service/reference.py::_named_by_title": OWN,
    "settings/sources.py::_yaml": FILES,
    "engine/arguments.py::checked_json": RESULTS,
    "engine/fact_import.py::_moment": IMPORTS,
    "engine/fact_import.py::read_memory": IMPORTS,
    "engine/snapshots.py::recorded_snapshot": OWN,
    "engine/export_lines.py::_decoded": IMPORTS,
    "engine/importer.py::Reader.read": IMPORTS,
    "engine/importer.py::_check_header": IMPORTS,
    "integrations/claude_code/shapes.py::Transcript._take": "tests/integration/claude/test_transcript.py",
    "integrations/brought.py::moment": DUMPS,
    "integrations/imports.py::_read_archive": DUMPS,
    "integrations/imports.py::_read_lines": DUMPS,
    "integrations/imports.py::_json": DUMPS,
    "integrations/memory_dumps.py::_letta_text": DUMPS,
    "integrations/span_messages.py::_listed": SPANS,
    "integrations/spans.py::_read": SPANS,
    "edge/recorder.py::as_json": MESSAGES,
    "models/extractors.py::_values": STREAMS,
    "schema.py::moment_from": FILES,
    "service/auth.py::_read": "tests/acceptance/test_http_keys.py",
    "service/exposure.py::is_loopback": FILES,
    "service/gateway.py::_unreadable": "tests/gateway/test_keys.py",
    "service/gateway_target.py::check_gateway": "tests/gateway/test_keys.py",
    "service/idempotency.py::_again": OWN,
    "service/idempotency.py::_named": "tests/acceptance/test_http_idempotency.py",
    "service/inspector_auth.py::form_of": "tests/acceptance/test_inspector.py",
    "service/reference.py::completed": OWN,
    "service/spans.py::_of_json": "tests/acceptance/test_spans.py",
    "service/transfer.py::_check": IMPORTS,
    "settings/sources.py::_from_file": FILES,
    "shapes/skeleton.py::Filling._resolved": OWN,
    "shapes/anthropic.py::_block_at": OWN,
    "shapes/tool_arguments.py::decoded": MESSAGES,
    "shapes/message_reader.py::plain_json": MESSAGES,
    "shapes/tool_arguments.py::read_arguments": MESSAGES,
    "standalone/fact_injection.py::get_memory_data": IMPORTS,
    "stores/encoding.py::from_json": STREAMS,
    "stores/encoding.py::json_copy": STREAMS,
    "stores/encoding.py::text_messages": OWN,
    "stores/encoding.py::text_steps": OWN,
    "stores/encoding.py::moment": STREAMS,
    "stores/milvus/schema.py::model_of": OWN,
    "compat/agent_long_term.py::_time": VENDORS,
    "compat/mem0.py::_passes": VENDORS,
    "compat/memory_stores.py::_in_time": VENDORS,
    "service/compat.py::_read": VENDORS,
    "gateway/identity.py::_claude_codes": GATEWAY,
    "gateway/prices.py::read_prices": GATEWAY,
    "gateway/sse.py::object_of": GATEWAY,
    "integrations/imports.py::_parsed": DUMPS,
    "stores/milvus/driver.py::Place.of": FILES,
    "stores/postgres/address.py::Place.of": FILES,
    "stores/postgres/migration.py::dump_command": FILES,
    "stores/redis/sessions.py::read": STREAMS,
    "text/tokens.py::_read_ranks": OWN,
    "text/sources.py::_read": TIME,
    "text/synopsis/kinds.py::_is_whole": TIME,
    "text/synopsis/objects.py::_first_value": TIME,
    "text/synopsis/kinds.py::_json": TIME,
    "text/synopsis/kinds.py::parsed_lines": TIME,
    "text/synopsis/binary.py::beginning_of": TIME,
    "text/synopsis/documents.py::_failure": TIME,
    "text/tables.py::table": OWN,
    "text/times.py::_feast.made": OWN,
    "tiers/archive.py::": OWN,
    "tiers/page_in.py::checked_uuid": FILES,
    "tiers/workspace/results.py::read_text": RESULTS,
    "window/parts.py::parts_from": OWN,
    "wire/requests.py::examples": OWN,
}


def reading(source: Source) -> list[Finding]:
    """Where a format is read."""
    found: list[Finding] = []
    for node, function in source.nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=module), attr=name)) if name in READING:
                if name not in {"load", "loads"} or module in _JSON_LIKE:
                    found.append(source.finding(node, function, f"{module}.{name}"))
            case ast.Call(func=ast.Attribute(attr=name)) if name in READING - {"load", "loads"}:
                found.append(source.finding(node, function, name))
            case ast.Call(func=ast.Name(id=name)) if name in READING - {"load", "loads"}:
                found.append(source.finding(node, function, name))
    return found


def test_every_reader_has_its_test():
    """Benchmarks read what their own user gives them, and the contracts what they wrote."""
    found = {
        finding.place
        for source in sources()
        if not source.path.startswith(("bench/", "testing/"))
        for finding in reading(source)
    }
    assert set(READERS) == found


@pytest.mark.parametrize("place", [place for place, test in READERS.items() if test != OWN])
def test_the_tests_are_there(place):
    """Each name above is a file."""
    test = READERS[place]
    assert (ROOT / (test if "/" in test else f"tests/fuzz/{test}")).is_file()


def test_the_scan_finds():
    """The test above can fail."""
    source = Source.of(
        "import json\ndef f(x):\n  json.loads(x); m.LINE.validate_json(x); UUID(x); pickle.loads(x)\n"
    )
    assert ["json.loads", "validate_json", "UUID"] == [finding.what for finding in reading(source)]

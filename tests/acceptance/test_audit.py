"""Who read and changed what is noted, for each tenant, without what was said."""

import json
import stat

import pytest
from fastapi.testclient import TestClient

from pagefile.engine import audit_log
from pagefile.engine.audit_log import AuditEntry, AuditLog
from pagefile.errors import SettingsError
from pagefile.service.app import create_app
from pagefile.settings import EmbedderSettings, PolicySettings, ServiceSettings, Settings
from tests.acceptance.cli_calling import pagefile

ADDRESS = "http://127.0.0.1"


def settings(tmp_path, **service):
    return Settings(
        url=f"sqlite:///{tmp_path}/a.db",
        embedder=EmbedderSettings(name="none"),
        policy=PolicySettings(audit=str(tmp_path / "audit")),
        service=ServiceSettings(**service),
    )


def recorded(client, **more):
    return client.post(
        "/v1/turns", json={"conversation_id": "c", "user_id": "ada", "user": "secret words", **more}
    )


def test_requests_are_noted_with_whom_they_are_about(tmp_path):
    """Reads as well as writes; what was said is not in the file, which only its owner may read."""
    with TestClient(create_app(settings(tmp_path)), base_url=ADDRESS) as client:
        recorded(client)
        client.get("/v1/turns", params={"conversation_id": "c", "user_id": "ada"})
        client.get("/v1/turns", params={"conversation_id": "none", "user_id": "eve"})
        client.get("/healthz")
        found = client.get("/audit").json()["items"]
        about_eve = client.get("/audit", params={"of_user": "eve"}).json()["items"]
    seen = [(one["verb"], one["user"], one["conversation"], one["status"]) for one in found]
    assert [
        ("GET /v1/turns", "eve", "none", 200),
        ("GET /v1/turns", "ada", "c", 200),
        ("POST /v1/turns", "ada", "c", 201),
    ] == seen
    assert ["eve"] == [one["user"] for one in about_eve]
    (file,) = (tmp_path / "audit").iterdir()
    assert "secret" not in file.read_text()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)


def test_every_way_in_is_named(tmp_path):
    """The tool that a model calls over MCP, the spans of an exporter, what clients of other memories ask."""
    pytest.importorskip("mcp")
    accepted = {"accept": "application/json, text/event-stream"}
    begun = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "one", "version": "1"},
    }
    with TestClient(create_app(settings(tmp_path)), base_url=ADDRESS) as client:
        first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begun}
        answer = client.post("/mcp", json=first, headers=accepted)
        accepted["mcp-session-id"] = answer.headers["mcp-session-id"]
        for name in ("facts", "no such tool\n", 7):
            asked = {"name": name, "arguments": {}}
            call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked}
            client.post("/mcp", json=call, headers=accepted)
        client.post("/v1/traces", json={"resourceSpans": []})
        client.get("/mem0/v1/ping/")
        found = client.get("/audit").json()["items"]
    assert [
        "GET /mem0/{rest:path}",
        "POST /v1/traces",
        "POST /mcp tools/call",
        "POST /mcp tools/call",
        "POST /mcp tools/call facts",
        "POST /mcp initialize",
    ] == [one["verb"] for one in found]


def test_a_tenant_sees_its_own_and_a_user_nothing(tmp_path):
    """The key that was used is named by its id."""
    given = settings(tmp_path, require_keys=True)
    keys = {}
    for name, more in {"clinic": (), "other": (), "ada": ("--user", "ada")}.items():
        said = pagefile(
            "--db",
            given.url,
            "keys",
            "add",
            name,
            "--tenant",
            name if name != "ada" else "clinic",
            *more,
            "--json",
        )
        keys[name] = json.loads(said.out)
    headers = {name: {"Authorization": f"Bearer {key['key']}"} for name, key in keys.items()}
    with TestClient(create_app(given), base_url=ADDRESS) as client:
        for name in ("clinic", "other"):
            client.post(
                "/v1/turns",
                json={"conversation_id": "c", "user_id": "ada", "user": "x"},
                headers=headers[name],
            )
        assert 401 == client.get("/audit").status_code
        assert 403 == client.get("/audit", headers=headers["ada"]).status_code
        assert 403 == client.get("/audit", params={"tenant": "other"}, headers=headers["clinic"]).status_code
        found = client.get(
            "/audit", params={"by_key": keys["clinic"]["id"]}, headers=headers["clinic"]
        ).json()["items"]
    assert {("clinic", keys["clinic"]["id"])} == {(one["tenant"], one["key"]) for one in found}


def test_without_a_folder_the_route_says_so(tmp_path):
    plain = Settings(url=f"sqlite:///{tmp_path}/a.db", embedder=EmbedderSettings(name="none"))
    with TestClient(create_app(plain), base_url=ADDRESS) as client:
        answer = client.get("/audit")
    assert "policy.audit" in answer.json()["detail"]


def test_old_files_are_deleted_and_the_newest_lines_come_first(tmp_path):
    """Of a long file only the end is read; a line that was cut off is skipped."""
    old = tmp_path / "audit-2020-01-01.jsonl"
    old.write_text("{}\n")
    log = AuditLog(tmp_path, days=30)
    for number in range(3000):
        log.note(AuditEntry("now", None, f"verb {number} {'x' * 100}", "t", count=number))
    log.close()
    assert not old.exists()
    (file,) = tmp_path.iterdir()
    with file.open("a") as cut:
        cut.write('{"at": "no')
    assert [2999, 2998, 2997] == [entry.count for entry in log.entries("t", limit=3)]
    assert 3000 == len(log.entries(None, limit=10_000))
    assert [] == log.entries("other")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="no folder can be made"):
        AuditLog.of(PolicySettings(audit=str(tmp_path / "file" / "audit")))


def test_a_rare_user_is_found_in_a_large_log(tmp_path, monkeypatch):
    """Only lines that name what is wanted are parsed, wherever the parts end in which the file is read."""
    parsed = []
    monkeypatch.setattr(audit_log, "_PART", 97)
    monkeypatch.setattr(
        audit_log, "_entry", lambda line, whole=audit_log._entry: parsed.append(line) or whole(line)
    )
    log = AuditLog(tmp_path, 90)
    for number in range(300):
        user = "李雷" if number % 100 == 7 else f"user-{number}"
        log.note(AuditEntry("2026-11-18T10:00:00.000+00:00", "k", f"verb-{number}", "t", user, None))
    assert ["verb-207", "verb-107", "verb-7"] == [one.verb for one in log.entries("t", user="李雷")]
    assert 3 == len(parsed)
    assert [] == log.entries("t", user="nobody")
    assert 3 == len(parsed)
    assert [f"verb-{number}" for number in range(299, 199, -1)] == [one.verb for one in log.entries("t")]
    log.close()

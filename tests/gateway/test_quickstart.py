"""`pagefile quickstart`: somebody's own agent behind the gateway, as a process of its own."""

import os
import subprocess
import sys
import tomllib

from tests.gateway.upstream import Said, Upstream

AGENT = """
import openai
client = openai.OpenAI(api_key="sk-vendor")
print(client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "one"}]).choices[0].message.content)
raise SystemExit(7)
"""


def quickstarted(upstream, database, *agent):
    environment = {**os.environ, "OPENAI_BASE_URL": f"{upstream.url}/v1", "PAGEFILE_EMBEDDER__NAME": "none"}
    command = [sys.executable, "-m", "pagefile", "--db", database, "quickstart", "--", *map(str, agent)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_an_agent_runs_with_memory_and_nothing_stays_set(tmp_path):
    """Its requests go where they went before, through a gateway that ends with it; its exit code is ours."""
    database = str(tmp_path / "mine.db")
    with Upstream(lambda _: Said("heard")) as upstream:
        done = quickstarted(upstream, database, sys.executable, "-c", AGENT)
        assert 7 == done.returncode, done.stderr
        assert "heard" in done.stdout
        assert f"→ {upstream.url}/v1" in done.stdout
        assert "No request" not in done.stderr
        assert 1 == len(upstream.requests)
    shown = [sys.executable, "-m", "pagefile", "--db", database, "show"]
    assert "me" in subprocess.run(shown, capture_output=True, text=True, timeout=60, check=True).stdout


def test_an_agent_that_goes_elsewhere_is_noticed(tmp_path):
    with Upstream(lambda _: Said("heard")) as upstream:
        done = quickstarted(upstream, tmp_path / "mine.db", sys.executable, "-c", "print('fine')")
    assert 0 == done.returncode
    assert "No request came through the gateway" in " ".join(done.stderr.split())


def test_codex_gets_the_url_as_a_setting(tmp_path):
    """It reads no variable."""
    codex = tmp_path / "codex"
    codex.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    codex.chmod(0o755)
    with Upstream(lambda _: Said("heard")) as upstream:
        told = quickstarted(upstream, tmp_path / "mine.db", codex, "exec", "How many?").stdout.splitlines()
    first, provider, second, chosen, *rest = told[-6:]
    assert ("-c", "-c", 'model_provider="pagefile"', ["exec", "How many?"]) == (first, second, chosen, rest)
    settings = tomllib.loads(provider)["model_providers"]["pagefile"]
    assert "responses" == settings["wire_api"]
    assert f"  OPENAI_BASE_URL={settings['base_url']}" == told[1].partition("  →")[0]

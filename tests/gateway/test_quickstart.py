"""`pagefile quickstart`: somebody's own agent behind the gateway, as a process of its own."""

import os
import subprocess
import sys

from tests.gateway.upstream import Said, Upstream

AGENT = """
import openai
client = openai.OpenAI(api_key="sk-vendor")
print(client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "one"}]).choices[0].message.content)
raise SystemExit(7)
"""


def test_an_agent_runs_with_memory_and_nothing_stays_set(tmp_path):
    """Its requests go where they went before, through a gateway that ends with it; its exit code is ours."""
    with Upstream(lambda _: Said("heard")) as upstream:
        environment = {
            **os.environ,
            "OPENAI_BASE_URL": f"{upstream.url}/v1",
            "PAGEFILE_EMBEDDER__NAME": "none",
        }
        database = str(tmp_path / "mine.db")
        command = [
            sys.executable,
            "-m",
            "pagefile",
            "--db",
            database,
            "quickstart",
            "--",
            sys.executable,
            "-c",
            AGENT,
        ]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert 7 == done.returncode, done.stderr
        assert "heard" in done.stdout
        assert f"→ {upstream.url}/v1" in done.stdout
        assert 1 == len(upstream.requests)
        shown = [sys.executable, "-m", "pagefile", "--db", database, "show"]
        assert "me" in subprocess.run(shown, capture_output=True, text=True, timeout=60, check=True).stdout

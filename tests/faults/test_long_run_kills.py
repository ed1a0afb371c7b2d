"""`kill -9` in the middle of a long run: every line that a result or an argument left in the window leads back to it."""

import re
import signal
import subprocess
import sys

import pytest

from pagefile import Memory, Settings
from pagefile.settings import ArchiveSettings, FactSettings

UUID = re.compile(r"\[archived:([0-9a-f-]{36})\]")
SETTINGS = Settings(
    language="en",
    window_tokens=4000,
    facts=FactSettings(enabled=False),
    archive=ArchiveSettings(threshold=3000, page_from=300, inputs_from=300),
)
#: Calls a tool again and again, and says how often it was acknowledged.
RUN = """
import sys, anyio
from pagefile import Memory
from tests.faults.test_long_run_kills import SETTINGS, given, result

async def main():
    async with Memory.open(sys.argv[1], settings=SETTINGS) as memory:
        chat = memory.conversation("c", user_id="u")
        turn = await chat.begin("Read everything.", id="t")
        for n in range(10_000):
            turn = await chat.step(turn, tool="read", input=given(n), result=result(n))
            await chat.context()
            print(n, flush=True)

anyio.run(main)
"""


def result(n: int) -> str:
    """What a call returns: some are long enough to leave the log as well."""
    return "".join(f"part {n}, line {line}: entry_{n * line % 97}\n" for line in range(20 + n % 3 * 40))


def given(n: int) -> dict[str, object]:
    """The arguments of a call: every other one writes a script."""
    return {"part": n} | ({"script": f"# {n}\n" + "echo line\n" * 60} if n % 2 else {})


@pytest.mark.slow
@pytest.mark.parametrize("calls", [9, 23, 40])
async def test_no_line_is_left_that_leads_nowhere(tmp_path, calls):
    url = f"sqlite:///{tmp_path}/a.db"
    with subprocess.Popen([sys.executable, "-c", RUN, url], stdout=subprocess.PIPE, text=True) as run:
        for _ in range(calls):
            assert run.stdout.readline()
        run.send_signal(signal.SIGKILL)
    async with Memory.open(url, settings=SETTINGS) as memory:
        chat = memory.conversation("c", user_id="u")
        window = await chat.context(turn="t")
        uuids = UUID.findall(str(window.messages))
        assert uuids
        (turn,) = await chat.turns()
        kept = {step.page: result(step.input["part"]) for step in turn.steps}
        kept |= {uuid: step.input["script"] for step in turn.steps for uuid in step.input_pages.values()}
        assert {step.input["part"] for step in turn.steps if step.input_pages}
        for uuid in uuids:
            assert await chat.load(uuid) == kept[uuid]
        # The run goes on where it was.
        n = len(turn.steps)
        await chat.step(turn, tool="read", input=given(n), result=result(n))
        assert (await chat.context(turn="t")).tokens <= SETTINGS.window_tokens

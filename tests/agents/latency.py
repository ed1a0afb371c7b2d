"""How long each hook takes with its own start: `python -m tests.agents.latency [RUNS [TURNS]]`.

The script, in a process of its own as an agent starts it, asks a service on this machine whose project has a history of 200 turns, or of TURNS.
"""

import resource
import statistics
import sys
import tempfile

from pagefile import Settings
from pagefile.client import BlockingClient
from tests.acceptance.http_server import listening

from .hooking import bash_output, prompt, run_hook, stop

LOG = "".join(
    f"[{number:05}] compiled module_{number % 97}.c in {number % 13} ms\n" for number in range(1_500)
)
USER = "project:/srv/shop"


def events(number):
    named = {"session_id": f"s{number}"}
    return {
        "SessionStart": {"hook_event_name": "SessionStart", "source": "startup", **named},
        "UserPromptSubmit": prompt(f"Why does module_{number} take so long to compile?", **named),
        "PostToolUse, short": bash_output(f"ok {number}", **named),
        "PostToolUse, 50 kB": bash_output(f"{number}\n{LOG}", **named),
        "PreCompact": {"hook_event_name": "PreCompact", "trigger": "auto", **named},
        "Stop": stop(f"Because of its {number} templates.", **named),
    }


def measured(runs, turns=200):
    """By hook: its times in ms, and how often it answered before its deadline with something."""
    times = {}
    with tempfile.TemporaryDirectory() as folder:
        with listening(Settings(url=f"sqlite:///{folder}/memory.db")) as url:
            with BlockingClient.open(url) as client:
                chat = client.conversation("old", user_id=USER)
                for number in range(turns):
                    chat.record(
                        f"What about module_{number % 97}, part {number}?", f"It has {number} functions."
                    )
                client.settle()
            for number in range(runs):
                for name, given in events(number).items():
                    answer, took = run_hook(url, given, deadline=None)
                    times.setdefault(name, []).append((took * 1000, answer is not None))
        times["no service"] = [
            (run_hook(url, events(0)["UserPromptSubmit"], deadline=None)[1] * 1000, False)
            for _ in range(runs)
        ]
    return times


def main(runs=20, turns=200):
    print(f"{'hook':20} {'median ms':>9} {'worst ms':>9} {'answered':>9}   ({runs} runs each)")
    for name, found in measured(runs, turns).items():
        took = [one for one, _ in found]
        answered = sum(told for _, told in found)
        print(f"{name:20} {statistics.median(took):9.0f} {max(took):9.0f} {answered:9}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    each = (used.ru_utime + used.ru_stime) * 1000 / (runs * 7)
    print(f"The script itself takes {each:.0f} ms of processor time, its start included.")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

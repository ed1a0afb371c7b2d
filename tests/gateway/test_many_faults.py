"""Many requests, of which every tenth fails at the provider: no turn is lost, and none is there twice."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

from tests.gateway.behind import behind
from tests.gateway.scripts import asked, said, streamed
from tests.gateway.upstream import Fault, Said

CONVERSATIONS, TURNS = 25, 20
FAULTS = (Fault(status=429), Fault(status=500), Fault(status=529), Fault(cut_after=2), Fault(cut_after=5))


@pytest.mark.slow
def test_no_turn_is_lost_and_none_is_there_twice(tmp_path):
    chance = random.Random(7)

    def script(body):
        question = next(m["content"] for m in reversed(body["messages"]) if m["role"] == "user")
        if chance.random() < 0.1:
            fault = chance.choice(FAULTS)
            return fault if fault.status or body.get("stream") else Fault(status=500)
        return Said(f"answer to {question}")

    with behind(script, tmp_path) as here:

        def talk(number):
            client, messages = here.openai(), []
            for turn in range(TURNS):
                messages.append({"role": "user", "content": f"question {number}.{turn}"})
                ask = streamed if turn % 2 else asked
                while True:
                    try:
                        answer = said(ask(client, messages))
                        break
                    except openai.APIError:
                        continue
                messages.append({"role": "assistant", "content": answer})
            client.close()

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(talk, range(CONVERSATIONS)))
        expected = [f"question {number}.{turn}" for number in range(CONVERSATIONS) for turn in range(TURNS)]
        talks = here.talks()
        done = Counter(turn[0] for talk in talks for turn in talk if turn[2] == "done")
        assert Counter(expected) == done
        assert CONVERSATIONS == len(talks)
        assert all(f"answer to {turn[0]}" == turn[1] for talk in talks for turn in talk if turn[2] == "done")
        assert {"done", "aborted"} >= {turn[2] for talk in talks for turn in talk}
        assert len(here.upstream.requests) > len(expected)

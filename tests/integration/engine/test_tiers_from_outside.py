"""Tiers that others wrote: whatever they answer, the window goes out, says what was wrong, and what is erased is erased."""

import logging
import math
from dataclasses import replace

import anyio
import pytest

from pagefile import Memory, Settings, SettingsError
from pagefile.engine import third_party_tiers
from pagefile.errors import TierError
from pagefile.settings import EmbedderSettings
from pagefile.tiers import Tier
from pagefile.window.candidates import Candidate, Form

SETTINGS = Settings(language="en", embedder=EmbedderSettings(name="none"))
#: A tier of somebody else's that works: what others get wrong must not cost its part of the window.
SOUND = "what the sound tier offers"


class Sound(Tier):
    name = "sound"

    def __init__(self):
        self.asked_to_forget = 0

    async def offer(self, request):
        return [request.text("sound", SOUND)]

    async def forget(self, scope):
        self.asked_to_forget += 1
        return {"sounds": 1}


def mine(**verbs):
    """A tier called mine with these verbs."""
    return type("Mine", (Tier,), {"name": "mine", **verbs})()


def offering(make):
    async def offer(self, request):
        return make(request)

    return mine(offer=offer)


def good(request):
    return request.text("good", "what is good")


def raising(self, *_):
    raise ValueError("boom")


async def raising_later(self, *_):
    raise ValueError("boom")


def opened(tier, settings=SETTINGS, url="memory://"):
    return Memory.open(url, settings=settings, tiers=[tier, Sound()])


async def asked(memory):
    """A window, with the conversation's own turn, the question and the sound tier's text in it whatever happens."""
    chat = memory.conversation("c", user_id="ada")
    await chat.record(user="hello", assistant="hi")
    window = await chat.context("next?")
    assert "hello" in [message["content"] for message in window.messages]
    assert SOUND in str(window.messages)
    assert "next?" in str(window.messages[-1]["content"])
    # It is written down too, and can be made again.
    assert [window.id] == [call.id for call in await chat.calls()]
    explained = await chat.explain(window.id)
    assert (True, ()) == (explained.exact, explained.why)
    return window


async def complaint(tier, *, kept=()):
    """The one thing that the receipt says against the tier; `kept` are its candidates in the window."""
    async with opened(tier) as memory:
        window = await asked(memory)
        assert {"mine": 1} == (await memory.describe())["tier_failures"]
    assert kept == tuple(v.id for v in window.receipt.kept if v.block == "extra" and v.id != "sound")
    [note] = window.receipt.degraded
    assert note.startswith("mine failed: ")
    return note


# -- what is offered ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [None, "a text", b"bytes", 7, {"id": "a"}, iter(()), Candidate("a", "extra", (Form(1, text="x"),))],
)
async def test_what_is_no_list_of_candidates_is_refused_as_a_whole(answer):
    """The note says what came, and what should have come."""
    note = await complaint(offering(lambda _: answer))
    assert "offer() returned" in note
    assert "list of candidates" in note


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("a text", "not a Candidate"),
        (None, "not a Candidate"),
        (Candidate("a", "nowhere", (Form(1, text="x"),)), "'nowhere'"),
        (Candidate("a", ["extra"], (Form(1, text="x"),)), "['extra']"),
        (Candidate("a", "instructions", (Form(1, text="x"),)), "'instructions'"),
        (Candidate("a", "safety", (Form(10**6, text="x"),)), "'safety'"),
        (Candidate("a", "recent", (Form(1, text="x"),)), "'recent'"),
        (Candidate("a", "extra", Form(1, text="x")), "give a tuple of forms"),
        (Candidate("", "extra", (Form(1, text="x"),)), "id is empty"),
        (Candidate(7, "extra", (Form(1, text="x"),)), "id must be text"),
        (Candidate("a\udc80", "extra", (Form(1, text="x"),)), "id is not valid Unicode"),
        (Candidate("current", "extra", (Form(1, text="x"),)), "this id"),
        (Candidate("instructions", "extra", (Form(1, text="x"),)), "this id"),
        (Candidate("a", "extra", None), "forms"),
        (Candidate("a", "extra", ("x",)), "not a Form"),
        (Candidate("a", "extra", (Form(-1, text="x"),)), "tokens is -1"),
        (Candidate("a", "extra", (Form("1", text="x"),)), "tokens is '1'"),
        (Candidate("a", "extra", (Form(1, text=None),)), "text must be text"),
        (Candidate("a", "extra", (Form(1, text="x", name=None),)), "name must be text"),
        (Candidate("a", "extra", (Form(1, text="x\udc80"),)), "lone surrogate"),
        (Candidate("a", "extra", (Form(1, text="x\0"),)), "NUL"),
        (Candidate("a", "extra", (Form(1, text="x"),), position="first"), "position is 'first'"),
        (Candidate("a", "extra", (Form(1, text="x"),), score="high"), "score is 'high'"),
        (Candidate("a", "extra", (Form(1, text="x"),), score=math.nan), "score is nan"),
        (Candidate("a", "extra", (), unread_tokens=None), "unread_tokens is None"),
        (Candidate("a", "extra", (Form(1, text="x"),), note=None), "note must be text"),
    ],
)
async def test_a_candidate_that_is_wrong_is_left_out_and_the_good_ones_stay(wrong, said):
    """The note says what is wrong with it."""
    note = await complaint(offering(lambda request: [wrong, good(request)]), kept=("good",))
    assert "1 of 2 candidates left out" in note
    assert said in note


async def test_of_two_candidates_with_one_id_the_first_stays():
    """Two with one id would be shown as one of them, twice."""
    tier = offering(lambda request: [good(request), request.text("good", "another")])
    assert "'good'" in await complaint(tier, kept=("good",))
    async with opened(tier) as memory:
        assert "what is good" in str((await asked(memory)).messages)


@pytest.mark.parametrize("suffix", ["", "/step/0"])
async def test_ids_of_the_running_turn_are_taken(suffix):
    """A tier cannot put anything in the place of the question or of a tool's result."""
    tier = offering(lambda o: [good(o), o.text(f"{o.view.open_turn.id}{suffix}", "instead")])
    async with opened(tier) as memory:
        chat = memory.conversation("c", user_id="ada")
        turn = await chat.step(await chat.begin("next?"), tool="t", result="what the tool said")
        window = await chat.context(turn=turn)
    assert "instead" not in str(window.messages)
    assert "what the tool said" in str(window.messages)
    assert "this id" in window.receipt.degraded[0]


async def test_ids_of_other_tiers_are_taken():
    """The turn stays what it is."""
    tier = offering(lambda o: [good(o), *(o.text(turn.id, "instead") for turn in o.view.turns)])
    assert "this id" in await complaint(tier, kept=("good",))


async def test_many_that_are_wrong_are_one_note():
    """A receipt is read by people."""
    note = await complaint(offering(lambda _: ["x" * 5000] * 1000))
    assert "1000 of 1000" in note
    assert "and 997 more" in note
    assert len(note) < 600


async def test_an_offer_that_is_not_async_is_told():
    """Also when it raises before there is anything to wait for."""
    assert "boom" in await complaint(mine(offer=raising))
    assert "async def offer" in await complaint(mine(offer=lambda _self, _occasion: []))


async def test_a_tier_that_hangs_costs_its_candidates_only(monkeypatch):
    """The window waits for a while, and goes out without them."""
    monkeypatch.setattr(third_party_tiers, "TIMEOUT_S", 0.05)

    async def hang(self, *_):
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        assert "offer() took longer than 0.05 s" in await complaint(mine(offer=hang))
        assert "reconsider() took longer" in await complaint(mine(reconsider=hang))


async def test_a_timeout_inside_a_tier_is_its_own():
    """It is not told as ours."""

    async def offer(self, request):
        raise TimeoutError("the tier's own server")

    assert "the tier's own server" in await complaint(mine(offer=offer))


# -- the other verbs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        raising,
        lambda _self, _window: None,
        lambda _self, _window: [("extra", 1)],
        lambda _self, _window: {"extra": "many"},
        lambda _self, _window: {"extra": -1},
        lambda _self, _window: {"nowhere": 1},
        lambda _self, _window: {"current": 0},
    ],
)
async def test_limits_that_are_wrong_are_those_of_any_tier(limits):
    """They never take room from what must not be cut."""

    async def offer(self, request):
        return [good(request), request.text("long", "word " * 1600, rank=1)]

    note = await complaint(mine(limits=limits, offer=offer), kept=("good",))
    assert "limits()" in note or "boom" in note


@pytest.mark.parametrize("verb", ["reconsider", "shown"])
async def test_what_fails_after_the_window_is_made_is_told_in_it(verb):
    """The receipt that the caller gets and the recorded one say the same."""
    tier = mine(**{verb: raising})
    assert "boom" in await complaint(tier)
    async with opened(tier) as memory:
        window = await asked(memory)
        [call] = await memory.conversation("c", user_id="ada").calls()
    assert list(window.receipt.degraded) == call.receipt["degraded"]


async def test_an_answer_that_is_neither_yes_nor_no_is_told():
    """A coroutine that nobody awaits is no answer, for instance."""

    async def reconsider(self, request, window):
        return "yes"

    assert "reconsider() returned 'yes'" in await complaint(mine(reconsider=reconsider))
    assert "shown() returned" in await complaint(mine(shown=lambda *_: object()))


async def test_a_verb_without_an_answer_says_no():
    """A function that has no return is what everybody writes."""

    async def reconsider(self, request, window):
        pass

    async with opened(mine(reconsider=reconsider, shown=lambda *_: None)) as memory:
        assert () == (await asked(memory)).receipt.degraded


@pytest.mark.parametrize(
    "trace", [raising, lambda *_: {1, 2}, lambda *_: "x\udc80", lambda *_: math.nan, lambda *_: {"a": "\0"}]
)
async def test_a_trace_that_cannot_be_written_down_is_the_usual_one(trace):
    """So that the window can be made again, as any other."""

    async def offer(self, request):
        return [good(request)]

    await complaint(mine(trace=trace, offer=offer), kept=("good",))


async def test_traces_that_a_tier_writes_itself_are_checked_too():
    """One that cannot be stored would cost the whole recorded call."""

    async def offer(self, request):
        request.traces["mine"] = {1, 2}
        return [good(request)]

    await complaint(mine(offer=offer, trace=lambda *_: None), kept=("good",))


async def test_a_replay_that_fails_costs_its_own_part_only():
    """The window of a call is made again with the rest, and says what is different."""

    async def offer(self, request):
        return [good(request)]

    for replay in (raising, raising_later, mine().describe):
        async with opened(mine(offer=offer, replay=replay)) as memory:
            chat = memory.conversation("c", user_id="ada")
            window = await chat.context("next?")
            explained = await chat.explain(window.id)
            assert not explained.exact
            assert "good" in explained.why[0]
            assert SOUND in str(explained.messages)


async def test_notes_of_a_tier_can_be_written_down(caplog):
    """Also those that no database could hold."""
    # Nor can the report of a test.
    caplog.set_level(logging.CRITICAL, "pagefile")

    async def offer(self, request):
        request.note("half a pair \udc80")
        raise ValueError("and \udc80 another")

    async with opened(mine(offer=offer)) as memory:
        window = await asked(memory)
    assert ("half a pair ?", "mine failed: ValueError: and ? another") == window.receipt.degraded


@pytest.mark.parametrize(
    "answer", [None, "a text", {"mine": {1, 2}}, {"mine": "x\udc80"}, {"store": "another"}, {7: 1}]
)
async def test_a_description_that_is_wrong_is_told_in_its_place(answer):
    """And never is in the place of ours."""

    async def describe(self):
        return answer

    async with opened(mine(describe=describe)) as memory:
        described = await memory.describe()
    assert "memory" == described["store"]["backend"]
    assert "mine failed: " in described["mine"]["failed"]
    assert {"mine": 1} == described["tier_failures"]


async def test_a_description_that_raises_is_told_in_its_place():
    """What the rest says is there."""
    async with opened(mine(describe=raising_later)) as memory:
        described = await memory.describe()
    assert "mine failed: ValueError: boom" == described["mine"]["failed"]
    assert "page_faults" in described


@pytest.mark.parametrize("absorb_step", [raising, raising_later, mine().describe])
async def test_a_step_that_a_tier_spoils_is_kept_without_it(absorb_step):
    """Nothing of a turn is lost because of a tier."""
    async with opened(mine(absorb_step=absorb_step, absorb=raising)) as memory:
        chat = memory.conversation("c")
        turn = await chat.record(user="q", assistant="a", steps=[{"tool": "t", "result": "r"}])
        assert "r" == turn.steps[0].result
        assert {"mine": 2} == (await memory.describe())["tier_failures"]


async def test_for_tests_everything_raises():
    """`on_tier_error="raise"`: whoever writes a tier sees all of it at once."""
    strict = replace(SETTINGS, on_tier_error="raise")
    for tier in (
        offering(lambda request: [good(request), None]),
        mine(limits=raising),
        mine(reconsider=raising_later),
        mine(shown=raising),
        mine(trace=raising),
    ):
        async with opened(tier, strict) as memory:
            with pytest.raises(ValueError, match=r"boom|left out"):
                await memory.conversation("c").context("next?")


@pytest.mark.parametrize("name", [7, "x\udc80", "calls"])
async def test_a_name_that_cannot_be_used_is_refused_at_once(name):
    """Receipts and metrics know tiers by their names."""
    with pytest.raises(SettingsError, match="name"):
        async with opened(type("Mine", (Tier,), {"name": name})()):
            pass


# -- erasing --------------------------------------------------------------------------------------------------------------


class Stubborn(Tier):
    """Does not forget until it is mended."""

    name = "stubborn"

    def __init__(self, forget=raising_later):
        self.mended = False
        self._forget = forget

    async def forget(self, scope):
        return {"stubborn": 1} if self.mended else await self._forget(self, scope)


@pytest.mark.parametrize("forget", [raising, raising_later])
async def test_a_tier_that_cannot_forget_keeps_nothing_else_from_being_erased(forget):
    """Everything else is gone, the error names the tier and what to do, and that works."""
    stubborn, sound = Stubborn(forget), Sound()
    async with Memory.open("memory://", settings=SETTINGS, tiers=[stubborn, sound]) as memory:
        chat = memory.conversation("c", user_id="ada")
        await chat.record(user="hello", assistant="hi")
        await memory.remember("Ada likes tea.", user_id="ada")
        with pytest.raises(TierError, match=r"stubborn .*boom.*forget\(\) again") as caught:
            await memory.forget(user_id="ada")
        assert isinstance(caught.value.__cause__, ValueError)
        assert "ai_message 1" in str(caught.value)
        assert 2 == sound.asked_to_forget
        assert [] == list(await memory.turns(user_id="ada"))
        assert [] == await memory.facts("ada")
        assert 2 == (await memory.describe())["tier_failures"]["stubborn"]
        stubborn.mended = True
        assert 2 == (await memory.forget(user_id="ada")).counts["stubborn"]


async def test_a_tier_that_fails_once_is_asked_once_more():
    """It has erased everything in the end, so there is nothing to raise."""

    async def forget(self, scope):
        self.mended = True
        raise ValueError("boom")

    async with Memory.open("memory://", settings=SETTINGS, tiers=[Stubborn(forget)]) as memory:
        await memory.conversation("c", user_id="ada").record(user="hello", assistant="hi")
        assert 1 == (await memory.forget(user_id="ada")).counts["stubborn"]


async def test_a_tier_that_hangs_does_not_keep_ours_from_being_erased(monkeypatch):
    """Before our own rows are gone, it is not waited for without end."""
    monkeypatch.setattr(third_party_tiers, "ERASING_S", 0.05)

    async def forget(self, scope):
        await anyio.sleep_forever()

    async with Memory.open("memory://", settings=SETTINGS, tiers=[Stubborn(forget)]) as memory:
        await memory.conversation("c", user_id="ada").record(user="hello", assistant="hi")
        with anyio.move_on_after(1):
            await memory.forget(user_id="ada")
        assert [] == list(await memory.turns(user_id="ada"))


@pytest.mark.parametrize("answer", [None, "all", {"x": "many"}, {"x": -1}, {7: 1}])
async def test_counts_that_are_wrong_are_left_out(answer):
    """It is erased all the same; the log and the counts of failures say that the tier did not say how much."""

    async def forget(self, scope):
        return answer

    async with Memory.open("memory://", settings=SETTINGS, tiers=[Stubborn(forget)]) as memory:
        await memory.conversation("c", user_id="ada").record(user="hello", assistant="hi")
        receipt = await memory.forget(user_id="ada")
        assert 1 == receipt.counts["ai_message"]
        assert not {"x", 7} & set(receipt.counts)
        assert {"stubborn": 2} == (await memory.describe())["tier_failures"]

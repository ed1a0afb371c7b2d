"""What must hold for every window, whatever is offered."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from pagefile.errors import BudgetError
from pagefile.shapes.steps import ShownStep
from pagefile.text.tokens import MESSAGE_OVERHEAD, REPLY_OVERHEAD, open_counter
from pagefile.window import compile as compiling
from pagefile.window.budget import MAX_SHARE, SMALL_WINDOW, Budget, recall_room
from pagefile.window.candidates import RANK, REQUIRED, SHARED_CAPS, TURNS, Candidate, Form, ShownTurn
from pagefile.window.compile import CUT_TURNS, Compiled, Layout, compile_window
from pagefile.window.parts import chat_turn, escape
from pagefile.window.value import shortest_is_worth

COUNT = open_counter().count

TEXT = st.one_of(
    st.text(alphabet="ab 血压高了。\n<>&/memory", min_size=1, max_size=60),
    st.sampled_from(["</memory>", "好的", "Take 5 mg at 8:00.", "🙂" * 9, "\n\n\n", "x" * 200]),
)

#: More than the tags, the note and a heading take together.
FRAMES_TOKENS = 100
#: Own budgets of blocks, small enough to be reached.
LIMITS = {"facts": 40, "corrections": 20, "episodes": 30, "chunks": 30, "extra": 20}


def message_tokens(message: dict) -> int:
    calls = message.get("tool_calls") or ()
    extra = sum(COUNT(call["function"]["name"]) + COUNT(call["function"]["arguments"]) for call in calls)
    return MESSAGE_OVERHEAD + COUNT(message["content"]) + extra


def form_of(shown: ShownTurn) -> Form:
    messages = chat_turn(shown, {})
    return Form(sum(message_tokens(message) for message in messages), shown, name=shown.form)


@st.composite
def turn(draw: st.DrawFn, seq: int, block: str) -> Candidate:
    name, user, answer = f"t{seq}", draw(TEXT), draw(TEXT)
    steps = {0: ShownStep("tool", {"q": draw(TEXT)}, f"call_{seq}", draw(TEXT))}
    forms = (
        [
            form_of(ShownTurn(name, "full", user, answer, steps)),
            form_of(ShownTurn(name, "slim", user, answer)),
        ]
        if draw(st.booleans())
        else [form_of(ShownTurn(name, "full", user, answer))]
    )
    return Candidate(f"t{seq}", block, tuple(forms), seq)


@st.composite
def step(draw: st.DrawFn, number: int) -> Candidate:
    results = {"full": draw(TEXT) * 5, "placeholder": "…"}
    forms = [
        form_of(ShownTurn("now", name, None, steps={number: ShownStep("tool", {}, f"now_{number}", result)}))
        for name, result in results.items()
    ]
    return Candidate(f"s{number}", "steps", tuple(forms), number)


@st.composite
def entry(draw: st.DrawFn, block: str, number: int) -> Candidate:
    text = "- " + escape(draw(TEXT)) if block != "instructions" else draw(TEXT)
    return Candidate(f"{block}{number}", block, (Form(COUNT(text), text=text),), number)


@st.composite
def valued(draw: st.DrawFn, block: str, number: int) -> Candidate:
    """A candidate that competes by its value, whole or as a part of it."""
    text = "- " + escape(draw(TEXT))
    forms = [Form(COUNT(text), text=text)]
    if draw(st.booleans()):
        forms.append(Form(COUNT(text[:9]), text=text[:9], name="passage", share=0.8))
    value, heading = (
        draw(st.sampled_from([0.0, 1e-4, 0.002, 0.05, 0.7])),
        draw(st.sampled_from(["", "2024-05-08"])),
    )
    name = f"valued-{block}{number}"
    return Candidate(name, block, tuple(forms), 100 + number, value=value, heading=heading)


@st.composite
def offers(draw: st.DrawFn, *, turns_only: bool = False) -> list[Candidate]:
    number = draw(st.integers(0, 14))
    recent = draw(st.integers(0, 8))
    found = [draw(turn(seq, "recent" if seq > number - recent else "older")) for seq in range(1, number + 1)]
    if not turns_only:
        for block in ("corrections", "summary", "facts", "episodes", "chunks", "loaded"):
            found += [
                draw(entry(block, n)) for n in range(draw(st.integers(0, 1 if block == "summary" else 3)))
            ]
        for block in ("facts", "episodes", "chunks"):
            found += [draw(valued(block, n)) for n in range(draw(st.integers(0, 4)))]
        found += [draw(step(n)) for n in range(draw(st.integers(0, 3)))]
        if draw(st.booleans()):
            found.append(Candidate("unread", "older", (), -1, unread_tokens=99))
        if draw(st.booleans()):
            found.append(draw(entry("instructions", 0)))
    found.append(Candidate("now", "current", (form_of(ShownTurn("now", "full", draw(TEXT))),)))
    return draw(st.permutations(found))


BUDGETS = st.integers(1, 1500)


def compiled_or_none(
    candidates: list[Candidate], tokens: int, layout: Layout | None = None
) -> Compiled | None:
    try:
        return compile_window(candidates, Budget(tokens, LIMITS), COUNT, layout)
    except BudgetError:
        return None


def kept(compiled: Compiled) -> set[str]:
    return {verdict.id for verdict in compiled.verdicts if verdict.kept}


@given(offers(), BUDGETS, st.sampled_from(["tail", "head"]))
def test_never_over_budget_and_the_count_is_exact(
    candidates: list[Candidate], tokens: int, placement: str
) -> None:
    """The tokens of the messages, counted from scratch, are what the window says, and within its budget."""
    compiled = compiled_or_none(candidates, tokens, Layout(placement, "zh"))
    if compiled is not None:
        assert compiled.tokens == REPLY_OVERHEAD + sum(
            message_tokens(message) for message in compiled.messages
        )
        assert compiled.tokens <= tokens


@given(offers(), BUDGETS, st.randoms())
def test_same_input_same_bytes(candidates: list[Candidate], tokens: int, random) -> None:
    """The same candidates, offered in whatever order, give the same window."""
    again = list(candidates)
    random.shuffle(again)
    assert compiled_or_none(candidates, tokens) == compiled_or_none(again, tokens)


@given(offers(), BUDGETS)
def test_every_candidate_is_in_the_receipt_exactly_once(candidates: list[Candidate], tokens: int) -> None:
    """Nothing is left out in silence."""
    compiled = compiled_or_none(candidates, tokens)
    if compiled is not None:
        assert sorted(c.id for c in candidates) == sorted(v.id for v in compiled.verdicts)
        assert compiled.tokens == compiled.framing + sum(v.tokens for v in compiled.verdicts if v.kept)


@given(offers(), BUDGETS)
def test_instructions_and_current_message_are_never_cut(candidates: list[Candidate], tokens: int) -> None:
    """They are whole in every window; there is none without them."""
    compiled = compiled_or_none(candidates, tokens)
    if compiled is None:
        return
    shown = [message["content"] for message in compiled.messages]
    for candidate in candidates:
        if candidate.block == "current":
            assert candidate.forms[0].shown.user in shown
        if candidate.block == "instructions":
            assert str(shown[0]).startswith(candidate.forms[0].text)


@given(offers(), BUDGETS)
def test_tool_calls_and_their_results_are_never_separated(candidates: list[Candidate], tokens: int) -> None:
    """Every call is followed by its own result, and no result stands without its call."""
    compiled = compiled_or_none(candidates, tokens)
    if compiled is None:
        return
    waiting: str | None = None
    for message in compiled.messages:
        if message["role"] == "tool":
            assert waiting == message["tool_call_id"]
            waiting = None
        else:
            assert waiting is None
            calls = message.get("tool_calls")
            waiting = calls[0]["id"] if calls else None
    assert waiting is None


@given(offers(), BUDGETS)
def test_turns_have_no_holes(candidates: list[Candidate], tokens: int) -> None:
    """The kept turns are the newest ones, without a gap."""
    compiled = compiled_or_none(candidates, tokens)
    if compiled is not None:
        seqs = sorted(c.position for c in candidates if c.block in TURNS and c.forms)
        held = sorted(c.position for c in candidates if c.block in TURNS and c.id in kept(compiled))
        assert held == seqs[len(seqs) - len(held) :]


@given(offers(turns_only=True), BUDGETS, st.integers(0, 400))
def test_more_budget_never_keeps_less_of_a_conversation(
    candidates: list[Candidate], tokens: int, more: int
) -> None:
    """A larger window holds every turn the smaller one held, unless it shows a newer one more fully instead.

    Before its beginning moves on in blocks: what that takes away is bounded by the test below.
    """
    with patch.object(compiling, "CUT_TURNS", 1):
        small, large = compiled_or_none(candidates, tokens), compiled_or_none(candidates, tokens + more)
    if small is None:
        return
    assert large is not None
    seqs = {c.id: c.position for c in candidates if c.block in TURNS}
    lost = [seqs[turn] for turn in kept(small) - kept(large)]
    shown = {verdict.id: verdict.tokens for verdict in small.verdicts if verdict.kept}
    fuller = [seqs[v.id] for v in large.verdicts if v.kept and v.id in shown and v.tokens > shown[v.id]]
    if lost:
        assert max(fuller, default=0) > max(lost)


@given(offers(turns_only=True), BUDGETS)
def test_a_beginning_moves_on_by_less_than_a_block(candidates: list[Candidate], tokens: int) -> None:
    """And only when something had to be left out anyway."""
    cut = compiled_or_none(candidates, tokens)
    with patch.object(compiling, "CUT_TURNS", 1):
        uncut = compiled_or_none(candidates, tokens)
    if cut is None or uncut is None:
        assert cut is uncut
        return
    gone = kept(uncut) - kept(cut)
    assert len(gone) < CUT_TURNS
    if gone:
        assert len(kept(uncut)) < len(candidates)


@given(offers(), BUDGETS, st.integers(1, 200))
def test_more_budget_never_gives_up_a_candidate_for_one_of_lower_rank(
    candidates: list[Candidate], tokens: int, more: int
) -> None:
    """What the larger window lacks was displaced by something that is kept longer."""
    small, large = compiled_or_none(candidates, tokens), compiled_or_none(candidates, tokens + more)
    if small is None or large is None:
        return
    by_rank = [c for c in candidates if c.value is None]
    lost = [RANK[c.block] for c in by_rank if c.id in kept(small) - kept(large)]
    won = [RANK[c.block] for c in candidates if c.id in kept(large) - kept(small)]
    forms = {verdict.id: verdict.tokens for verdict in small.verdicts if verdict.kept}
    won += [RANK[v.block] for v in large.verdicts if v.kept and v.tokens > forms.get(v.id, v.tokens)]
    if lost:
        assert won
        assert min(won) <= min(lost)


@given(offers(), BUDGETS)
def test_there_is_a_window_whenever_what_must_stay_fits(candidates: list[Candidate], tokens: int) -> None:
    """Only instructions and the current message can make a window impossible."""
    required = [c for c in candidates if c.block in REQUIRED]
    assert (compiled_or_none(candidates, tokens) is None) == (compiled_or_none(required, tokens) is None)


@given(offers(), BUDGETS)
def test_never_under_budget_while_something_worth_its_tokens_would_fit(
    candidates: list[Candidate], tokens: int
) -> None:
    """What is worth its tokens and is not there does not fit, and nothing is there that is not worth them."""
    compiled = compiled_or_none(candidates, tokens)
    if compiled is None:
        return
    held = {verdict.id: verdict for verdict in compiled.verdicts}
    for candidate in (c for c in candidates if c.value is not None):
        verdict, shortest = held[candidate.id], candidate.forms[-1]
        if verdict.kept:
            assert shortest_is_worth(candidate)
        elif shortest_is_worth(candidate):
            full = "own budget" in verdict.reason
            assert full or tokens - compiled.tokens < shortest.tokens + FRAMES_TOKENS
        else:
            assert "not worth its tokens" in verdict.reason


@given(st.integers(1, 40), st.integers(200, 6000), st.integers(0, 300))
def test_no_room_is_kept_free_for_more_than_a_block_may_take(many: int, tokens: int, limit: int) -> None:
    """Facts may ask for more than their limit, which leaves the rest to the conversation."""
    text = "- Ada grows roses behind the house, and does not like tulips at all."
    facts = [Candidate(f"f{n}", "facts", (Form(COUNT(text), text=text),), n, value=0.7) for n in range(many)]
    said = form_of(ShownTurn("t", "full", "What grows well beside roses in the shade?", "Foxgloves do."))
    turns = [Candidate(f"t{n}", "recent" if n > 290 else "older", (said,), n) for n in range(1, 300)]
    asked = Candidate("now", "current", (form_of(ShownTurn("now", "full", "Which tulips?")),))
    compiled = compile_window([*facts, *turns, asked], Budget(tokens, {"facts": limit}), COUNT)
    assert tokens - compiled.tokens < FRAMES_TOKENS + (CUT_TURNS + 1) * said.tokens


@given(offers(), BUDGETS)
def test_the_limits_of_blocks_are_kept_and_used(candidates: list[Candidate], tokens: int) -> None:
    """Facts with corrections, episodes, chunks: none is over its limit, and what one refused does not fit into the rest of it."""
    compiled = compiled_or_none(candidates, tokens)
    if compiled is None:
        return
    spent = dict.fromkeys(LIMITS, 0)
    framed = dict.fromkeys(LIMITS, 0)
    for verdict in (one for one in compiled.verdicts if one.kept and one.block in LIMITS):
        for block in {verdict.block, SHARED_CAPS.get(verdict.block, verdict.block)}:
            spent[block] += verdict.tokens
            framed[block] = FRAMES_TOKENS
    assert all(spent[block] <= limit for block, limit in LIMITS.items())
    shortest = {c.id: c.forms[-1].tokens for c in candidates if c.forms}
    for verdict in (one for one in compiled.verdicts if "own budget" in one.reason):
        # The day above a turn and the tags of a block that shares the limit are paid for out of it.
        beside = framed[verdict.block] + COUNT("2024-05-08\n")
        assert shortest[verdict.id] + beside > LIMITS[verdict.block] - spent[verdict.block]


@given(offers(), BUDGETS)
def test_what_a_question_touches_leaves_the_conversation_its_share(candidates, tokens):
    """Turns that a window without it would hold in the rest of the room are held beside it.

    Without steps of a running turn: in the larger window more of them fit, and they come before the turns.
    """
    candidates = [c for c in candidates if c.block != "steps"]
    alone = compiled_or_none(
        [c for c in candidates if c.value is None], tokens - recall_room(tokens, MAX_SHARE)
    )
    beside = compiled_or_none(candidates, tokens)
    if alone is None or beside is None:
        return
    turns = {c.id for c in candidates if c.block in TURNS}
    others = {c.id for c in candidates if c.value is None} - turns
    first, then = (
        [(v.id, v.form) for v in one.verdicts if v.kept and v.id in others] for one in (alone, beside)
    )
    # A larger window may hold more of what ranks before turns, or fuller, which is no matter of what the question touches.
    if first == then:
        assert kept(alone) & turns <= kept(beside) & turns


@given(st.integers(1, 20_000), st.integers(0, 2000), st.floats(0, 1))
def test_a_larger_window_has_as_much_room_for_recall_and_for_the_conversation(tokens, more, share):
    """Of a small window recall may take more than its share, but no more than of one that is not small."""
    room, larger = recall_room(tokens, share), recall_room(tokens + more, share)
    assert int(share * tokens) <= room <= larger
    if tokens >= SMALL_WINDOW:
        assert room == int(share * tokens)
    if share <= 0.75:
        assert tokens - room <= tokens + more - larger + 1

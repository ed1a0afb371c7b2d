"""Older results leave a full window in large steps, and the passages that the last steps point to stay."""

from pagefile.window.chunks import Chunked, chosen_spans, chunk_spans, interest, words
from pagefile.window.eviction import Evictions
from pagefile.window.run_items import Item, Pageable, Said

LINE = "note {n}: nothing here matters to anybody, it only takes some room\n"


def result(n: int, text: str) -> Pageable:
    return Pageable(("t", n, ""), text, len(text) // 4, f"📎 {n}", 2, f"📎 {n} read")


def folded(*items: Item, limit: int = 2000, low: float = 0.4) -> Evictions:
    fold = Evictions(limit, limit, low, "Passages:", lambda text: len(text) // 4)
    fold.advance(items)
    return fold


def filler(n: int, lines: int = 30) -> Pageable:
    return result(n, "".join(LINE.format(n=f"{n}.{line}") for line in range(lines)))


def test_older_results_give_way_when_many_pile_up():
    """All but the last leave at once, not one a call; a line of each remains."""
    fold = folded(*(filler(n) for n in range(4)), limit=2400)
    assert fold.out == {}
    fold.advance([filler(4)])
    assert fold.steps == 1
    assert set(fold.out) >= {("t", 0, ""), ("t", 1, ""), ("t", 2, "")}
    assert ("t", 4, "") not in fold.out
    assert all(shown.text.startswith(f"📎 {key[1]}") for key, shown in fold.out.items())


def test_what_the_agent_quoted_stays_and_what_it_never_used_leaves_first():
    """The passage that the last call names is gathered behind the last line, with the call that fetched it."""
    wanted = "def reconcile_ledger(entries): return balance(entries)\n"
    useful = result(0, filler(0).text + wanted + filler(7).text)
    asks = Said("edit reconcile_ledger so that balance is rounded", 10)
    fold = folded(useful, *(filler(n) for n in range(1, 4)), asks, filler(4), limit=3000)
    shown = [out.text for out in fold.out.values() if wanted.strip() in out.text]
    assert len(shown) == 1
    assert "Passages:\n📎 0 read" in shown[0]


def test_between_two_large_steps_only_the_end_grows():
    """What left is not reconsidered with every call."""
    fold, before, changes = folded(limit=3000), {}, 0
    for n in range(60):
        fold.advance([Said(f"look at file {n}", 10), filler(n)])
        kept = {key: out.text for key, out in fold.out.items()}
        changes += kept != before
        before = kept
    assert changes == fold.steps < 60 / 3
    # Lines before those of the last step are final.
    assert [text.count("\n") for text in before.values()][:20] == [0] * 20


def test_the_fold_is_the_same_in_one_go_and_step_by_step():
    """So another process derives the same window from the log."""
    items = [one for n in range(30) for one in (Said(f"look at {n}", 5), filler(n))]
    stepwise = folded(limit=2500)
    for item in items:
        stepwise.advance([item])
    assert stepwise.out == folded(*items, limit=2500).out
    assert stepwise.follows(items)
    assert not stepwise.follows([*items[:-1], filler(99)])
    assert not stepwise.follows(items[:-1])


def test_a_limit_on_results_alone_holds_in_a_large_window():
    fold = Evictions(100_000, 1600, 0.4, "Passages:", lambda text: len(text) // 4)
    fold.advance([filler(n) for n in range(4)])
    assert fold.steps == 1
    assert fold.pageable <= 1600


def found(n: int, pages: int = 8) -> str:
    """What a search of the web returns: each page with its title and address, and much text that nobody asked about."""
    return ", ".join(
        f'{{"title": "Guide {n}.{page} to the old town", "url": "https://example.org/{n}/{page}", '
        f'"content": "{LINE.format(n=f"{n}.{page}").strip() * 30}"}}'
        for page in range(pages)
    )


def test_the_sources_of_a_newest_result_that_is_shown_in_part_stay():
    """A report cites them, whatever the last words were; each once, though a passage may have it."""
    fold = folded(Said("Where do people of the old town eat?", 10), result(0, found(0)), limit=3000)
    shown = fold.out["t", 0, ""]
    assert shown.tokens < 1600
    for page in range(8):
        assert 1 == shown.text.count(f"https://example.org/0/{page}")
        assert f"Guide 0.{page} to the old town" in shown.text


def test_where_little_stays_a_large_newest_result_is_shown_in_part_at_once():
    """Whole, it would soon push out the others and leave itself; where more stays, it is whole as long as there is room."""
    items = filler(0, 10), filler(1, 60)
    assert items[1].tokens > 0.4 * 2400
    saving = folded(*items, limit=2400, low=0.15)
    assert {("t", 1, "")} == set(saving.out)
    assert saving.out["t", 1, ""].tokens < 400
    assert {} == folded(*items, limit=2400, low=0.4).out


def test_chunks_end_at_line_ends_and_tile_the_text():
    text = filler(1).text + "x" * 3000 + "\n" + filler(2).text
    spans = chunk_spans(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(text[end - 1] == "\n" for _, end in spans if "x" not in text[end - 1 : end + 1])


def test_lines_in_view_are_not_kept_twice():
    text = filler(1, lines=4).text
    assert chosen_spans([Chunked(text, 60)], {}, 1000, [line.strip() for line in text.splitlines()]) == [[]]
    assert chosen_spans([Chunked(text, 60)], {}, 1000) == [[(0, len(text))]]


def test_words_of_recent_steps_weigh_more():
    wanted = interest(["open ledger", "open journal"])
    assert wanted["ledger"] > wanted["journal"]
    assert wanted["open"] == wanted["ledger"]
    assert words("看看账本") == {"看看", "看账", "账本"}


def test_if_the_newest_result_alone_is_too_much_what_comes_before_it_stays():
    """A prompt cache keeps everything before it."""
    fold = Evictions(2000, 2000, 0.5, "Passages:", lambda text: len(text) // 4)
    fold.advance([Said("look", 1), result(0, "a line that stays\n" * 40), Said("more", 1)])
    fold.advance([result(1, "".join(f"entry {n} of the long list\n" for n in range(500)))])
    assert {("t", 1, "")} == set(fold.out)
    assert fold.pageable <= 2000


def test_the_sources_that_results_name_stay_in_view():
    """What a report cites at the end of a run: titles with their addresses."""
    source = '"title": "The herring fleet", "url": "https://example.org/herring"'
    found = f'[{{{source}, "content": "{"nothing of interest " * 60}"}}]'
    fold = Evictions(3000, 3000, 0.5, "Passages:", lambda text: len(text) // 4)
    fold.advance([Said("find", 1), result(0, found)])
    for n in range(1, 10):
        fold.advance([Said(f"module_{n}", 2), filler(n)])
    assert ("t", 0, "") in fold.out
    assert any(source in shown.text for shown in fold.out.values())


def test_no_passages_follow_a_line_that_is_not_shown():
    """Where calls take all the room, results are only named: nothing is gathered behind their lines, and nothing is counted for it."""
    fold, gathered = Evictions(4000, 3000, 0.6, "Passages:", lambda text: max(1, len(text) // 4)), 0
    for n in range(60):
        if n < 6:
            fold.advance([Said(f"look for the budget of project Alpha {n}", 60, ("t", n))])
            text = "\n".join(f"project Alpha budget line {n}-{i} is {i * 37} euros" for i in range(40))
            fold.advance([Pageable(("t", n, ""), text, len(text) // 4, f"note{n}", 3, f"title{n}")])
        else:
            fold.advance([Said("write budget of project Alpha", 110, ("t", n))])
            fold.advance([Said("", 5, ("t", n), "- write: x")])
        behind = {key for key, out in fold.out.items() if "Passages:" in out.text}
        assert set() == {key for key in behind if key[:2] in fold.named}
        gathered += bool(behind)
    assert gathered
    assert {("t", n) for n in range(6)} <= fold.named.keys()
    assert 0 == fold.pageable

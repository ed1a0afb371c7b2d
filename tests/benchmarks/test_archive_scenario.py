"""The tables of the archive's design, measured: what a search costs, and ten turns of 50,000 characters in three ways."""

from itertools import pairwise

import anyio
import pytest

from benchmarks.bulk import chinese_prose
from benchmarks.scenario import MODES, RESULT_CHARS, TURNS, Mode, Scenario, scenario
from benchmarks.tables import show_scenario
from pagefile.standalone import ARCHIVE_THRESHOLD
from pagefile.text.tokens import open_counter
from pagefile.window.placeholder import MAX_TOKENS

COUNTER = open_counter()
#: A window that many models have.
WINDOW = 128_000


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return anyio.run(scenario, tmp_path_factory.mktemp("scenario"), COUNTER)


def test_what_a_search_costs():
    """50,000 and 12,000 characters by mode, counted; each of them is long enough for the archive."""
    modes = {mode.name: mode for mode in Mode.all(COUNTER)}
    assert MODES.keys() == modes.keys() == {"mix/hybrid", "local", "naive"}
    assert {"mix/hybrid": 50_000, "local": 12_000, "naive": 12_000} == {n: m.chars for n, m in modes.items()}
    for mode in modes.values():
        assert COUNTER.count(chinese_prose(mode.chars, 0)) == mode.tokens
        assert mode.chars > ARCHIVE_THRESHOLD


@pytest.mark.slow
def test_everything_kept_overflows_when_arithmetic_says(measured: Scenario):
    """Each turn adds its result, question and answer, and the window is full at the turn that division gives."""
    full = measured.ways[0].answering
    each = measured.result_tokens + measured.exchange_tokens
    steps = [later - earlier for earlier, later in pairwise(full)]
    assert all(step == pytest.approx(each, rel=0.02) for step in steps)
    assert TURNS * each == pytest.approx(full[-1], rel=0.02)
    over = next(turn for turn, tokens in enumerate(full, 1) if tokens > WINDOW)
    assert WINDOW // each + 1 == over


@pytest.mark.slow
def test_placeholders_save_three_quarters(measured: Scenario):
    """Each request holds its own result in full, and of those before no more than a placeholder each."""
    full, placeholder, _ = measured.ways
    assert full.answering[0] == placeholder.answering[0]
    guide = 400
    for turn, tokens in enumerate(placeholder.answering):
        assert tokens > measured.result_tokens * 0.97
        earlier = turn * (MAX_TOKENS + 1.1 * measured.exchange_tokens + 50)
        assert tokens < full.answering[0] * 1.03 + earlier + guide
    assert measured.saved(placeholder) >= 0.75


@pytest.mark.slow
def test_a_loaded_page_costs_one_page(measured: Scenario):
    """One result more in every request after the first, and of those loaded before a placeholder each; that is more than half saved, and no 80 %."""
    _, placeholder, loading = measured.ways
    assert placeholder.answering[0] == loading.answering[0]
    more = [one - other for one, other in zip(loading.answering, placeholder.answering, strict=True)][1:]
    for before, step in enumerate(more):
        assert measured.result_tokens <= step <= measured.result_tokens * (1.01 + 0.006 * before)
    assert 0.5 < measured.saved(loading) < 0.75


@pytest.mark.slow
def test_the_table_is_in_tokens_beside_what_the_document_says(measured: Scenario, capsys, monkeypatch):
    """The document takes characters for tokens; here every number says what it counts."""
    monkeypatch.setenv("COLUMNS", "200")
    said = measured.to_json()
    assert {"tokens"} == {said["unit"], *(way["unit"] for way in said["ways"])}
    assert COUNTER.count(chinese_prose(RESULT_CHARS, 0)) == pytest.approx(said["result_tokens"], rel=0.02)
    show_scenario(measured)
    told = capsys.readouterr().out
    for mode in measured.modes:
        assert f"{mode.tokens:,}" in told
        assert f"{mode.name}: {mode.claim} tokens" in told
    for walked in measured.ways:
        line = next(line for line in told.splitlines() if f"{walked.way.name}: {walked.way.claim}" in line)
        assert [f"{tokens:,}" for tokens in walked.shown()] == line.split()[:4]

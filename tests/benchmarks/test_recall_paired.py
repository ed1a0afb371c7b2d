"""Two runs of `bench recall` are compared question by question."""

import json

from benchmarks.recall_paired import main


def _row(question: str, found: float, *, ranker: str = "pagefile") -> str:
    figures = dict.fromkeys(("turn share@5", "turn share@10", "any@10", "MRR"), found)
    row = {"set": "REALTALK", "ranker": ranker, "id": question, "question": question, "gold": ["a"]}
    return json.dumps({**row, "figures": figures})


def test_what_both_runs_asked_is_compared(tmp_path, capsys):
    """Other rankers and questions of one run alone do not count; a gain on every question is no chance."""
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    asked = [str(number) for number in range(20)]
    other = _row("0", 1.0, ranker="plain BM25")
    before.write_text("\n".join([*(_row(one, 0.25) for one in asked), other, _row("only here", 1.0)]))
    after.write_text("\n".join([*(_row(one, 0.5) for one in asked), other]))
    main(before, after)
    printed = capsys.readouterr().out
    row = "| REALTALK, 20 questions | turn share@10 | 0.250 | 0.500 | +0.250 (+0.250 to +0.250) |"
    assert row in printed.splitlines()

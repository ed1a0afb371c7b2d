"""A receipt as JSON and back."""

from pagefile.window.receipt import Receipt, Verdict, receipt_from

RECEIPT = Receipt(
    (Verdict(id="turn-1", block="turns", kept=True, form="full", tokens=7, reason="fits"),),
    budget=100,
    framing=5,
    counter="o200k_base",
    exact=True,
    degraded=("no vectors",),
    reserved={"answer": 10},
)


def test_a_receipt_comes_back():
    """With every verdict."""
    assert RECEIPT == receipt_from(RECEIPT.to_json())


def test_a_receipt_of_a_later_version_is_read():
    """What this version does not know is left out."""
    value = RECEIPT.to_json()
    verdicts = [{**verdict, "later": 1} for verdict in value["verdicts"]]
    assert RECEIPT == receipt_from({**value, "verdicts": verdicts, "later": [1]})

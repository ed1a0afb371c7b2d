"""Keys of turns, kept in columns."""

from pagefile.tiers.turn_keys import TurnKey, TurnKeys


def test_keys_come_back_as_they_were_added():
    """In their order, whatever a conversation or a turn is called; what is added later changes nothing before it."""
    first = [TurnKey("chat", 1, "a"), TurnKey("旅行", 2, ""), TurnKey("chat", 1 << 40, "é" * 300)]
    keys = TurnKeys()
    keys.extend(first)
    keys.extend([])
    assert first == [*keys]
    later = [TurnKey("", number, f"turn-{number}") for number in range(100)]
    keys.extend(later)
    assert [*first, *later] == [*keys]
    assert (103, later[-1]) == (len(keys), keys[102])
    assert hash(first[1]) == hash(keys[1]) == hash(("旅行", 2, ""))

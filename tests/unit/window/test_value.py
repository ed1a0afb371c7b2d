"""What a piece of memory must be worth to be shown."""

from pagefile.window.value import least_beside


def test_of_a_small_memory_what_is_worth_little_beside_the_best_stays_away():
    """Everything resembles a message a little: a memory of thirty turns must not be shown whole."""
    values = [0.5, 0.2, 0.1, 0.02, 0.014, 0.01, 0.001]
    least = least_beside(values, 30)
    assert all(value >= least for value in values[:4])
    assert not [value for value in values[4:] if value >= least]


def test_the_first_few_may_be_worth_less():
    values = [0.5, 0.001, 0.001, 0.0009, 0.0008]
    assert least_beside(values, 30) == 0.0009


def test_a_large_memory_has_more_to_compare_with():
    values = [0.5, 0.1, 0.1, 0.1, 0.002, 0.001]
    assert [least_beside(values, turns) for turns in (100, 1_000, 10_000)] == [0.015, 0.0015, 0.00015]
    assert 0.0 == least_beside([0.5, 0.001], 30)

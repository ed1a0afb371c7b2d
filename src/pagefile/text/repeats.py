"""Past turns that asked what is asked now.

They are more like the message than any turn that answers it, so whatever is ranked beside them looks worthless. What they
asked is in the message already: only their answers can help.
"""

from pagefile.text.recall_gate import asking
from pagefile.text.words import is_trivial, terms


def asked_before(message: str, said: str) -> bool:
    """Whether a turn's user asked this, or a part of it, and said nothing else."""
    words = terms(said)
    is_question = said.rstrip().endswith(("?", "？")) or asking(said) == "self"
    return bool(words) and is_question and set(words) <= set(terms(message))


def says_more(message: str, answer: str) -> bool:
    """Whether an answer says anything that the message does not: "Noted." and "Where do you live?" do not."""
    return not is_trivial(answer) and not set(terms(answer)) <= set(terms(message))

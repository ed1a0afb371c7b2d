"""How likely a past turn helps with a message: what the ranking saw of it, as a calibrated probability.

It is a product: that the message needs memory at all, and that this turn is what it needs. Both are logistic models of a few
features; their weights (`recall_weights.toml`) are fitted and checked by `python -m benchmarks.recall_calibration`.
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from pagefile.arrays import Float64s, np
from pagefile.text.recall_gate import asking
from pagefile.text.tables import table
from pagefile.text.turn_ranking import Familiarity, Found
from pagefile.text.words import terms

Floats = Float64s

#: What is known of a turn that was found, in the order of its features.
TURN = (
    "rank",
    "score",
    "coverage",
    "coverage_gap",
    "similarity",
    "similarity_gap",
    "words",
    "surroundings",
    "inside",
)
#: Features of small memories, and from how many turns on they are 0.
FEW = ("few", "known_of_few", "similarity_of_few")
FEW_TURNS = 24
#: What is known of a message, in the order of its features.
MESSAGE = (
    "coverage",
    "similarity",
    "first_similarity",
    "both",
    "known",
    "terms",
    "about_self",
    "points_back",
    "first_person",
    "asks",
    "material",
    "names_speaker",
    "names_time",
    "foreign",
    "foreign_similarity",
    "general",
    "exercise",
    *FEW,
)
#: What is known of an archived result that was found.
PAGE = ("coverage", "similarity", "in_text", "terms")
FEATURES: Mapping[str, tuple[str, ...]] = {"turn": TURN, "message": MESSAGE, "page": PAGE}
#: The coverage of a message is the best among this many turns.
_FIRST = 20
#: A message that contains its own material: a quotation, or text after a colon.
_MATERIAL = re.compile(r"[:：]\s*\S|“[^”]+”|「[^」]+」|\"[^\"]+\"|(?<!\w)['‘][^'’]{3,}['’](?!\w)")
#: People speaking of themselves, which 帮我…, "tell me" are not.
_FIRST_PERSON = re.compile(
    r"\b(?:i|my|mine|we|our|ours|us|for me)\b|(?<![帮给教让请替诉])[我咱]", re.IGNORECASE
)


#: Questions about the world: why, since when, who invented it, what a word means.
_GENERAL = re.compile(
    r"\bwhy (?:do|does|did|is|are|was|were|can)\b|\bhow (?:do|does|did|is|are)\b|\bdifference between\b|\bhistory of\b"
    r"|\bwho (?:invented|wrote|discovered|painted|built|composed|is the|was the (?:first|last))\b|\binvented\b"
    r"|\borigins?\b|\bgets? (?:its|their) name|\bthe word\b|\bwhat does .* mean\b"
    r"|为什么|为啥|发明|哪个朝代|哪国|哪个国家|最早|起源|来历|怎么来的|什么意思|区别",
    re.IGNORECASE,
)
#: Exercises that bring all they need: translate, calculate, sort; a verse, a joke, another word.
_EXERCISE = re.compile(
    r"^\W*(?:please |can you |could you )?(?:translate|convert|calculate|compute|sort|spell|correct|fix|rephrase|reword|define)\b"
    r"|\b(?:haiku|limerick|poem|verse|joke|riddle|rhyme|synonyms?|antonyms?)\b"
    r"|翻译|造个?句|近义词|反义词|诗|对联|春联|谜语|笑话|从[大小]到[大小]|等于多少"
    r"|\d\s*(?:%|percent) of\b|[\d一二三四五六七八九十百千万]\s*[加减乘除+×*/÷-]\s*以?\s*[\d一二三四五六七八九十百千万]",
    re.IGNORECASE,
)


#: What somebody has, beside whom a bare "me" or 我 is only who speaks.
_THINGS = re.compile(r"\b(?:my|our|mine|ours)\b|我[的家们爸妈]|咱", re.IGNORECASE)
#: More questions about the world, and how anything is done, where nothing particular is named.
_OF_WORLD = re.compile(
    r"\bhow (?:do|can|to|would) (?:(?:i|you|one) )?(?:\w+ ){1,4}?an?\b"
    r"|^\W*how (?:do|can) (?:i|you|one) (?!.*\b(?:the|that|those|this|these)\b)\w+ \w+"
    r"|\b(?:best|good|right|polite|quick) way (?:to|of)\b"
    r"|\bhow (?:many|much|old|far|long|tall|deep|big|heavy) (?:\w+ )?(?:is|are|does|can) (?:there |an? |in )"
    r"|\b(?:what|which)(?:'s| is| are| was| were) the (?:capital|rules? of|(?:boiling|melting|freezing) point|population|currency|"
    r"(?:atomic|chemical) \w+|plural|(?!best|latest|nearest|newest)\w{2,}est\b)"
    r"|\bexplain\b|\bwho won\b"
    r"|^(?:如何|怎么(?!样|回事|还|又|没|不))|^用\s*\w+怎么|[^我你]{2,}咋个[^我你]+$|代表什么|有多[高长深宽重快远大]|什么是"
    r"|(?:是谁|哪个|哪位|哪一?年).{0,4}[修建写画造证发创成开][^我你]{0,4}的?[?？]?$|谁(?:写|画|作|拍)的|作者是谁|出生在哪|多少[公英]?[斤里尺]"
    r"|(?:首都|化学符号|原子序数|沸点|熔点)(?:是|有)?(?:什么|哪|多少)",
    re.IGNORECASE,
)


class Weights(NamedTuple):
    bias: float
    weights: Floats

    def probability(self, features: Floats) -> Floats:
        return 1 / (1 + np.exp(-(features @ self.weights + self.bias)))


@cache
def weights(kind: str, *, meaning: bool) -> Weights:
    """Those of turns or messages; where there are no vectors, words alone decide."""
    given: Mapping[str, float] = table("pagefile.text", "recall_weights")["meaning" if meaning else "words"][
        kind
    ]
    return Weights(given["bias"], np.array([given[name] for name in FEATURES[kind]]))


def helps(found: Sequence[Found[Any]]) -> list[float]:
    """For each turn, best first, the probability that it is what a message needs that does need memory."""
    if not found:
        return []
    return weights("turn", meaning=by_meaning(found)).probability(turn_features(found)).tolist()


def needs(message: str, found: Sequence[Found[Any]], familiarity: Familiarity) -> float:
    """The probability that a message needs something of the turns that were found for it."""
    if not found:
        return 0.0
    features = message_features(message, found, familiarity)
    return float(weights("message", meaning=by_meaning(found)).probability(features))


def page_helps(message: str, coverage: float, similarity: float, *, in_text: bool) -> float:
    """The probability that a message needs an archived result of which a search found this much of its words and meaning."""
    words = len(set(terms(message, keep_stop_words_if_empty=False)))
    features = np.array([coverage, similarity, float(in_text), math.log1p(words)])
    return float(weights("page", meaning=True).probability(features))


def by_meaning(found: Sequence[Found[Any]]) -> bool:
    """Whether these were found with vectors, too."""
    return any(one.parts["similarity"] for one in found)


def turn_features(found: Sequence[Found[Any]]) -> Floats:
    """A row for each turn."""
    parts = {name: np.array([one.parts[name] for one in found]) for name in found[0].parts}
    score = np.array([one.score for one in found])
    near = parts["words"] + parts["neighbours"]
    return np.stack(
        [
            np.log1p(np.arange(len(found))),
            score / score[0],
            parts["coverage"],
            parts["coverage"].max() - parts["coverage"],
            parts["similarity"],
            parts["similarity"].max() - parts["similarity"],
            parts["words"] / (parts["words"].max() or 1.0),
            near / (near.max() or 1.0),
            parts["inside"],
        ],
        axis=1,
    )


def is_personal(message: str) -> bool:
    """Whether somebody speaks of themselves in it."""
    return _FIRST_PERSON.search(message) is not None


def is_general(message: str) -> bool:
    """Whether a message asks about general knowledge, without reference to the user."""
    return not is_personal(message) and _GENERAL.search(message) is not None


def is_of_world(message: str) -> bool:
    """Whether a message asks how something is done, or about the world, and names nothing of the user's."""
    return _OF_WORLD.search(message) is not None and _THINGS.search(message) is None


def names_things(message: str) -> bool:
    """Whether a message names something of the user's."""
    return _THINGS.search(message) is not None


def is_exercise(message: str) -> bool:
    """Whether a message asks for self-contained work, such as a translation or a sum."""
    return _EXERCISE.search(message) is not None


def message_features(message: str, found: Sequence[Found[Any]], familiarity: Familiarity) -> Floats:
    """What a message and the turns found for it tell about whether it needs them."""
    similarity = max(one.parts["similarity"] for one in found)
    coverage = max(one.parts["coverage"] for one in found[:_FIRST])
    how = asking(message)
    # A few turns know fewer words and are less similar to a message, whether it needs them or not.
    few = max(0.0, math.log(FEW_TURNS / max(1, familiarity.turns)))
    return np.array(
        [
            coverage,
            similarity,
            found[0].parts["similarity"],
            similarity * coverage,
            familiarity.known,
            math.log1p(familiarity.terms),
            how in {"self", "time"},
            how == "back",
            is_personal(message),
            message.rstrip().endswith(("?", "？")),
            _MATERIAL.search(message) is not None,
            familiarity.names_speaker,
            max(one.parts["inside"] for one in found),
            familiarity.foreign,
            familiarity.foreign * similarity,
            is_general(message),
            is_exercise(message),
            few,
            few * familiarity.known,
            few * similarity,
        ],
        dtype=np.float64,
    )

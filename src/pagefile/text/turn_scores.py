"""How well turns answer a question, as sums of named parts: words, neighbours, session, meaning, time.

The weights were chosen on public sets (`pagefile bench recall`), few and round on purpose: what was
tried is in `docs/decisions/0012-recall-fusion.md` and `0110-meaning-counts-twice.md`. Only turns that share a word with the question, are near it, or were
said in a time it names are scored: the others have nothing to be scored for.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from pagefile.arrays import Bools, Float64s, Int32s, Int64s, Numbers, np
from pagefile.text.bm25 import K1, Matches, rarity
from pagefile.text.sentences import Language
from pagefile.text.times import Period
from pagefile.text.turn_columns import TurnColumns

_DAY_S = 86_400
#: Sums of a few numbers differ less than this by the order in which they are added.
_ROUNDING = 1e-9
#: A word that more than one in this many turns has is common; among this few turns every word is.
_COMMON, _FEW = 32, 8192


class Meaning(NamedTuple):
    """Weights relative to the turn with the best words."""

    #: Of a turn that means the same as the question, and of those right before and after it, unless it has its own answer.
    turn: float
    beside: float
    #: Of a session that means the same.
    session: float
    #: Of a turn of the speaker the question names: the name leaves the question before it is embedded.
    named: float


#: How much a long turn is discounted. Chinese life records differ more in length than turns of a
#: conversation.
LENGTH_DISCOUNT = {"en": 0.5, "zh": 0.75}
#: The weight of a word one turn away, and two turns away: as many as `turn_columns.REACH`.
NEIGHBOURS = (0.6, 0.36)
#: The weight of the best session, relative to the best turn.
SESSION = 0.3
#: How much meaning counts in questions of each language. The encoder tells more in English, words do in Chinese.
MEANING = {"en": Meaning(3.0, 0.75, 2.0, 0.25), "zh": Meaning(2.0, 0.0, 2.0, 0.0)}
#: How many of its turns determine the meaning of a session: one alone may be chance.
SESSION_TURNS = 3
#: The assumed similarity of a turn that was not among the nearest, relative to the lowest among those.
NOT_NEAR = 0.5
#: The bonus for words of a speaker the question names, and the penalty for a turn that only asks. One that has its answer says what was
#: asked for.
SPEAKER = 0.2
ASKING_TURN = 0.15
#: The bonus for a turn that says what is wanted from now on, where the message is a task.
LASTING_WISH = 0.4
#: The bonus for a turn within the time the question names.
TIME = 1.5
#: The share of that bonus for a time that was counted back ("last Saturday") instead of named.
ROUGH_TIME = 2 / 3
#: This many days after that time a turn has lost two thirds of the bonus; before it, twice as fast: people
#: report things afterwards.
TIME_DAYS = 7.0
#: The score of a turn that matches only the time: less than any word.
TIME_ALONE = 1e-3


class Timely(NamedTuple):
    """How well each turn matches the times a question names, and which are inside."""

    fit: Float64s
    inside: Bools


class Similarity(NamedTuple):
    """The turns nearest to a question, each once, and how near they are, above 0."""

    slots: Int64s
    near: Float64s

    def dense(self, size: int) -> Float64s:
        every = np.zeros(size)
        every[self.slots] = self.near
        return every


class Scores(NamedTuple):
    """The turns that were scored, ascending, and the parts of their scores; the similarity is none of them."""

    slots: Int64s
    parts: Mapping[str, Float64s]
    similarity: Float64s


def scores(
    turns: TurnColumns,
    matches: Matches,
    spoken: Language,
    similarity: Similarity,
    timely: Timely | None,
    by_named: Bools | None,
    most: int | None = None,
    *,
    is_task: bool = False,
) -> Scores:
    """Of the turns that share words with a question, are near it, or were said in a time it names; where `most` of them are
    wanted, without those that cannot be among the best."""
    discount, of = LENGTH_DISCOUNT[spoken], MEANING[spoken]
    own, near = _near(turns, matches, discount)
    if by_named is not None:
        worth = 1 + SPEAKER * by_named
        own, near = own * worth, near * worth
    scored = near > 0
    scored[similarity.slots] = True
    if timely is not None:
        scored |= timely.inside
    weights = 1 - ASKING_TURN * (turns.asks & ~turns.answered)
    if is_task:
        weights *= 1 + LASTING_WISH * turns.lasts
    scale = near.max(initial=0.0) or 1.0
    sessions = _sessions(turns, matches, discount)
    alike_sessions = _session_similarity(turns, similarity)
    share = SESSION * scale / (sessions.max(initial=0.0) or 1.0)
    if most is not None and timely is None and by_named is None:
        # What a turn that only shares words gets besides.
        besides = share * sessions + scale * of.session * alike_sessions
        besides += scale * of.turn * _guess(similarity)
        least = weights * np.where(near > 0, near + besides[turns.session], 0.0)
        scored &= _may_be_best(turns, similarity, least, most)
    slots = np.flatnonzero(scored)
    own, near, session = own[slots], near[slots], turns.session[slots]
    alike = similarity.dense(len(turns))[slots]
    with_session = share * sessions[session] * (near > 0)
    meaning = of.turn * _filled(alike, near > 0, similarity) + of.beside * _beside(turns, similarity, slots)
    meaning *= scale
    surroundings = scale * of.session * alike_sessions[session]
    if by_named is not None and len(similarity.near):
        surroundings += scale * of.named * by_named[slots]
    weight = weights[slots]
    time = np.zeros(len(slots))
    if timely is not None:
        # The bonus of the time for the meaning counts as meaning: a turn with neither words nor the time gets none.
        fit = timely.fit[slots]
        meaning *= 1 + TIME * fit
        time = TIME * fit * (near + with_session) + TIME_ALONE * timely.inside[slots]
        surroundings *= near + alike > 0
    parts = {
        "words": weight * own,
        "neighbours": weight * (near - own),
        "session": weight * with_session,
        "meaning": weight * (meaning + surroundings),
        "time": weight * time,
    }
    return Scores(slots, parts, alike)


def _may_be_best(turns: TurnColumns, similarity: Similarity, least: Numbers, most: int) -> Bools:
    """Which turns may be among the best `most`: what is near the question or beside such a turn, and of the others those with the best scores."""
    bar = np.partition(least, -most)[-most] if most < len(least) else 0.0
    # A sum in another order may differ in its last digits.
    best = least >= bar * (1 - _ROUNDING)
    special = np.zeros(turns.room, dtype=np.bool_)
    at = turns.places[similarity.slots]
    for place in (at - 1, at, at + 1):
        special[place] = True
    return best | special[turns.places]


def _near(turns: TurnColumns, matches: Matches, discount: float) -> tuple[Float64s, Float64s]:
    """The score of each turn for the question's words, on its own and with its neighbours.

    Each word counts only at its best place, in the turn or, discounted, in a neighbour, however often it occurs.
    """
    places, room = turns.places, turns.room
    norms = K1 * (1 - discount + discount / matches.average * matches.lengths)
    own, near = np.zeros(room), np.zeros(room)
    # Cleared where it was written, for each word: most words are in few turns.
    best = np.zeros(room, np.float32)
    for match in matches.terms:
        worth = match.weight * (K1 + 1) * match.counts / (match.counts + norms[match.slots])
        at = places[match.slots]
        own[at] += worth
        best[at] = worth
        if len(at) > (room - _FEW) // _COMMON:
            _spread(best, near)
            best[:] = 0
            continue
        written = [at]
        for away, price in enumerate(NEIGHBOURS, 1):
            share = price * worth
            for beside in (at - away, at + away):
                # No two turns have the same neighbour on one side, so nothing is written twice.
                best[beside] = np.maximum(best[beside], share)
                written.append(beside)
        beside = np.concatenate(written)
        # What is written twice is the same.
        near[beside] = near[beside] + best[beside]
        best[beside] = 0
    return own[places], near[places]


def _spread(worth: Numbers, near: Float64s) -> None:
    """Add what each place has of a word, itself or from its neighbours: the same for all places at once, which is faster when most have it."""
    best = worth.copy()
    for away, price in enumerate(NEIGHBOURS, 1):
        share = price * worth
        np.maximum(best[away:], share[:-away], out=best[away:])
        np.maximum(best[:-away], share[away:], out=best[:-away])
    near += best


def _sessions(turns: TurnColumns, matches: Matches, discount: float) -> Float64s:
    """BM25 again, with sessions as the documents."""
    lengths = turns.session_lengths
    number = len(lengths)
    found = np.zeros(number)
    if number == 1:
        return found
    norms = K1 * (1 - discount + discount / (lengths.mean() or 1.0) * lengths)
    for match in matches.terms:
        sessions, counts = _by_session(turns.session[match.slots], match.counts, number)
        weight = match.asked * rarity(number, len(sessions))
        found[sessions] += weight * (K1 + 1) * counts / (counts + norms[sessions])
    return found


def _by_session(session: Int32s, counts: Numbers, number: int) -> tuple[Int64s, Float64s]:
    """The sessions of a word, and how often each has it."""
    totals = np.bincount(session, weights=counts, minlength=number)
    there = np.flatnonzero(totals)
    return there, totals[there].astype(np.float64, copy=False)


def _beside(turns: TurnColumns, similarity: Similarity, slots: Int64s) -> Float64s:
    """The mean similarity of the turns right before and after each of these; 0 for those with an answer of their own, which need none."""
    alike = np.zeros(turns.room)
    alike[turns.places[similarity.slots]] = similarity.near
    at = turns.places[slots]
    return np.where(turns.answered[slots], 0.0, (alike[at - 1] + alike[at + 1]) / 2)


def _session_similarity(turns: TurnColumns, similarity: Similarity) -> Float64s:
    """The similarity in meaning of each session: the mean of its nearest few turns."""
    best = np.zeros(len(turns.session_lengths))
    session, left = turns.session[similarity.slots], similarity.near.copy()
    for _ in range(SESSION_TURNS):
        nearest = np.zeros(len(best))
        np.maximum.at(nearest, session, left)
        best += nearest
        # Turns with equal similarity are removed together: they are the same text, repeated.
        left[left == nearest[session]] = 0
    return best / SESSION_TURNS


def _filled(alike: Float64s, shares_words: Bools, similarity: Similarity) -> Float64s:
    """The similarity, with a guess for turns that share words with the question but are not among the nearest."""
    return np.where((alike == 0) & shares_words, _guess(similarity), alike)


def _guess(similarity: Similarity) -> float:
    return NOT_NEAR * float(similarity.near.min()) if len(similarity.near) else 0.0


def timely(at: Float64s, spans: Sequence[Period], zone: tzinfo) -> Timely:
    """The fit decreases with the distance, and is less for a rough time."""
    best = np.zeros(len(at))
    inside = np.zeros(len(at), dtype=np.bool_)
    for period in spans:
        first, after = _midnight(period.first, zone), _midnight(period.last + timedelta(days=1), zone)
        gap = np.maximum(0, np.maximum(2 * (first - at), at - after)) / _DAY_S
        best = np.maximum(best, (ROUGH_TIME if period.rough else 1) * np.exp(-gap / TIME_DAYS))
        inside |= (first <= at) & (at < after)
    return Timely(best, inside)


def _midnight(day: date, zone: tzinfo) -> float:
    return datetime.combine(day, time(), zone).timestamp()

"""Turns and the questions they answer: words, neighbours, sessions, times."""

import threading
import time
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from pagefile.text.speech import said_terms
from pagefile.text.turn_columns import SPEAKER_TURNS
from pagefile.text.turn_ranking import Found, Placed, TurnIndex
from pagefile.text.turn_scores import (
    ASKING_TURN,
    MEANING,
    NEIGHBOURS,
    NOT_NEAR,
    SESSION,
    SESSION_TURNS,
    SPEAKER,
)
from pagefile.text.words import terms

MEANT = MEANING["en"]
NOON = datetime(2025, 6, 18, 12, tzinfo=UTC)


def placed(
    key: str, text: str, *, at: datetime = NOON, conversation: str = "c", aside: str = ""
) -> Placed[str]:
    return Placed(key, conversation, at, " ".join(said_terms(text)), " ".join(terms(aside)) if aside else "")


def index_of(*turns: Placed[str]) -> TurnIndex[str]:
    index: TurnIndex[str] = TurnIndex()
    for turn in turns:
        index.add(turn)
    return index


def keys(found: list[Found[str]]) -> list[str]:
    return [one.key for one in found]


def test_the_answer_beside_the_question_is_found():
    """A turn without a word of the question comes back because of the turns beside it, and two turns away for less."""
    index = index_of(
        placed("far", "Completely unrelated weather"),
        placed("hm", "Hm"),
        placed("asked", "Who directed Interstellar?"),
        placed("told", "Nolan."),
        placed("later", "Thanks!"),
        placed("other", "Hello", conversation="d"),
    )
    found = index.search("who was the director of Interstellar, who directed it", 9)
    assert "asked" == found[0].key
    assert {"asked", "told", "hm", "later", "far"} == set(keys(found))
    by_key = {one.key: one for one in found}
    # What only asks counts less itself, and lends all it has.
    own = by_key["asked"].parts["words"] / (1 - ASKING_TURN)
    assert 0 == by_key["told"].parts["words"] == by_key["told"].parts["coverage"]
    assert pytest.approx(NEIGHBOURS[0] * own) == by_key["told"].parts["neighbours"]
    assert pytest.approx(NEIGHBOURS[1] * own) == by_key["later"].parts["neighbours"]


def test_the_score_is_the_sum_of_its_parts():
    """All but coverage and similarity, which say how well a turn answers by itself."""
    index = index_of(
        placed("a", "pottery class with Mia", at=NOON - timedelta(days=40)),
        placed("b", "pottery class and clay", at=NOON - timedelta(days=1)),
        placed("c", "something else", conversation="d"),
    )
    apart = {"coverage", "similarity", "inside"}
    for one in index.search("the pottery class yesterday", 9, meaning={"a": 0.4, "b": 0.7, "c": -0.1}):
        assert pytest.approx(one.score) == sum(part for name, part in one.parts.items() if name not in apart)
        assert {"words", "neighbours", "session", "meaning", "time"} == set(one.parts) - apart
        assert {"a": 0.4, "b": 0.7, "c": 0}[one.key] == one.parts["similarity"]
    best = index.search("the pottery class yesterday", 1)[0]
    assert ("b", 1.0) == (best.key, best.parts["coverage"])
    assert best.parts["time"] > 0


def test_a_turn_is_found_by_what_it_means():
    """Without a shared word; what the index does not know is passed over, and without meaning the words decide."""
    index = index_of(
        placed("dog", "我家的狗生病了"), placed("cat", "the cat is fine", conversation="d"), placed("x", "x")
    )
    found = index.search("a trip to the vet", 9, meaning={"dog": 0.8, "gone": 0.9, "cat": -0.2})
    assert ["dog"] == keys(found)
    assert (0.0, 0.8) == (found[0].parts["coverage"], found[0].parts["similarity"])
    assert [] == index.search("a trip to the vet", 9) == index.search("a trip to the vet", 9, meaning={})


def test_a_session_near_in_meaning_lends_its_weight():
    """Of two turns that are equally near, the one whose session is about the same comes first; what has nothing stays out."""
    evening = NOON + timedelta(hours=8)
    index = index_of(
        placed("m0", "x"),
        placed("m1", "x"),
        placed("e0", "x", at=evening),
        placed("e1", "x", at=evening),
        placed("e2", "x", at=evening),
    )
    found = index.search("pets", 9, meaning={"m0": 0.5, "e0": 0.5, "e1": 0.4})
    assert ["e0", "e1", "m0"] == keys(found)
    by_key = {one.key: one.parts["meaning"] for one in found}
    beside = MEANT.beside * 0.4 / 2
    assert pytest.approx(MEANT.turn * 0.5 + beside + MEANT.session * 0.9 / SESSION_TURNS) == by_key["e0"]
    assert pytest.approx(MEANT.turn * 0.5 + MEANT.session * 0.5 / SESSION_TURNS) == by_key["m0"]


def test_a_turn_that_is_not_among_the_nearest_is_not_taken_for_far():
    """Its words keep it beside those that are: it counts half of the least near one, and says so nowhere else."""
    index = index_of(*(placed(str(number), "zebra", conversation=str(number)) for number in range(4)))
    found = {one.key: one for one in index.search("zebra", 9, meaning={"0": 0.8, "1": 0.6})}
    meant = {key: one.parts["meaning"] for key, one in found.items()}
    # Each is in a session of its own, which lends nothing to those that were not near.
    lent = 1 + MEANT.session / SESSION_TURNS / MEANT.turn
    assert pytest.approx(meant["0"] / meant["2"]) == 0.8 * lent / (NOT_NEAR * 0.6)
    assert meant["0"] > meant["1"] > meant["2"] == meant["3"] > 0
    assert 0.0 == found["2"].parts["similarity"]


def test_who_is_named_counts_more():
    """Words of the speaker the question names are worth more, the other's not; a name that is there once is nobody's."""
    said = [
        (f"{name}{number}", f"{name}: zebra") for number in range(SPEAKER_TURNS) for name in ("Mia", "Tom")
    ]
    marked = index_of(*(placed(key, text, conversation=key) for key, text in [*said, ("n", "Note: zebra")]))
    plain = index_of(
        *(Placed(key, key, NOON, " ".join(terms(text))) for key, text in [*said, ("n", "Note: zebra")])
    )
    assert ({"mia", "tom"}, set()) == (marked.speakers, plain.speakers)
    worth, as_words = (
        {one.key: one.parts["words"] for one in index.search("Which zebra did Mia note?", 99)}
        for index in (marked, plain)
    )
    assert pytest.approx((1 + SPEAKER) * as_words["Mia0"]) == worth["Mia0"]
    assert pytest.approx(as_words["Tom0"]) == worth["Tom0"]
    assert pytest.approx(as_words["n"]) == worth["n"]


def test_who_only_asks_counts_less():
    """A question holds the words of another question and answers nothing; every part of it shrinks alike."""
    index = index_of(
        placed("told", "红烧肉 用五花肉"),
        placed("asked", "红烧肉 用五花肉？", conversation="d"),
        placed("x", "x", conversation="e"),
    )
    told, asked = index.search("红烧肉用什么肉", 2)
    assert ("told", "asked") == (told.key, asked.key)
    for name in ("words", "neighbours", "session", "meaning", "time"):
        assert pytest.approx((1 - ASKING_TURN) * told.parts[name]) == asked.parts[name]
    assert told.parts["coverage"] == asked.parts["coverage"]


def test_a_question_with_its_answer_counts_in_full():
    """It says what was asked for; of two sides one may be a question."""
    index = index_of(
        placed("told", "red braised pork"),
        placed("answered", "red braised pork?", conversation="d", aside="with belly"),
        placed("asked", "red braised pork?", conversation="e"),
        placed("x", "x", conversation="f"),
    )
    sessions = {one.key: one.parts["session"] for one in index.search("red braised pork", 9)}
    assert sessions["answered"] > sessions["asked"]
    assert pytest.approx((1 - ASKING_TURN) * sessions["told"]) == sessions["asked"]


def test_who_is_named_is_near():
    """The name left the question before it was embedded, so that a turn of that speaker gains beside one that means as much."""
    said = [(f"{name}{number}", f"{name}: x") for number in range(SPEAKER_TURNS) for name in ("Mia", "Tom")]
    index = index_of(*(placed(key, text, conversation=key) for key, text in said))
    found = index.search("What did Mia paint?", 99, meaning={"Mia0": 0.5, "Tom0": 0.5})
    assert found[0].key == "Mia0"
    by_key = {one.key: one.parts["meaning"] for one in found}
    assert by_key["Mia0"] > by_key["Tom0"] > 0


def test_meaning_counts_more_in_english():
    """Of a turn that shares words and one that means the same, an English question finds the latter first, a Chinese one the former."""
    said = {"words": "zebra 斑马", "meant": "x", "other": "y"}
    index = index_of(*(placed(key, text, conversation=key) for key, text in said.items()))
    first = {
        question: index.search(question, 1, meaning={"meant": 0.5, "words": 0.1})[0].key
        for question in ("where is the zebra", "斑马在哪里")
    }
    assert first == {"where is the zebra": "meant", "斑马在哪里": "words"}


def test_a_turn_beside_lends_its_meaning_where_there_is_no_answer():
    """Who answers in a turn of their own says little by itself; a turn with both sides needs no other."""
    near = {"q": 0.5, "r": 0.5, "both": 0.5, "next": 0.5}
    index = index_of(
        placed("q", "alpha", conversation="a"),
        placed("r", "beta", conversation="a"),
        placed("both", "gamma", conversation="b", aside="delta"),
        placed("next", "epsilon", conversation="b", aside="zeta"),
    )
    by_key = {one.key: one.parts["meaning"] for one in index.search("painting", 9, meaning=near)}
    assert pytest.approx(by_key["both"] + MEANT.beside * 0.25) == by_key["r"]


def test_words_that_make_a_question_count_less():
    """Who asks how many different doctors there were wants doctors, not differences."""
    index = index_of(
        placed("differ", "many different kinds", conversation="a"),
        placed("doctor", "doctor", conversation="b"),
        placed("other", "something else", conversation="c"),
    )
    assert "doctor" == keys(index.search("how many different doctors", 3))[0]


def test_a_time_is_seen_from_the_day_of_the_question():
    """From the newest turn's day when no day is named."""
    index = index_of(
        placed("may", "apples", at=datetime(2025, 5, 20, 9, tzinfo=UTC)),
        placed("june", "pears", at=datetime(2025, 6, 17, 9, tzinfo=UTC)),
        placed("now", "grapes"),
    )
    assert ["june"] == keys(index.search("what did I say yesterday", 1))
    assert ["may"] == keys(index.search("what did I say yesterday", 1, today=date(2025, 5, 21)))


def test_an_old_conversation_is_taken_up_again():
    """Years later nothing was said last week: then it is the week before the last turn."""
    index = index_of(
        placed("week", "I planted tulips", at=NOON - timedelta(days=7)),
        placed("old", "I planted tulips", at=NOON - timedelta(days=90), conversation="d"),
        placed("last", "Goodbye", at=NOON, conversation="e"),
    )
    assert "week" == keys(index.search("what did I plant last week", 1, today=date(2029, 1, 1)))[0]
    assert "old" == keys(index.search("what did I plant last week", 1, today=date(2025, 3, 28)))[0]


def test_a_time_alone_finds_its_turns():
    """Latest first; without words they do not cover the question."""
    index = index_of(
        placed("old", "apples", at=NOON - timedelta(days=30)),
        placed("monday", "pears", at=datetime(2025, 6, 9, 9, tzinfo=UTC)),
        placed("friday", "plums", at=datetime(2025, 6, 13, 9, tzinfo=UTC)),
        placed("now", "grapes"),
    )
    found = index.search("上周我们聊了什么？", 9)
    assert ["friday", "monday"] == keys(found)
    assert [0, 0] == [one.parts["coverage"] for one in found]


def test_a_time_beside_the_named_one_is_no_reason():
    """A turn without words of the question has nothing of the time but inside it, however near in meaning it is."""
    index = index_of(
        placed("friday", "plums", at=datetime(2025, 6, 13, 9, tzinfo=UTC)),
        placed("tuesday", "pears", at=datetime(2025, 6, 17, 9, tzinfo=UTC)),
        placed("now", "grapes"),
    )
    found = {
        one.key: one.parts
        for one in index.search("上周吃了什么水果？", 9, meaning={"tuesday": 0.4, "friday": 0.4})
    }
    assert 0.0 == found["tuesday"]["time"] < found["friday"]["time"]
    assert found["friday"]["meaning"] > found["tuesday"]["meaning"] > 0


def test_the_time_decides_between_equals():
    """Inside the time that is named, then shortly after it, then long before."""
    index = index_of(
        placed("march", "跑步五公里", at=datetime(2025, 3, 10, tzinfo=UTC)),
        placed("april", "跑步五公里", at=datetime(2025, 4, 3, tzinfo=UTC)),
        placed("june", "跑步五公里"),
    )
    assert ["march", "april", "june"] == keys(index.search("3月跑步跑了多远？", 9))
    assert ["june", "april", "march"] == keys(index.search("跑步跑了多远？", 9))


def test_a_session_lends_its_weight():
    """Of two equal turns the one whose session is about the question comes first; a long silence ends a session."""
    morning = [placed("m0", "sailing boats"), placed("m1", "zebra"), placed("m2", "x"), placed("m3", "x")]
    evening = [
        placed(turn.key.replace("m", "e"), text, at=NOON + timedelta(hours=8))
        for turn, text in zip(morning, ["lunch", "zebra", "x", "x"], strict=True)
    ]
    apart = [placed("pause", "x " * 9, at=NOON + timedelta(hours=1)) for _ in range(1)]
    index = index_of(*morning, *apart, *evening)
    found = {one.key: one for one in index.search("zebra sailing", 20)}
    assert found["m1"].parts["session"] > found["e1"].parts["session"] > 0
    best = max(one.parts["words"] + one.parts["neighbours"] for one in found.values())
    assert pytest.approx(SESSION * best) == found["m1"].parts["session"]


def test_an_answer_counts_less_than_what_the_user_says():
    """The user's own word outweighs the same word in a reply."""
    index = index_of(
        placed("said", "zebra today", aside="how nice"),
        placed("between", "x", conversation="e"),
        placed("told", "how nice", aside="zebra today", conversation="d"),
    )
    assert ["said", "told"] == keys(index.search("zebra", 9))


def test_only_one_conversation_if_it_is_named():
    """Others take no place; an unknown one has nothing."""
    index = index_of(placed("a", "zebra"), placed("b", "zebra zebra", conversation="d"))
    assert ["a"] == keys(index.search("zebra", 1, "c"))
    assert ["b"] == keys(index.search("zebra", 9, "d"))
    assert [] == index.search("zebra", 9, "nowhere")


def test_nothing_asked_nothing_found():
    """An empty index, no limit, and words nobody said."""
    assert [] == TurnIndex[str]().search("zebra", 9)
    index = index_of(placed("a", "zebra"), placed("b", "horse", conversation="d"))
    assert [] == index.search("zebra", 0) == index.search("unicorn", 9)
    assert 2 == len(index) == index.postings


def test_a_known_turn_is_left_as_it_is():
    """Adding it again changes nothing, not even its neighbours."""
    index = index_of(placed("a", "zebra"), placed("b", "horse"))
    before = index.search("zebra horse", 9)
    index.add(placed("a", "zebra"))
    assert (2, before) == (len(index), index.search("zebra horse", 9))


def test_search_while_adding():
    """Threads may add and search at the same time."""
    index: TurnIndex[int] = TurnIndex()
    failures: list[BaseException] = []

    def add() -> None:
        for key in range(1500):
            index.add(Placed(key, str(key % 3), NOON + timedelta(hours=key), f"a b {key % 7}"))

    def search() -> None:
        try:
            for _ in range(100):
                index.search("a 3", 5)
        except (BufferError, IndexError, ValueError) as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for work in (add, search)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ([], 1500) == (failures, len(index))


def test_ten_thousand_turns_are_searched_in_milliseconds():
    """About two milliseconds on an idle machine; ten times that is a broken index."""
    index: TurnIndex[int] = TurnIndex()
    for key in range(10_000):
        words = [f"w{key * step % 977}" for step in range(1, 30)]
        index.add(Placed(key, "c", NOON + timedelta(hours=key), " ".join(words)))
    began = time.thread_time()
    for at in range(10):
        assert index.search(f"w{at} w{at * 31 % 977} w5 w7 w9 last week", 10)
    assert (time.thread_time() - began) / 10 < 0.04


def test_a_question_for_nothing_but_a_day_finds_the_turns_of_that_day():
    """And no others, however many words of the question those have and however few are wanted."""
    index = index_of(
        placed("hotpot", "和朋友吃了火锅", at=NOON - timedelta(days=29)),
        *(placed(f"talk{number}", "我们聊了什么？说了什么？发生了什么？") for number in range(30)),
    )
    for question in ("5月20日发生了什么", "你还记得我5月20号说了什么吗", "What did we talk about on May 20?"):
        assert ["hotpot"] == keys(index.search(question, 1, today=NOON.date()))
        assert ["hotpot"] == keys(index.search(question, 99, today=NOON.date()))


def test_days_begin_and_end_by_the_users_clock():
    """One in the morning in Shanghai is the evening before in UTC, and another day there."""
    shanghai, day = ZoneInfo("Asia/Shanghai"), date(2025, 6, 18)
    index = index_of(
        placed("evening", "吃了饺子", at=datetime(2025, 6, 17, 15, 59, tzinfo=UTC)),
        placed("night", "睡不着", at=datetime(2025, 6, 17, 16, tzinfo=UTC)),
    )
    assert ["night"] == keys(index.search("今天我做了什么", 9, today=day, zone=shanghai))
    assert ["evening"] == keys(index.search("昨天我做了什么", 9, today=day, zone=shanghai))
    assert {"evening", "night"} == set(keys(index.search("昨天我做了什么", 9, today=day)))


def test_a_time_counts_where_it_is_asked_for():
    """Turns of another conversation do not keep an old one from being resumed where it stopped."""
    index = index_of(
        placed("old", "I bought a tent", at=NOON - timedelta(days=101)),
        placed("end", "Good night", at=NOON - timedelta(days=100)),
        placed("else", "Nothing new", at=NOON - timedelta(days=1), conversation="d"),
    )
    assert ["old"] == keys(index.search("What did I do yesterday?", 9, "c", today=NOON.date()))


def test_a_word_of_the_other_language_finds_what_it_is_called_there():
    """A question in English about notes in Chinese shares no word with them."""
    notes = index_of(
        placed("allergy", "我对花生过敏，小时候去过急诊。"),
        placed("plant", "绿萝一周浇两次水。", conversation="d"),
        placed("dog", "周末带狗去公园。", conversation="e"),
    )
    found = notes.search("Can I eat peanuts?", 3)
    assert ["allergy"] == [one.key for one in found]
    assert found[0].parts["coverage"] > 0
    assert notes.familiarity("Can I eat peanuts?").known > 0
    assert 0 == notes.familiarity("Who paints fences?").known


def test_what_a_word_is_called_elsewhere_does_not_count_where_it_is_known():
    notes = index_of(
        placed("said", "The rollback took an hour."), placed("other", "昨天回滚了一次。", conversation="d")
    )
    assert ["said"] == [one.key for one in notes.search("rollback", 2)]

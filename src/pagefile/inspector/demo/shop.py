"""The shop's support agent, and a traveller who speaks two languages."""

from collections.abc import Sequence
from functools import cache

from pagefile.inspector.demo import results
from pagefile.inspector.demo.script import Learnt, Picks, Said, Tool

_NAMES = ("Anna Brandt", "Piotr Zielinski", "Carla Nunes", "Yusuf Demir", "Ingrid Solheim", "Tom Achterberg")
_PARTS = ("the front light", "a spoke", "the battery charger", "the rear rack", "the display", "a pedal")
_PLACES = ("Aarhus", "Leipzig", "Gdansk", "Utrecht", "Lyon", "Porto")

#: What is asked and what is answered; every pair fits every order.
_SUPPORT = (
    (
        "Where is order {code}? {name} asks for the third time.",
        (
            "Order {code} left the warehouse in {place} on the {day}th and is with the carrier. I would tell {name} to expect it within "
            "{small} days; I have set a reminder in case it does not move by then."
        ),
    ),
    (
        "{name} says that {part} was missing from {code}. Can we send it without a new invoice?",
        (
            "Yes. I created a free delivery of {part} for {code}; it leaves {place} tomorrow and needs no invoice because the value is "
            "below {number} euros."
        ),
    ),
    (
        "Please refund {number} euros on {code}, {name} agreed to keep the bike.",
        (
            "I refunded {number} euros on {code}. The money is back within {small} working days, and the order is marked as settled so that "
            "nobody refunds it twice."
        ),
    ),
    (
        "The pickup in {place} is closed on the {day}th. Move everything from that day by two days.",
        (
            "I moved {small} pickups in {place} from the {day}th by two days and wrote to the customers. {name} had already answered and is "
            "fine with it."
        ),
    ),
    (
        "What did we promise {name} about the delivery of {code}?",
        (
            "We promised delivery of {code} to {place} before the {day}th and a voucher of {number} euros if it came later. So far it is on "
            "time."
        ),
    ),
    (
        "Can you write a friendly note to {name}: {part} is on back order until the {day}th.",
        (
            "Done: \u201cDear {name}, {part} for your order {code} reaches us on the {day}th and goes out to {place} the same day. Thank you "
            "for waiting.\u201d"
        ),
    ),
    (
        "How many orders did we send to {place} last week?",
        "We sent {small} parcels and one pallet to {place} last week, worth {number} euros in all; {code} was the largest of them.",
    ),
)


def _slots(picks: Picks) -> dict[str, object]:
    return {
        "code": picks.code(),
        "name": picks.one(_NAMES),
        "part": picks.one(_PARTS),
        "place": picks.one(_PLACES),
        "day": picks.number(4, 28),
        "small": picks.number(2, 9),
        "number": picks.number(18, 940),
    }


def _support_scenes() -> dict[int, Said]:
    return {
        1: Said(
            "I am Marta, I run the shop in Aarhus. We are open from nine to five.",
            "Welcome, Marta. I have noted that the shop in Aarhus is open from nine to five.",
            learnt=(
                Learnt("Marta runs the bicycle shop in Aarhus", "workplace"),
                Learnt("The shop is open from nine to five", "opening hours"),
            ),
        ),
        9: Said(
            "Answer customers in English unless they write Danish, and sign with Nordlicht.",
            "Understood: English unless they write Danish, signed Nordlicht.",
            learnt=(Learnt("Letters to customers are signed with Nordlicht", category="preference"),),
        ),
        22: Said(
            "Refunds above 200 euros need my approval from now on.",
            "From now on I ask you before I refund more than 200 euros.",
            learnt=(Learnt("Refunds above 200 euros need Marta's approval", "refund limit"),),
        ),
        31: Said(
            "We moved. The shop is in Odense now, Vestergade 14.",
            "Good luck in Odense! I changed the address on labels and letters to Vestergade 14, Odense.",
            learnt=(Learnt("Marta runs the bicycle shop in Odense, Vestergade 14", "workplace"),),
        ),
        44: Said(
            "No, you wrote Vestergade 41 on the labels. It is 14.",
            "I am sorry. I corrected the labels to Vestergade 14 and reprinted the three that had gone wrong.",
            learnt=(
                Learnt(
                    "The shop's house number is 14, not 41: check it before printing labels",
                    category="correction",
                ),
            ),
        ),
        52: Said(
            "Pull the full export of the spring orders, I need it for the accountant.", "", aborted=True
        ),
        53: Said(
            "Sorry, lost connection. The full export of the spring orders, please.",
            "Here it is. The export has all orders from January to June; {state} is the most common state. I can filter it by city or "
            "product when the accountant asks.".replace("{state}", "delivered"),
            (Tool("export_orders", {"from": "2026-01-01", "to": "2026-06-30"}, results.orders(11, 38_000)),),
            window=True,
        ),
        66: Said(
            "The refund limit is 350 now, 200 was too strict.",
            "I ask you from 350 euros on.",
            learnt=(Learnt("Refunds above 350 euros need Marta's approval", "refund limit"),),
        ),
        74: Said(
            "What was in that export you pulled earlier for Leipzig?",
            "I looked at the export again: Leipzig has cargo bikes and batteries for the most part, and two returns in May.",
            loads="export_orders",
            window=True,
        ),
        81: Said(
            "I never said that we are closed on Saturdays, please forget that.",
            "I have taken it back: nothing is noted about Saturdays.",
            learnt=(Learnt("The shop is closed on Saturdays", kind="wrong"),),
        ),
        70: Said(
            "Somebody told me you are closed on Saturdays?",
            "I have noted that the shop is closed on Saturdays; tell me if that is wrong.",
            learnt=(Learnt("The shop is closed on Saturdays", confidence=0.5),),
        ),
    }


@cache
def support_turns() -> Sequence[Said]:
    """Half a year of a shop: a hundred small questions, and a few that matter later."""
    picks = Picks(3)
    scenes = _support_scenes()
    turns: list[Said] = []
    for number in range(150):
        if number in scenes:
            turns.append(scenes[number])
            continue
        slots = _slots(picks)
        asked, answered = _SUPPORT[number % len(_SUPPORT)]
        code = str(slots["code"])
        tools = (Tool("get_order", {"order": code}, results.order(number, code)),) if number % 3 == 0 else ()
        turns.append(Said(asked.format(**slots), answered.format(**slots), tools, window=number % 3 == 2))
    return turns


@cache
def return_turns() -> Sequence[Said]:
    """Another conversation of the same user: what was said in the first one is recalled here."""
    picks = Picks(8)
    turns: list[Said] = []
    for number in range(24):
        slots = _slots(picks)
        if number == 6:
            turns.append(
                Said(
                    "From which amount on do refunds need my approval?",
                    "From 350 euros on; it was 200 until you changed it.",
                    window=True,
                )
            )
            continue
        if number == 15:
            turns.append(
                Said(
                    "Let us start over with the returns of June.",
                    "Gladly. What is the first one?",
                    resets=True,
                )
            )
            continue
        asked, answered = _SUPPORT[(number * 3 + 1) % len(_SUPPORT)]
        turns.append(Said(asked.format(**slots), answered.format(**slots), window=number % 3 == 0))
    return turns


_TRAVEL = (
    (
        "四月去{place}哪几天人少一点？",
        "四月的{place}，周二到周四人最少。建议{day}号出发，住{small}晚，避开清明和周末；早上八点前到景点基本不用排队。",
    ),
    (
        "Find me a train to {place} around the {day}th, not before nine.",
        (
            "There is a fast train to {place} on the {day}th at 9:4{small}, second class, about {small} hours with one stop. I can hold two "
            "seats until tonight."
        ),
    ),
    (
        "{place}有什么适合老人的酒店？预算每晚{number}元。",
        "{place}有两家合适：一家在湖边，带电梯和无障碍浴室，每晚{number}元左右；另一家离车站步行{small}分钟，含早餐。老人同行我更推荐前者。",
    ),
    (
        "My mother walks slowly. How far is the hotel in {place} from the lake?",
        "It is about {small}00 metres on level ground, with benches on the way. A taxi takes {small} minutes and costs less than 20 yuan.",
    ),
    (
        "帮我把{place}的行程写成一页，{day}号到。",
        "第一天：{day}号下午到{place}，入住后在湖边散步。第二天：上午博物馆，中午吃本地菜，下午休息。第三天：古镇半日，傍晚返程。车票和酒店合计约{number}元。",
    ),
)
_TRAVEL_PLACES = ("杭州", "苏州", "绍兴", "南京", "Hangzhou", "Suzhou")


def _travel_scenes() -> dict[int, Said]:
    return {
        0: Said(
            "你好，我是魏晨，住在上海，喜欢坐火车旅行。",
            "你好，魏晨！我记下了：住在上海，喜欢坐火车。",
            learnt=(Learnt("魏晨住在上海", "residence"), Learnt("魏晨喜欢坐火车旅行", category="preference")),
        ),
        7: Said(
            "妈妈吃素，而且对花生过敏，订餐厅时注意。",
            "记下了：您母亲吃素，对花生过敏。以后推荐餐厅都会先确认。",
            learnt=(Learnt("魏晨的母亲吃素，对花生过敏"),),
        ),
        20: Said(
            "I moved to Hangzhou last month, so trains should start there.",
            "Noted: trains start in Hangzhou from now on.",
            learnt=(Learnt("魏晨住在杭州", "residence"),),
        ),
        33: Said(
            "Which hotel did we look at with the lift, near the lake? 之前说过的那家。",
            "是湖边带电梯和无障碍浴室的那家；我又查了一遍当时的列表，房价没有变。",
            loads="search_trips",
            window=True,
        ),
        47: Said(
            "不对，我妈妈不是对花生过敏，是对腰果过敏。",
            "抱歉，已更正：您母亲对腰果过敏。",
            learnt=(
                Learnt("魏晨的母亲吃素，对花生过敏", kind="wrong"),
                Learnt("魏晨的母亲对腰果过敏，不是花生", category="correction"),
            ),
        ),
    }


@cache
def travel_turns() -> Sequence[Said]:
    """Two months of planning, now in one language, now in the other."""
    picks = Picks(21)
    scenes = _travel_scenes()
    turns: list[Said] = []
    for number in range(90):
        if number in scenes:
            turns.append(scenes[number])
            continue
        place = picks.one(_TRAVEL_PLACES)
        slots = {
            "place": place,
            "day": picks.number(3, 27),
            "small": picks.number(2, 7),
            "number": picks.number(220, 880),
        }
        asked, answered = _TRAVEL[number % len(_TRAVEL)]
        found = results.trains(number, place, 13_000 if number % 8 == 1 else 1_500)
        tools = (Tool("search_trips", {"place": place}, found),) if number % 4 == 1 else ()
        turns.append(Said(asked.format(**slots), answered.format(**slots), tools, window=number % 2 == 0))
    return turns

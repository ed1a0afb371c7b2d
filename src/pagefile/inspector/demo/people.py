"""Who is in the demo: a shop, a research desk, a clinic, a programmer and a traveller, each with their agent."""

from datetime import UTC, datetime

from pagefile.inspector.demo.clinic import clinic_turns
from pagefile.inspector.demo.desk import coding_turns, research_turns
from pagefile.inspector.demo.script import Person, Talk
from pagefile.inspector.demo.shop import return_turns, support_turns, travel_turns


def _day(month: int, day: int, hour: int = 8) -> datetime:
    return datetime(2026, month, day, hour, 12, tzinfo=UTC)


PEOPLE: tuple[Person, ...] = (
    Person(
        "demo-marta",
        "en",
        (
            Talk(
                "demo-support",
                "support",
                _day(1, 12),
                150,
                6000,
                "You are the support agent of Nordlicht, a bicycle shop. Look orders up before you speak about them.",
                support_turns,
            ),
            Talk(
                "demo-support-returns",
                "support",
                _day(6, 15),
                21,
                8000,
                "You are the support agent of Nordlicht, a bicycle shop. Returns are accepted for 30 days.",
                return_turns,
            ),
        ),
    ),
    Person(
        "demo-lin",
        "zh",
        (
            Talk(
                "demo-clinic",
                "clinic",
                _day(1, 20, 1),
                160,
                6000,
                "你是社区诊所的随访助手。回答前先核对过敏史和正在服用的药物；不替代医生诊断。",
                clinic_turns,
            ),
        ),
    ),
    Person(
        "demo-okafor",
        "en",
        (
            Talk(
                "demo-research",
                "research",
                _day(2, 3),
                96,
                16_000,
                "You are a research assistant. Cite the report you take a number from.",
                research_turns,
            ),
        ),
    ),
    Person(
        "demo-jonas",
        "en",
        (
            Talk(
                "demo-coding",
                "coder",
                _day(4, 27),
                24,
                8000,
                "You are a coding agent in the repository `billing`. Run the tests before you say that something works.",
                coding_turns,
            ),
        ),
    ),
    Person(
        "demo-wei",
        "zh",
        (
            Talk(
                "demo-travel",
                "travel",
                _day(3, 9, 2),
                80,
                5000,
                "You plan trips. Answer in the language of the question. 用提问的语言回答。",
                travel_turns,
            ),
        ),
    ),
)

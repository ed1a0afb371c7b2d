"""What a model is told: facts, recall, pages."""

import json

import pytest

from pagefile import FactRejectedError, Memory, Settings
from pagefile.ports import ChatModel
from pagefile.settings import ArchiveSettings, FactSettings
from tests.findings.marks import finding

from .promises import REPORT, words

# -- F19: secrets ------------------------------------------------------------------------------------------------------

#: What the user said, and what a model would make of it.
SECRETS = [
    ("The password of my router is hunter2!Blue.", "The user's router password is hunter2!Blue."),
    ("My wifi password: tr0ub4dor&3", "Wifi password tr0ub4dor&3"),
    (
        "Log in with ada / Sommer2024! when you need the portal.",
        "The user's portal login is ada / Sommer2024!",
    ),
    ("my pw is correcthorse", "The user's pw is correcthorse."),
    ("the alarm code is 4711", "The alarm code is 4711."),
    ("my PIN is 9931", "The user's PIN is 9931."),
    ("use token abcd1234efgh5678 for the build server", "The build server token is abcd1234efgh5678"),
    ("我的登录口令hunter33别忘了", "用户登录口令hunter33"),
    ("the safe opens with 12-24-36", "The safe's combination is 12-24-36"),
    ("my social security number is 078-05-1120", "The user's SSN is 078-05-1120"),
    ("My IBAN is DE89370400440532013000", "The user's IBAN is DE89370400440532013000"),
]
HARMLESS = [
    ("I was born in 1984.", "The user was born in 1984."),
    ("My router is in the hall.", "The user's router is in the hall."),
    ("I write code in Rust.", "The user writes code in Rust."),
]


class Proposing(ChatModel):
    """Makes a fact of everything that it knows a fact for, with a true quote."""

    async def complete(self, messages, *, max_tokens):
        lines = [line for line in messages[-1]["content"].split("\n") if line.startswith("{")]
        facts = [
            {
                "turn": said["turn"],
                "quote": quote,
                "text": fact,
                "category": "profile",
                "confidence": 0.95,
            }
            for said in map(json.loads, lines)
            for quote, fact in SECRETS + HARMLESS
            if said["text"].strip() == quote
        ]
        return json.dumps({"facts": facts})


@finding("frameworks-F19")
async def test_secrets_that_a_model_proposes_are_not_kept():
    """Passwords, codes and numbers that open something are refused, and harmless facts beside them are kept."""
    settings = Settings(language="en", facts=FactSettings(extract="model"))
    async with Memory.open("memory://", model=Proposing(), settings=settings, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        for said, _ in SECRETS + HARMLESS:
            await chat.record(user=said, assistant="ok")
        await memory.settle()
        kept = {fact.text for fact in await memory.facts("ada")}
    assert {fact for _, fact in HARMLESS} <= kept
    assert [] == [fact for _, fact in SECRETS if fact in kept]


@finding("frameworks-F19")
async def test_a_secret_is_not_remembered():
    """`remember()` refuses a statement that holds a password, however it is worded."""
    async with Memory.open("memory://", embedder="none") as memory:
        refused = []
        for secret in ("The user's router password is hunter2!Blue.", "Wifi password tr0ub4dor&3"):
            try:
                await memory.remember(secret, user_id="ada")
            except FactRejectedError:
                refused.append(secret)
        await memory.remember("The user likes tea.", user_id="ada")
        facts = [fact.text for fact in await memory.facts("ada")]
    assert ["The user likes tea."] == facts
    assert 2 == len(refused)


# -- F20: recall and how a question is put ------------------------------------------------------------------------------

#: What was said in another conversation, a word of it, and ways to ask that name the thing.
SAID = {
    ("My rent in Hangzhou is 4,350 yuan a month, due on the fifth.", "4,350"): [
        "How much is my rent?",
        "What is my rent?",
        "remind me of the rent",
        "the rent?",
        "rent",
        "Rent amount please.",
        "Write a standing order for the rent.",
        "I have to pay the rent tomorrow.",
        "Tell me the rent again.",
        "What did I say the rent was?",
        "when is the rent due",
        "Draft a mail to my landlord about the rent increase.",
    ],
    ("The wifi router is in the hall cupboard behind the coats.", "cupboard"): [
        "Where is the router?",
        "the router?",
        "remind me where the router is",
        "I can't find the router.",
        "The wifi is down, help me restart the router.",
        "router location",
    ],
    ("Our cat Momo must take 2 ml of Metacam each evening.", "Metacam"): [
        "What dose does Momo get?",
        "Momo's medicine?",
        "remind me about the cat's medicine",
        "It is evening, time for Momo's medicine.",
        "Write a note for the cat sitter about Momo.",
        "cat medication",
    ],
    ("我的车牌号是浙A·88X21，停在B2层。", "88X21"): [
        "我的车牌号是多少？",
        "车牌？",
        "提醒我一下车牌",
        "帮我填停车登记表，需要车牌号。",
        "车停在哪一层",
        "我要登记车牌。",
    ],
}
UNRELATED = [
    "Translate 'good morning' into French.",
    "What is 17 times 23?",
    "Write a haiku about autumn.",
    "Explain TCP slow start.",
    "Sort this list: 3, 1, 2.",
]


@pytest.fixture
async def talked():
    """A memory of long small talk, with four things in it that matter."""
    async with Memory.open("memory://", settings=Settings(language="en")) as memory:
        chat = memory.conversation("old", user_id="ada")
        for number in range(10):
            await chat.record(user=f"Small talk number {number} about books and bread.", assistant="Indeed.")
        for text, _ in SAID:
            await chat.record(user=text, assistant="Noted.")
        for number in range(10):
            await chat.record(user=f"More small talk {number} on hills and rivers.", assistant="Indeed.")
        await memory.settle()
        yield memory


async def window(memory, question):
    chat = memory.conversation("new", user_id="ada")
    return words((await chat.context(question, window_tokens=4000)).messages)


@finding("frameworks-F20")
async def test_recall_does_not_depend_on_how_a_question_is_put(talked):
    """Whoever names a thing is reminded of what was said about it, whether or not it is put as a question."""
    missed = [
        question
        for (_, word), questions in SAID.items()
        for question in questions
        if word not in await window(talked, question)
    ]
    assert [] == missed


@finding("frameworks-F20")
async def test_a_task_that_has_nothing_to_do_with_memory_brings_nothing(talked):
    """Nobody is reminded of anything by a task that names nothing that was said."""
    shown = [await window(talked, task) for task in UNRELATED]
    assert [] == [text for text in shown if any(word in text for _, word in SAID)]


# -- F21: pages after a checkpoint -------------------------------------------------------------------------------------


@pytest.fixture
async def summarized():
    """A conversation that read six reports, all of them before its checkpoint."""
    settings = Settings(language="en", archive=ArchiveSettings(threshold=1000, page_from=1000))
    async with Memory.open("memory://", settings=settings, embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta"):
            step = {"tool": "fetch_report", "input": {"which": name}, "result": f"{name}\n{REPORT}"}
            await chat.record(user="Read it, please.", assistant="I read it.", steps=[step])
        for _ in range(4):
            await chat.record(user="Let us talk about the garden.", assistant="Yes.")
        await chat.checkpoint(recent_turns=2)
        yield chat


@finding("frameworks-F21")
async def test_a_window_says_what_each_page_is(summarized):
    """After a checkpoint too, the id of a page is beside words that tell it from the others, such as its input or title."""
    lines = words((await summarized.context("Go on.", window_tokens=8000)).messages).split("\n")
    steps = [step for turn in await summarized.turns() for step in turn.steps]
    assert 6 == len(steps)
    beside = {step.input["which"]: [line for line in lines if step.page in line] for step in steps}
    assert [] == [name for name, found in beside.items() if not any(name in line for line in found)]


@finding("frameworks-F21")
async def test_a_page_before_a_checkpoint_is_found_by_search(summarized):
    """The tool that searches finds the id of a page that the summary covers."""
    (wanted,) = [page.uuid for page in await summarized.pages() if page.input == {"which": "delta"}]
    assert wanted in await summarized.call_tool("search_tool_history", {"query": "delta vault code word"})


# -- F22: long tables --------------------------------------------------------------------------------------------------

TABLE = "\n".join(
    [
        "| region | q1 | q2 |",
        "|---|---|---|",
        *[f"| region-{number} | {number} | {number * 2} |" for number in range(800)],
        "| Hokkaido | 9120 | 7345 |",
        *[f"| area-{number} | {number} | {number * 2} |" for number in range(800)],
    ]
)
CSV = TABLE.replace(" | ", ",").replace("| ", "").replace(" |", "")
PROSE = "alpha beta gamma delta. " * 2000 + "Hokkaido had 7345 in q2. " + "alpha beta gamma delta. " * 2000


async def asked(text, **more):
    """What `load_tool_history` and `search_tool_history` show of a page, asked for one row."""
    async with Memory.open("memory://", settings=Settings(language="en"), embedder="none") as memory:
        chat = memory.conversation("c", user_id="ada")
        step = {"tool": "read", "input": {}, "result": text}
        turn = await chat.record(user="Read it.", assistant="ok", steps=[step])
        given = {"uuid": turn.steps[0].page, "query": "Hokkaido q2", **more}
        loaded = await chat.call_tool("load_tool_history", given)
        return loaded, await chat.call_tool("search_tool_history", {"query": "Hokkaido q2"})


@finding("frameworks-F22")
async def test_a_row_of_a_long_table_can_be_asked_for():
    """A query shows the row of a long Markdown table that it is about, and not the whole table."""
    loaded, _ = await asked(TABLE)
    assert "7345" in loaded
    assert len(loaded) < len(TABLE) / 2


@finding("frameworks-F22")
async def test_a_query_and_a_limit_go_together_in_a_table():
    """With a limit too, what is shown of a table goes by the query."""
    loaded, _ = await asked(TABLE, limit=2000)
    assert "7345" in loaded


@finding("frameworks-F22")
@pytest.mark.parametrize("text", [CSV, PROSE], ids=["csv", "prose"])
async def test_a_query_and_a_limit_go_together(text):
    """With a limit too, what is shown goes by the query."""
    loaded, _ = await asked(text, limit=2000)
    assert "7345" in loaded


@finding("frameworks-F22")
async def test_a_row_of_a_long_table_is_found_by_search():
    """The tool that searches shows the row."""
    _, found = await asked(TABLE)
    assert "7345" in found


@finding("frameworks-F22")
@pytest.mark.parametrize("text", [CSV, PROSE], ids=["csv", "prose"])
async def test_a_passage_of_other_text_can_be_asked_for(text):
    """A query shows the passage of a long text that it is about."""
    loaded, _ = await asked(text)
    assert "7345" in loaded

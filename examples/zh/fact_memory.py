"""The conversation of the design document on fact recall: three turns about a Python project, and which facts each of them sees.

Facts come from three places: a `memory.json` of another system, the user's own words (read by rules, no model), and `remember()`.
Then one of them changes, and the change is taken back.

    python examples/zh/fact_memory.py [URL]
"""

import sys
import tempfile

import anyio

from pagefile import Fact, FactRejectedError, Memory, Settings
from pagefile.settings import FactSettings

USER = "user-456"
TAKEN_OVER = {
    "facts": [
        {"content": "Prefers pytest for testing", "category": "preference", "confidence": 0.9},
        {"content": "Expert in Python and FastAPI", "category": "knowledge", "confidence": 0.9},
        {"content": "Likes type hints in Python", "category": "preference", "confidence": 0.9},
        {"content": "Uses Docker for containerization", "category": "knowledge", "confidence": 0.9},
    ]
}
TURNS = (
    ("我在做一个 Python 项目。我住在杭州。", "好的，什么项目？"),
    ("使用 FastAPI 和 SQLAlchemy", "明白。"),
    ("怎么写测试？", "用 pytest 和 TestClient。"),
)


async def main(url: str) -> None:
    # Facts get 30 tokens here, so that there is something to choose.
    chosen = FactSettings(extract="rules", embeddings=False, max_injection_tokens=60)
    async with Memory.open(url, settings=Settings(facts=chosen)) as memory:
        print("taken over:", await memory.import_facts(TAKEN_OVER, user_id=USER))
        chat = memory.conversation("conv-123", user_id=USER)
        for user, assistant in TURNS:
            window = await chat.context(user)
            print(f"\n用户: {user}")
            for line in str(window.messages).split("\\n"):
                if line.startswith("- "):
                    print(line)
            await chat.record(user=user, assistant=assistant)
            await memory.settle()  # only so that this example always prints the same
        await show_changes(memory)


async def show_changes(memory: Memory) -> None:
    """A statement takes the place of what it contradicts, and the change can be taken back."""
    moved = await memory.remember("用户住在上海", user_id=USER, attribute="residence")
    print(f"\n{moved.outcome}: {moved.text}")
    print(
        "记录:", [f"{fact.text}{'（已过去）' if fact.valid_to else ''}" for fact in await residences(memory)]
    )
    await memory.undo(USER)
    print("撤销后:", [fact.text for fact in await memory.facts(USER) if fact.attribute == "residence"])
    try:
        await memory.remember("我的密码是 hunter2", user_id=USER)
    except FactRejectedError as error:
        print(error)


async def residences(memory: Memory) -> list[Fact]:
    """Every place the user is known to have lived in."""
    return [fact for fact in await memory.facts(USER, history=True) if fact.attribute == "residence"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, *(sys.argv[1:] or [f"sqlite:///{folder}/facts.db"]))

"""Three turns of a conversation about a Python project, and which facts each of them sees.

Facts come from three places: a `memory.json` of another system, the user's own words (read by rules, no model), and `remember()`.
Then one of them changes, and the change is taken back.

    python examples/fact_memory.py [URL]
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
    ("I am working on a Python project. I live in Porto.", "Nice, which one?"),
    ("It uses FastAPI and SQLAlchemy.", "I see."),
    ("How do I write tests?", "With pytest and TestClient."),
)


async def main(url: str) -> None:
    # Facts get 60 tokens here, so that there is something to choose.
    chosen = FactSettings(extract="rules", embeddings=False, max_injection_tokens=60)
    async with Memory.open(url, settings=Settings(facts=chosen)) as memory:
        print("taken over:", await memory.import_facts(TAKEN_OVER, user_id=USER))
        chat = memory.conversation("conv-123", user_id=USER)
        for user, assistant in TURNS:
            window = await chat.context(user)
            print(f"\nUser: {user}")
            for line in str(window.messages).split("\\n"):
                if line.startswith("- "):
                    print(line)
            await chat.record(user=user, assistant=assistant)
            await memory.settle()  # only so that this example always prints the same
        await show_changes(memory)


async def show_changes(memory: Memory) -> None:
    """A statement takes the place of what it contradicts, and the change can be taken back."""
    moved = await memory.remember("The user lives in Lisbon", user_id=USER, attribute="residence")
    print(f"\n{moved.outcome}: {moved.text}")
    print(
        "On record:",
        [f"{fact.text}{' (past)' if fact.valid_to else ''}" for fact in await residences(memory)],
    )
    await memory.undo(USER)
    print("After undo:", [fact.text for fact in await memory.facts(USER) if fact.attribute == "residence"])
    try:
        await memory.remember("My password is hunter2", user_id=USER)
    except FactRejectedError as error:
        print(error)


async def residences(memory: Memory) -> list[Fact]:
    """Every place the user is known to have lived in."""
    return [fact for fact in await memory.facts(USER, history=True) if fact.attribute == "residence"]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(main, *(sys.argv[1:] or [f"sqlite:///{folder}/facts.db"]))

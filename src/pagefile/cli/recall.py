"""`recall`: past turns that answer a question, and why they rank as they do."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import anyio
import typer

from pagefile.cli.invocation import Invocation, command
from pagefile.cli.opening import existing
from pagefile.cli.options import Full
from pagefile.cli.output import clipped, print_table, table, visible
from pagefile.engine import Memory
from pagefile.records import Hit

_PATIENCE_S = 5.0


@command()
def recall(
    cli: Invocation,
    query: Annotated[str, typer.Argument(help="What is asked for.")],
    *,
    conversation: Annotated[
        str | None, typer.Option("--conversation", "-c", help="Search one conversation.")
    ] = None,
    user_id: Annotated[str | None, typer.Option(help="Search all conversations of a user.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many to find.")] = 10,
    scores: Annotated[bool, typer.Option("--scores", help="Show what each score is made of.")] = False,
    full: Full = False,
) -> None:
    """Find past turns, best first, with the score of each."""
    if not query.strip():
        raise typer.BadParameter("the question is empty: say what to look for")
    if conversation is None and user_id is None:
        raise typer.BadParameter("say where to search: --conversation ID or --user-id ID")

    async def work(memory: Memory) -> list[Hit]:
        # This process may be the first to see what others wrote: a short wait lets it be found by meaning too.
        with anyio.move_on_after(_PATIENCE_S):
            await memory.settle()
        if conversation is None:
            return await memory.recall(query, user_id=user_id or "", tenant=cli.tenant, limit=limit)
        chat = await existing(memory, conversation, user_id, cli.tenant)
        return await chat.recall(query, limit)

    hits = cli.run(work)
    missing = f"Nothing recorded here answers {query!r}."
    cli.answer(hits, lambda: _show(hits, scores=scores, full=full), found=hits, missing=missing)


def _show(hits: Sequence[Hit], *, scores: bool, full: bool) -> None:
    columns = ("score", *(["parts"] if scores else []), "said", "conversation", "text")
    made = table(*columns, right=("score",), wraps=("conversation",))
    for hit in hits:
        text = visible(hit.text, lines=True) if full else clipped(hit.text, 160)
        made.add_row(
            f"{hit.score:.2f}",
            *([_parts(hit.parts)] if scores else []),
            f"{hit.at.astimezone():%Y-%m-%d}",
            visible(hit.conversation_id),
            text,
        )
    print_table(made)


def _parts(parts: Mapping[str, float]) -> str:
    told = {name: f"{value:.2f}" for name, value in parts.items()}
    return "\n".join(f"{name} {value}" for name, value in told.items() if float(value))

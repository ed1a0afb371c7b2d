"""`forget`: erases a conversation, a user, a tenant, or a single turn or page, and reports what was erased."""

from typing import Annotated

import typer

from pagefile.cli.asking import ask
from pagefile.cli.invocation import Invocation, command
from pagefile.cli.output import say, show_counts, visible
from pagefile.engine.asking import check_erased
from pagefile.errors import PagefileError
from pagefile.records import DEFAULT_TENANT, ErasureReceipt, Scope


@command(tenant=False)
def forget(
    cli: Invocation,
    conversation: Annotated[str | None, typer.Argument(help="A conversation.")] = None,
    *,
    user_id: Annotated[str | None, typer.Option(help="A user: all conversations, facts and pages.")] = None,
    tenant: Annotated[str | None, typer.Option(help="A tenant; alone, everything it has.")] = None,
    turn: Annotated[str | None, typer.Option(help="Only this turn of the conversation, by its id.")] = None,
    page: Annotated[str | None, typer.Option(help="Only this archived page, by its uuid.")] = None,
    scrub: Annotated[bool, typer.Option(help="Rewrite the database's files too: takes a while.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Erase a conversation, a user or a whole tenant, or one turn or page alone, for good."""
    named = {"turn": turn, "page": page, "conversation": conversation, "user": user_id, "tenant": tenant}
    what = " of ".join(f"{kind} {name!r}" for kind, name in named.items() if name is not None)
    if not what:
        raise typer.BadParameter("say what to forget: a conversation, --user-id, --page or --tenant")
    try:
        uuid = check_erased(user_id, conversation, tenant, turn_id=turn, page=page)
    except PagefileError as error:
        raise typer.BadParameter(str(error)) from error
    settings = cli.settings
    if not yes:
        ask(f"erase {what} for good", otherwise="nothing was erased.")
    receipt = cli.run(
        lambda memory: memory.engine.erase(
            Scope(tenant or DEFAULT_TENANT, user_id, conversation), turn_id=turn, page=uuid, scrub=scrub
        ),
        settings=settings,
    )
    cli.answer(
        _receipt_json(receipt),
        lambda: _show(receipt, what),
        # Files are rewritten even if the rows were erased earlier.
        found=receipt.total or scrub,
        missing=f"There was nothing to forget of {what}.",
    )


def _receipt_json(receipt: ErasureReceipt) -> dict[str, object]:
    return {
        "scope": receipt.scope,
        "at": receipt.at,
        "counts": receipt.counts,
        "total": receipt.total,
        "pending": receipt.pending,
        "turn_id": receipt.turn_id,
        "page": receipt.page,
        "places": receipt.places,
    }


def _show(receipt: ErasureReceipt, what: str) -> None:
    say(f"Erased {visible(what)}\n")
    show_counts(receipt.counts)
    for what_is_left in receipt.pending:
        say(f"\nStill to be erased: {visible(what_is_left)}")

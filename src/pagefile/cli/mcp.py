"""`mcp`: this memory for clients of the Model Context Protocol."""

from pathlib import Path
from typing import Annotated, Any

from typer import Option
from typer.core import TyperGroup

from pagefile.cli.invocation import Invocation, command, group
from pagefile.cli.options import in_conversation, of_user
from pagefile.mcp.calling import CONVERSATION, Caller
from pagefile.mcp.server import serve_stdio

_SERVE = "serve"


class _Serving(TyperGroup):
    """`pagefile mcp` without a command serves: that is what clients are set up to run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in {"-h", "--help"})
        return super().parse_args(ctx, args if named else [_SERVE, *args])


app = group("Serve this memory to clients of the Model Context Protocol.", _Serving)


@command(app, _SERVE, json=False)
def serve(
    cli: Invocation,
    *,
    user_id: Annotated[str | None, of_user(help="Whose memory it is, by default mcp.user_id.")] = None,
    conversation: Annotated[
        str, in_conversation(help="Where exchanges are recorded that name no conversation.")
    ] = CONVERSATION,
    project: Annotated[
        Path | None, Option(help="A folder: the memory is of this project alone, and of no user.")
    ] = None,
) -> None:
    """Serve one client over standard input and output: what `pagefile mcp` does without a command.

    Over HTTP, `pagefile serve` serves the same at /mcp.
    """
    settings = cli.loaded(patient=False).settings
    whose = project_user(project) if project is not None else user_id or settings.mcp.user_id
    cli.run(
        lambda memory: serve_stdio(Caller(memory, whose, cli.tenant, conversation)),
        settings=settings,
        must_exist=False,
    )


def project_user(folder: Path) -> str:
    """Whose memory the memory of a project is: one project's rules never reach another's."""
    return f"project:{folder.resolve()}"

"""`chat`: talk to a model in the terminal, with the bill of every window below the answer."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import takewhile
from typing import Annotated, Any

import anyio
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from pagefile.blocking import BlockingMemory
from pagefile.cli.invocation import Invocation, command
from pagefile.cli.measures import bar, number, plural
from pagefile.cli.options import of_user
from pagefile.cli.output import WordWrap, clipped, complain, err, out, say
from pagefile.cli.windows import show_bill
from pagefile.engine import Conversation, Memory
from pagefile.engine.replay import Explanation
from pagefile.engine.standard_tiers import chat_model
from pagefile.inspector.scripted import ScriptedModel, sample_result
from pagefile.ports import ChatModel
from pagefile.service.chat_hooks import ChatHooks
from pagefile.service.chat_turn import ChatRun
from pagefile.text.sentences import language
from pagefile.wire.chat import AskChat
from pagefile.wire.requests import StepBody

_PROMPT = "you › "
_HELP = """/bill            every candidate of the last window, and why it was kept or left out
/sample MESSAGE  send the message with a long tool result attached, and watch it leave the window
/facts           what is known about you
/help            this list
/quit            leave (so do Ctrl-D and, at the prompt, Ctrl-C)"""


@dataclass
class _Talk:
    memory: BlockingMemory
    chat: Conversation
    model: ChatModel
    hooks: ChatHooks
    window_tokens: int | None
    instructions: str | None
    #: The call of the last window.
    call_id: str | None = None
    #: What the last answer brought about: pages that left the window, and pages that came back.
    events: list[str] = field(default_factory=list[str])

    def wait(self, verb: Any) -> Any:
        return self.memory.loop.wait(verb)

    async def answer(self, message: str, *, sample: bool) -> None:
        """Send a message, print the answer as it comes, and record both."""
        steps: tuple[StepBody, ...] = ()
        if sample:
            least = self.memory.inner.settings.archive.threshold + 2_000
            text = sample_result(least, chinese=language(message) == "zh")
            steps = (StepBody(tool="inspect_site", input={"site": "north"}, result=text),)
        scope = self.chat.scope
        asked = AskChat(
            conversation_id=self.chat.id,
            user_id=scope.user,
            tenant=scope.tenant,
            message=message,
            window_tokens=self.window_tokens,
            instructions=self.instructions,
            steps=steps,
        )
        turn = await self.chat.begin(message)
        run = ChatRun(self.memory.inner, self.model, self.chat, asked, turn, self.hooks)
        self.events, written = [], WordWrap(out())
        try:
            await run.run(partial(self._say, written))
        finally:
            with anyio.CancelScope(shield=True):
                await run.end()
            written.end()
        self.call_id = run.window.id if run.window else None

    async def _say(self, written: WordWrap, name: str, data: Any) -> None:
        if name == "token":
            written.feed(data.text)
        elif name == "archived":
            self.events.append(
                f"{number(data.chars)} characters of {data.tool} are page {data.uuid[:8]} from now on: later turns see a placeholder"
            )
        elif name == "loaded":
            self.events.append(f"{data.tool} brought back {number(data.chars)} characters")
        elif name == "checkpoint":
            self.events.append(f"checkpoint {data.version}: older turns are summarised from now on")
        elif name == "error":
            written.end()
            complain(f"{data.title}: {data.detail}")

    def explained(self) -> Explanation | None:
        return None if self.call_id is None else self.wait(partial(self.chat.explain, self.call_id))


@command(json=False)
def chat(
    cli: Invocation,
    conversation: Annotated[str, Argument(help="The conversation to record in.")] = "chat",
    *,
    message: Annotated[
        list[str] | None, Option("--message", "-m", help="Send this message and exit; can be repeated.")
    ] = None,
    user_id: Annotated[
        str | None, of_user(help="The user; by default the conversation's owner, or `me` in a new one.")
    ] = None,
    window_tokens: Annotated[int | None, Option(min=200, help="The budget of a window.")] = None,
    instructions: Annotated[str | None, Option(help="The system prompt.")] = None,
    scripted: Annotated[
        bool,
        Option(
            "--scripted", help="Talk to the built-in script even if a model is configured: offline and free."
        ),
    ] = False,
) -> None:
    """Chat with the configured model; each answer is followed by what its window was made of, and the tokens saved.

    Without a model (`model.name`) a script answers, offline: it shows what is in its window and opens pages. In a pipe, each line of
    standard input is a message.

    Examples:
        pagefile chat
        pagefile chat notes --window-tokens 2000
        pagefile chat notes -m "What did I say about the deadline?"
        PAGEFILE_MODEL__NAME=gpt-5 PAGEFILE_MODEL__API_KEY=… pagefile chat
    """
    settings = cli.settings
    model = None if scripted else chat_model(settings.model)
    with BlockingMemory.open(settings=settings) as memory:
        chat = memory.loop.wait(partial(_joined, cli, memory.inner, conversation, user_id))
        talk = _Talk(
            memory, chat, model or ScriptedModel(), ChatHooks.of(settings.chat), window_tokens, instructions
        )
        try:
            if not message:
                _greet(talk, settings.model.name if model else None)
            for said in message or _typed():
                _turn(talk, said)
        finally:
            talk.wait(talk.hooks.close)
            if model is not None:
                talk.wait(model.close)


async def _joined(cli: Invocation, memory: Memory, conversation: str, user_id: str | None) -> Conversation:
    chat = await cli.chat(memory, conversation, user_id, must_exist=False)
    if user_id is None and not await chat.turns(limit=1):
        return memory.conversation(conversation, user_id=memory.settings.mcp.user_id, tenant=cli.tenant)
    return chat


def _greet(talk: _Talk, model: str | None) -> None:
    who = f"{model} answers" if model else "No model is set (model.name), so a script answers"
    user = f" of {clipped(talk.chat.scope.user, 30)}" if talk.chat.scope.user else ""
    say(f"Conversation {clipped(talk.chat.id, 40)}{user}. {who}. /help lists what else you can type.")


def _typed() -> Iterator[str]:
    """What is typed, until the end of the input or /quit."""
    yield from filter(None, takewhile(lambda said: said not in {"/quit", "/exit"}, _lines()))


def _lines() -> Iterator[str]:
    if not sys.stdin.isatty():
        yield from map(str.strip, sys.stdin)
        return
    with suppress(ImportError):
        import_module("readline")  # editing and history of the line, where Python has it
    while True:
        try:
            yield input(f"\n{_PROMPT}").strip()
        except (EOFError, KeyboardInterrupt):
            say()
            return


def _turn(talk: _Talk, said: str) -> None:
    sample = said.startswith("/sample")
    said = said.removeprefix("/sample").strip() if sample else said
    if said.startswith("/"):
        _command(talk, said)
        return
    try:
        talk.wait(partial(talk.answer, said or "What does the report of the north site say?", sample=sample))
    except KeyboardInterrupt:
        # The answer is given up, the conversation goes on; what was asked stays on record.
        err().print("\nStopped.")
        return
    _show_bill(talk)


def _command(talk: _Talk, name: str) -> None:
    found = talk.explained() if name == "/bill" else None
    if name == "/bill":
        show_bill(found) if found else say("There is no window yet: say something first.")
    elif name == "/facts":
        facts = (
            talk.memory.facts(talk.chat.scope.user or "", talk.chat.scope.tenant)
            if talk.chat.scope.user
            else []
        )
        say(
            "\n".join(f"- {clipped(fact.text, 200)}" for fact in facts)
            or "Nothing is known yet: `pagefile remember` writes a fact."
        )
    else:
        say(_HELP if name == "/help" else f"There is no {clipped(name, 20)}.\n{_HELP}")


# -- the bill ------------------------------------------------------------------------------------------------------------


def _show_bill(talk: _Talk) -> None:
    found = talk.explained()
    if found is None:
        return
    shown = Table.grid(padding=(0, 2))
    shown.add_column(style="dim", no_wrap=True)
    shown.add_column(overflow="fold")
    for name, text in _bill(found, talk.events):
        shown.add_row(name, Text(text))
    say()
    out().print(shown)


def _bill(found: Explanation, events: list[str]) -> Iterator[tuple[str, str]]:
    receipt, tokens = found.receipt, found.call.tokens
    share = tokens / receipt.budget
    yield "window", f"{bar(share, 20)} {share:.0%}, {number(tokens)} of {number(receipt.budget)} tokens"
    parts = [f"{one.block} {number(one.tokens)}" for one in found.blocks if one.tokens]
    yield "made of", " · ".join([*parts, f"framing {number(receipt.framing)}"])
    yield "saved", _saved(found)
    kept = {block: sum(one.kept and one.block == block for one in receipt.verdicts) for block in _RECALLED}
    yield (
        "recalled",
        ", ".join(plural(n, word) for block, word in _RECALLED.items() if (n := kept[block])) or "nothing",
    )
    for event in events:
        yield "", event
    for note in receipt.degraded:
        yield "degraded", note
    yield "more", f"pagefile explain {found.call.id[:8]}"


#: What comes back from outside of the conversation's last turns.
_RECALLED = {
    "episodes": "past turn",
    "facts": "fact",
    "corrections": "correction",
    "loaded": "page",
    "chunks": "passage",
}


def _saved(found: Explanation) -> str:
    whole = found.tokens_without
    if whole is None:
        return "unknown"
    if whole <= found.call.tokens:
        return f"nothing yet: everything said so far takes {plural(whole, 'token')}"
    saved = whole - found.call.tokens
    return f"{plural(saved, 'token')} ({saved / whole:.0%}) of the {number(whole)} that everything said so far takes"

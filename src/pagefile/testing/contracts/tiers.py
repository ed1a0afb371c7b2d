"""The promises of `pagefile.tiers.Tier` as tests, for a tier that remembers what users say."""

from collections.abc import AsyncIterator, Callable

import pytest

from pagefile.engine import Memory
from pagefile.settings import EmbedderSettings, Settings
from pagefile.tiers.base import Tier
from pagefile.window.receipt import Window

_SETTINGS = Settings(language="en", embedder=EmbedderSettings(name="none"), on_tier_error="raise")


@pytest.mark.anyio
class TierContract:
    """Subclass it, set `said`, `question` and `shown`, and add a `make_tier` fixture that makes tiers over the same storage."""

    #: Something a user says that the tier brings up later.
    said: str
    #: A question whose window must contain it, asked in another conversation.
    question: str
    #: Words the window then shows.
    shown: str

    @pytest.fixture
    async def memory(self, make_tier: Callable[[], Tier]) -> AsyncIterator[Memory]:
        async with Memory.open("memory://", settings=_SETTINGS, tiers=[make_tier()]) as memory:
            await memory.conversation("first", user_id="ada").record(user=self.said, assistant="Noted.")
            await memory.settle()
            yield memory

    async def _window(
        self, memory: Memory, *, user: str | None = "ada", tenant: str | None = None, incognito: bool = False
    ) -> Window:
        chat = memory.conversation("second", user_id=user, tenant=tenant, incognito=incognito)
        return await chat.context(self.question)

    def _is_shown(self, window: Window) -> bool:
        return self.shown in str(window.messages[:-1])

    async def test_it_is_in_the_window_and_in_the_receipt(self, memory: Memory) -> None:
        """What was said comes back in another conversation, within the budget."""
        window = await self._window(memory)
        assert self._is_shown(window)
        assert [] != [verdict for verdict in window.receipt.kept if verdict.block not in {"current", "guide"}]
        assert 0 < window.tokens <= window.budget

    async def test_others_do_not_see_it(self, memory: Memory) -> None:
        assert not self._is_shown(await self._window(memory, user="bob"))

    async def test_other_tenants_do_not_see_it(self, memory: Memory) -> None:
        """A user with the same id in another tenant is a different one, and erasing them erases nothing here."""
        assert not self._is_shown(await self._window(memory, tenant="another"))
        await memory.forget(user_id="ada", tenant="another")
        assert self._is_shown(await self._window(memory))

    async def test_what_nobody_in_particular_said_stays_where_it_was_said(self, memory: Memory) -> None:
        """Conversations without a user share nothing."""
        await memory.conversation("nameless").record(user=self.said, assistant="Noted.")
        await memory.settle()
        assert not self._is_shown(await self._window(memory, user=None))

    async def test_a_turn_that_is_written_again_counts_once(self, memory: Memory) -> None:
        """A caller that got no response retries with the same id."""
        shown: list[Window] = []
        for _ in range(2):
            chat = memory.conversation("retried", user_id="eve")
            await chat.record(user=self.said, assistant="Noted.", id="once")
            await memory.settle()
            shown.append(await self._window(memory, user="eve"))
        assert self._is_shown(shown[0])
        assert shown[0].messages == shown[1].messages

    async def test_what_was_recorded_survives_a_kill(
        self, memory: Memory, make_tier: Callable[[], Tier]
    ) -> None:
        """A process that dies right after `record` leaves the next one all it needs."""
        await memory.conversation("last", user_id="eve").record(user=self.said, assistant="Noted.")
        async with Memory.open("memory://", settings=_SETTINGS, tiers=[make_tier()]) as later:
            await later.settle()
            assert self._is_shown(await self._window(later, user="eve"))

    async def test_incognito_leaves_no_trace(self, memory: Memory) -> None:
        """What is said incognito is not brought up later, nor is anything brought up there, unless the tier allows it."""
        if not memory.engine.tiers[-1].incognito:
            assert not self._is_shown(await self._window(memory, incognito=True))
        secret = memory.conversation("secret", user_id="eve", incognito=True)
        await secret.record(user=self.said, assistant="Noted.")
        assert not self._is_shown(await self._window(memory, user="eve"))

    async def test_forgotten_is_gone(self, memory: Memory, make_tier: Callable[[], Tier]) -> None:
        """Also from the tier's storage outside the database, also for the next process."""
        await memory.forget(user_id="ada")
        assert not self._is_shown(await self._window(memory))
        async with Memory.open("memory://", settings=_SETTINGS, tiers=[make_tier()]) as later:
            assert not self._is_shown(await self._window(later))

    async def test_what_it_answers_can_be_used(self, memory: Memory) -> None:
        """Its description is JSON with its own keys, and what it erased is counted, even when nothing is left."""
        await memory.describe()
        for _ in range(2):
            await memory.forget(user_id="ada")
        assert {} == memory.engine.failures

    async def test_settled_work_survives(self, memory: Memory, make_tier: Callable[[], Tier]) -> None:
        async with Memory.open("memory://", settings=_SETTINGS, tiers=[make_tier()]) as later:
            assert self._is_shown(await self._window(later))

    async def test_a_window_is_made_again(self, memory: Memory) -> None:
        """Replaying a call shows the same messages, byte for byte, whatever the tier holds by now."""
        chat = memory.conversation("second", user_id="ada")
        window = await chat.context(self.question)
        await memory.conversation("third", user_id="ada").record(user=f"{self.said} Twice.", assistant="Yes.")
        await memory.settle()
        again = await chat.explain(window.id)
        assert again.exact, again.why
        assert window.messages == list(again.messages)

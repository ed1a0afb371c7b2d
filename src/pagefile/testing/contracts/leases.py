"""The contract of `LeaseStore`."""

from datetime import timedelta

from pagefile.ports import Claim, KeptResponse, Store
from pagefile.records import Scope
from pagefile.testing.contracts.base import Contract
from pagefile.testing.drafts import AT
from pagefile.testing.scopes import ADA, CHAT

_MINUTE = timedelta(minutes=1)


def claim(
    claim_id: str = "k", scope: Scope = ADA, asked: str = "reset", after: timedelta = timedelta()
) -> Claim:
    now = AT + after
    return Claim(claim_id, scope, asked, now, now + _MINUTE, now + timedelta(days=1))


def _running(asked: str = "reset") -> KeptResponse:
    return KeptResponse(asked, AT + _MINUTE, done=False, head=None, body=None)


class LeaseStoreContract(Contract):
    """`LeaseStore`."""

    async def test_one_caller_gets_a_claim(self, store: Store) -> None:
        """Everybody else learns what was asked, and until when it counts as running. Another id is another claim."""
        assert await store.leases.claim(claim()) is None
        assert await store.leases.claim(claim(asked="other")) == _running()
        assert await store.leases.claim(claim("l", scope=Scope("other"))) is None

    async def test_a_result_is_given_to_whoever_asks_again(self, store: Store) -> None:
        """Until it expires: then the work may be claimed again."""
        await store.leases.claim(claim())
        await store.leases.keep("k", '{"status": 201}', b"\x00\xff body")
        again = await store.leases.claim(claim(after=timedelta(hours=23)))
        assert again == KeptResponse(
            "reset", AT + _MINUTE, done=True, head='{"status": 201}', body=b"\x00\xff body"
        )
        assert await store.leases.claim(claim(after=timedelta(hours=24))) is None

    async def test_a_released_claim_is_free(self, store: Store) -> None:
        """Releasing is idempotent."""
        await store.leases.claim(claim())
        for _ in range(2):
            await store.leases.release("k")
        assert await store.leases.claim(claim()) is None

    async def test_a_claim_whose_lease_has_ended_can_be_taken_over(self, store: Store) -> None:
        """By one caller, and only if it says so. A renewed lease is not over, and what is done stays done."""
        leases, late = store.leases, claim(after=_MINUTE)
        await leases.claim(claim())
        assert await leases.claim(claim(), take_over=True) == _running()
        assert await leases.claim(late) == _running()
        await leases.renew(["k", "unknown"], AT + 2 * _MINUTE)
        assert (await leases.claim(late, take_over=True)) is not None
        later = claim(after=2 * _MINUTE)
        assert await leases.claim(later, take_over=True) is None
        assert await leases.claim(later, take_over=True) is not None
        await leases.keep("k", None, None)
        assert (await leases.claim(claim(after=9 * _MINUTE), take_over=True)) is not None

    async def test_running_and_ended_leases_are_found(self, store: Store) -> None:
        """Those that were claimed and are not done: renewed in time, or not."""
        for name in ("done", "dead", "alive"):
            await store.leases.claim(claim(name))
        await store.leases.keep("done", None, None)
        await store.leases.renew(["alive"], AT + 2 * _MINUTE)
        names = ["done", "dead", "alive", "unknown"]
        ended, running = store.leases.ended, store.leases.running
        assert (await running(names, AT), await ended(names, AT)) == ({"dead", "alive"}, frozenset())
        late = AT + _MINUTE
        assert (await running(names, late), await ended(names, late)) == ({"alive"}, {"dead"})
        assert await running([], AT) == await ended([], AT) == frozenset()

    async def test_what_lapsed_claims_are_about_is_found(self, store: Store) -> None:
        """The oldest first, by whoever looks: those that are not done, not renewed, kept for long enough, and say it."""
        leases, year = store.leases, AT + timedelta(days=365)
        for place, name in enumerate(("later", "dead", "alive", "done", "erased", "mute", "short")):
            scope = Scope("tenant", "bob") if name == "erased" else ADA
            ends = AT + _MINUTE + timedelta(seconds=9 * (name == "later"))
            kept = AT + timedelta(days=1) if name == "short" else year
            about = None if name == "mute" else f"{place}: é"
            await leases.claim(Claim(name, scope, "x", AT, ends, kept, about))
        await leases.keep("done", None, None)
        await leases.renew(["alive"], AT + 5 * _MINUTE)
        await store.erase(Scope("tenant", "bob"))
        late, week = AT + 2 * _MINUTE, AT + timedelta(days=7)
        assert await leases.lapsed(AT + _MINUTE, kept=week, limit=9) == []
        found = [("dead", "1: é"), ("later", "0: é")]
        assert await leases.lapsed(late, kept=week, limit=9) == found
        assert await leases.lapsed(late, kept=week, limit=1) == found[:1]
        again = Claim("dead", ADA, "x", late, late + _MINUTE, year, "1: é")
        assert await leases.claim(again) == KeptResponse("x", AT + _MINUTE, done=False, head=None, body=None)
        assert await leases.claim(again, take_over=True) is None
        assert await leases.lapsed(late, kept=week, limit=9) == found[1:]

    async def test_an_erasure_removes_responses(self, store: Store) -> None:
        """Those about the erased user and those that may be about anybody of the tenant; that they are done is still known."""
        scopes = {
            "ada": ADA,
            "tenant": Scope("tenant"),
            "bob": Scope("tenant", "bob"),
            "other": Scope("other", "ada"),
        }
        for name, scope in scopes.items():
            await store.leases.claim(claim(name, scope))
            await store.leases.keep(name, "{}", b"secret")
        await store.erase(ADA)
        found = {name: await store.leases.claim(claim(name, scope)) for name, scope in scopes.items()}
        assert all(one is not None and one.done for one in found.values())
        assert {name for name, one in found.items() if one and one.body} == {"bob", "other"}
        await store.erase(Scope("tenant"))
        assert (left := await store.leases.claim(claim("bob"))) and left.body is None

    async def test_what_ends_after_an_erasure_leaves_no_response(self, store: Store) -> None:
        """It may have read what was erased."""
        await store.leases.claim(claim())
        await store.erase(CHAT)
        await store.leases.keep("k", "{}", b"secret")
        assert await store.leases.claim(claim()) == KeptResponse(
            "reset", AT + _MINUTE, done=True, head=None, body=None
        )

"""Claims on requests, and their responses."""

from collections.abc import Collection
from datetime import datetime

from pagefile.ports import Claim, KeptResponse, LeaseStore
from pagefile.records import Scope, utc
from pagefile.stores.encoding import moment
from pagefile.stores.erasure import scope_key
from pagefile.stores.sql.plays import Play, Row, SqlPort, Values, count, first, rows
from pagefile.stores.sql.texts import ALL_TENANTS


class SqlLeases(SqlPort, LeaseStore):
    async def claim(self, claim: Claim, *, take_over: bool = False) -> KeptResponse | None:
        times = {name: utc(getattr(claim, name)) for name in ("now", "leased", "expires")}
        whose = {"tenant": claim.scope.tenant, "owner": _owner(claim.scope)}
        values: Values = {"id": claim.id, **whose, "asked": claim.asked, **times, "about": claim.about}
        named = {**ALL_TENANTS, "id": claim.id}

        def play() -> Play[KeptResponse | None]:
            # An erasure in progress comes first: what this work reads then no longer contains what is being erased.
            yield from rows("epoch_shared", {"names": [claim.scope.tenant]})
            yield from count("leases_expired", {**ALL_TENANTS, "now": times["now"]})
            if (yield from count("lease_claim", values)):
                return None
            if take_over and (yield from count("lease_take", {**named, **times})):
                return None
            return (yield from first("lease_get", named, _response)) or KeptResponse(
                claim.asked, claim.leased, done=False, head=None, body=None
            )

        # A retry of a claim that took effect would find it taken.
        return await self._player.write(play, again=False)

    async def renew(self, ids: Collection[str], leased: datetime) -> None:
        if ids:
            await self._change("leases_renew", {**ALL_TENANTS, "ids": sorted(ids), "leased": utc(leased)})

    async def keep(self, claim_id: str, head: str | None, body: bytes | None) -> None:
        await self._change("lease_keep", {**ALL_TENANTS, "id": claim_id, "head": head, "data": body})

    async def release(self, claim_id: str) -> None:
        await self._change("lease_release", {**ALL_TENANTS, "id": claim_id})

    async def running(self, ids: Collection[str], now: datetime) -> frozenset[str]:
        return await self._those("leases_running", ids, now)

    async def lapsed(self, before: datetime, *, kept: datetime, limit: int) -> list[tuple[str, str]]:
        asked = {**ALL_TENANTS, "now": utc(before), "expires": utc(kept), "limit": limit}
        return await self._each("leases_lapsed", asked, lambda one: (str(one[0]), str(one[1])))

    async def ended(self, ids: Collection[str], now: datetime) -> frozenset[str]:
        return await self._those("leases_ended", ids, now)

    async def _those(self, statement: str, ids: Collection[str], now: datetime) -> frozenset[str]:
        if not ids:
            return frozenset()
        asked = {**ALL_TENANTS, "ids": sorted(ids), "now": utc(now)}
        return frozenset(await self._each(statement, asked, lambda one: str(one[0])))


def erase_responses(scope: Scope) -> Play[None]:
    """Remove the responses that may contain something of the scope. Which requests are done is still known."""
    yield from count("leases_erase", {"tenant": scope.tenant, "owner": _owner(scope)})


def _owner(scope: Scope) -> str | None:
    """A hash of the user: the row outlives an erasure, which must not keep the name."""
    return None if scope.user is None else scope_key(scope.tenant, scope.user)


def _response(found: Row) -> KeptResponse:
    asked, leased, done, head, body = found
    kept = None if body is None else bytes(body)
    return KeptResponse(asked, moment(leased), bool(done), head if done else None, kept)

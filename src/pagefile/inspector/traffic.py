"""The gateway's requests as they come: model, time, tokens, price, and where each is in the log."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from pagefile.inspector import ui, urls
from pagefile.inspector.markup import Content, el
from pagefile.inspector.page_request import PageRequest, Reader

#: How many requests are kept, and how many are shown.
_KEPT, _SHOWN = 1_000, 100
#: How often the page loads itself again, in seconds.
_REFRESH_S = 3
_FAILED = 400
#: How the gateway is started and used.
_HOW = "pagefile gateway --openai-url https://api.openai.com/v1 --user me\nexport OPENAI_BASE_URL={base}/v1"
#: The most characters of a conversation's id: those that the gateway made up say little.
_NAME = 16


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """A request that went through the gateway, without anything that was said in it."""

    at: datetime
    protocol: str
    model: str
    #: What memory did, as in `x-pagefile-status`.
    status: str
    #: The status of the response; None if the client left or the provider broke off before its end.
    code: int | None
    seconds: float
    #: How long memory took; None if it made no window.
    window_s: float | None
    #: As the provider counted them, those from its cache included; None if it did not.
    tokens_in: int | None
    tokens_out: int | None
    tokens_saved: int
    #: None without a price of the model.
    price: float | None
    tenant: str | None
    user_id: str | None
    conversation_id: str | None
    #: The id of its bill.
    call_id: str | None


@dataclass(slots=True)
class Traffic:
    """The newest requests of this process."""

    currency: str = ""
    _kept: deque[GatewayRequest] = field(default_factory=lambda: deque(maxlen=_KEPT))

    def add(self, request: GatewayRequest) -> None:
        self._kept.appendleft(request)

    def of(self, tenant: str | None, user: str | None) -> Iterable[GatewayRequest]:
        """The newest first; None is everybody."""
        return (one for one in self._kept if tenant in {None, one.tenant} and user in {None, one.user_id})


@dataclass(frozen=True, slots=True)
class Shown:
    #: False if no provider is set.
    served: bool
    currency: str
    requests: tuple[GatewayRequest, ...]
    #: The address of this service.
    base: str


def gather(traffic: Traffic | None, tenant: str | None, user: str | None, base: str) -> Shown:
    if traffic is None:
        return Shown(False, "", (), base)
    return Shown(True, traffic.currency, tuple(traffic.of(tenant, user)), base)


def show(data: Shown, reader: Reader) -> ui.View:
    say, paused = reader.say, reader.asked.flag("paused")
    title = say("nav.gateway")
    if not data.served:
        how = el("pre", _HOW.format(base=data.base), tabindex="0")
        return ui.View(title, ui.card(say("traffic.not_served"), ui.soft(say("traffic.how")), how))
    other = reader.asked.here(reader.path, **{**reader.asked.query, "paused": None if paused else "yes"})
    switch = el("a", say("traffic.resume" if paused else "traffic.pause"), href=other)
    body: list[Content] = [_figures(data, reader)]
    body.append(_table(data, reader) if data.requests else ui.empty(say("traffic.none")))
    lead = [say("traffic.paused" if paused else "traffic.lead"), " ", switch]
    return ui.View(title, body, lead=lead, refresh_s=None if paused else _REFRESH_S)


def _figures(data: Shown, reader: Reader) -> Content:
    def total(numbers: Iterable[float | None]) -> float:
        return sum(one for one in numbers if one is not None)

    every = data.requests
    figures: dict[str, ui.Value] = {
        "traffic.requests": len(every),
        "traffic.in": int(total(one.tokens_in for one in every)),
        "traffic.out": int(total(one.tokens_out for one in every)),
        "traffic.saved": sum(one.tokens_saved for one in every),
    }
    if data.currency:
        figures["traffic.price"] = ui.price(total(one.price for one in every), data.currency)
    return ui.figures(reader, figures)


def _table(data: Shown, reader: Reader) -> Content:
    columns = {"traffic.time": "when", "traffic.model": "row reason", "traffic.status": "when"}
    columns |= ui.numbers("traffic.latency", "traffic.in", "traffic.out", "traffic.saved")
    columns |= ui.numbers("traffic.price") if data.currency else {}
    columns |= {"traffic.conversation": "when"}
    rows = [_row(one, data.currency, reader) for one in data.requests[:_SHOWN]]
    return ui.card(None, ui.table(reader, reader.say("nav.gateway"), columns, rows))


def _row(one: GatewayRequest, currency: str, reader: Reader) -> tuple[ui.Value, ...]:
    window = None if one.window_s is None else reader.say("traffic.window", ms=f"{one.window_s * 1000:.0f}")
    latency = [f"{one.seconds:.2f} s", ui.some("small", window)]
    price = () if not currency else ("–" if one.price is None else ui.price(one.price, currency),)
    tokens = ("–" if n is None else n for n in (one.tokens_in, one.tokens_out))
    model = [el("code", one.model or "–"), el("small", one.protocol)]
    return (
        one.at, model, _status(one, reader), latency, *tokens, one.tokens_saved or "–", *price, _links(one, reader)
    )  # fmt: skip


def _status(one: GatewayRequest, reader: Reader) -> Content:
    failed = one.code is None or one.code >= _FAILED
    said = reader.known(f"traffic.is.{one.status}", one.status)
    if not failed:
        return ui.badge(said, "warn" if one.status == "bypassed" else "good")
    return [ui.badge(reader.say("traffic.broken") if one.code is None else str(one.code), "bad"), " ", said]


def _links(one: GatewayRequest, reader: Reader) -> Content:
    if one.conversation_id is None:
        return "–"
    there = PageRequest(one.tenant, one.user_id, one.conversation_id)
    name = one.conversation_id if len(one.conversation_id) <= _NAME else f"{one.conversation_id[:_NAME]}…"
    made: list[Content] = [el("a", name, href=there.here(urls.CONVERSATION), title=one.conversation_id)]
    if one.call_id is not None:
        made += [" · ", el("a", reader.say("traffic.bill"), href=there.here(urls.CALL, call_id=one.call_id))]
    return made

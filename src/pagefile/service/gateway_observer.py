"""What operators see of a gateway's request: metrics, a span, and a line in the inspector. Nothing that anybody said."""

import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

import anyio

from pagefile.engine.annotations import ModelCall, note_model_call
from pagefile.engine.engine import Engine
from pagefile.gateway.prices import Prices, Usage, usage_of
from pagefile.gateway.session import Call
from pagefile.inspector.traffic import GatewayRequest, Traffic
from pagefile.service.span_keys import SPAN, SPAN_NAME
from pagefile.tiers.base import guarded

logger = logging.getLogger("pagefile.service")
#: How long writing down a model call may take.
_TIMEOUT_S = 5.0


def _not_noted(error: Exception) -> None:
    logger.warning("could not note which model answered: %s", type(error).__name__)


@dataclass(frozen=True, slots=True)
class Observer:
    prices: Prices
    traffic: Traffic
    engine: Engine

    def note(self, call: Call, scope: MutableMapping[str, Any], seconds: float, code: int | None) -> None:
        """A request that is over; `code` is the status of an answer that the client got to its end."""
        usage = usage_of(call.reply.usage)
        self._count(call, seconds, code)
        _trace(call, scope, usage)
        self.traffic.add(self._told(call, seconds, code, usage))

    async def keep(self, call: Call, seconds: float) -> None:
        """Note beside the window which model answered it; an answer that is out does not fail for it."""
        place, window = call.place, call.window
        if place is None or window is None:
            return
        usage = usage_of(call.reply.usage)
        counted = (None, None) if usage is None else (usage.input, usage.output)
        price = self.prices.of(call.model, usage)
        made = ModelCall(call.model, seconds, *counted, price, self.prices.currency, self.engine.clock.now())
        with guarded(_not_noted), anyio.move_on_after(_TIMEOUT_S, shield=True):
            await note_model_call(self.engine, place.chat.scope, window.id, made)

    def _count(self, call: Call, seconds: float, code: int | None) -> None:
        meter = self.engine.meter
        meter.count(
            "pagefile_gateway_answers_total",
            protocol=call.adapter.name,
            code="none" if code is None else str(code),
        )
        meter.count("pagefile_gateway_requests_total", protocol=call.adapter.name, status=call.status)
        meter.observe("pagefile_gateway_seconds", seconds, protocol=call.adapter.name)
        if call.window is not None:
            meter.observe("pagefile_gateway_window_seconds", call.window_s)

    def _told(self, call: Call, seconds: float, code: int | None, usage: Usage | None) -> GatewayRequest:
        place, window = call.place, call.window
        return GatewayRequest(
            at=self.engine.clock.now(),
            protocol=call.adapter.name,
            model=call.model,
            status=call.status,
            code=code,
            seconds=seconds,
            window_s=None if window is None else call.window_s,
            tokens_in=None if usage is None else usage.input,
            tokens_out=None if usage is None else usage.output,
            tokens_saved=call.saved_tokens,
            price=self.prices.of(call.model, usage),
            tenant=call.who.scope.tenant,
            user_id=call.who.user,
            conversation_id=None if place is None else place.chat.id,
            call_id=None if window is None else window.id,
        )


def _trace(call: Call, scope: MutableMapping[str, Any], usage: Usage | None) -> None:
    """What OpenTelemetry's conventions for generative AI name."""
    span = scope.get(SPAN)
    if span is None:
        return
    scope[SPAN_NAME] = f"chat {call.model}".rstrip()
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic" if call.adapter.shape == "anthropic" else "openai",
        "gen_ai.request.model": call.model,
        "gen_ai.usage.input_tokens": None if usage is None else usage.input,
        "gen_ai.usage.output_tokens": None if usage is None else usage.output,
        "pagefile.gateway.status": call.status,
    }
    for name, value in told.items():
        if value is not None:
            span.set_attribute(name, value)

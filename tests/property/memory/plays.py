"""Whole conversations, played at random."""

from contextlib import suppress

from hypothesis import strategies as st

from pagefile import BudgetError, InvalidArgumentError, Settings

SETTINGS = Settings(
    on_tier_error="raise", drain_s=0, calls_kept=1000, window_tokens=1500, checkpoints="manual"
)
TOPICS = ("penicillin", "the invoice of March", "青霉素过敏", "杭州的酒店", "bicycle repair")
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("record"), st.integers(0, 200)),
        st.tuples(st.just("record"), st.integers(0, 200)),
        st.tuples(st.just("elsewhere"), st.integers(0, 200)),
        st.tuples(st.just("tool"), st.sampled_from((50, 3_000, 12_000))),
        st.tuples(st.just("begin"), st.integers(0, 4)),
        st.tuples(st.just("step"), st.sampled_from((50, 3_000, 12_000))),
        st.tuples(st.just("begin_messages"), st.integers(0, 5)),
        st.tuples(st.just("call"), st.integers(1, 3)),
        st.tuples(st.just("answer"), st.sampled_from((50, 3_000, 12_000))),
        st.tuples(st.just("answer"), st.sampled_from((50, 3_000, 12_000))),
        st.tuples(st.just("say"), st.sampled_from(("user", "assistant", "picture"))),
        st.tuples(st.just("load"), st.integers(0, 3)),
        st.tuples(st.just("end"), st.booleans()),
        st.tuples(st.just("fact"), st.integers(0, 30)),
        st.tuples(st.just("retract"), st.integers(0, 5)),
        st.tuples(st.just("pin"), st.integers(0, 3)),
        st.tuples(st.just("checkpoint"), st.integers(0, 4)),
        st.tuples(st.just("reset"), st.just(0)),
        st.tuples(st.just("window"), st.integers(0, 40)),
        st.tuples(st.just("window"), st.integers(0, 40)),
    ),
    min_size=6,
    max_size=40,
)


class Chat:
    """Messages as the client of OpenAI's Chat Completions has them."""

    @staticmethod
    def said(role, text):
        return [{"role": role, "content": text}]

    @staticmethod
    def picture():
        shown = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
        return [{"role": "user", "content": [{"type": "text", "text": "See?"}, shown]}]

    @staticmethod
    def called(ids):
        calls = [
            {"id": one, "type": "function", "function": {"name": "read", "arguments": '{"n": 1}'}}
            for one in ids
        ]
        return [{"role": "assistant", "content": "I will see.", "tool_calls": calls}]

    @staticmethod
    def answered(call_id, result):
        return [{"role": "tool", "tool_call_id": call_id, "content": result}]


class Responses(Chat):
    """Items of OpenAI's Responses."""

    @staticmethod
    def picture():
        return [
            {
                "role": "user",
                "content": [{"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}],
            }
        ]

    @staticmethod
    def called(ids):
        thought = {"type": "reasoning", "id": f"rs-{ids[0]}", "summary": []}
        calls = [{"type": "function_call", "call_id": one, "name": "read", "arguments": "{}"} for one in ids]
        return [thought, *calls]

    @staticmethod
    def answered(call_id, result):
        return [{"type": "function_call_output", "call_id": call_id, "output": result}]


class Anthropic(Chat):
    """Messages of Anthropic's."""

    @staticmethod
    def picture():
        source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
        return [{"role": "user", "content": [{"type": "image", "source": source}]}]

    @staticmethod
    def called(ids):
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}
        calls = [{"type": "tool_use", "id": one, "name": "read", "input": {"n": 1}} for one in ids]
        return [{"role": "assistant", "content": [thought, *calls]}]

    @staticmethod
    def answered(call_id, result):
        found = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        return [{"role": "user", "content": [found]}]


SHAPES = (Chat, Responses, Anthropic)
PICTURE = "iVBORw0KGgo="


class Play:
    """An agent at work; every window it got is kept here as well."""

    def __init__(self, memory):
        self.memory = memory
        self.chat = memory.conversation("c", user_id="u")
        self.other = memory.conversation("other", user_id="u")
        self.turn = None
        self.provider = SHAPES[0]
        #: Calls of the turn that have no result yet.
        self.waiting = []
        self.windows = {}

    async def run(self, actions):
        for number, (verb, value) in enumerate(actions):
            await getattr(self, verb)(number, value)

    async def record(self, number, value):
        await self.chat.record(
            user=f"{number}: about {TOPICS[value % 5]}", assistant="noted " * (1 + value % 60)
        )

    async def elsewhere(self, number, value):
        await self.other.record(user=f"{number}: {TOPICS[value % 5]} again", assistant="I see. 好的。")

    async def tool(self, number, size):
        result = f"{TOPICS[number % 5]} row {number} " * (size // 20)
        step = {"tool": "search", "input": {"q": number}, "result": result}
        await self.chat.record(user=f"look up {number}", assistant="found", steps=[step])

    async def begin(self, number, value):
        if self.turn is None:
            self.turn = await self.chat.begin(f"{number}: what of {TOPICS[value % 5]}?")

    async def step(self, number, size):
        if self.turn is not None:
            result = f"{TOPICS[number % 5]} line {number} " * (size // 20)
            self.turn = await self.chat.step(self.turn, tool="read", input={"n": number}, result=result)

    async def begin_messages(self, number, value):
        if self.turn is None:
            self.provider, self.waiting = SHAPES[value % 3], []
            asked = (
                self.provider.picture() if value > 2 else self.provider.said("user", f"{number}: what of it?")
            )
            self.turn = await self.chat.begin(messages=asked)

    async def call(self, number, calls):
        if self.turn is not None:
            ids = [f"call-{number}-{place}" for place in range(calls)]
            self.turn = await self.chat.extend(self.turn, self.provider.called(ids))
            self.waiting += ids

    async def answer(self, number, size):
        if self.turn is not None and self.waiting:
            # Not in the order of the calls.
            answered = self.waiting.pop(number % len(self.waiting))
            result = f"{TOPICS[number % 5]} row {number} " * (size // 20)
            self.turn = await self.chat.extend(self.turn, self.provider.answered(answered, result))

    async def say(self, number, who):
        if self.turn is not None:
            said = self.provider.picture() if who == "picture" else self.provider.said(who, f"{number}: hm")
            self.turn = await self.chat.extend(self.turn, said)

    async def load(self, number, value):
        pages = await self.chat.pages()
        if self.turn is not None and pages:
            uuid = pages[value % len(pages)].uuid
            text = await self.chat.call_tool("load_tool_history", {"uuid": uuid}, turn=self.turn)
            self.turn = await self.chat.step(
                self.turn, tool="load_tool_history", input={"uuid": uuid}, result=text
            )

    async def end(self, number, value):
        if self.turn is not None:
            await (self.chat.complete(self.turn, "the answer") if value else self.chat.abort(self.turn))
            self.turn = None

    async def fact(self, number, value):
        attribute = None if value % 3 else f"attribute {value % 6}"
        category = "correction" if value % 7 == 0 else None
        await self.memory.remember(
            f"fact {value} of {TOPICS[value % 5]}", user_id="u", attribute=attribute, category=category
        )

    async def retract(self, number, value):
        facts = await self.memory.facts("u")
        if facts:
            await self.memory.retract(facts[value % len(facts)].id)

    async def pin(self, number, value):
        pages = await self.chat.pages()
        if pages:
            page = pages[value % len(pages)]
            await self.chat.pin(page.uuid, pinned=not page.pinned)

    async def checkpoint(self, number, recent):
        with suppress(InvalidArgumentError):
            await self.chat.checkpoint(f"summary {number}", recent_turns=recent)

    async def reset(self, number, value):
        await self.chat.reset()

    async def window(self, number, value):
        options = {
            "window_tokens": (900, 1500, 6000)[value % 3],
            "recent_turns": 1 + value % 5,
            "placement": "head" if value % 4 == 0 else "tail",
            "instructions": "Be brief." if value % 2 else None,
        }
        pages = await self.chat.pages()
        if value % 5 == 0 and pages:
            options["load"] = [pages[0].uuid]
        query = None if self.turn is not None else f"what about {TOPICS[value % 5]} before?"
        # What is said in a turn is never cut, and pictures are large.
        with suppress(BudgetError):
            window = await self.chat.context(query, **options)
            self.windows[window.id] = window

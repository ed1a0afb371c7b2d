"""A database with something of everything in it, and all that can happen to one behind Pagefile's back."""

import zlib
from dataclasses import dataclass, replace

from pagefile import Memory, Settings
from pagefile.engine.verification import verify
from pagefile.settings import ArchiveSettings, FactSettings
from pagefile.testing import HashingEmbedder

SETTINGS = Settings(
    indexing="background",
    archive=ArchiveSettings(threshold=400, page_from=200),
    facts=FactSettings(extract="rules"),
)
LOOKING = replace(SETTINGS, indexing="manual", facts=FactSettings())
PAPER = (
    "# 阿司匹林\n\n每日 100 mg，饭后服用。\n\n"
    + "阿司匹林抑制血小板聚集。Aspirin is an antiplatelet drug. " * 20
)
OTHER = PAPER.replace("100 mg", "900 mg")


def opened(url, settings=LOOKING):
    return Memory.open(url, settings=settings, embedder=HashingEmbedder(16))


async def filled(url):
    """Conversations of one user: `long` with checkpoints, `tools` with pages, `plain`, and `facts`."""
    async with opened(url, SETTINGS) as memory:
        chat = memory.conversation("long", user_id="u")
        for number in range(6):
            await chat.record(f"第 {number} 句 about order A-{number}", f"答 {number}", id=f"l{number}")
        await chat.checkpoint("用户问了订单 A-0 到 A-2。", recent_turns=3)
        await chat.record("还有吗？", "没有了", id="l6")
        await chat.checkpoint("用户问了订单 A-0 到 A-5。", recent_turns=1)
        turn = await chat.begin("最后一个问题", id="l7")
        await chat.context()
        await chat.complete(turn, "好的")
        tools = memory.conversation("tools", user_id="u")
        turn = await tools.begin("查一下阿司匹林", id="p0")
        await tools.step(turn, tool="search", input={"q": "阿司匹林"}, result=PAPER, call_id="c0")
        await tools.complete(turn, "每日 100 mg")
        await tools.record("谢谢", "不客气", id="p1")
        await tools.checkpoint("用户查了阿司匹林。", recent_turns=1)
        plain = memory.conversation("plain", user_id="u")
        for number in range(3):
            await plain.record(f"plain talk number {number}", f"answer number {number}", id=f"d{number}")
        await memory.conversation("facts", user_id="u").record("我对青霉素过敏。", "记住了。", id="f0")
        await memory.conversation("elsewhere", tenant="t2").record("another tenant", "yes")
        await memory.settle()
        assert [fact.source_turn for fact in await memory.facts(user_id="u")] == ["f0"]
        await memory.search_tool_history("阿司匹林", user_id="u")
        (page,) = await memory.pages(user_id="u")
        return page.uuid


async def verified(url, **options):
    async with opened(url) as memory:
        return await verify(memory.engine, **options)


def told(report):
    """The kind and the place of each finding, worst first."""
    return [
        (one.level, one.kind, one.conversation, one.turn or one.seq or one.page) for one in report.findings
    ]


@dataclass(frozen=True)
class Damage:
    """Statements, and what is found after them; `{page}` is the page's uuid."""

    name: str
    statements: tuple[str, ...]
    found: tuple[tuple[str, str, str | None, object], ...]
    #: The only database that lets it happen.
    only: str | None = None


def damage(name, *statements, found, only=None):
    return Damage(name, statements, tuple(found), only)


def _changed_json(column, old, new):
    return f"{column} = CAST(replace(CAST({column} AS text), '{old}', '{new}') AS {{json}})"


#: What was recorded is gone or changed: told, and nothing is done about it.
LASTING = [
    damage(
        "a turn is gone",
        "DELETE FROM ai_message WHERE conversation_id = 'plain' AND seq = 2",
        found=[("damage", "log-gap", "plain", 2)],
    ),
    damage(
        "the last turn is gone",
        "DELETE FROM ai_message WHERE conversation_id = 'plain' AND seq = 3",
        found=[("damage", "log-gap", "plain", 3)],
    ),
    damage(
        "all turns are gone",
        "DELETE FROM ai_message WHERE conversation_id = 'plain'",
        found=[("damage", "log-gap", "plain", 1)],
    ),
    damage(
        "a turn cannot be read",
        """UPDATE ai_message SET steps = '[{{"tool": "t"}}]' WHERE message_id = 'd1'""",
        found=[("damage", "log-unreadable", "plain", "d1")],
    ),
    damage(
        "a turn has another text",
        "UPDATE ai_message SET query = 'somebody put quite other words here, and more of them' WHERE message_id = 'd0'",
        found=[("damage", "log-digest", "plain", "d0")],
    ),
    damage(
        "a turn has another count of tokens",
        "UPDATE ai_message SET user_tokens = user_tokens + 1 WHERE message_id = 'd0'",
        found=[("damage", "log-tokens", "plain", "d0")],
    ),
    damage(
        "a turn has another word, and as many tokens",
        "UPDATE ai_message SET query = replace(query, 'talk', 'walk') WHERE message_id = 'd0'",
        found=[("damage", "log-digest", "plain", "d0")],
    ),
    damage(
        "terms are others",
        "UPDATE turn_terms SET answered = 'rubbish' WHERE conversation_id = 'plain' AND seq = 1",
        found=[("damage", "log-terms", "plain", "d0")],
    ),
    damage(
        "a turn is said to be somebody else's",
        "UPDATE ai_message SET create_by = 'mallory' WHERE message_id = 'd1'",
        found=[("damage", "log-owner", "plain", "d1")],
    ),
    damage(
        "a turn is older than the one before it",
        "UPDATE ai_message SET create_time = (SELECT create_time FROM ai_message WHERE message_id = 'd0')"
        " WHERE message_id = 'd1'",
        found=[("damage", "log-order", "plain", "d1")],
    ),
    damage(
        "a byte of a page is another",
        "UPDATE blobs SET data = {other_page} WHERE hash = (SELECT blob FROM tool_result_archive WHERE uuid = '{page}')",
        found=[("damage", "page-text", "tools", "{page}")],
    ),
    damage(
        "a page cannot be unpacked",
        "UPDATE blobs SET data = {rubbish} WHERE hash = (SELECT blob FROM tool_result_archive WHERE uuid = '{page}')",
        found=[("damage", "page-text", "tools", "{page}")],
    ),
    damage(
        "a page is gone",
        "DELETE FROM archive_passage WHERE uuid = '{page}'",
        "DELETE FROM tool_result_archive WHERE uuid = '{page}'",
        found=[
            ("damage", "page-ref", "tools", "p0"),
            ("damage", "page-ref", "tools", "{checkpoint}"),
            ("note", "text", None, None),
        ],
    ),
    damage(
        "a reference to nothing",
        "UPDATE ai_message SET " + _changed_json("steps", "{page}", "nowhere") + " WHERE message_id = 'p0'",
        found=[
            ("damage", "log-digest", "tools", "p0"),
            ("damage", "page-ref", "tools", "p0"),
            ("damage", "checkpoint-refs", "tools", "{checkpoint}"),
        ],
    ),
    damage(
        "a checkpoint covers what is not there",
        "UPDATE ai_message SET "
        + _changed_json("metadata", '"covered_through_seq":3', '"covered_through_seq":33')
        + " WHERE conversation_id = 'long' AND kind = 'checkpoint'",
        found=[("damage", "checkpoint-range", "long", "{first}")],
    ),
    damage(
        "a checkpoint lost its anchors",
        "UPDATE ai_message SET "
        + _changed_json("metadata", '"第 0 句 about order A-0",', "")
        + " WHERE conversation_id = 'long' AND kind = 'checkpoint' AND seq > 8",
        found=[("damage", "checkpoint-anchors", "long", "{second}")],
    ),
    damage(
        "a fact whose turn is missing",
        "UPDATE facts SET source_turn = 'nowhere'",
        "UPDATE fact_revisions SET became = replace(became, '\"f0\"', '\"nowhere\"')",
        found=[("damage", "fact-digest", None, None), ("damage", "fact-source", "facts", "nowhere")],
    ),
    damage(
        "a fact that nobody said",
        "UPDATE facts SET source_quote = '我不过敏'",
        "UPDATE fact_revisions SET became = replace(became, '我对青霉素过敏', '我不过敏')",
        "UPDATE facts SET content = (SELECT replace(content, '我对青霉素过敏', '我不过敏') FROM facts AS f WHERE f.id = facts.id)",
        found=[("damage", "fact-digest", None, None), ("damage", "fact-quote", "facts", "f0")],
    ),
    damage(
        "a fact that no change made",
        "UPDATE facts SET confidence = 0.123",
        found=[("damage", "fact-digest", None, None), ("damage", "fact-chain", None, None)],
    ),
    damage(
        "a page says that another tool made it",
        "UPDATE tool_result_archive SET tool_name = 'other'",
        found=[("damage", "page-digest", "tools", "{page}")],
    ),
    damage(
        "the turn of a recorded window is gone",
        "UPDATE context_calls SET turn_id = 'nowhere'",
        found=[("damage", "call", "long", "nowhere")],
    ),
    damage(
        "a session cannot be read",
        "UPDATE sessions SET value = '[1' WHERE conversation_id = 'plain'",
        found=[("damage", "session", "plain", None)],
        only="sqlite",
    ),
    damage(
        "the text of a page is gone",
        "DELETE FROM blobs",
        found=[("damage", "page-text", "tools", "{page}")],
        only="sqlite",
    ),
]

#: What is derived is wrong: told, and made again.
PASSING = [
    damage(
        "a vector is gone",
        "DELETE FROM conversation_episodes WHERE id = 'd1'",
        found=[("derived", "vector", "plain", "d1")],
    ),
    damage(
        "a vector is somebody else's",
        "UPDATE conversation_episodes SET user_id = 'mallory' WHERE id = 'd1'",
        found=[("derived", "vector", "plain", "d1")],
        only="sqlite",
    ),
    damage(
        "terms of no turn",
        "INSERT INTO turn_terms (conversation_id, tenant, seq, analyzer, said, answered)"
        " VALUES ('plain', 'default', 99, 'words-2', 'x', 'y'), ('gone', 't3', 1, 'words-2', 'x', 'y')",
        found=[("derived", "terms", "gone", 1), ("derived", "terms", "plain", 99)],
    ),
    damage(
        "terms are gone",
        "DELETE FROM turn_terms WHERE conversation_id = 'plain' AND seq = 2",
        found=[("derived", "terms", "plain", "d1")],
    ),
    damage(
        "terms of an older version only",
        "UPDATE turn_terms SET analyzer = 'words-1', said = 'rubbish' WHERE conversation_id = 'plain' AND seq = 1",
        found=[("derived", "terms", "plain", "d0")],
    ),
    damage(
        "a watermark is too far",
        "UPDATE watermarks SET seq = 99 WHERE conversation_id = 'plain' AND tier LIKE 'terms%'",
        found=[("derived", "watermark", "plain", 99)],
    ),
    damage(
        "a watermark of nothing",
        "INSERT INTO watermarks (tenant, conversation_id, tier, seq) VALUES ('default', 'gone', 'terms', 1)",
        found=[("derived", "watermark", "gone", None)],
    ),
    damage(
        "counters are wrong",
        "UPDATE conversations SET live_tokens = 7, turns = 99 WHERE conversation_id = 'plain'",
        found=[("derived", "counters", "plain", None)],
    ),
    damage(
        "a counter lags behind",
        "UPDATE conversations SET last_seq = 1 WHERE conversation_id = 'plain'",
        found=[("derived", "counters", "plain", None)],
    ),
    damage(
        "the summary in force is another",
        "UPDATE conversation_summaries SET summary = '别的', covered_through_seq = 1 WHERE conversation_id = 'long'",
        found=[("derived", "summary", "long", None)],
    ),
    damage(
        "the summary in force is gone",
        "DELETE FROM conversation_summaries WHERE conversation_id = 'long'",
        found=[("derived", "summary", "long", None)],
    ),
    damage(
        "a summary of nothing",
        "UPDATE conversation_summaries SET conversation_id = 'gone' WHERE conversation_id = 'long'",
        found=[("derived", "summary", "long", None), ("derived", "summary", "gone", None)],
    ),
    damage(
        "a conversation has no row",
        "DELETE FROM conversations WHERE conversation_id = 'long'",
        found=[("derived", "conversation-row", "long", None)],
    ),
    damage(
        "passages are not the page",
        """UPDATE archive_passage SET "end" = "end" - 1 WHERE number = 0""",
        found=[("derived", "passages", "tools", "{page}")],
    ),
    damage(
        "passages have other terms",
        "UPDATE archive_passage SET terms = 'rubbish'",
        found=[("derived", "passages", "tools", "{page}")],
    ),
    damage(
        "passages of nothing",
        "INSERT INTO archive_passage (tenant, uuid, number, start, \"end\") VALUES ('default', 'gone', 0, 0, 1)",
        found=[("derived", "passages", None, "gone")],
        only="sqlite",
    ),
    damage(
        "the size of a page is another",
        "UPDATE tool_result_archive SET stored_bytes = 1",
        found=[("derived", "page-size", "tools", "{page}")],
    ),
    damage(
        "sums of tokens are wrong",
        "UPDATE ai_message SET tokens_before = 7 WHERE message_id = 'd1'",
        found=[("derived", "sums", "plain", "d1")],
        only="postgres",
    ),
]


def packed_otherwise():
    """The other paper, as it would be on disk."""
    return zlib.compress(OTHER.encode()).hex()

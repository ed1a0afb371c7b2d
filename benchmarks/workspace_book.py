"""A regulation of 200 pages with three tools, made up from a seed, and what it is asked."""

import json
import random
from collections import Counter
from dataclasses import dataclass, field

from benchmarks.bulk import chinese_prose
from pagefile.records import JsonObject

REG_ID = "angui_2024"
PAGES = 200
CHAPTERS = 20
#: This many lines of the table of contents make it as long as the one that broke the project that the workspace was designed after.
LINES_A_PAGE = 9
PAGE_CHARS = 900

_THINGS = (
    "母线",
    "断路器",
    "主变压器",
    "电流互感器",
    "隔离开关",
    "直流系统",
    "继电保护",
    "接地装置",
    "电缆",
    "避雷器",
)
_EVENTS = ("失压", "过热", "拒动", "短路", "检修", "投运", "巡视", "停电", "绝缘下降", "误动")


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that one page says: what a search shows of it, and what only the page has."""

    page: int
    chapter: str
    name: str
    #: Stands in the snippet of a search.
    fact: str
    #: Stands on the page only, somewhere.
    detail: str


@dataclass(slots=True)
class Book:
    """The tools over 200 pages; counts what reaches them."""

    topics: list[Topic]
    texts: list[str]
    asked: Counter[str] = field(default_factory=Counter[str])

    @classmethod
    def made(cls, seed: int = 3) -> "Book":
        """The same book for the same seed."""
        pick = random.Random(seed)
        topics = [_topic(page, pick) for page in range(PAGES)]
        return cls(topics, [_page(topic, pick) for topic in topics])

    def call(self, tool: str, given: JsonObject) -> object:
        """What the backend answers."""
        self.asked[tool] += 1
        if tool == "get_toc":
            return toc(self.topics)
        if tool == "smart_search":
            return self._found(str(given["query"]))
        return self._read(int(str(given["start_page"])))

    def _found(self, query: str) -> list[JsonObject]:
        """Five hits with fused ranks for scores, as hybrid search gives them."""
        ranked = sorted(
            self.topics, key=lambda topic: (topic.name != query, topic.name[:2] != query[:2], topic.page)
        )
        return [
            {
                "reg_id": REG_ID,
                "page_num": topic.page,
                "chapter": topic.chapter,
                "snippet": f"{topic.fact}{self.texts[topic.page][:150]}",
                "score": 1 / (61 + 30 * rank),
            }
            for rank, topic in enumerate(ranked[:5])
        ]

    def _read(self, page: int) -> JsonObject:
        return {"reg_id": REG_ID, "start_page": page, "end_page": page, "content_markdown": self.texts[page]}


def toc(topics: list[Topic]) -> JsonObject:
    """The table of contents as a tree, with the fields such trees have."""
    chapters: dict[str, list[JsonObject]] = {}
    for topic in topics:
        chapters.setdefault(topic.chapter, []).append(_section(topic))
    items: list[JsonObject] = [
        {"title": chapter, "level": 1, "page_start": PAGES // CHAPTERS * number, "children": children}
        for number, (chapter, children) in enumerate(chapters.items())
    ]
    return {"reg_id": REG_ID, "title": "电力安全工作规程", "total_pages": PAGES, "items": items}


def _section(topic: Topic) -> JsonObject:
    lines: list[JsonObject] = [
        {
            "title": f"{topic.page}.{line} {topic.name}的一般规定与现场要求",
            "section_number": f"{topic.page}.{line}",
            "level": 3,
            "page_start": topic.page,
            "page_end": topic.page,
        }
        for line in range(1, LINES_A_PAGE)
    ]
    return {"title": f"{topic.page} {topic.name}", "level": 2, "page_start": topic.page, "children": lines}


def _topic(page: int, pick: random.Random) -> Topic:
    thing, event = _THINGS[page // 10 % len(_THINGS)], _EVENTS[page % len(_EVENTS)]
    name = f"{thing}{event}（{page:03}）"
    chapter = f"第{page // (PAGES // CHAPTERS) + 1}章 {thing}"
    number = pick.randrange(10, 99)
    return Topic(
        page,
        chapter,
        name,
        f"{name}时应在{number}分钟内汇报。",
        f"{name}的处理编号为 {pick.randrange(10**6):06}。",
    )


def _page(topic: Topic, pick: random.Random) -> str:
    prose = chinese_prose(PAGE_CHARS, topic.page)
    at = pick.randrange(PAGE_CHARS)
    at = prose.find("。", at) + 1 or len(prose)
    return f"{prose[:at]}{topic.detail}{prose[at:]}"


def as_message(result: object) -> str:
    """A result as it is in a prompt without any memory."""
    return json.dumps(result, ensure_ascii=False)

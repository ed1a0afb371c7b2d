"""A long text as passages: where it is cut, which passages answer, how they are shown and paged."""

import json
import time

import pytest

from pagefile.text.passages import Passage, page_slice, render_excerpt, select, split

IMAGE = "![架构图 第一版](https://docs.example/img/arch(1).png)"
LINK = "[the [manual] of\nthe house](https://docs.example/manual)"
LINKED_IMAGE = "[![alt](https://docs.example/a.png)](https://docs.example)"
FENCE = "```python\ndef f():\n\n    return 1\n```\n"
TILDES = "~~~~\n```\nnot closed here\n~~~\n~~~~\n"
TABLE = "| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |\n"
TAG = "<img src='a.png'\n alt=\"x > y. And z.\">"
HTML_TABLE = "<table>\n<tr><td>one.\n\n<table><tr><td>two</td></tr></table>\n</td></tr>\n</table>"


def whole(text: str, passages: list[Passage]) -> None:
    """Joined, passages are the text, and offsets say where they stand."""
    assert text == "".join(passage.text for passage in passages)
    assert all(text[passage.start : passage.end] == passage.text for passage in passages)
    assert all(passage.text for passage in passages)


def cuts(passages: list[Passage]) -> list[int]:
    return [passage.end for passage in passages[:-1]]


def prose(number: int, sentence: str = "The archive keeps every page of the engine. ") -> str:
    return (sentence * number).strip()


# -- splitting ---------------------------------------------------------------------------------------------------------


def test_nothing_has_no_passages_and_a_little_has_one():
    """Short texts stay as they are."""
    assert [] == split("")
    assert [Passage(0, 5, "Hello")] == split("Hello")


@pytest.mark.parametrize(
    "unit",
    [IMAGE, LINK, LINKED_IMAGE, FENCE, TILDES, TABLE, TAG, HTML_TABLE, f"> {FENCE}"],
    ids=["image", "link", "linked image", "fence", "tildes", "table", "tag", "html table", "quoted fence"],
)
@pytest.mark.parametrize("before", range(18))
def test_units_are_never_cut(unit: str, before: int):
    """Wherever a unit begins, no passage ends inside it, even where passages are tiny: two of them are tried, place by place."""
    text = "x. " * before + f"\n\n{unit}\n\n" + "y. " * 20
    passages = split(text, target_chars=20, max_chars=30)
    whole(text, passages)
    start = text.index(unit)
    assert [] == [cut for cut in cuts(passages) if start < cut < start + len(unit.rstrip("\n"))]


def test_a_unit_that_is_too_long_is_a_passage_of_its_own():
    """A code block over the limit stays whole and takes nothing with it."""
    code = "```\n" + "line of code\n" * 500 + "```\n"
    passages = split(f"{prose(20)}\n\n{code}\n{prose(60)}")
    assert code in [passage.text for passage in passages]


def test_an_image_of_many_characters_stays_whole():
    """An image that carries its own data has no place to cut."""
    image = f"![photo](data:image/png;base64,{'QUJD' * 5000})"
    passages = split(prose(30) + image + prose(30))
    assert 1 == sum(image in passage.text for passage in passages)


@pytest.mark.parametrize("opened", ["```py\n", "~~~\n", "<table>\n", "[link](", "<div ", "![a]("])
def test_what_is_opened_and_never_closed_does_not_swallow_the_rest(opened: str):
    """An orphan mark costs its line, not the page."""
    text = opened + f"{prose(20)}\n\n" * 20
    passages = split(text)
    whole(text, passages)
    assert max(len(passage.text) for passage in passages) <= 4000


@pytest.mark.parametrize("orphan", ["A title\n-----\n", "no bar\n|---|\n", "</table>\n"])
def test_what_only_looks_like_a_table_is_text(orphan: str):
    """An underlined title, a rule below a line without bars, an end without a beginning."""
    text = f"{prose(20)}\n{orphan}" * 20
    passages = split(text)
    whole(text, passages)
    assert all(passage.text.endswith("\n") for passage in passages)


def test_a_fence_closes_only_with_its_own_kind():
    """Backticks behind a word, other characters, or fewer of them do not close a block."""
    code = "````\n```\ntext ````\n~~~~\n" + "code. \n" * 40 + "````\n"
    inline = "Use ```x``` here. ```y``` there.\n"
    text = inline + prose(5) + "\n\n" + code + prose(5)
    start = text.index(code)
    assert [] == [
        cut for cut in cuts(split(text, target_chars=40, max_chars=60)) if start < cut < start + len(code)
    ]


def test_headings_and_blank_lines_are_the_first_choice():
    """A passage begins with its heading rather than a few sentences into it."""
    text = "".join(f"## Part {number}\n\n{prose(22)}\n\n" for number in range(12))
    assert {"## Part"} == {passage.text[:7] for passage in split(text)}
    blank = "".join(f"{prose(13)}\n{prose(13)}\n\n" for _ in range(12))
    assert all(passage.text.endswith("\n\n") for passage in split(blank))


@pytest.mark.parametrize(
    ("sentence", "end"),
    [
        ("权限管理在系统设置里，角色决定菜单。", "。"),
        ("Dr. Li takes 3.5 mg of it at 8 a.m. every day. ", "day. "),
        ("“第三步是什么？”她问。", "。"),
    ],
)
def test_sentences_are_not_cut(sentence: str, end: str):
    """Prose on one line ends its passages where sentences end, in Chinese and English."""
    text = sentence * 600
    passages = split(text)
    whole(text, passages)
    assert len(passages) > 5
    assert all(passage.text.endswith(end) for passage in passages)
    assert all(600 <= len(passage.text) <= 1800 for passage in passages[:-1])


def test_a_sentence_may_be_longer_than_the_target():
    """A sentence that ends before the limit is not cut at the target."""
    sentence = "word " * 600 + "end. "
    assert all(passage.text == sentence for passage in split(sentence * 3))


def test_text_that_only_looks_like_sentence_ends_is_cut_between_words():
    """Initials and list numbers end no sentence, however many there are."""
    passages = split("J. R. " * 2000)
    assert all(passage.text.endswith(" ") for passage in passages)


def test_text_without_boundaries_is_cut_at_the_limit():
    """A line of letters gives passages of the limit; words are kept whole; accents stay on their letters."""
    assert [4000, 4000, 2000] == [len(passage.text) for passage in split("x" * 10_000)]
    assert all(passage.text.endswith(" ") for passage in split("word " * 3000)[:-1])
    accented = split("x" * 3999 + "e\u0301" + "x" * 3000)
    assert "x" * 3999 == accented[0].text
    family = "👨\u200d👩"
    assert family in split("x" * 3999 + family + "x" * 3000)[1].text
    whole("x" + "\u0301" * 9000, split("x" + "\u0301" * 9000))


def test_a_unit_in_the_way_of_the_limit_moves_the_cut():
    """Where the limit falls into an image on a line without boundaries, the cut stands before it, then behind it."""
    image = f"![a](b{'c' * 5000})"
    text = "x" * 3000 + image + "y" * 5000
    assert [3000, 3000 + len(image)] == [passage.end for passage in split(text)][:2]


@pytest.mark.parametrize("tag", ["</p>", "</li>", "<br/>", "</custom>"])
def test_markup_on_one_line_is_cut_behind_tags(tag: str):
    """Minified pages have no lines and few sentences."""
    text = f"<p class='x'>some words without an end{tag}" * 300
    assert all(passage.text.endswith(tag) for passage in split(text))


def test_long_lines_end_where_the_line_ends():
    """A line longer than the target, without sentences, is not cut before its end."""
    text = ("word " * 500 + "end\n") * 4
    assert all(passage.text.endswith("end\n") for passage in split(text))


# -- JSON and rows -----------------------------------------------------------------------------------------------------


def scalars(text: str) -> list[tuple[int, int]]:
    """Where the strings of a JSON text stand."""
    found: list[tuple[int, int]] = []
    start = None
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            if start is not None:
                found.append((start, at + 1))
            start = at if start is None else None
        at += 1
    return found


@pytest.mark.parametrize("indent", [None, 2])
def test_json_is_cut_between_values(indent: int | None):
    """No cut falls into a string, and passages end behind commas."""
    value = [
        {"id": n, "标题": f'a, "b" \\ [{n}] {{', "body": "x, y. " * 30, "n": [n, {"k": None}]}
        for n in range(50)
    ]
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    passages = split(text)
    whole(text, passages)
    assert len(passages) > 5
    inside = [cut for cut in cuts(passages) for start, end in scalars(text) if start < cut < end]
    assert [] == inside
    assert all(passage.text.rstrip().endswith(",") for passage in passages[:-1])


def test_json_is_cut_where_it_is_shallow():
    """Objects stay whole while they fit, and are cut between their members when they do not."""
    small = [{"id": n, "body": ["x" * 50] * 10} for n in range(20)]
    assert all(passage.text.lstrip("[ ").startswith('{"id"') for passage in split(json.dumps(small)))
    large = {"a": {f"k{n}": "x" * 500 for n in range(30)}, "b": 1}
    passages = split(json.dumps(large))
    assert max(len(passage.text) for passage in passages) <= 4000
    assert all(passage.text.lstrip().startswith(("{", '"')) for passage in passages)


def test_a_json_value_may_be_longer_than_the_limit():
    """A string of any length is one value, alone in its passage."""
    text = json.dumps({"a": 1, "text": "Sentence. " * 5000, "z": [1, 2, 3]})
    longest = max(split(text), key=lambda passage: len(passage.text))
    assert longest.text.strip().startswith('"text"')
    assert longest.text.strip().endswith('",')
    assert 1 == len(split(json.dumps({"a": "x" * 9000})))


@pytest.mark.parametrize("end", ["", '"never closed', "\\"])
def test_json_that_breaks_off_is_still_cut_at_commas(end: str):
    """Tools cut their output; half a document is no reason to cut its values."""
    text = json.dumps([{"a": "x. y, z" * 20, "b": n} for n in range(40)])[:-1] + end
    passages = split(text)
    whole(text, passages)
    assert all(passage.text.rstrip().endswith(",") for passage in passages[:-1])


def test_what_only_begins_like_json_is_text():
    """A list of references, a log, a Python value."""
    text = "[1] first source. \n" * 200
    assert all(passage.text.endswith("\n") for passage in split(text))


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_rows_are_not_cut(mark: str):
    """A row stays whole, with sentences in it, with line breaks in its quotation marks, and when it is too long."""
    rows = [mark.join((str(n), '"one. two.\n\nthree"', "x. y " * 20)) for n in range(60)]
    rows[30] = mark.join(("30", '"a\nb"', "a sentence. " * 800))
    text = mark.join(("id", "note", "text")) + "\n" + "\n".join(rows) + "\n"
    passages = split(text)
    whole(text, passages)
    starts = {0, len(text)}
    place = text.index("\n") + 1
    for row in rows:
        starts.add(place)
        place += len(row) + 1
    assert set() == set(cuts(passages)) - starts
    assert 1 == sum(rows[30] in passage.text for passage in passages)


def test_plain_rows_make_passages_of_about_the_target():
    """Rows without quotation marks, too."""
    text = "id,name,city\n" + "".join(f"{n},Ada,London\n" for n in range(900))
    passages = split(text)
    whole(text, passages)
    assert {"\n"} == {passage.text[-1] for passage in passages}
    assert all(1000 <= len(passage.text) <= 1800 for passage in passages[:-1])


def test_lines_of_json_are_cut_between_lines_and_long_ones_inside():
    """Each line is a value; a line over the limit is cut like any JSON."""
    lines = [json.dumps({"id": n, "text": "a sentence. " * 10}) for n in range(40)]
    lines[20] = json.dumps({"id": 20, "items": ["x" * 90] * 200})
    text = "\n".join(lines)
    passages = split(text)
    whole(text, passages)
    assert max(len(passage.text) for passage in passages) <= 4000
    assert all(passage.text.rstrip().endswith(("}", ",")) for passage in passages)


def test_a_broken_line_of_json_stays_whole():
    """What cannot be read is not cut."""
    good = json.dumps({"id": 1, "text": "a sentence. " * 10}) + "\n"
    broken = "oops, " * 2000 + "\n"
    assert broken in [passage.text for passage in split(good * 20 + broken + good * 20)]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "[1," * 65_000,
        "```a\n" * 40_000,
        "<a'" * 65_000,
        "[![a](b)" * 25_000,
        "." * 200_000,
        " " * 200_000,
        "\n" * 200_000,
        "|-|\n" * 50_000,
        '["' + "a," * 100_000,
        "<table>" * 30_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_no_text_takes_quadratic_time(text: str):
    """Hostile text costs a second where a quadratic scan would cost minutes."""
    started = time.thread_time()
    whole(text, split(text))
    assert time.thread_time() - started < 2.5


# -- selecting ---------------------------------------------------------------------------------------------------------

MANUAL = (
    "# 手册\n\n"
    + "".join(f"## 第{n}章\n\n" + f"本章介绍模块{n}的安装。" * 60 + "\n\n" for n in range(12))
    + "## 权限管理\n\n第一步：打开后台。第二步：新建角色。第三步：给角色分配菜单权限。\n\n"
    + "## 附录\n\n"
    + "其他说明。" * 100
)


def test_the_passage_that_answers_is_found():
    """In Chinese by its words, with where it stands, and nothing that does not answer."""
    passages = split(MANUAL)
    found = select(passages, "权限 第三步 角色", budget=4000, cost=len)
    assert "第三步：给角色分配菜单权限" in found[0].text
    assert len(found) < len(passages) / 2


def test_english_questions_find_other_forms_of_their_words():
    """Configuring finds configured."""
    text = (
        "".join(f"## Part {n}\n\n{prose(25)}\n\n" for n in range(10))
        + "## Roles\n\nRoles are configured in the menu."
    )
    found = select(split(text), "configuring a role", budget=3000, cost=len)
    assert "configured in the menu" in found[0].text


def test_a_heading_speaks_for_the_passages_below_it():
    """A passage that does not repeat its heading is found by it, and of equals the earlier comes first."""
    text = f"# Book\n\n## Billing\n\n{prose(26)}\n\n{prose(26)}\n\n## Other\n\n{prose(26)}\n\n{prose(26)}"
    passages = split(text)
    found = select(passages, "billing", budget=100_000, cost=len)
    assert passages[:2] == found


def test_answers_come_in_the_order_of_the_text_within_the_budget():
    """Best first while there is room, then sorted; the lines around them are counted."""
    parts = [f"{prose(26)} zebra{' zebra' * n}." for n in range(6)]
    passages = split("\n\n".join(parts))
    found = select(passages, "zebra", budget=2600, cost=len)
    assert 2 == len(found)
    assert sorted(found, key=lambda passage: passage.start) == found
    assert len(render_excerpt(found, passages[-1].end)) <= 2600
    assert max(passage.text.count("zebra") for passage in passages) in [p.text.count("zebra") for p in found]


def test_with_nothing_that_answers_the_beginning_is_shown():
    """The first passages that fit, without a gap."""
    passages = split(MANUAL)
    found = select(passages, "zebra", budget=3000, cost=len)
    assert passages[: len(found)] == found
    assert found
    assert [] == select([], "zebra", budget=3000, cost=len)


def test_the_best_passage_is_clipped_when_it_alone_is_too_long():
    """Head and tail with a marker; where it stands is still said."""
    passages = split(f"{prose(26)}\n\nThe zebra. {prose(26)}\n\n{prose(26)}")
    [found] = select(passages, "zebra", budget=500, cost=len)
    assert "characters left out" in found.text
    assert (passages[1].start, passages[1].end) == (found.start, found.end)
    assert len(render_excerpt([found], 9999)) <= 500
    assert [] == select(passages, "zebra", budget=60, cost=len)
    assert [] == select(passages, "zebra", budget=0, cost=len)


def test_units_are_skipped_rather_than_clipped():
    """A table that does not fit makes room for the next best; JSON is not clipped at all."""
    table = "| zebra | zebra |\n|---|---|\n" + "| zebra | 2 |\n" * 200
    passages = split(f"{table}\n{prose(26)}\n\nA zebra. {prose(26)}")
    [found] = select(passages, "zebra", budget=1300, cost=len)
    assert "A zebra." in found.text
    values = split(json.dumps([{"animal": "zebra", "n": n, "body": "x" * 300} for n in range(30)]))
    assert [] == select(values, "zebra", budget=200, cost=len)


def test_of_very_many_passages_the_likely_ones_are_read():
    """A needle in a megabyte is found, in words, numbers and Chinese, without segmenting the haystack."""
    hay = [f"{prose(26)}\n\n" for _ in range(900)]
    hay[500] = f"{prose(20)} The zebras were counted: 1,200 of them. {prose(5)}\n\n"
    hay[700] = f"{prose(20)} 第三步分配菜单权限。{prose(5)}\n\n"
    passages = split("".join(hay))
    assert len(passages) > 200
    for query, answer in (("zebra counting", "zebras"), ("1200", "1,200"), ("菜单权限", "菜单权限")):
        assert answer in "".join(found.text for found in select(passages, query, budget=1500, cost=len))


# -- showing -----------------------------------------------------------------------------------------------------------


def test_an_excerpt_says_which_characters_follow():
    """A line before each run of neighbours, in the language of the text."""
    english = [Passage(0, 4, "One\n"), Passage(4, 8, "Two\n"), Passage(20, 26, "Three.")]
    assert "[… characters 0–8 of 52000]\nOne\nTwo\n[… characters 20–26 of 52000]\nThree." == render_excerpt(
        english, 52_000
    )
    chinese = [Passage(12_000, 12_004, "权限管理"), Passage(13_000, 13_002, "附录")]
    assert "[…字符 12000–12004 / 共 52000]\n权限管理\n[…字符 13000–13002 / 共 52000]\n附录" == render_excerpt(
        chinese, 52_000
    )
    assert "" == render_excerpt([], 10)


# -- paging ------------------------------------------------------------------------------------------------------------


def test_a_window_moves_to_the_units_it_would_cut():
    """It begins where a unit begins and ends before one that does not fit."""
    text = f"Before.\n{IMAGE}\nAfter it comes more.\n\n{TABLE}\nThe end."
    at = text.index(IMAGE)
    start, end = page_slice(text, at + 5, len(IMAGE) + 3)
    assert IMAGE == text[start:end].strip()
    start, end = page_slice(text, 0, text.index(TABLE) + 10)
    assert text[start:end].endswith("more.\n\n")


def test_a_unit_that_does_not_fit_is_cut_where_asked():
    """Paging through a long table works, window by window."""
    table = "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 100
    assert (100, 200) == page_slice(table, 100, 100)
    assert (0, 50) == page_slice(table, 0, 50)


@pytest.mark.parametrize(
    ("offset", "limit", "window"),
    [(-5, 4, (0, 4)), (0, 0, (0, 0)), (99, 10, (10, 10)), (0, 99, (0, 10)), (3, -1, (3, 3))],
)
def test_windows_outside_the_text_are_empty_or_clamped(offset: int, limit: int, window: tuple[int, int]):
    """No offset and no limit is an error."""
    assert window == page_slice("x" * 10, offset, limit)


def test_json_is_paged_between_its_members():
    """A window on JSON holds whole members where they fit."""
    text = json.dumps([{"id": n, "text": "a, b. c"} for n in range(40)])
    start, end = page_slice(text, 101, 200)
    assert ", " == text[start - 2 : start]
    assert text[:end].endswith(", ")
    assert (0, len(text)) == page_slice(text, 3, len(text))


def test_rows_are_paged_whole():
    """Also those with line breaks in their quotation marks."""
    rows = [f'{n},"a\nb {n}",c' for n in range(40)]
    text = "id,note,x\n" + "\n".join(rows)
    for offset in range(0, len(text), 7):
        start, end = page_slice(text, offset, 60)
        assert start == 0 or (text[start - 1] == "\n" and text[start:].split(",")[0].isdigit())
        assert end == len(text) or (text[end - 1] == "\n" and text[end:].split(",")[0].isdigit())
        assert end > offset
    assert page_slice(text, len(text) - 3, 60)[1] == len(text)


def test_sentences_are_paged_whole():
    """A window of prose begins and ends with sentences, in Chinese too; a monster of a sentence is cut."""
    text = "权限在后台。角色有菜单！" * 50
    start, end = page_slice(text, 100, 50)
    assert text[start - 1] in "。！"
    assert text[end - 1] in "。！"
    assert (5000, 5100) == page_slice("x" * 20_000, 5000, 100)

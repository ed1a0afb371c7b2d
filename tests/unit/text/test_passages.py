"""A long text as passages: where it is cut, which passages answer, how they are shown and paged."""

import json
import re
import time

import pytest

from pagefile.text.passages import Passage, matching, page_slice, render_excerpt, select, selected, split

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
    """Where the limit falls into an image on a line without boundaries, the cut is before it, then behind it."""
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


def test_a_long_string_of_json_is_cut_like_text():
    """Between its lines, or its sentences, or its words; a short value is never cut, however small the passages."""
    for unit, ends in (("A sentence.\n", ("\\n",)), ("Sentence. ", (".", " ")), ("word ", (" ",))):
        text = json.dumps({"a": 1, "text": unit * 5000, "z": [1, 2, 3]})
        passages = split(text)
        whole(text, passages)
        assert max(len(passage.text) for passage in passages) <= 4000
        assert all(passage.text.endswith(ends) for passage in passages[1:-2])
    short = json.dumps({"a": "Sentence. " * 30, "b": "Sentence. " * 30})
    assert 2 == len(split(short, target_chars=20, max_chars=20))


@pytest.mark.parametrize("value", ["权" * 4000, "😀" * 2000, '"' * 4000, "\\" * 4000, "\x01" * 2000])
def test_an_escape_is_never_cut(value: str):
    """What JSON writes with several characters stays in one passage, and in one part that is loaded by its offset."""
    text = json.dumps({"a": value})
    passages = split(text, target_chars=301, max_chars=401)
    assert len(passages) > 10
    parts = [passage.text for passage in passages]
    offset = 0
    while offset < len(text):
        _, end = page_slice(text, offset, 501)
        parts.append(text[offset:end])
        offset = end
    inner = [part.removeprefix('{"a": "').removesuffix('"}') for part in parts]
    assert 2 * value == "".join(json.loads(f'"{part}"') for part in inner)


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


def shown(text: str, query: str, budget: int) -> str:
    """What a reader gets, which never costs more than the budget."""
    found = select(split(text), query, budget=budget, cost=len)
    made = render_excerpt(found, len(text))
    assert len(made) <= budget
    assert sorted(found, key=lambda passage: passage.start) == found
    return made


def test_the_passage_that_answers_is_found():
    """In Chinese by its words, with where it stands."""
    made = shown(MANUAL, "权限 第三步 角色", 400)
    assert "## 权限管理\n\n第一步：打开后台。第二步：新建角色。第三步：给角色分配菜单权限。" in made
    begin, end = map(int, re.findall(r"字符 (\d+)–(\d+)", made)[-1])
    assert "## 权限管理" in MANUAL[begin:end]


def test_english_questions_find_other_forms_of_their_words():
    """Configuring finds configured."""
    text = (
        "".join(f"## Part {n}\n\n{prose(25)}\n\n" for n in range(10))
        + "## Roles\n\nRoles are configured in the menu."
    )
    assert "configured in the menu" in shown(text, "configuring a role", 300)


def test_a_heading_speaks_for_what_is_below_it():
    """A sentence that does not repeat its heading is found by it, and the heading is named."""
    text = f"# Book\n\n## Other\n\n{prose(40)}\n\n## Billing\n\n{prose(40)}\n\n## Last\n\n{prose(40)}"
    found = select(split(text), "billing", budget=600, cost=len)
    begins, ends = text.index("## Billing"), text.index("## Last")
    assert all(begins <= passage.start and passage.end <= ends for passage in found[1:-1])
    assert "Book › Billing" in shown(text, "billing", 600) or "## Billing" in shown(text, "billing", 600)


def test_with_nothing_that_answers_an_overview_is_shown():
    """The beginning, the end, and what stands out in between."""
    text = f"# Report\n\n{prose(200)}\n\nRevenue doubled in Lisbon.\n\n{prose(200)}\n\nSigned: the board."
    made = shown(text, "zebra", 900)
    assert all(told in made for told in ("# Report", "Revenue doubled in Lisbon", "Signed: the board."))
    assert [] == select([], "zebra", budget=3000, cost=len)


def test_how_a_run_ended_is_shown_whatever_was_asked():
    """Of the output of a program with nothing that answers, its one failure and its last line are shown."""
    lines = [f"step {n} of the long run went as it was planned" for n in range(400)]
    lines[250] = "step 250 FAILED: no space left on device"
    made = shown("\n".join([*lines, "399 passed, 1 failed"]), "zebra", 500)
    assert "FAILED: no space left" in made
    assert made.endswith("399 passed, 1 failed")


def test_a_piece_that_is_too_long_is_cut_never_refused():
    """At a boundary; its offsets are those of what is shown."""
    text = f"{prose(26)}\n\nThe zebra, {'which is striped, ' * 300}is white."
    for budget in (60, 100, 200, 500):
        found = select(split(text), "zebra", budget=budget, cost=len)
        assert any("The zebra" in passage.text for passage in found) or budget == 60
        assert all(text[passage.start : passage.end] == passage.text for passage in found)
        assert len(render_excerpt(found, len(text))) <= budget
    assert [] == select(split(text), "zebra", budget=0, cost=len)


def test_rows_come_with_the_header_of_their_table():
    """Of a long table in Markdown, of CSV, and of rows of JSON beside their columns."""
    markdown = "# Zoo\n\n| animal | cage |\n|---|---|\n" + "".join(
        f"| lion {n} | {n} |\n" for n in range(400)
    )
    markdown += "| zebra | 7 |\n"
    rows = "animal,cage\n" + "".join(f"lion {n},{n}\n" for n in range(400)) + "zebra,7\n"
    columns = json.dumps(
        {"columns": ["animal", "cage"], "rows": [[f"lion {n}", n] for n in range(400)] + [["zebra", 7]]}
    )
    for text, header, row in (
        (markdown, "Zoo › | animal | cage |]", "| zebra | 7 |"),
        (rows, "animal,cage]", "zebra,7"),
        (columns, "› animal, cage]", '["zebra", 7]'),
    ):
        made = shown(text, "zebra", 300)
        assert header in made
        assert row in made


def test_a_definition_comes_with_what_encloses_it():
    """The class and the function that a line of code is in are named."""
    methods = "".join(f"    def step_{n}(self):\n        return {n}\n\n" for n in range(200))
    text = f"class Zoo:\n{methods}    def feed(self, animal):\n        hay = 3\n        give('zebra', hay)\n\n{methods}"
    assert "[… characters" in shown(text, "zebra", 200)
    found = select(split(text), "zebra", budget=120, cost=len)
    assert any("class Zoo:" in passage.where for passage in found)
    assert "def feed(self, animal):" in shown(text, "zebra", 300)


def test_of_a_very_long_text_the_likely_passages_are_read():
    """A needle in two megabytes is found, in words, numbers and Chinese."""
    hay = [f"{prose(26)}\n\n" for _ in range(1800)]
    hay[500] = f"{prose(20)} The zebras were counted: 1,200 of them. {prose(5)}\n\n"
    hay[700] = f"{prose(20)} 第三步分配菜单权限。{prose(5)}\n\n"
    text = "".join(hay)
    assert len(text) > 2_000_000
    for query, answer in (("zebra counting", "zebras"), ("1200", "1,200"), ("菜单权限", "菜单权限")):
        assert answer in shown(text, query, 1500)


def test_the_part_of_a_passage_that_answers():
    """A search shows why it found a passage, within its room, also where strings of JSON are escaped."""
    text = f"{prose(20)} The zebra is in cage 7. {prose(20)}"
    assert "The zebra is in cage 7." in matching(text, "zebra", 200)
    assert len(matching(text, "zebra", 200)) <= 200
    assert "short" == matching("short", "zebra", 200)
    assert "cage 7\nis" in matching(
        json.dumps(f"{prose(20)} The zebra\nof cage 7\nis striped."), "zebra cage", 200
    )


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
    assert "All of it." == render_excerpt([Passage(0, 10, "All of it.")], 10)


def test_an_excerpt_says_what_encloses_a_passage_once():
    """The path, the heading or the header; where a text of JSON follows what stands around it, only that."""
    passages = [
        Passage(1, 20, '"url": "https://a"', "[0]"),
        Passage(33, 40, "Text.", "[0].content"),
        Passage(90, 95, "More.", "[0].content"),
    ]
    assert (
        '[… characters 1–20 of 200 · [0]]\n"url": "https://a"\n[… · [0].content]\nText.\n[… characters 90–95 of 200]\nMore.'
        == render_excerpt(passages, 200)
    )


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


@pytest.mark.parametrize("opening", ["<svg/onload=x>", "<script>", "<!-- ", "<style>", "<iframe srcdoc='"])
def test_what_is_never_closed_hides_nothing(opening):
    """The rest of a page is read, whatever was cut off or written into it."""
    page = f"<html><body><p>Prices</p>{opening}\n" + "".join(
        f"<p>Row {n} costs {n} euros</p>\n" for n in range(300)
    )
    shown = render_excerpt(selected(page, "Row 217", budget=400, cost=len), len(page))
    assert "Row 217 costs 217 euros" in shown


def test_of_a_best_row_that_is_too_long_the_part_asked_for_is_shown():
    """Not another row that fits, and not the beginning of the page."""
    rows = [{"id": n, "customer": f"Customer {n}", "note": "paid " * 9} for n in range(90)]
    rows[60] |= {"customer": "Orchid", "note": "chargeback " + "and more of it " * 30}
    shown = render_excerpt(
        selected(text := json.dumps(rows), "which customer has a chargeback", budget=200, cost=len), len(text)
    )
    assert "data" not in shown
    assert "[60]" in shown
    assert "chargeback" in shown
    table = "id | region | product\n---|---|---\n" + "".join(f"{n} | south | lamp\n" for n in range(200))
    table += "991 | west | telescope with a stand\n" + "".join(f"{n} | south | lamp\n" for n in range(200))
    found = render_excerpt(selected(table, "telescope", budget=110, cost=len), len(table))
    assert "telescope" in found
    assert len(found) <= 110

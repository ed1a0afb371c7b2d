"""Synopses without a model: what each kind of result says about itself."""

import base64
import csv
import json
import time

import pytest

from pagefile.text.synopsis import synopsis
from pagefile.text.synopsis.kinds import kind

from .samples import CHINESE, GO, PYTHON, YAML


def told(text: str, *expected: str) -> str:
    """The synopsis, which must say all of this, most of it in its first 200 characters."""
    written = synopsis(text)
    assert [] == [word for word in expected if word not in written], written
    assert len(written) <= 500
    return written


# -- data --------------------------------------------------------------------------------------------------------------


def test_json_arrays():
    """How many objects, the values of the first, the names of the next, and only then the keys."""
    value = [
        {"id": n, "name": f"Ada {n}", "tags": ["a"], "at": None if n == 0 else 1.5, "ok": True, "x": {"k": 1}}
        for n in range(120)
    ]
    written = told(
        json.dumps(value),
        "JSON, 120 items",
        "E.g. id=0, name=Ada 0, tags=a, ok=true, k=1",
        "Next name: Ada 1, Ada 2",
        "Keys: id, name, tags, at, ok, x.k",
    )
    assert written.index("Ada 0") < 60 < written.index("Keys")
    assert 200 <= len(written)


def test_names_that_say_nothing_are_left_out():
    """An empty name takes no place in a list."""
    value = [{"name": name} for name in ("Ada", "", "Alan")] * 20
    told(json.dumps(value), "Next name: Alan, Ada")


def test_json_objects():
    """What names it, then its values; of what is long, its beginning or its size."""
    value = {
        "total": 3,
        "name": "roles of the shop",
        "text": "x" * 250,
        "meta": {"a": 1, "b": 2},
        "matrix": [1] * 70,
        "e": [],
    }
    told(
        json.dumps(value),
        'JSON object "roles of the shop": total=3, ',
        "text=xxxx",
        "a=1, b=2",
        "matrix=[70 numbers]",
    )


def test_rows_are_found_wherever_they_are():
    """Under any name and depth, by key, as columns, or beside their header; totals and names are before them."""
    orders = [
        {"orderNo": f"SO{n}", "buyer": {"city": "Rome"}, "status": "paid" if n % 3 else "open"}
        for n in range(180)
    ]
    written = told(
        json.dumps({"code": 0, "msg": "ok", "data": {"total": 912, "list": orders}}),
        "JSON, 180 items (data.list); total=912",
        "orderNo=SO0",
        "city=Rome",
        "status: paid 120, open 60",
        "Last: orderNo=SO179",
    )
    assert "msg" not in written[:200]
    told(
        json.dumps({"strings": {f"k{n}": {"en": f"word {n}"} for n in range(50)}}),
        "50 strings",
        "key=k0, en=word 0",
    )
    hours = {"time": [f"{n}:00" for n in range(24)], "rain": list(range(24))}
    told(json.dumps({"city": "Porto", "hourly": hours}), "24 hourly", "city=Porto", "time=0:00, rain=0")
    grid = {"columns": ["lot", "tons"], "rows": [[f"L{n}", n] for n in range(30)]}
    told(json.dumps(grid), "30 items (rows)", "lot=L0, tons=0")
    told(json.dumps([[{"flight": "HAT1"}], [{"flight": "HAT2"}]] * 20), "40 items", "flight=HAT1")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            {"error": {"code": 403, "status": "DENIED", "message": "no right to read"}},
            "Error: 403 DENIED no right to read",
        ),
        ({"success": False, "code": 500, "msg": "stock is locked"}, "Error: 500 stock is locked"),
        ({"errors": [{"message": "field x is unknown"}], "data": None}, "Error: field x is unknown"),
        ({"status": 429, "title": "Too many", "detail": "50 an hour"}, "Error: 429 50 an hour Too many"),
        ({"error": "quota used up", "request": "r1"}, "Error: quota used up"),
    ],
)
def test_failures_come_first(answer, expected: str):
    """What an API refuses is what a reader has to know."""
    assert synopsis(json.dumps(answer)).startswith(expected)


def test_chinese_json_is_described_in_chinese():
    """The words around it follow the text."""
    value = {
        "标题": "权限管理手册",
        "章节": [{"名称": f"第{n}章权限", "页数": n, "空": None} for n in range(9)],
        "正文": "角色决定菜单。" * 60,
    }
    told(
        json.dumps(value, ensure_ascii=False),
        "JSON，9 条 章节；标题=权限管理手册",
        "如：名称=第0章权限、页数=0",
        "其后 名称：第1章权限",
        "文本内容：角色决定菜单",
        "字段：名称、页数、空",
    )


def test_arrays_of_values_and_of_arrays():
    """Without objects the first values are shown; mixed ones are items."""
    told(json.dumps([1.5, 2, 3] * 200), "array of 600 numbers", "First: 1.5, 2, 3")
    told(json.dumps([1, "a", None] * 50), "array of 150 items")
    assert synopsis("[]").startswith("JSON array of 0 items")
    assert synopsis("{}").startswith("JSON object with 0 keys")


def test_a_document_wrapped_in_json_is_read():
    """Its sentences say more than its keys, tags are left out."""
    page = (
        "<p>"
        + "The archive keeps pages. " * 5
        + "</p><p>"
        + "Nothing is ever lost in the house of pages. " * 20
        + "</p>"
    )
    written = told(json.dumps([{"id": 1, "content": page}]), "HTML document", "The archive keeps pages.")
    assert "<p>" not in written
    told(
        json.dumps({"meta": {"body": "The archive keeps every page. " * 30}}), "The archive keeps every page."
    )


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"key": [{"inner": ' * 30_000, '[{"first": 1, "second": "x' + "y" * 3000]
)
def test_json_that_cannot_be_parsed_is_said_to_be(text: str):
    """Too deep, broken off: what can be seen of it is told."""
    written = told(text, "not parsed as a whole", f"{len(text):,} characters")
    assert ("Keys at the beginning" in written) == ("key" in text or "first" in text)


def test_json_lines():
    """How many rows, and the keys of the first ones; broken rows are passed over."""
    rows = [json.dumps({"event": "load", "page": n}) for n in range(300)]
    rows[5:7] = ["", "{broken"]
    written = synopsis("\n".join(rows) + "\n")
    assert written.startswith("JSON lines, 300 rows. E.g. page=0, event=load.")
    told('{"事件": "页面装载"}\n{"事件": "页面离开"}', "JSON 行数据，共 2 行", "事件=页面装载")


def test_tables_of_values():
    """Rows, columns and the first row; line breaks inside quotation marks are no rows."""
    text = "id,姓名,城市\n" + "".join(f"{n},张三,北京\n" for n in range(500))
    told(text, "CSV 表格，500 行数据，3 列：id、姓名、城市", "id=0、姓名=张三、城市=北京")
    quoted = "id\tnote\n" + "".join(f'{n}\t"a\nb"\n' for n in range(50))
    told(quoted, "TSV table, 50 rows, 2 columns: id, note", "First row: id=0, note=a b")
    told('a,b,c\n1,2,"3"\n' + "1,2,3\n" * 400_000, "CSV table, about 400,001 rows")
    told('a,b,c\n1,2,"3"\n1,2,3\n' + "x" * 200_000 + ",1,1\n", "CSV table, about 3 rows")


def test_a_header_alone_is_a_table():
    """A reader that cannot go on leaves what it has read."""
    text = "a,b,c\n" + "1,2,3\n" * 45 + '"' + "x" * 140_000 + '"\n'
    told(text, "CSV table", "columns: a, b, c", "a=1, b=2, c=3")


def test_a_reader_of_tables_with_narrow_limits():
    """The limit of a field is the whole process's; what cannot be read as a table is text."""
    text = "a,b,c\n" + "1,2,3\n" * 45 + "1,2," + "x" * 300 + "\n"
    before = csv.field_size_limit(100)
    try:
        told(text, "CSV table", "columns: a, b, c")
        assert "text" == kind("a,b,c\n1,2," + "x" * 300 + "\n")
        csv.field_size_limit(1000)
        told('a,b,c\n1,2,"' + "x\n" * 30_000, "CSV table, about 30,000 rows, 3 columns: a, b, c")
    finally:
        csv.field_size_limit(before)


def test_yaml():
    """The keys at the top."""
    told(YAML * 3, "YAML, 21 lines, 4 keys at the top: name=pagefile, version=1, items, nested")
    told(
        "name: 权限管理\nrole: 角色菜单权限管理\nlist:\n- 甲\n- 乙\n",
        "YAML，5 行，3 个顶层键",
    )


# -- documents ---------------------------------------------------------------------------------------------------------


def test_markdown():
    """Title, outline, counts, sentences, and no image."""
    body = "Roles decide which menus a person sees. ![menu](https://a.example/m.png) Ask [Ada](https://a.example).\n\n"
    table = "| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    text = "# Engine manual\n\n" + "".join(
        f"## Part {n}\n\n{body}{table}```sh\n# no heading\nls\n```\n\n" for n in range(15)
    )
    written = told(
        text,
        'Markdown document "Engine manual". Headings: Part 0, Part 1',
        "and 3 more",
        "16 headings, 15 links, 15 images, 15 tables, 15 code blocks",
        "Roles decide which menus a person sees.",
    )
    assert "no heading" not in written
    assert "![" not in written


def test_markdown_without_headings_and_in_chinese():
    """The words around it follow the text."""
    told(
        "# 权限手册\n\n## 角色\n\n角色决定一个人看见哪些菜单。\n\n## 部署\n\n部署在周五。",
        "Markdown 文档《权限手册》",
        "标题：角色、部署",
        "含 3 个标题",
    )
    told("```\ncode\n```\n" + "The archive keeps every page of the engine. " * 20, "Markdown document. ")


def test_headings_alone():
    """A document that is nothing but an outline."""
    assert (
        'Markdown document "Rooms". Headings: Kitchen. Holds 2 headings.'
        == synopsis("# Rooms\n\n## Kitchen\n")[:64]
    )


def test_what_does_not_fit_is_cut_and_says_so():
    """The first parts stay whole, the one that crosses the limit ends in an ellipsis."""
    text = "# Rooms\n\n" + "".join(f"## The room with the number {n}\n\n" for n in range(9))
    written = synopsis(text, max_chars=120)
    assert written.startswith('Markdown document "Rooms". Headings: The room with the number 0, ')
    assert written.endswith("…")


def test_an_html_page_says_what_it_says_before_all_its_headings():
    """A long list of chapters leaves no room for a sentence, and the heading that is the title is said once."""
    chapters = "".join(f"<h2>Chapter number {n}</h2><p>Etc.</p>" for n in range(40))
    page = f"<html><head><title>Opening hours – Library</title></head><body><h1>Opening hours</h1><p>It opens at 9:30 on weekdays.</p>{chapters}</body></html>"
    shown = synopsis(page)[:200]
    assert "It opens at 9:30 on weekdays." in shown
    assert "Headings: Chapter number 0" in shown
    assert shown.partition("Holds")[0].count("Opening hours") == 1


def test_an_encoded_picture_has_its_type_and_caption():
    """They are beside it in the JSON, and all that can be said of it."""
    picture = base64.b64encode(bytes(n * n % 251 for n in range(9000))).decode()
    block = {"type": "image", "mimeType": "image/webp", "data": picture, "caption": "Queue depth 812"}
    told(json.dumps(block), "image/webp. Queue depth 812. Binary data in base64: about 9,000 bytes")


def test_hits_without_a_title_are_named_by_their_subject():
    """Mail and tickets have a subject; their first words say less."""
    hits = [
        {"_score": 9 - n, "_source": {"body": "Hello all, " * 9, "subject": f"Badge {n} denied"}}
        for n in range(9)
    ]
    told(json.dumps({"hits": {"hits": hits}}), "9 hits: Badge 0 denied, Badge 1 denied")


def test_typescript_is_told_from_javascript():
    """Declared types make the difference, and local constants are no definitions."""
    body = "".join(
        f"  async step{n}(cart: Cart): Promise<Cart> {{\n    const started = now();\n    return this.api.post('/v2', {{ cart }});\n  }}\n\n"
        for n in range(20)
    )
    shown = told("import { z } from 'zod';\n\nexport class Checkout {\n" + body + "}\n", "Code (TypeScript)")
    assert "started" not in shown.partition("Begins")[0]


def test_html():
    """What a reader would see, without scripts, comments and tags."""
    text = (
        "<!doctype html><html><head><title>Engine &amp; home</title><style>p{}</style></head><body><!-- secret -->"
        "<h1>Rooms</h1><SCRIPT>var secret = 1;</SCRIPT><p>The kitchen is warm in the winter.</p><h2>Kitchen <b>sink</b></h2>"
        "<table><tr><td>a</td></tr></table><a href='x'>link</a><img src='y'><p>The garden is large and green.</p></body></html>"
    )
    written = told(
        text,
        'HTML document "Engine & home". Headings: Rooms, Kitchen sink.',
        "2 headings, 1 link, 1 image, 1 table",
        "The kitchen is warm in the winter.",
    )
    assert "secret" not in written
    told(
        "<html><body><h1>首页</h1><p>这里是权限管理的首页。</p><script>一直没有关",
        "HTML 文档《首页》",
        "这里是权限管理的首页。",
    )
    told("<html><body>" + "<p>The kitchen is warm.</p>" * 4000, "HTML document.", "The kitchen is warm.")


def test_xml():
    """The root, the elements, the text."""
    told(
        '<?xml version="1.0"?><feed>' + "<entry><id>1</id></entry>" * 30 + "</feed>",
        "XML (feed). id=1. Elements: entry ×30, id ×30",
    )


# -- lines -------------------------------------------------------------------------------------------------------------


def test_logs():
    """Lines, the time from first to last, levels, the first and the last error, what repeats."""
    lines = [f"2026-03-04 10:{n // 60:02}:{n % 60:02} INFO app: heartbeat {n} ok" for n in range(300)]
    lines[7] = "2026-03-04 10:00:07 ERROR billing: card 17 was refused"
    lines[250] = "2026-03-04 10:04:10 CRITICAL billing: database is gone"
    lines[9] = "2026-03-04 10:00:09 WARNING app: slow"
    lines[11] = "    at some.place(File.java:11)"
    written = told(
        "\n".join(lines) + "\n",
        "Log, 300 lines",
        "2026-03-04 10:00:00 – 2026-03-04 10:04:59",
        "INFO 296, ",
        "ERROR 1",
        "FATAL 1",
        "WARN 1",
        "First error: ERROR billing: card 17 was refused",
        "Last error: CRITICAL billing: database is gone",
        "Most frequent (99%): INFO app: heartbeat # ok",
    )
    assert "300 lines" in written[:30]


def test_long_and_chinese_logs():
    """What was counted is said; without errors none are named; a log need not have levels."""
    chinese = "".join(
        f"2026-03-04 10:00:{n % 60:02} [error] 数据库连接失败，正在重试第 {n} 次\n" for n in range(100)
    )
    told(chinese, "日志，100 行", "级别：ERROR 100", "首个错误：", "最后错误：", "最常见（100%）：")
    long = "2026-03-04 10:00:00 level=info msg=x\n" * 25_000
    written = told(long, "Log, 25,000 lines", "2026-03-04 10:00:00.", "INFO 20,000 (first 20,000 lines)")
    assert "error" not in written
    told(
        "Mar  4 10:00:00 host cron: a\n\nMar  4 10:00:01 host sshd: b\nMar  4 10:00:02 host kernel: c d",
        "Log, 4 lines",
    )
    told(
        "INFO only this and nothing else\nERROR alone with its level, twice as long",
        "First error: ERROR alone",
    )


def test_code():
    """The language, the names it defines, what its first comment says."""
    told(PYTHON * 4, "Code (Python), 44 lines", "Defines: class Engine, def read")
    told(
        "// Package main prints one number and ends.\n" + GO,
        "Code (Go), 9 lines",
        "main",
        "Says: Package main prints one number",
    )
    told(
        "CREATE TABLE page (id int);\nINSERT INTO page VALUES (1);\nSELECT id FROM page;\n",
        "Code (SQL)",
        "page",
    )
    told(
        "// 权限管理：角色决定菜单，菜单决定页面\nimport x;\nimport y;\nconst 甲 = 1;\nvar b = 2;\n",
        "代码（JavaScript）",
        "注释：权限管理",
    )
    told("import 甲;\nimport 乙;\n{\n}\n;\n", "代码（Java），5 行")


def test_search_results():
    """How many, their titles, and what they say; both written forms, and JSON."""
    text = (
        "## 检索结果\n\n"
        + "权限管理在系统设置里配置，角色决定菜单。管理员可以新建角色。" * 10
        + "\n\n## Reference Document List\n[1] 文档标题: 权限手册\n    文档地址: https://docs.example/1\n[2] 文档标题: 部署手册\n"
    )
    written = told(text, "检索结果，2 个来源：权限手册、部署手册", "权限管理在系统设置里配置")
    assert "文档地址" not in written
    hits = [
        {
            "title": f"Guide {n}",
            "url": f"https://a.example/{n}",
            "snippet": f"Guide {n} tells how roles are configured.",
        }
        for n in range(12)
    ]
    hits[1] = {"title": "Empty", "url": "https://a.example/e"}
    told(
        json.dumps({"results": hits}),
        "Search results, 12 hits: Guide 0, Empty, Guide 2",
        "roles are configured",
    )
    told("Reference Document List\nnone\n" + "words and more words. " * 20, "Search results. ")
    told(
        "[1] https://a.example/x\n[2] https://a.example/y\n",
        "2 sources: https://a.example/x, https://a.example/y",
    )


# -- text --------------------------------------------------------------------------------------------------------------


def test_plain_text_is_told_in_its_own_sentences():
    """Chinese and English, from the beginning, the middle and the end; nothing is invented."""
    chinese = "\n".join(f"第{n}条记录说，仓库{n}里有{n * 3}个零件。" for n in range(800))
    written = synopsis(chinese)
    assert 200 <= len(written) <= 500
    assert all(sentence.strip() in chinese for sentence in written.split("。"))
    english = " ".join(f"Record {n} says that store {n} has {n * 3} parts." for n in range(120))
    assert 200 <= len(synopsis(english)) <= 500
    assert 100 <= len(synopsis(english, max_chars=200)) <= 200


def test_short_text_is_its_own_synopsis():
    """Nothing is added to what is short."""
    assert CHINESE.replace("\n", "") == synopsis(CHINESE).replace(" ", "")
    assert "Hello" == synopsis("Hello")
    assert "" == synopsis("")
    assert "" == synopsis("Hello", max_chars=0)


def test_images_are_named_never_cut():
    """Image markdown does not appear at all, whole or in part."""
    text = (
        "![架构图](https://docs.example/architecture.png) 上图是架构。" * 40
        + "![没有结束的图片](https://docs"
    )
    written = synopsis(text)
    assert "![" not in written
    assert "](" not in written
    assert "架构图" in written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" " * 5000, "Blank text of 5,000 characters"),
        ("　" * 5000, "Blank text of 5,000 characters"),
        ("\ud800" * 300, "Blank text"),
        ("......" * 100, "......"),
        ("\x00\x01binary\x02" * 300, "Binary data, 2,700 characters. Readable: binary"),
        ("x" * 5_000_000, "xxxx"),
        ("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 100, "Markdown table, 100 rows, 2 columns: a, b"),
    ],
    ids=["blank", "wide blank", "surrogates", "dots", "binary", "one line", "table"],
)
def test_garbage_has_a_synopsis(text: str, expected: str):
    """Something true and printable is said about anything."""
    written = synopsis(text)
    assert written.startswith(expected)
    assert written == written.encode().decode()
    assert 0 < len(written) <= 500


@pytest.mark.parametrize("max_chars", [1, 5, 20, 45, 60, 120, 250])
def test_any_limit_is_kept(max_chars: int):
    """By every kind of text."""
    for text in (
        json.dumps([{"a": "b" * 40, "c": 1}] * 90),
        "# 标题\n\n" + "正文。" * 300,
        PYTHON,
        YAML,
        " " * 99,
    ):
        assert 0 < len(synopsis(text, max_chars=max_chars)) <= max_chars


@pytest.mark.parametrize(
    "text",
    [
        "\n" * 400_000,
        "-" * 400_000,
        "<html><script>" * 30_000,
        "<h1>" * 100_000,
        "import a\n" + "\n" * 400_000,
        "**" * 200_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_no_text_takes_quadratic_time(text: str):
    """Hostile text costs a fraction of a second."""
    started = time.thread_time()
    assert synopsis(text)
    assert time.thread_time() - started < 3


def test_a_row_that_sums_up_the_others_is_told_first():
    """Of a coverage report its total; it is no row with the highest value."""
    rows = [f"src/part_{n}.py    {40 + n}    {n % 7}    9{n % 9}%" for n in range(1200)]
    report = "\n".join(
        ["Name            Stmts   Miss  Cover", *rows, "-" * 40, "TOTAL    3400    180    93%"]
    )
    told(report, "TOTAL 3400 180 93%")
    told("店,额\n" + "甲店,3\n" * 3000 + "合计,9000\n", "合计 9000")


def test_the_example_of_json_lines_is_a_row_of_the_usual_shape():
    """The first one often only opens the others, as in the output of ripgrep."""
    hit = {"type": "match", "data": {"lines": {"text": "let pause = Pause::new(3);"}}}
    lines = [{"type": "begin", "data": {"path": "src/wait.rs"}}, *[hit] * 40]
    told("\n".join(map(json.dumps, lines)), "E.g. ", "let pause = Pause::new(3);")

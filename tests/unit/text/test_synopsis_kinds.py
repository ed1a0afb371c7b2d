"""What a tool returned, by its looks."""

import json

import pytest

from pagefile.text.synopsis.kinds import MAX_JSON_CHARS, delimiter, kind, rows_kind

from .samples import CHINESE, GO, PYTHON, YAML

LOG = "2026-03-04 10:00:00,123 INFO app: started\n2026-03-04 10:00:01,123 ERROR app: failed, badly\n" * 5
PLAIN_LOG = "".join(f"2026-03-04 10:00:0{n},123 - worker - took part {n}, done\n" for n in range(9))
CHINESE_LOG = "".join(
    f"2026-03-04 10:00:0{n},123 [工作线程-{n}] 信息 订单服务 - 订单 {n} 处理完成，耗时 {n} 毫秒\n"
    for n in range(9)
)
SYSLOG = "Mar  4 10:00:00 host app[1]: started\nMar  4 10:00:01 host app[1]: said: hello, you\n" * 5
PROSE = "Agents forget. The window is small, the world is large.\nSo pages leave, and come back.\nNothing is lost."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', "json"),
        ("\ufeff [1, 2, NaN]", "json"),
        ('[{"a": 1}, {"a": 2', "json"),
        ("[" * 100_000 + "]" * 100_000, "json"),
        ("[" + "9" * 5000 + "]", "json"),
        ('{"a": 1, "a": 2}', "json"),
        ('{"a": 1}\n{"a": 2}\n', "jsonl"),
        (PLAIN_LOG, "log"),
        (CHINESE_LOG, "log"),
        ("".join(f"2026-03-04 10:00:0{n},123,worker {n}\n" for n in range(9)), "csv"),
        ('{"a": 1}\n\n[2]\n{"a": 3}\n{broken', "jsonl"),
        ("id,name,city\n1,Ada,London\n2,Alan,Paris\n", "csv"),
        ("a;b\n1;2\n3;4\n5;6\n", "csv"),
        ('id,note\n1,"a\nb"\n2,c\n3,d\n', "csv"),
        ("id\tname\n1\tAda\n", "tsv"),
        ("<!DOCTYPE html><html><body>x</body></html>", "html"),
        ("<div><p>a</p><p>b</p><p>c</p><ul><li>d</li></ul></div>", "html"),
        ("<root><head>x</head></root>", "html"),
        ('<?xml version="1.0"?>\n<feed><entry>x</entry></feed>', "xml"),
        ("# Title\n\nSome words.\n", "markdown"),
        ("See [a](b) and [c](d) and **this**.", "markdown"),
        ("Text\n\n```\ncode\n```\n", "markdown"),
        ("# Title\n\n" + "- [a](https://a.example)\n" * 9, "markdown"),
        (LOG, "log"),
        (SYSLOG, "log"),
        ("level=info msg=started\nlevel=error msg=failed\n", "log"),
        (PYTHON, "code"),
        (GO, "code"),
        (YAML, "yaml"),
        ("## 检索结果\n\n内容\n\n## Reference Document List\n[1] a", "search"),
        ("内容\n## 来源文档\n[1] a", "search"),
        ("[1] A (https://a.example)\n[2] B (https://b.example)\n", "search"),
        ("Title: A\nURL: https://a.example\n\nTitle: B\nURL: https://b.example\n", "search"),
        (
            "- [a](https://a.example)\n- [b](https://b.example)\n- [c](https://c.example)\n- [d](https://d.example)",
            "search",
        ),
        (json.dumps([{"title": "A", "url": "u"}, {"title": "B", "url": "v"}]), "search"),
        (json.dumps({"results": [{"name": "A", "link": "u"}, {"name": "B", "link": "v"}], "n": 2}), "search"),
        (json.dumps({"a": {"b": {"c": [{"title": "A", "url": "u"}] * 2}}}), "json"),
        (PROSE, "text"),
        (CHINESE, "text"),
        ("", "text"),
        (" \n\t", "text"),
        ("[not json", "text"),
        ("[1] a footnote, and words.", "text"),
        ("the list of 来源文档 is inside a sentence", "text"),
        ("\x00\x01\x02" * 100, "text"),
        ("if this, then that\nand that, then this\n", "text"),
        ('a,b\n"' + "x" * 200_000, "text"),
        ("x" * 200_000, "text"),
    ],
)
def test_kinds_are_recognised(text: str, expected: str):
    """By the looks, in both languages; garbage is text."""
    assert expected == kind(text)


def test_very_large_json_is_recognised_by_its_ends():
    """Without parsing it."""
    filling = '"' + "x" * 100 + '",'
    large = "[" + filling * (MAX_JSON_CHARS // len(filling) + 1)
    assert "json" == kind(large + "1]")
    assert "text" == kind(large)
    assert "jsonl" == kind('{"a": 1}\n' * (MAX_JSON_CHARS // 9 + 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}\n{"a": 2}', "jsonl"),
        ('{"a": 1}', None),
        ("a,b,c\n1,2,3\n", "csv"),
        ("a\tb\n1\t2\n", "tsv"),
        (LOG, None),
        (PROSE, None),
        ("a,b,c\n" + "1,2,3\n" * 9000, "csv"),
    ],
)
def test_rows_are_recognised(text: str, expected: str | None):
    """What is made of rows is told from what has commas in it."""
    assert expected == rows_kind(text)


def test_what_is_between_fields():
    """A tab, a comma or a semicolon; a comma where nothing is certain."""
    assert ["\t", ",", ";", ","] == [
        delimiter(text) for text in ("a\tb\n1\t2\n", "a,b,c\n1,2,3\n", "a;b;c\n1;2;3\n", "nothing")
    ]

"""Which documents and addresses a tool's result names."""

import json

import pytest

from pagefile.text.sources import MAX_CHARS, MOST, sources


def test_the_reference_list_of_document_000():
    """Title and address on lines of their own, as its tool writes them; a title without an address counts."""
    text = (
        "## 检索结果\n\n权限见[1]。\n\n## Reference Document List\n以下是检索到的文档来源，请引用：\n"
        "[1] 文档标题: 权限管理\n    文档地址: https://docs.example/1\n"
        "[2] 文档标题: 部署手册\n[3] 文档标题：附录\n    文档地址：https://docs.example/3\n\n## 其他\n[4] 文档标题: 别处\n"
    )
    assert [
        "权限管理 (https://docs.example/1)",
        "部署手册",
        "附录 (https://docs.example/3)",
        "别处",
    ] == sources(text)


def test_title_and_address_on_one_line():
    """The form the document describes, with the old heading."""
    text = "## 来源文档\n[1] 文档标题: 甲 / 文档地址: https://docs.example/a\n[2] 文档标题: 乙 / 文档地址: 本地文件.md\n"
    assert ["甲 (https://docs.example/a)", "乙 (本地文件.md)"] == sources(text)


def test_the_references_of_lightrag():
    """A name with its address in parentheses, anywhere; in a reference list also a name alone."""
    text = "正文。\n[1] 权限手册 (https://docs.example/a)\n[2] 部署（https://docs.example/b）\n[3] 只是脚注\n"
    assert ["权限手册 (https://docs.example/a)", "部署 (https://docs.example/b)"] == sources(text)
    listed = "Reference Document List (each entry has an id):\n```\n[1] manual.md\n[2] guide.pdf\n```\n"
    assert ["manual.md", "guide.pdf"] == sources(listed)


def test_a_reference_list_comes_before_links_in_the_text():
    """What the tool calls its references is what is cited."""
    text = "- [In passing](https://else.example)\n\n## Reference Document List\n[1] Manual (https://docs.example/m)"
    assert ["Manual (https://docs.example/m)", "In passing (https://else.example)"] == sources(text)


@pytest.mark.parametrize(
    "wrap", [lambda hits: hits, lambda hits: {"results": hits}, lambda hits: {"data": {"items": hits}}]
)
def test_json_search_results(wrap):
    """Whatever the keys are called, and one level down."""
    hits = [
        {"title": "A", "url": "https://a.example"},
        {"name": "B", "link": "https://b.example"},
        {"title": "C", "source": "c.pdf"},
        {"source": "https://d.example"},
        {"url": "https://e.example", "title": None},
        {"name": "no source"},
        "a string",
    ]
    found = ["A (https://a.example)", "B (https://b.example)", "C", "https://d.example", "https://e.example"]
    assert found == sources(json.dumps(wrap(hits)))


def test_text_wrapped_in_json():
    """The sources of the text, not of the wrapping."""
    text = "Title: Foo\nURL: https://foo.example/x.\n\nTitle: Bar\nURL: https://bar.example\n"
    assert ["Foo (https://foo.example/x)", "Bar (https://bar.example)"] == sources(
        json.dumps([{"type": "text", "text": text}])
    )
    assert [] == sources(json.dumps({"text": "short"}))
    assert [] == sources("[1, 2]")
    assert [] == sources('{"a": {"b": {"c": [{"url": "https://a.example"}]}}}')


def test_lists_of_links_and_lines_that_name_a_source():
    """Markdown links at the head of a line; labels in Chinese and English, with or without an address."""
    text = (
        "1. [Py docs](https://docs.example/py) good\n* **[Rust](https://docs.example/rs)**\n"
        "## [Go](https://docs.example/go)\nSee [inline](https://no.example) here.\n"
        "Source: manual.pdf\n来源：运维手册\n- **URL:** https://u.example/1,\nTitle: Alone\nTitle: With https://t.example\n"
    )
    assert [
        "Py docs (https://docs.example/py)",
        "Rust (https://docs.example/rs)",
        "Go (https://docs.example/go)",
        "manual.pdf",
        "运维手册",
        "https://u.example/1",
        "Alone",
        "With (https://t.example)",
    ] == sources(text)


@pytest.mark.parametrize(
    "text",
    [
        "from x import y\n\nclass A:\n    url: URL | str\n    title: str\n    source: bytes | None = None\n",
        "interface Hit {\n  title: string;\n  url: string;\n  source: Document;\n}\nexport type Hits = Hit[];\n",
        "[server]\nurl = x\ntitle = shop\n[log]\nsource = all\n",
        "openapi: 3.0.3\ninfo:\n  title: Billing API\n  version: 2.4.1\n",
        "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n-source: old\n+source: new\n",
        json.dumps({"items": [{"title": "Chapter 1", "page": 3, "children": [{"title": "1.1"}]}]}),
        json.dumps(
            {
                "output": "use std::io;\n\npub struct Page {\n    pub url: String,\n    pub title: String,\n}\n\nfn main() {}\n"
            }
        ),
    ],
    ids=["Python", "TypeScript", "settings", "YAML", "diff", "chapters", "code in JSON"],
)
def test_what_is_no_source(text: str):
    """Fields of programs, keys of settings and chapters are called like sources, and are none."""
    assert [] == sources(text)


def test_sources_in_what_vector_databases_return():
    """What was stored is one level down in Qdrant and Milvus; a title needs a text of which it is the title."""
    point = {"id": 1, "score": 0.9, "payload": {"doc": "manual.pdf", "text": "Roles decide menus."}}
    assert ["manual.pdf"] == sources(json.dumps({"result": {"points": [point]}}))
    hit = {"id": 1, "distance": 0.1, "entity": {"chunk": "…", "source": "rules/2.docx"}}
    assert ["rules/2.docx"] == sources(json.dumps([[hit]]))
    assert ["Roles"] == sources(
        json.dumps([{"title": "Roles", "content": "Roles decide menus."}, {"title": "Chapter 2"}])
    )
    assert ["a.docx"] == sources(
        "-----Document Chunks-----\n\nWords.\n\n-----References-----\n\n[1] a.docx\n"
    )


def test_each_source_once():
    """By its address if it has one, else by its name."""
    text = "[1] A (https://a.example)\n[2] Other name (https://a.example)\nSource: x\nSource: x\nSource: **\n"
    assert ["A (https://a.example)", "x"] == sources(text)


def test_many_and_long_sources():
    """At most fifty, each at most two hundred characters; the address outlives the name."""
    text = "".join(f"[{n}] name {n} (https://a.example/{n})\n" for n in range(200))
    assert MOST == len(sources(text)) == 50
    named, address, endless = sources(
        f"[1] {'long name ' * 40} (https://a.example/x)\n[2] name (https://a.example/{'y' * 195})\n"
        f"[3] name (https://a.example/{'z' * 500})"
    )
    assert named.endswith("… (https://a.example/x)")
    assert address.startswith("https://a.example/yyy")
    assert endless.endswith("…")
    assert all(len(source) <= MAX_CHARS for source in (named, address, endless))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain words",
        "[1] a footnote",
        "{broken json",
        "[" * 100_000,
        "\ud800",
        " " * 200_000,
        '{"a": ' + "9" * 5000 + "}",
    ],
    ids=["empty", "plain", "footnote", "broken", "deep", "surrogate", "blank", "number"],
)
def test_no_sources(text: str):
    """Nothing is invented, nothing fails."""
    assert [] == sources(text)


def test_large_json_is_not_parsed():
    """Twenty megabytes are not worth their sources."""
    assert [] == sources(json.dumps([{"url": "https://a.example", "body": "x" * 2_100_000}]))

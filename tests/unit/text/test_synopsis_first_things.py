"""What matters most comes first: the lead of a document, the errors of a build, the name of a row, what was searched for."""

import json

from pagefile.text.synopsis import synopsis

PARAGRAPHS = [
    f"The committee approved item {n} of the budget in room {n} after {n} hours of talk." for n in range(40)
]


def test_a_document_is_told_by_the_sentence_it_opens_with():
    """The first sentence below the title is said before others, which have more numbers."""
    lead = "This guide explains how to move a library to another building."
    text = f"# Moving a library\n\n{lead}\n\n" + "\n\n".join(PARAGRAPHS)
    assert f"Holds 1 heading. {lead} The committee" in synopsis(text)


def test_the_lead_of_a_page_is_below_its_menu():
    """Links above the first sentence say nothing."""
    lead = "The island is open every day but Monday, from 9:30 to 19:00."
    menu = "[Skip to content](#main)\n\n* [Home](/)\n* [Shop](/shop)\n\n# Visiting\n\n"
    told = synopsis(menu + lead + "\n\n" + "\n\n".join(PARAGRAPHS))
    assert (True, False) == (lead in told, "Skip" in told)


def test_a_page_has_the_title_that_its_reader_gives():
    """What readers of web pages put above a page is not a part of it."""
    page = "Title: Heron Island – boats and tickets\n\nURL Source: https://h.example/\n\nPublished Time: 2026-03-02T08:00:00Z\n\nMarkdown Content:\n"
    told = synopsis(page + "# Visiting\n\n" + "\n\n".join(PARAGRAPHS))
    assert told.startswith('Heron Island – boats and tickets. Markdown document "Visiting". Holds 1 heading.')
    assert "Published" not in told


def test_the_number_of_a_ticket_is_no_sentence():
    """Numbers in brackets behind sentences are not shown in their place."""
    lines = [f"- The gauge {n} is read once a minute. (#{4000 + n})" for n in range(60)]
    assert "(#" not in synopsis("# Changes\n\n" + "\n".join(lines))


def test_errors_are_told_before_warnings():
    """However many warnings there are; one of a kind is in the singular."""
    lines = [f"src/a{n}.c:{n}:9: warning: unused variable 'x'" for n in range(30)]
    text = "\n".join([*lines, "src/b.c:7:3: error: 'y' undeclared"])
    assert synopsis(text).startswith("1 error, 30 warnings in 31 files.")


def test_a_search_is_told_by_what_was_asked():
    """Related searches were not asked."""
    hits = [
        {"title": f"Jacket {n}", "link": f"https://s.example/{n}", "snippet": "Dry for hours."}
        for n in range(8)
    ]
    value = {
        "search_parameters": {"q": "rain jacket"},
        "organic_results": hits,
        "related_searches": [{"query": "jacket repair"}],
    }
    assert synopsis(json.dumps(value)).startswith('Search results, 8 hits for "rain jacket": Jacket 0')


def test_rows_are_told_by_their_titles():
    """The title of a row comes before its addresses and ids, and of a failure only short values are told."""
    rows = [
        {
            "url": f"https://api.example/{n}",
            "id": 7000 + n,
            "number": 900 + n,
            "title": f"Crash {n}" if n == 3 else f"Wish {n}",
            "created_at": "2026-10-02T10:00:00Z",
            "body": "The board read it. " * 20,
        }
        for n in range(12)
    ]
    told = synopsis(json.dumps(rows))
    assert told.startswith("JSON, 12 items. Notable: Crash 3. E.g. title=Wish 0, id=7000, number=900")


def test_a_query_plan_names_its_slowest_scan():
    """The scan that took longest, over all its loops."""
    text = """Limit  (cost=1.00..2.00 rows=10 width=4) (actual time=900.000..910.000 rows=10 loops=1)
  ->  Nested Loop  (cost=1.00..2.00 rows=10 width=4) (actual time=800.000..810.000 rows=10 loops=1)
        ->  Index Scan using ix on ports  (cost=0.10..0.20 rows=1 width=4) (actual time=0.010..2.000 rows=1 loops=300)
        ->  Seq Scan on ships  (cost=0.10..0.20 rows=1 width=4) (actual time=0.010..200.000 rows=1 loops=1)
Execution Time: 911.000 ms
"""
    assert "Slowest scan: Index Scan using ix on ports, 0.6 s." in synopsis(text)


def test_a_chinese_table_is_counted_in_chinese():
    """Colons and semicolons follow the language."""
    rows = "\n".join(
        f"| 件{n} | {'一号库' if n % 2 else '二号库'} | {'李岚' if n % 3 else '陈舟'} |" for n in range(20)
    )
    assert "仓库：二号库 10、一号库 10；负责人：李岚 13、陈舟 7。" in synopsis(
        f"| 名称 | 仓库 | 负责人 |\n|---|---|---|\n{rows}"
    )

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


def test_what_a_sanitizer_found_comes_first():
    """Its summary, which names the place, rather than a line of strokes."""
    frames = "\n".join(f"    #{n} 0x55d0{n} in step_{n}(Frame*) /src/a.cc:{n}:7" for n in range(30))
    text = f"{'=' * 60}\n==41==ERROR: AddressSanitizer: heap-use-after-free on address 0x603\n{frames}\nSUMMARY: AddressSanitizer: heap-use-after-free /src/a.cc:0:7 in step_0(Frame*)\n==41==ABORTING\n"
    assert synopsis(text).startswith(
        "AddressSanitizer: heap-use-after-free /src/a.cc:0:7 in step_0(Frame*). 30 frames."
    )


def test_a_line_of_strokes_is_no_first_line():
    """Output that begins with a rule is told by what is below it."""
    lines = "\n".join(f"valve {n} opened" for n in range(40))
    assert synopsis(f"{'=' * 60}\nReport of the night\n{lines}").startswith("42 lines: Report of the night.")


def test_the_rule_below_a_header_is_no_row():
    """As in PowerShell."""
    rows = "\n".join(f"{n:7d}  {n * 3:6d}  process-{n}" for n in range(1, 41))
    told = synopsis(f"Handles  NPM(K)  ProcessName\n-------  ------  -----------\n{rows}")
    assert told.startswith(
        "Table, 40 rows, 3 columns: Handles, NPM(K), ProcessName. First row: Handles=1, NPM(K)=3"
    )


def test_code_in_c_sharp_is_no_sql():
    """Decimal numbers are declared in both; what is written for documentation is told without its tags."""
    methods = "\n".join(
        f"    public decimal Rate{n}(Ship ship, int nights)\n    {{\n        return {n}m;\n    }}"
        for n in range(40)
    )
    text = f"using System;\n\nnamespace Harbor;\n\n/// <summary>Works out what a ship pays.</summary>\npublic sealed class Tariff : ITariff\n{{\n{methods}\n}}\n"
    assert "Code (C#), 168 lines. Says: Works out what a ship pays. Defines: class Tariff." in synopsis(text)


def test_hits_below_the_name_of_their_file_are_counted():
    """`rg --heading` names each file once."""
    files = [f"src/part{n}.py\n12:    lock.wait()\n90:    lock.wait(5)\n" for n in range(20)]
    assert synopsis("\n".join(files)).startswith("40 hits in 20 files: src/part0.py (2)")


def test_a_feed_lists_no_authors():
    """Where entries have titles, names are of people."""
    entries = "".join(
        f"<entry><title>Paper {n}</title><summary>On tides.</summary><author><name>R. Osei</name></author></entry>"
        for n in range(6)
    )
    told = synopsis(f'<?xml version="1.0"?><feed xmlns="a"><title>Query</title>{entries}</feed>')
    assert told.startswith('XML "Query", 6 entries: Paper 0, Paper 1, Paper 2, Paper 3, Paper 4, Paper 5.')


def test_the_steps_of_a_build_are_read_without_their_numbers():
    """What is before each line of `docker build` hides what the commands print."""
    lines = [f"#9 {n}.50 Installing part {n}" for n in range(40)]
    text = "\n".join(
        ["#1 [internal] load build definition", *lines, "#9 41.20 ERROR: no space left on device"]
    )
    assert "ERROR: no space left on device" in synopsis(text)[:200]
    assert "#9" not in synopsis(text)

"""Synopses of results in which one line says what matters: records printed one below the other, totals, causes, odd lines."""

import json

import pytest

from pagefile.text.synopsis import synopsis


def shown(text: str) -> str:
    """What a reader sees of it."""
    return synopsis(text)[:200]


def test_a_record_with_a_list_in_it_is_told_by_what_it_is():
    """Its key, its title and its state come before the first of its comments."""
    comments = [
        {"author": {"displayName": f"Ana {n}"}, "body": f"Comment {n} tells of a pump."} for n in range(30)
    ]
    fields = {
        "summary": "The pump of hall 4 leaks whenever the valve is shut",
        "status": {"name": "Blocked"},
        "priority": {"name": "High"},
    }
    text = shown(
        json.dumps(
            {
                "id": "40021",
                "key": "PUMP-17",
                "fields": {**fields, "comment": {"comments": comments, "total": 30}},
            }
        )
    )
    assert all(
        told in text
        for told in (
            "PUMP-17",
            "The pump of hall 4 leaks whenever the valve is shut",
            "Blocked",
            "30 comments",
        )
    )


@pytest.mark.parametrize(
    "title",
    ["*************************** {n}. row ***************************", "-[ RECORD {n} ]-----------+------"],
)
def test_rows_printed_one_below_the_other_are_a_table(title):
    """Of `\\G` in mysql and `\\x` in psql."""
    between = ": " if "row" in title else " | "
    rows = [
        "\n".join(
            [title.format(n=n), f"Id{between}{n}", f"Command{between}Sleep", f"Host{between}10.0.0.{n}:41{n}"]
        )
        for n in range(1, 41)
    ]
    text = shown("\n".join(rows))
    assert "40 rows" in text
    assert "Id, Command, Host" in text
    assert "Dialogue" not in text


def test_the_names_of_failed_tests_come_before_what_did_not_happen():
    """Nothing ignored, nothing measured, and how long it took to compile are no news."""
    passed = "".join(f"test frame::tests::keeps_{n} ... ok\n" for n in range(60))
    end = (
        "test result: FAILED. 60 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 3.02s\n"
    )
    text = shown(
        "    Finished `test` profile [unoptimized + debuginfo] target(s) in 14.31s\n"
        f"{passed}test window::shrinks_after_loss ... FAILED\n\nfailures:\n\n{end}"
    )
    assert "60 passed; 1 failed" in text
    assert "window::shrinks_after_loss" in text


def test_a_build_that_failed_says_at_which_task_and_why():
    """Of Gradle, whose last lines are advice."""
    tasks = "".join(f"> Task :app:compile{n} UP-TO-DATE\n" for n in range(80))
    text = shown(
        f"{tasks}> Task :data:compileDebugKotlin FAILED\n"
        "e: file:///app/sync/Reconciler.kt:57:23 Unresolved reference: pendingUploads\n\n"
        "FAILURE: Build failed with an exception.\n\n* What went wrong:\n"
        "Execution failed for task ':data:compileDebugKotlin'.\n\n* Try:\n> Run with --info.\n\n"
        "BUILD FAILED in 1m 47s\n"
    )
    assert ":data:compileDebugKotlin" in text
    assert "Unresolved reference: pendingUploads" in text


@pytest.mark.parametrize("total", ["TOTAL DUE EUR   37,133.41", "合计金额   37,133.41"])
def test_a_list_of_items_is_told_by_its_total(total):
    """It is near the end, above the account and the number of the page."""
    items = "".join(f"{n:>3}  Toner cartridge XL   {n % 7}   {n}.00\n" for n in range(120))
    end = "Account DE02 2105 0170\nBank NOLADE21\n-- page 4 of 4 --\n"
    assert "37,133.41" in shown(f"NORDLICHT GmbH\nInvoice NL-2026-04417\n\n{items}\n{total}\n\n{end}")


def test_a_table_below_a_heading_has_its_title():
    """Not the remark that is between the two."""
    rows = "".join(f"| m{n} | {n} |\n" for n in range(60))
    text = shown(f"# Prices of GPU hours\n\nUpdated on 1 June.\n\n| model | price |\n|---|---|\n{rows}")
    assert "Prices of GPU hours" in text


def test_a_table_of_a_scanner_is_told_by_its_counts():
    """They are above the table, which is no table of a database."""
    rows = "".join(f"│ lib{n} │ CVE-2025-{n} │ LOW │\n" for n in range(60))
    text = shown(
        "shop:latest (debian 12.5)\n=========================\nTotal: 60 (LOW: 59, CRITICAL: 1)\n\n"
        f"│ Library │ Vulnerability │ Severity │\n{rows}"
    )
    assert "Total: 60 (LOW: 59, CRITICAL: 1)" in text
    assert "SQL" not in text


def test_the_one_line_of_an_access_log_that_is_no_request_is_told():
    """If it tells of a failure."""
    line = '10.0.0.{n} - - [14/Jun/2026:10:{n:02}:00 +0000] "GET /error/{n} HTTP/1.1" 200 512 "-" "Mozilla"\n'
    lines = [line.format(n=n % 60) for n in range(200)]
    lines[120] = "2026/06/14 15:07:44 [crit] 31#31: *88 SSL_do_handshake() failed (bad key share)\n"
    text = shown("".join(lines))
    assert "SSL_do_handshake() failed" in text
    assert "199 requests" in text


def test_the_fields_above_a_transcript_are_no_speakers():
    """Its subject is what it is about."""
    said = "".join(f"{('李工', '吴经理')[n % 2]}：第 {n} 项已经完成，下周继续跟进。\n" for n in range(60))
    text = shown(f"会议主题：核心交易系统重构评审\n参会人：李工、吴经理\n\n{said}")
    assert "核心交易系统重构评审" in text
    assert "参与者：李工、吴经理" in text
    assert "会议主题、" not in text


@pytest.mark.parametrize("said", ["今天的巡检没有发现异常", "no errors found", "0 failed"])
def test_that_nothing_failed_is_nothing_notable(said):
    """It is said of most days."""
    rows = [{"id": n, "content": f"line {n} was moved to hall {n % 7}"} for n in range(40)]
    rows[9]["content"] = said
    assert said not in shown(json.dumps(rows, ensure_ascii=False))


def test_the_row_with_most_of_something_is_told_where_the_column_counts_percent():
    """The values are plain numbers: of `ps` and `top`."""
    rows = "".join(
        f"svc {1000 + n:>6}  0.{n % 9}  0.{n % 7} 8812 5120 /usr/bin/worker --shard {n}\n" for n in range(90)
    )
    odd = "root  9917 97.4 61.2 8812344 5120044 /opt/rebuild --all\n"
    text = shown(f"USER     PID  %CPU  %MEM  VSZ  RSS  COMMAND\n{rows}{odd}")
    assert "/opt/rebuild" in text or "97.4" in text


def test_lines_with_a_time_between_tabs_are_a_log():
    """Of a job: there is no header, and what failed is in one line."""
    lines = [f"build\tInstall\t2026-05-01T10:00:{n % 60:02}.1Z fetch p{n} 200\n" for n in range(200)]
    lines.append(
        "build\tLint\t2026-05-01T10:04:02.1Z ##[error]src/Drawer.tsx(44,9): 'onClose' is never used\n"
    )
    text = shown("".join(lines))
    assert "onClose" in text
    assert "table" not in text


def test_a_long_title_of_a_record_is_told():
    """Such as the message of an error, beside the frames of its trace."""
    frames = [{"filename": f"app/{n}.py", "function": f"f{n}", "lineno": n} for n in range(40)]
    title = 'IntegrityError: duplicate key value violates unique constraint "crate_barcode_key" of the table crates'
    value = {"shortId": "HARVEST-4Q", "title": title, "count": "1842", "event": {"trace": {"frames": frames}}}
    assert "IntegrityError: duplicate key" in shown(json.dumps(value))


def test_a_run_of_ctest_says_what_failed():
    """Its last lines count and name it."""
    passed = "".join(f"{n}/80 Test #{n}: codec_{n} ......   Passed    0.01 sec\n" for n in range(1, 80))
    text = shown(
        f"Test project /build\n{passed}80/80 Test #80: mux_seek ......***Failed    4.17 sec\n\n"
        "99% tests passed, 1 tests failed out of 80\n\nTotal Test time (real) =  39.22 sec\n\n"
        "The following tests FAILED:\n\t80 - mux_seek (Failed)\nErrors while running CTest\n"
    )
    assert "1 tests failed out of 80" in text
    assert "mux_seek" in text

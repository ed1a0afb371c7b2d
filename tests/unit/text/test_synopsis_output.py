"""What commands print: how it ended comes first, then what failed, then where."""

import json

import pytest

from pagefile.text.synopsis import synopsis

#: How many characters a placeholder shows.
SHOWN = 200

JEST = """FAIL src/cart/price.test.ts
  ● applies member discount › rounds half up

    expect(received).toBe(expected) // Object.is equality

PASS src/cart/list.test.ts
Test Suites: 1 failed, 11 passed, 12 total
Tests:       1 failed, 211 passed, 212 total
Time:        4.21 s
"""
MOCHA = """  Array
    ✓ finds
    1) removes

  12 passing (34ms)
  1 failing

  1) Array
       removes:

      AssertionError [ERR_ASSERTION]: -1 == 0
      at Context.<anonymous> (test/test.js:7:14)
"""
UNITTEST = """..F.E
======================================================================
FAIL: test_upper (tests.test_s.TestStr)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/app/tests/test_s.py", line 8, in test_upper
    self.assertEqual('foo'.upper(), 'FO')
AssertionError: 'FOO' != 'FO'

----------------------------------------------------------------------
Ran 5 tests in 0.003s

FAILED (failures=1, errors=1)
"""
PYTEST = (
    "============================= test session starts ==============================\n"
    + "".join(f"tests/test_mod_{n}.py ........ [ {n}%]\n" for n in range(99))
    + "E       AssertionError: assert 3 == 4\n"
    + "FAILED tests/test_mod_7.py::test_rounding - AssertionError: assert 3 == 4\n"
    + "================== 1 failed, 791 passed, 2 skipped in 12.31s ===================\n"
)
GO_TEST = (
    "".join(f"=== RUN   TestCase{n}\n--- PASS: TestCase{n} (0.00s)\n" for n in range(60))
    + "=== RUN   TestDrain\n    drain_test.go:31: 4 jobs left\n--- FAIL: TestDrain (0.02s)\nFAIL\nFAIL\tshop/queue\t0.412s\n"
)
CARGO = """   Compiling app v0.1.0 (/w)
error[E0382]: borrow of moved value: `s`
 --> src/main.rs:5:20
  |
3 |     let t = s;
  |             - value moved here

error: aborting due to previous error

For more information about this error, try `rustc --explain E0382`.
error: could not compile `app` (bin "app") due to 1 previous error
"""
ESLINT = """/app/src/a.js
  1:10  error  'x' is defined but never used  no-unused-vars
  4:3   warning  Unexpected console statement  no-console

/app/src/b.js
  9:1  error  Missing semicolon  semi

✖ 3 problems (2 errors, 1 warning)
"""
TERRAFORM = """Terraform will perform the following actions:

  # aws_instance.web will be destroyed
  - resource "aws_instance" "web" {
      - ami = "ami-1" -> null
    }

  # aws_s3_bucket.logs will be created
  + resource "aws_s3_bucket" "logs" {
      + bucket = "logs"
    }

Plan: 1 to add, 0 to change, 1 to destroy.
"""
NPM = """npm ERR! code ERESOLVE
npm ERR! ERESOLVE unable to resolve dependency tree
npm ERR!
npm ERR! While resolving: app@1.0.0
npm ERR! Found: react@18.2.0
npm ERR! Could not resolve dependency:
npm ERR! peer react@"^17.0.0" from lib@2.1.0
"""
GCC = (
    "".join(f"src/a{n}.c:{n}:9: warning: unused variable 'x'\n" for n in range(40))
    + "src/b.c:7:3: error: 'y' undeclared\n"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (JEST, ["1 failed, 211 passed", "src/cart/price.test.ts", "rounds half up"]),
        (MOCHA, ["12 passing", "1 failing", "-1 == 0"]),
        (UNITTEST, ["failures=1, errors=1", "test_upper", "'FOO' != 'FO'"]),
        (PYTEST, ["1 failed, 791 passed", "test_mod_7.py::test_rounding"]),
        (GO_TEST, ["1 failed, 60 passed", "shop/queue", "TestDrain"]),
        (CARGO, ["could not compile `app`", "borrow of moved value"]),
        (ESLINT, ["3 problems (2 errors, 1 warning)"]),
        (TERRAFORM, ["1 to add, 0 to change, 1 to destroy", "aws_instance.web will be destroyed"]),
        (NPM, ["ERESOLVE unable to resolve dependency tree"]),
        (GCC, ["1 error, 40 warnings in 41 files", "'y' undeclared"]),
    ],
    ids=["jest", "mocha", "unittest", "pytest", "go test", "cargo", "eslint", "terraform", "npm", "gcc"],
)
def test_runs_say_how_they_ended(text: str, expected: list[str]):
    """Numbers and failing names, in the characters that a placeholder shows."""
    assert [] == [words for words in expected if words not in synopsis(text)[:SHOWN]], synopsis(text)


PYTHON_TRACE = (
    "Traceback (most recent call last):\n"
    + "".join(f'  File "/srv/app/mod{n}.py", line {n}, in f{n}\n    f{n + 1}()\n' for n in range(120))
    + "sqlalchemy.exc.OperationalError: too many connections\n"
)
JAVA_TRACE = (
    'Exception in thread "main" java.lang.IllegalStateException: no rate for EUR\n'
    + "".join(f"\tat com.shop.Fx{n}.rate(Fx.java:{n})\n" for n in range(60))
    + "Caused by: java.sql.SQLTimeoutException: timeout after 30s\n\tat org.db.Conn.query(Conn.java:120)\n\t... 2 more\n"
)
NODE_TRACE = (
    "/srv/app/server.js:12\n    throw err;\n    ^\n\nTypeError: Cannot read properties of undefined (reading 'id')\n"
    + "".join(f"    at step{n} (/srv/app/step.js:{n}:7)\n" for n in range(30))
    + "\nNode.js v22.1.0\n"
)
GO_TRACE = (
    "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\n"
    "main.pick(0x5)\n\t/app/main.go:9 +0x1d\n"
    + "".join(f"\ngoroutine {n} [select]:\nmain.loop()\n\t/app/loop.go:{n}\n" for n in range(2, 30))
)
RUST_TRACE = (
    "thread 'main' panicked at src/main.rs:12:34:\ncalled `Option::unwrap()` on a `None` value\nstack backtrace:\n"
    + "".join(f"  {n}: core::frame{n}\n             at ./src/f.rs:{n}:1\n" for n in range(20))
)
NET_TRACE = (
    "Unhandled exception. System.NullReferenceException: Object reference not set to an instance of an object.\n"
    "   at Shop.Cart.Total() in /src/Cart.cs:line 42\n   at Shop.Program.Main(String[] args) in /src/Program.cs:line 10\n"
)


@pytest.mark.parametrize(
    ("text", "raised", "where"),
    [
        (
            PYTHON_TRACE,
            "sqlalchemy.exc.OperationalError: too many connections",
            "/srv/app/mod119.py:119 f119",
        ),
        (
            JAVA_TRACE,
            "java.sql.SQLTimeoutException: timeout after 30s",
            "IllegalStateException: no rate for EUR",
        ),
        (NODE_TRACE, "TypeError: Cannot read properties of undefined (reading 'id')", "/srv/app/step.js:0:7"),
        (GO_TRACE, "panic: runtime error: index out of range [5] with length 3", "/app/main.go:9"),
        (RUST_TRACE, "panicked: called `Option::unwrap()` on a `None` value", "src/main.rs:12:34"),
        (NET_TRACE, "System.NullReferenceException: Object reference not set", "/src/Cart.cs:line 42"),
    ],
    ids=["Python", "Java", "JavaScript", "Go", "Rust", "C#"],
)
def test_tracebacks_begin_with_what_was_raised(text: str, raised: str, where: str):
    """Then where, or in what."""
    shown = synopsis(text)[:SHOWN]
    assert shown.startswith(raised)
    assert where in shown


DIFF = "".join(
    f"diff --git a/src/m{n}.py b/src/m{n}.py\n--- a/src/m{n}.py\n+++ b/src/m{n}.py\n@@ -1,2 +1,3 @@\n-old\n+new line\n+more\n"
    for n in range(12)
)
LOG = "".join(
    f"commit {n:040x}\nAuthor: Ada <a@x.example>\nDate:   2026-03-{28 - n:02} 10:00:00 +0000\n\n    fix: thing {n}\n\n"
    for n in range(20)
)
STATUS = """On branch main
Your branch is ahead of 'origin/main' by 2 commits.

Unmerged paths:
  (use "git add <file>..." to mark resolution)
\tboth modified:   src/a.py

Untracked files:
\tnotes.txt
\tscripts/recalculate_the_third_quarter.py
"""
HITS = "".join(f"src/m{n % 7}.py:{n}:    load(page_{n})\n" for n in range(70))
PATHS = "".join(f"./src/mod{n % 5}/file_{n}.ts\n" for n in range(60))
LISTING = "total 99\n" + "".join(
    f"-rw-r--r-- 1 ada staff {n * 1000} Jan 12 10:00 report_{n}.parquet\n" for n in range(1, 40)
)
TREE = (
    "shop\n" + "".join(f"├── part{n}\n│   └── a{n}.md\n" for n in range(20)) + "\n20 directories, 20 files\n"
)
PODS = "NAME                  READY   STATUS             RESTARTS   AGE\n" + "".join(
    f"api-{n:015}   1/1     {'Running' if n != 6 else 'CrashLoopBackOff':<18} 0          3d\n"
    for n in range(12)
)
DUMP = "".join(
    f"{n * 16:08x}  7f 45 4c 46 02 01 01 00  00 00 00 00 00 00 00 00  |.ELF............|\n" for n in range(40)
)
CURL = """* Trying 192.0.2.61:443...
> POST /v3/settlements HTTP/2
> Host: api.example
< HTTP/2 429
< retry-after: 30
<
{"title":"Too Many Requests","status":429,"detail":"Quota of 50 an hour used up"}
* Connection #0 to host api.example left intact
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (DIFF, ["12 files", "+24 −12", "src/m0.py"]),
        (LOG, ["20 commits", "2026-03-09 10:00:00 to 2026-03-28 10:00:00", "fix: thing 0"]),
        (STATUS, ["branch main", "unmerged conflicts", "src/a.py"]),
        (HITS, ["70 hits in 7 files", "src/m0.py (10)", "load(page_0)"]),
        (PATHS, ["60 entries (.ts 60) below ./src", "mod0/ (12)"]),
        (LISTING, ["39 entries (.parquet 39)", "Largest: report_39.parquet (39000)"]),
        (TREE, ["Directory tree shop, 20 directories, 20 files", "part0"]),
        (PODS, ["12 rows", "STATUS", "CrashLoopBackOff", "Running 11"]),
        (DUMP, ["Hex dump", "about 640 bytes", "an ELF file"]),
        (CURL, ["HTTP 429 for POST /v3/settlements", "Quota of 50 an hour used up"]),
    ],
    ids=["diff", "log", "status", "hits", "paths", "ls", "tree", "columns", "hex", "HTTP"],
)
def test_what_commands_list(text: str, expected: list[str]):
    """How many, and which."""
    assert [] == [words for words in expected if words not in synopsis(text)[:SHOWN]], synopsis(text)


CODE = "import os\n\n\nclass Walker:\n    def walk(self):\n        return os.walk('.')\n\n\ndef main():\n    Walker().walk()\n"
PDF = "JVBERi0xLjcK" + "Ab3d" * 500


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("".join(f"{n:6}\t{line}\n" for n, line in enumerate(CODE.split("\n"), 40)), "lines 40–50. Code (Python), 10 lines"),
        ("".join(f"{n:5}→{line}\n" for n, line in enumerate(CODE.split("\n"), 1)), "Code (Python), 10 lines"),
        (json.dumps({"stdout": PYTEST, "stderr": "", "exit_code": 1}), "exit code 1. 1 failed, 791 passed"),
        (f"<returncode>1</returncode>\n<output>\n{PYTEST}</output>", "exit code 1. 1 failed, 791 passed"),
        (f"Exit code: 2\n{GCC}", "exit code 2. 1 error, 40 warnings"),
        (f"{DIFF}[The command completed with exit code 0.]\n[Current working directory: /w]\n", "Diff of 12 files"),
        (f"```diff\n{DIFF}```", "Diff of 12 files"),
        ("\x1b[31m" + JEST.replace("1 failed", "\x1b[1m1 failed\x1b[0m"), "Tests: 1 failed, 211 passed"),
        (json.dumps({"content": [{"type": "text", "text": json.dumps({"result": PYTEST})}]}), "1 failed, 791 passed"),
        (json.dumps([{"type": "text", "text": CODE * 9}]), "Code (Python), 90 lines"),
        (json.dumps({"name": "a.pdf", "data": PDF}), "a.pdf. Binary data in base64: PDF about 1,509 bytes"),
        (f"data:application/pdf;base64,{PDF}", "Binary data in base64: application/pdf about 1,509 bytes"),
    ],
    ids=["cat -n", "arrows", "stdout", "tags", "code", "completed", "fence", "colours", "JSON in JSON", "MCP", "file", "URL"],
)  # fmt: skip
def test_wrappings_are_looked_through(text: str, expected: str):
    """What is inside is described; of the wrapping what matters is said."""
    assert synopsis(text).startswith(expected), synopsis(text)


def test_bytes_are_never_shown():
    """Neither of base64 alone nor inside of JSON."""
    for text in (PDF, json.dumps({"name": "a.pdf", "content": PDF}), json.dumps([{"id": 1, "data": PDF}])):
        assert "Ab3dAb3d" not in synopsis(text)


def test_chinese_output_is_told_in_chinese():
    """The words around it follow the result, though names and levels are English."""
    log = "".join(f"2026-01-02 10:00:{n:02} INFO 订单服务 处理订单 {n} 完成\n" for n in range(40))
    log += "2026-01-02 10:01:00 ERROR 支付服务 连接数据库超时，重试 3 次后放弃\n"
    assert synopsis(log).startswith("日志，41 行")
    error = "首个错误：ERROR 支付服务 连接数据库超时，重试 3 次后放弃"
    assert error in synopsis(log)[:SHOWN]
    orders = [{"orderNo": f"D{n}", "city": "杭州", "name": "机械键盘"} for n in range(30)]
    answer = json.dumps({"code": 0, "data": {"list": orders}}, ensure_ascii=False)
    assert synopsis(answer).startswith("JSON，30 条")
    built = "src/a.ts(1,2): error TS2339: 类型上不存在属性“记录”。\n" * 9 + "\n在 3 个文件中发现 9 个错误。\n"
    assert synopsis(built).startswith("在 3 个文件中发现 9 个错误")


def test_counts_of_a_sample_say_so():
    """A reader would take them for those of all rows."""
    rows = [f"{n},{('open', 'paid')[n % 2]}" for n in range(900)]
    told = synopsis("id,state\n" + "\n".join(rows))
    assert "900 rows" in told
    assert "In the first 400: state: open 200, paid 200" in told


def test_the_levels_of_a_chinese_log_are_counted_and_its_first_error_is_told():
    lines = [
        f"2026-11-17 09:00:{n:02},402 [工作线程-{n % 4}] 信息 订单服务 - 订单 {880000 + n} 处理完成，耗时 {n} 毫秒"
        for n in range(60)
    ]
    lines[41] = "2026-11-17 09:00:41,402 [工作线程-3] 错误 库存服务 - 扣减库存失败：商品 SKU-77213 库存不足"
    told = synopsis("\n".join(lines))
    assert "ERROR 1" in told
    assert "SKU-77213 库存不足" in told[:200]


LINKS = {
    "ld": "ld: undefined symbol: tls_resume\n>>> referenced by tls.c:37\n",
    "gnu": "/usr/bin/ld: main.o: in function `main':\nmain.c:(.text+0x5): undefined reference to `tls_resume'\n",
    "twice": "ld: duplicate symbol '_tls_resume' in: a.o b.o\n",
}


@pytest.mark.parametrize("failure", LINKS.values(), ids=LINKS)
def test_a_linker_names_the_symbol(failure: str):
    """`ld returned 1 exit status` is in every failed link."""
    built = "".join(f"cc -O2 -c src/unit_{n}.c -o build/unit_{n}.o\n" for n in range(80))
    ended = "collect2: error: ld returned 1 exit status\nmake: *** [Makefile:61: gatewayd] Error 1\n"
    assert "tls_resume" in synopsis(built + failure + ended)[:SHOWN]


def test_columns_two_spaces_apart_keep_the_spaces_in_their_names_and_values():
    """No column has nothing but numbers."""
    rows = [f"svc-{n}   image {n}:1.{n}   Up {n} hours   edge node {n % 4}" for n in range(30)]
    shown = synopsis("\n".join(["SERVICE NAME   IMAGE USED    STATE NOW     RUNS ON", *rows]))
    assert "30 rows, 4 columns: SERVICE NAME, IMAGE USED, STATE NOW, RUNS ON" in shown[:SHOWN]
    assert "STATE NOW=Up 0 hours" in shown

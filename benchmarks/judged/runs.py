"""What programs say when they are run: test runs and failures, with the line that matters near the end."""

from benchmarks.judged.case import Case, dice, planted, subject

_RED, _GREEN, _BOLD, _OFF = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"


def _dots(pick_seed: str, files: int, folder: str) -> list[str]:
    """Progress lines of pytest."""
    pick = dice(pick_seed)
    stems = (
        "ledger",
        "rounding",
        "webhooks",
        "sessions",
        "export",
        "quota",
        "search",
        "mail",
        "tax",
        "audit",
    )
    return [
        f"{folder}/{pick.choice(stems)}/test_{pick.choice(stems)}_{n}.py {'.' * pick.randrange(5, 40)}".ljust(74) + f"[{100 * (n + 1) // files:3d}%]"
        for n in range(files)
    ]  # fmt: skip


def pytest_run() -> Case:
    """Three failures at the end of a long run, with colours."""
    pick = dice("pytest")
    failures: list[str] = []
    names = ("test_refund_rounding", "test_expired_mandate_is_refused", "test_webhook_retries_in_order")
    why = ("assert Decimal('10.005') == Decimal('10.01')", "Failed: DID NOT RAISE <class 'acquirer.MandateExpired'>",
           "AssertionError: assert ['b', 'a'] == ['a', 'b']")  # fmt: skip
    for name, reason in zip(names, why, strict=True):
        captured = [
            f"INFO     acquirer:client.py:{pick.randrange(20, 400)} {subject('app_log').sentence(pick)}"
            for _ in range(55)
        ]
        failures += [
            f"{_RED}{_BOLD}{f' {name} ':_^80}{_OFF}", "", f"    def {name}(client, clock):", "        clock.freeze('2026-03-29T01:30:00+00:00')",
            "        made = client.run()", f">       {reason.replace('AssertionError: ', '')}", f"{_BOLD}{_RED}E       {reason}{_OFF}", "",
            f"tests/ledger/test_refunds.py:{pick.randrange(30, 300)}: AssertionError",
            f"{' Captured log call ':-^80}", *captured,
        ]  # fmt: skip
    lines = [
        f"{_BOLD}{' test session starts ':=^80}{_OFF}", "platform linux -- Python 3.12.7, pytest-8.4.2, pluggy-1.6.0", "rootdir: /srv/acquirer",
        "plugins: xdist-3.8.0, timeout-2.4.0, anyio-4.11.0", "collected 1202 items", "", *_dots("pytest dots", 160, "tests"), "",
        f"{' FAILURES ':=^80}", *failures, f"{' short test summary info ':=^80}",
        *(f"{_RED}FAILED{_OFF} tests/ledger/test_refunds.py::{_BOLD}{name}{_OFF} - {reason}" for name, reason in zip(names, why, strict=True)),
        f"{_RED}================= {_BOLD}3 failed{_OFF}, {_GREEN}1187 passed{_OFF}, 12 skipped in 214.61s (0:03:34) ================={_OFF}",
    ]  # fmt: skip
    return Case(
        "runs/pytest", "en", "bash", {"command": "pytest -q tests"},
        "\n".join(lines),
        (("3 failed",), ("1187 passed", "1,187 passed", "test_refund_rounding")),
        (
            ("In the failing pytest run of acquirer, which test expected an exception that never came, and how is that reported?", "DID NOT RAISE"),
            ("pytest 里 test_refund_rounding 的断言是怎么失败的？", "Decimal('10.005') == Decimal('10.01')"),
        ),
    )  # fmt: skip


def pytest_zh() -> Case:
    """One failure, told in Chinese by the project's own messages."""
    pick = dice("pytest zh")
    captured = [
        f"2026-11-16 09:{n // 60:02}:{n % 60:02} [INFO] 结算引擎 {subject('supply').sentence(pick)}"
        for n in range(220)
    ]
    captured = planted(
        captured,
        (0.6, "2026-11-16 09:02:12 [ERROR] 结算引擎 商户 M-60418 的汇率缓存已过期 26 小时，仍被使用"),
    )
    lines = [
        f"{' test session starts ':=^80}", "platform linux -- Python 3.11.9, pytest-8.3.3", "collected 234 items", "", *_dots("pytest zh dots", 40, "测试"), "",
        f"{' FAILURES ':=^80}", f"{' test_跨境结算汇率 ':_^74}", "", "    def test_跨境结算汇率(引擎):", "        单 = 引擎.结算('M-60418', 币种='JPY')",
        ">       assert 单.金额 == Decimal('48210'), '日元金额与银行对账单不一致'", "E       AssertionError: 日元金额与银行对账单不一致",
        "E       assert Decimal('47983') == Decimal('48210')", "", "测试/结算/test_跨境.py:88: AssertionError", f"{' Captured log call ':-^80}", *captured,
        f"{' short test summary info ':=^80}", "FAILED 测试/结算/test_跨境.py::test_跨境结算汇率 - AssertionError: 日元金额与银行对账单不一致",
        f"{' 1 failed, 233 passed in 58.02s ':=^80}", "",
    ]  # fmt: skip
    return Case(
        "runs/pytest-zh", "zh", "bash", {"command": "python -m pytest 测试"},
        "\n".join(lines),
        (("1 failed", "1 个失败"), ("233 passed", "test_跨境结算汇率", "日元金额")),
        (("跨境结算测试里日元那笔实际算出来是多少？", "Decimal('47983')"), ("Why did the cross-border settlement test use a wrong exchange rate?", "汇率缓存已过期 26 小时")),
    )  # fmt: skip


def traceback_chained() -> Case:
    """Three exceptions, each the cause of the next, with a hundred frames."""
    pick = dice("traceback")
    parts = (
        "middleware",
        "routing",
        "handlers",
        "services",
        "repositories",
        "session",
        "pool",
        "dialect",
        "retry",
        "tracing",
    )

    def frames(count: int) -> list[str]:
        made: list[str] = []
        for _ in range(count):
            part = pick.choice(parts)
            made.append(
                f'  File "/srv/quote/lib/python3.12/site-packages/quotekit/{part}.py", line {pick.randrange(20, 900)}, in {pick.choice(("__call__", "dispatch", "run", "execute", "_enter", "wrapped"))}'
            )
            made.append(
                f"    return await self.{pick.choice(('next', 'inner', 'handler', 'app', 'cursor'))}({pick.choice(('request', 'scope, receive, send', 'statement, parameters', '*args, **kwargs'))})"
            )
        return made

    head = "Traceback (most recent call last):"
    lines = [
        head, *frames(60), "ssl.SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired (_ssl.c:1010)", "",
        "The above exception was the direct cause of the following exception:", "", head, *frames(50),
        'quotekit.pool.PoolExhausted: no connection to "pg-quotes-02" within 4.0 s (in use: 20, broken: 20)', "",
        "During handling of the above exception, another exception occurred:", "", head, *frames(45),
        '  File "/srv/quote/app/api/offers.py", line 212, in create_offer', "    raise QuoteUnavailable(customer.id) from None",
        "quote.errors.QuoteUnavailable: no quote for customer 'C-88131': pricing database unreachable",
    ]  # fmt: skip
    return Case(
        "runs/traceback-python", "en", "get_error", {"event": "e41c"},
        "\n".join(lines) + "\n",
        (("QuoteUnavailable",), ("C-88131", "pricing database unreachable", "certificate has expired", "PoolExhausted")),
        (("What is the deepest reason behind QuoteUnavailable?", "certificate has expired"), ("QuoteUnavailable 那次，pg-quotes-02 的连接池等了多久？", "within 4.0 s")),
    )  # fmt: skip


def celery_zh() -> Case:
    """A worker's log of one failing task, of middling length."""
    pick = dice("celery zh")
    lines = ["[2026-11-16 03:12:08,114: INFO/MainProcess] Task 对账.生成日报[9c1e] received"]
    lines += [
        f"[2026-11-16 03:12:{9 + n // 8:02},{pick.randrange(1000):03}: INFO/ForkPoolWorker-3] 读取分片 {n:02d}：{subject('supply').sentence(pick)}"
        for n in range(60)
    ]
    lines += [
        "[2026-11-16 03:12:31,902: ERROR/ForkPoolWorker-3] Task 对账.生成日报[9c1e] raised unexpected: ValueError('第 40217 行借贷不平：借 18,200.00 贷 18,020.00')",
        "Traceback (most recent call last):", '  File "/app/celery/app/trace.py", line 453, in trace_task', "    R = retval = fun(*args, **kwargs)",
        '  File "/app/tasks/reconcile.py", line 77, in 生成日报', "    self.check(rows)", '  File "/app/tasks/reconcile.py", line 141, in check',
        "    raise ValueError(f'第 {n} 行借贷不平：借 {debit:,} 贷 {credit:,}')", "ValueError: 第 40217 行借贷不平：借 18,200.00 贷 18,020.00",
    ]  # fmt: skip
    return Case(
        "runs/celery-zh", "zh", "tail_log", {"service": "对账"},
        "\n".join(lines),
        (("ValueError", "借贷不平"),),
        (("生成对账日报的任务卡在哪一行？", "第 40217 行借贷不平"), ("Which source line raised the ValueError in the reconciliation task (对账)?", 'reconcile.py", line 141')),
    )  # fmt: skip


def node_error() -> Case:
    """An unhandled rejection with a cause, short."""
    text = """node:internal/process/promises:394
      triggerUncaughtException(err, true /* fromPromise */);
      ^

Error: Could not render /checkout for locale "pt-BR"
    at renderRoute (file:///srv/web/dist/server/render.js:418:11)
    at async handle (file:///srv/web/dist/server/handler.js:92:20)
    at async Server.<anonymous> (file:///srv/web/dist/server/index.js:37:5) {
  route: '/checkout',
  [cause]: TypeError: Cannot read properties of undefined (reading 'minorUnits')
      at formatMoney (file:///srv/web/dist/chunks/money-5f1c.js:17:39)
      at CartTotal (file:///srv/web/dist/chunks/cart-90ab.js:233:14)
      at renderToString (file:///srv/web/node_modules/preact-render-to-string/dist/index.mjs:1:6021)
      at renderRoute (file:///srv/web/dist/server/render.js:402:18)
}

Node.js v22.11.0
"""
    return Case(
        "runs/node-rejection", "en", "bash", {"command": "node dist/server/index.js"},
        text,
        (("TypeError", "minorUnits", "could not render /checkout"),),
        (("Which function looked at a missing field when /checkout could not be rendered for pt-BR?", "formatMoney"),),
    )  # fmt: skip


def java_stack_zh() -> Case:
    """A service's stack trace whose last cause says it all."""
    pick = dice("java stack zh")
    packages = (
        "com.yunshang.gateway.filter",
        "org.springframework.web.servlet",
        "org.apache.catalina.core",
        "com.yunshang.stock.api",
        "io.netty.channel",
        "com.alibaba.druid.pool",
    )
    classes = (
        "AuthFilter",
        "DispatcherServlet",
        "ApplicationFilterChain",
        "StockFacade",
        "AbstractChannelHandlerContext",
        "DruidDataSource",
    )

    def frames(count: int) -> list[str]:
        made: list[str] = []
        for _ in range(count):
            n = pick.randrange(len(packages))
            made.append(
                f"\tat {packages[n]}.{classes[n]}.{pick.choice(('doFilter', 'invoke', 'execute', 'lock', 'fireRead'))}({classes[n]}.java:{pick.randrange(30, 900)})"
            )
        return made

    lines = [
        "2026-11-16 20:01:44.310 ERROR [stock-service,7f1d] 42 --- [nio-8081-exec-7] c.y.s.api.StockFacade : 锁定库存失败 skuId=881204 warehouse=苏州总仓",
        "com.yunshang.common.BizException: 锁定库存失败，请稍后重试", *frames(110),
        "Caused by: org.springframework.dao.CannotAcquireLockException: 获取分布式锁超时 key=stock:881204", *frames(90), "\t... 61 common frames omitted",
        "Caused by: io.lettuce.core.RedisCommandTimeoutException: Command timed out after 3 second(s), node 10.20.4.17:6379 slot 9182", *frames(40), "\t... 102 common frames omitted",
    ]  # fmt: skip
    return Case(
        "runs/java-stack-zh", "zh", "query_log", {"traceId": "7f1d"},
        "\n".join(lines),
        (("锁定库存失败", "BizException"), ("RedisCommandTimeoutException", "获取分布式锁超时", "CannotAcquireLockException", "timed out")),
        (("锁定库存失败，最底层是哪台 Redis 没响应？", "10.20.4.17:6379"), ("Which key could stock-service not lock?", "key=stock:881204")),
    )  # fmt: skip


def go_panic() -> Case:
    """A panic and the dump of all goroutines."""
    pick = dice("go panic")
    dump: list[str] = []
    for n in range(2, 190):
        dump += [
            f"goroutine {n * 3} [{pick.choice(('select', 'IO wait', 'chan receive', 'sync.Mutex.Lock'))}, {pick.randrange(1, 60)} minutes]:",
            f"leased.(*Server).{pick.choice(('renewLoop', 'serve', 'watch', 'drain'))}(0xc000{pick.getrandbits(24):06x}, {{0x1a{pick.getrandbits(20):05x}, 0xc0}})",
            f"\t/src/internal/leased/{pick.choice(('server', 'watch', 'loop'))}.go:{pick.randrange(20, 700)} +0x{pick.getrandbits(8):x}", "",
        ]  # fmt: skip
    dump[340:340] = [
        "goroutine 1021 [semacquire, 47 minutes]:", "leased.(*Rebalancer).waitQuorum(0xc00041e0a0)", "\t/src/internal/leased/rebalance.go:318 +0x1c4", "",
    ]  # fmt: skip
    text = (
        "2026/11/16 17:20:09 lease 77 taken over from node-c\npanic: assignment to entry in nil map\n\ngoroutine 417 [running]:\nleased.(*Index).put(...)\n\t/src/internal/leased/index.go:58\nleased.(*Server).CreateLease(0xc0003aa000)\n\t/src/internal/leased/server.go:233 +0x3a5\n\n"
        + "\n".join(dump)
        + "\nexit status 2\n"
    )
    return Case(
        "runs/go-panic", "en", "bash", {"command": "journalctl -u leased -n 1200"},
        text,
        (("panic",), ("nil map",)),
        (("In which file and line did leased panic on the nil map?", "index.go:58"), ("leased panic 的 goroutine 里，Rebalancer 卡在哪个函数？", "waitQuorum")),
    )  # fmt: skip


def cargo_test() -> Case:
    """Many `ok`, one panic, the result at the end."""
    pick = dice("cargo")
    modules = ("wal", "pager", "btree", "planner", "codec", "txn", "vacuum")
    lines = [
        "   Compiling quiverdb v0.9.3 (/src/quiverdb)",
        "    Finished `test` profile [unoptimized + debuginfo] target(s) in 48.11s",
        "     Running unittests src/lib.rs (target/debug/deps/quiverdb-1f0c)",
        "",
        "running 312 tests",
    ]
    for n in range(311):
        lines.append(
            f"test {pick.choice(modules)}::tests::{pick.choice(('recovers', 'splits', 'merges', 'rejects', 'orders'))}_{pick.choice(('torn_page', 'half_frame', 'old_epoch', 'empty_leaf', 'wide_key'))}_{n} ... ok"
        )
        if n == 205:
            lines.append("test txn::tests::snapshot_sees_no_later_commit ... FAILED")
    lines += [
        "", "failures:", "", "---- txn::tests::snapshot_sees_no_later_commit stdout ----", "", "thread 'txn::tests::snapshot_sees_no_later_commit' (8841) panicked at src/txn/snapshot.rs:177:9:",
        "assertion `left == right` failed: reader at epoch 41 saw a row of epoch 42", '  left: Some("b")', ' right: Some("a")', "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace", "",
        "failures:", "    txn::tests::snapshot_sees_no_later_commit", "", "test result: FAILED. 311 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.87s", "", "error: test failed, to rerun pass `--lib`",
    ]  # fmt: skip
    return Case(
        "runs/cargo-test", "en", "bash", {"command": "cargo test"},
        "\n".join(lines),
        (("1 failed",), ("311 passed", "snapshot_sees_no_later_commit")),
        (("In quiverdb's failing snapshot test, what did the reader see that it should not?", "saw a row of epoch 42"),),
    )  # fmt: skip


def vitest_zh() -> Case:
    """Suites named in Chinese; two fail."""
    pick = dice("vitest zh")
    lines = [f"{_BOLD} RUN {_OFF} v3.2.4 /workspace/apps/web", ""]
    for n in range(130):
        lines.append(
            f" {_GREEN}✓{_OFF} src/{pick.choice(('cart', 'order', 'profile', 'search'))}/{n}.spec.ts ({pick.randrange(2, 9)} tests) {pick.randrange(4, 900)}ms"
        )
        if n % 9 == 0:
            lines.append(f"   {_GREEN}✓{_OFF} {subject('support_zh').sentence(pick)[:40]}")
    lines += [
        f" {_RED}❯{_OFF} src/cart/price.spec.ts (11 tests | 2 failed) 231ms", f"   {_RED}×{_OFF} 满减与会员折扣叠加时先打折后满减", f"   {_RED}×{_OFF} 运费券不参与退款计算", "",
        f"{' Failed Tests 2 ':⎯^70}", f" {_RED}FAIL{_OFF}  src/cart/price.spec.ts > 价格计算 > 满减与会员折扣叠加时先打折后满减", "AssertionError: expected 256.5 to be 261 // Object.is equality",
        " ❯ src/cart/price.spec.ts:64:27", f" {_RED}FAIL{_OFF}  src/cart/price.spec.ts > 价格计算 > 运费券不参与退款计算", "AssertionError: 期望退款 88.00，实际 76.00", " ❯ src/cart/price.spec.ts:91:31", "",
        " Test Files  1 failed | 130 passed (131)", "      Tests  2 failed | 718 passed (720)", "   Start at  10:22:41", "   Duration  31.40s (transform 4.1s, setup 2.2s)",
    ]  # fmt: skip
    return Case(
        "runs/vitest-zh", "zh", "bash", {"command": "pnpm vitest run"},
        "\n".join(lines),
        (("2 failed", "2 个失败"), ("718 passed", "满减与会员折扣", "price.spec.ts")),
        (("前端价格测试里，运费券那条应该退多少钱？", "期望退款 88.00"), ("Which figure did the failing discount test in price.spec.ts get?", "expected 256.5 to be 261")),
    )  # fmt: skip


def go_test() -> Case:
    """Verbose, packages one after another; one race."""
    pick = dice("go test")
    lines: list[str] = []
    for package in range(30):
        for n in range(14):
            name = f"Test{pick.choice(('Lease', 'Quota', 'Shard', 'Token'))}{pick.choice(('Renews', 'Expires', 'Splits', 'Drains'))}_{package}_{n}"
            lines += [f"=== RUN   {name}", f"--- PASS: {name} ({pick.random():.2f}s)"]
        if package == 19:
            lines += ["=== RUN   TestRebalanceUnderLoad", "==================", "WARNING: DATA RACE", "Write at 0x00c0001b4018 by goroutine 88:", "  leased.(*Rebalancer).assign()", "      /src/internal/leased/rebalance.go:204 +0x88",
                      "Previous read at 0x00c0001b4018 by goroutine 61:", "  leased.(*Rebalancer).Plan()", "==================", "    testing.go:1490: race detected during execution of test", "--- FAIL: TestRebalanceUnderLoad (2.31s)", "FAIL", "FAIL\tshop.example/leased/internal/rebalance\t2.901s"]  # fmt: skip
        else:
            lines += ["PASS", f"ok  \tshop.example/leased/internal/p{package}\t{pick.random():.3f}s"]
    lines.append("FAIL")
    return Case(
        "runs/go-test", "en", "bash", {"command": "go test -race -v ./..."},
        "\n".join(lines),
        (("FAIL",), ("TestRebalanceUnderLoad", "data race", "1 failed")),
        (("Which line of the Rebalancer writes without a lock under load?", "rebalance.go:204"), ("go test 里 TestRebalanceUnderLoad 是哪类并发问题？", "DATA RACE")),
    )  # fmt: skip


def junit_zh() -> Case:
    """A report in XML."""
    pick = dice("junit zh")
    cases: list[str] = []
    for n in range(200):
        name = f"{pick.choice(('登录', '下单', '退款', '开票', '导出'))}_{pick.choice(('正常流程', '边界值', '并发', '无权限'))}_{n}"
        body = "/>"
        if n == 71:
            name = "退款_跨年订单"
            body = '>\n      <failure message="预期状态 REFUNDED，实际 PENDING" type="AssertionError">渠道返回 E4017：原交易已归档，需走线下退款</failure>\n    </testcase>'
        if n == 140:
            name = "导出_十万行"
            body = '>\n      <failure message="超过 30 秒未完成" type="TimeoutError">卡在 sheet 3 写入阶段</failure>\n    </testcase>'
        cases.append(
            f'    <testcase classname="e2e.{pick.choice(("order", "finance"))}" name="{name}" time="{pick.random() * 9:.3f}"{body}'
        )
    text = (
        '<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n  <testsuite name="端到端回归" tests="200" failures="2" errors="0" skipped="0" time="811.2" timestamp="2026-11-15T22:00:00">\n'
        + "\n".join(cases)
        + "\n  </testsuite>\n</testsuites>\n"
    )
    return Case(
        "runs/junit-zh", "zh", "read_artifact", {"path": "reports/e2e.xml"},
        text,
        (("200",), ("failures=2", "2 failures", "2 failed", "2 个失败", "失败 2", 'failures="2"', "failures: 2", "failure ×2", "failures 2", "退款_跨年订单")),
        (("端到端回归里跨年订单为什么退不了款？", "原交易已归档"), ("In which stage did the end-to-end test 导出_十万行 hang?", "卡在 sheet 3 写入阶段")),
    )  # fmt: skip


CASES = (
    pytest_run, pytest_zh, traceback_chained, celery_zh, node_error, java_stack_zh, go_panic, cargo_test, vitest_zh,
    go_test, junit_zh,
)  # fmt: skip

"""What tool chains print: tests, linters, compilers, installers, scanners of more kinds than `builds` and `runs` have."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, subject


def jest() -> Case:
    """A run with failures in the middle and the counts at the end."""
    pick = dice("jest")
    areas = ("cart", "ledger", "invoice", "session", "tariff", "webhook")
    lines = [
        f"PASS  packages/{pick.choice(areas)}/src/{pick.choice(('format', 'parse', 'queue', 'retry', 'render'))}{n}.test.ts ({pick.random() * 9:.3f} s)"
        for n in range(160)
    ]
    failure = """FAIL  packages/tariff/src/tiers.test.ts
  ● tiers › applies the winter surcharge once per delivery point

    expect(received).toBe(expected) // Object.is equality

    Expected: 1284.5
    Received: 1312.75

      41 |   const bill = price(point, winter);
    > 42 |   expect(bill.total).toBe(1284.5);
         |                      ^
      at Object.<anonymous> (packages/tariff/src/tiers.test.ts:42:22)
"""
    end = """Test Suites: 1 failed, 160 passed, 161 total
Tests:       1 failed, 6 skipped, 1409 passed, 1416 total
Snapshots:   88 passed, 88 total
Time:        74.118 s
Ran all test suites."""
    return Case(
        "toolchain/jest", "en", "bash", {"command": "yarn jest"},
        "\n".join([*lines[:90], failure, *lines[90:], "", end]),
        (("1 failed",), ("1409 passed", "1,409 passed", "winter surcharge", "tiers.test.ts")),
        (("What total did the winter surcharge test receive?", "Received: 1312.75"), ("哪个 jest 用例失败了？", "applies the winter surcharge once per delivery point")),
    )  # fmt: skip


def eslint() -> Case:
    """Files with their problems, and the count."""
    pick = dice("eslint")
    rules = (
        "no-unused-vars",
        "react-hooks/exhaustive-deps",
        "@typescript-eslint/no-explicit-any",
        "import/order",
        "max-lines-per-function",
    )
    lines: list[str] = []
    for n in range(40):
        lines.append(
            f"/repo/apps/console/src/{pick.choice(('pages', 'widgets', 'hooks'))}/{pick.choice(('Roster', 'Ledger', 'Alerts', 'Tenant'))}{n}.tsx"
        )
        lines += [
            f"  {pick.randrange(1, 400)}:{pick.randrange(1, 90)}  {'warning'}  {subject('code_comment').sentence(pick)[:70]}  {pick.choice(rules)}"
            for _ in range(3)
        ]
        if n == 27:
            lines.append(
                '  88:13  error    React Hook "useTenant" is called conditionally  react-hooks/rules-of-hooks'
            )
        lines.append("")
    lines.append(
        "✖ 121 problems (1 error, 120 warnings)\n  0 errors and 34 warnings potentially fixable with the `--fix` option."
    )
    return Case(
        "toolchain/eslint", "en", "bash", {"command": "npx eslint apps/console"},
        "\n".join(lines),
        (("121 problems", "1 error"), ("useTenant", "rules-of-hooks", "120 warnings")),
        (("Which hook is called conditionally?", "useTenant"), ("eslint 有多少警告可以自动修复？", "34 warnings potentially fixable")),
    )  # fmt: skip


def gradle_zh() -> Case:
    """A build of an app that fails while it merges resources."""
    pick = dice("gradle")
    modules = ("app", "core-ui", "feature-pay", "feature-live", "lib-net", "lib-map")
    lines = [
        f"> Task :{pick.choice(modules)}:{pick.choice(('compileDebugKotlin', 'mergeDebugAssets', 'kaptDebugKotlin', 'processDebugManifest'))}{n}{pick.choice(('', ' UP-TO-DATE', ' FROM-CACHE'))}"
        for n in range(190)
    ]
    lines += [
        f"w: file:///ci/app/src/main/java/模块{n}.kt:{pick.randrange(300)}:9 参数 “上下文” 从未使用"
        for n in range(70)
    ]
    end = """> Task :app:mergeReleaseResources FAILED

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':app:mergeReleaseResources'.
> 资源重复：string/pay_title 同时定义于 feature-pay/values/strings.xml 与 feature-live/values/strings.xml

* Try:
> Run with --stacktrace option to get the stack trace.

BUILD FAILED in 6m 48s
412 actionable tasks: 137 executed, 275 from cache"""
    return Case(
        "toolchain/gradle-zh", "zh", "run_build", {"任务": "assembleRelease"},
        "\n".join(lines) + "\n" + end,
        (("mergeReleaseResources", "资源重复"), ("FAILED", "失败", "资源重复")),
        (("哪个字符串资源重复定义了？", "string/pay_title"), ("How long did the Gradle build run before it failed?", "BUILD FAILED in 6m 48s")),
    )  # fmt: skip


def cargo_build() -> Case:
    """Warnings, then an error of the borrow checker."""
    pick = dice("cargo build")
    lines = [
        f"   Compiling {pick.choice(('serde', 'tokio', 'hyper', 'rustls', 'prost', 'tonic'))}-{pick.choice(('core', 'macros', 'util'))} v{pick.randrange(3)}.{pick.randrange(60)}.{pick.randrange(20)}"
        for _ in range(170)
    ]
    for n in range(28):
        lines += [
            f"warning: unused variable: `{pick.choice(('span', 'lease', 'shard', 'epoch'))}{n}`",
            f"   --> ledger/src/{pick.choice(('apply', 'replay', 'compact'))}.rs:{pick.randrange(1, 700)}:17",
            "    |",
            f"{pick.randrange(99, 700)} |         let {pick.choice(('span', 'lease'))}{n} = ctx.enter();",
            "    |             ^^^^^ help: if this is intentional, prefix it with an underscore",
            "",
        ]
    lines += [
        "error[E0505]: cannot move out of `segment` because it is borrowed", "   --> ledger/src/compact.rs:318:22", "    |", "311 |         let head = segment.header();", "    |                    ------- borrow of `segment` occurs here", "318 |         self.retire(segment);", "    |                      ^^^^^^^ move out of `segment` occurs here", "319 |         audit(head.epoch);", "    |               ---------- borrow later used here", "",
        "For more information about this error, try `rustc --explain E0505`.", "warning: `ledger` (lib) generated 28 warnings", "error: could not compile `ledger` (lib) due to 1 previous error; 28 warnings emitted",
    ]  # fmt: skip
    return Case(
        "toolchain/cargo-build", "en", "bash", {"command": "cargo build --release"},
        "\n".join(lines),
        (("E0505", "cannot move out of"), ("could not compile", "ledger", "1 previous error", "compact.rs")),
        (("Where is the value moved while it is still borrowed?", "ledger/src/compact.rs:318:22"),),
    )  # fmt: skip


def npm_eresolve() -> Case:
    """Peers that cannot be resolved; of middling length."""
    pick = dice("npm")
    lines = [
        f"npm warn deprecated {pick.choice(('glob', 'rimraf', 'inflight', 'querystring', 'har-validator'))}@{pick.randrange(1, 9)}.{pick.randrange(9)}.{n}: {subject('code_comment').sentence(pick)[:80]}"
        for n in range(32)
    ]
    lines += [
        "npm error code ERESOLVE",
        "npm error ERESOLVE unable to resolve dependency tree",
        "npm error",
        "npm error While resolving: console@12.4.0",
        "npm error Found: react@19.2.1",
        "npm error node_modules/react",
        'npm error   react@"^19.2.0" from the root project',
        "npm error",
        "npm error Could not resolve dependency:",
        'npm error peer react@"^17.0.0 || ^18.0.0" from @kestrel/datagrid@5.9.3',
        "npm error node_modules/@kestrel/datagrid",
        'npm error   @kestrel/datagrid@"^5.9.0" from the root project',
        "npm error",
        "npm error Fix the upstream dependency conflict, or retry this command with --force or --legacy-peer-deps",
        "npm error A complete log of this run can be found in: ~/.npm/_logs/2026-11-12T08_01_22_004Z-debug-0.log",
    ]
    return Case(
        "toolchain/npm-eresolve", "en", "bash", {"command": "npm ci"},
        "\n".join(lines),
        (("ERESOLVE", "unable to resolve dependency"), ("@kestrel/datagrid", "react@")),
        (("Which react versions does the data grid accept?", "^17.0.0 || ^18.0.0"), ("项目里装的是哪个版本的 react？", "react@19.2.1")),
    )  # fmt: skip


def coverage_zh() -> Case:
    """A table of coverage below a test run, with remarks in Chinese."""
    pick = dice("coverage")
    names = ("订单", "库存", "结算", "会员", "营销", "风控")
    rows = [
        f"src/{pick.choice(names)}/{pick.choice(('service', 'repo', 'view', 'task'))}_{n}.py{pick.randrange(20, 400):>14}{pick.randrange(1, 40):>8}{pick.randrange(60, 100):>8}%   {pick.randrange(10, 90)}-{pick.randrange(90, 140)}"
        for n in range(180)
    ]
    rows[131] = "src/结算/轧差引擎.py               377     341      10%   22-361"
    text = "\n".join(
        [
            "........................................................ [100%]",
            "---------- coverage: platform linux, python 3.12.7-final-0 -----------",
            "Name                              Stmts    Miss   Cover   Missing",
            "-" * 66,
            *rows,
            "-" * 66,
            "TOTAL                             38114    8767     77%",
            "",
            "FAIL 覆盖率不达标：要求 80%，实际 77%",
            "1204 passed, 3 skipped in 96.02s",
        ]
    )
    return Case(
        "toolchain/coverage-zh", "zh", "bash", {"command": "pytest --cov=src --cov-fail-under=80"},
        text,
        (("77%",), ("1204 passed", "1,204 passed", "覆盖率不达标", "覆盖率", "coverage")),
        (("哪个文件的覆盖率只有 10%？", "轧差引擎.py"), ("What test coverage was required?", "要求 80%")),
    )  # fmt: skip


def playwright() -> Case:
    """A report of browser tests as JSON, suites inside of suites."""
    pick = dice("playwright")
    suites: list[dict[str, Any]] = [
        {"title": f"{area}.spec.ts", "file": f"e2e/{area}.spec.ts", "specs": [
            {"title": f"{pick.choice(('shows', 'hides', 'keeps', 'clears'))} the {pick.choice(('basket', 'banner', 'voucher', 'address'))} {n}", "ok": True,
             "tests": [{"projectName": pick.choice(("chromium", "webkit")), "results": [{"status": "passed", "duration": pick.randrange(90, 9000), "errors": []}]}]}
            for n in range(22)
        ]}
        for area in ("login", "checkout", "profile", "search", "returns")
    ]  # fmt: skip
    suites[4]["specs"][13] = {
        "title": "prints a return label for parcels over 30 kg",
        "ok": False,
        "tests": [
            {
                "projectName": "webkit",
                "results": [
                    {
                        "status": "timedOut",
                        "duration": 30_004,
                        "errors": [
                            {
                                "message": "Test timeout of 30000ms exceeded while waiting for locator('#label-frame')"
                            }
                        ],
                    }
                ],
            }
        ],
    }
    body = {
        "config": {"version": "1.56.0", "workers": 4},
        "suites": suites,
        "errors": [],
        "stats": {
            "startTime": "2026-11-12T07:00:00.000Z",
            "duration": 411_208.3,
            "expected": 109,
            "skipped": 0,
            "unexpected": 1,
            "flaky": 0,
        },
    }
    return Case(
        "toolchain/playwright", "en", "run_e2e", {"project": "shop"},
        js(body),
        (("unexpected", "1 failed", "timedOut", "return label"), ("109", "110", "return label", "suites")),
        (("Which browser test timed out?", "prints a return label for parcels over 30 kg"), ("webkit 超时时在等待哪个元素？", "#label-frame")),
    )  # fmt: skip


def rust_panic() -> Case:
    """A panic with its backtrace."""
    pick = dice("rust panic")
    frames: list[str] = []
    for n in range(90):
        frames += [
            f"{n + 3:4}: {pick.choice(('tokio::runtime::task::harness', 'core::ops::function::FnOnce', 'ingest::router::Router', 'hyper::proto::h2'))}::{pick.choice(('poll', 'call_once', 'dispatch', 'drive'))}::h{pick.getrandbits(64):016x}",
            f"             at /build/{pick.choice(('tokio', 'hyper', 'ingest'))}/src/{pick.choice(('lib', 'task', 'router'))}.rs:{pick.randrange(900)}:{pick.randrange(60)}",
        ]
    text = "\n".join(
        [
            "INFO ingest: listening on 0.0.0.0:7070",
            "thread 'tokio-runtime-worker' panicked at ingest/src/offsets.rs:207:38:",
            "attempt to subtract with overflow: committed 118204 is past head 118197 of partition 12",
            "stack backtrace:",
            "   0: rust_begin_unwind",
            "   1: core::panicking::panic_fmt",
            "   2: ingest::offsets::lag",
            *frames,
            "note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.",
        ]
    )
    return Case(
        "toolchain/rust-panic", "en", "bash", {"command": "RUST_BACKTRACE=1 ./ingest"},
        text,
        (("attempt to subtract with overflow",), ("offsets.rs", "panicked")),
        (("Which partition had a committed offset past its head?", "partition 12"), ("ingest 的 panic 发生在哪一行？", "ingest/src/offsets.rs:207:38")),
    )  # fmt: skip


def sonar_zh() -> Case:
    """Issues of a quality gate."""
    pick = dice("sonar")
    said = (
        "移除未使用的私有方法",
        "将该方法的圈复杂度从 {} 降到 15 以内",
        "重复的字符串字面量出现 {} 次",
        "捕获异常后未记录日志",
        "用 try-with-resources 关闭流",
    )
    issues = [
        {"key": f"AZ{pick.getrandbits(60):015x}", "rule": f"java:S{pick.randrange(1000, 6900)}", "severity": pick.choice(("MAJOR", "MINOR", "MAJOR", "INFO")), "component": f"settle-core:src/main/java/com/x/{pick.choice(('batch', 'ledger', 'check'))}/C{n}.java", "line": pick.randrange(9, 600), "status": "OPEN", "message": pick.choice(said).format(pick.randrange(3, 40)), "author": pick.choice(("wanglei", "zhaomin", "hejing")), "type": "CODE_SMELL"}
        for n in range(100)
    ]  # fmt: skip
    issues[58] |= {
        "severity": "BLOCKER",
        "type": "VULNERABILITY",
        "component": "settle-core:src/main/java/com/x/check/SignUtil.java",
        "line": 44,
        "message": "签名密钥硬编码在源码中，请改为从密钥管理系统读取",
        "author": "luyifan",
    }
    return Case(
        "toolchain/sonar-zh", "zh", "sonar_issues", {"projectKey": "settle-core"},
        js({"total": 837, "p": 1, "ps": 100, "issues": issues}),
        (("837", "100"), ("issue", "问题", "BLOCKER")),
        (("哪个文件里硬编码了签名密钥？", "SignUtil.java"), ("Who wrote the BLOCKER vulnerability in settle-core?", "luyifan")),
    )  # fmt: skip


def trivy() -> Case:
    """Vulnerabilities of an image, by target."""
    pick = dice("trivy")
    packages = ("openssl", "zlib1g", "libxml2", "curl", "expat", "sqlite3", "krb5")

    def hole(n: int) -> dict[str, object]:
        name = pick.choice(packages)
        return {
            "VulnerabilityID": f"CVE-2026-{pick.randrange(1000, 60_000)}",
            "PkgName": name,
            "InstalledVersion": f"{pick.randrange(1, 9)}.{pick.randrange(20)}-{n}",
            "FixedVersion": "",
            "Severity": pick.choice(("LOW", "MEDIUM", "LOW", "HIGH")),
            "Title": f"{name}: {subject('code_comment').sentence(pick)[:90]}",
        }

    holes = [hole(n) for n in range(84)]
    holes[51] = {
        "VulnerabilityID": "CVE-2026-31337",
        "PkgName": "libwebp7",
        "InstalledVersion": "1.2.4-0.2",
        "FixedVersion": "1.2.4-0.2+deb12u3",
        "Severity": "CRITICAL",
        "Title": "libwebp: heap buffer overflow in lossless decoder",
    }
    body = {
        "SchemaVersion": 2,
        "ArtifactName": "images.internal.example/imgproxy:9.1",
        "ArtifactType": "container_image",
        "Results": [
            {
                "Target": "imgproxy:9.1 (debian 12.8)",
                "Class": "os-pkgs",
                "Type": "debian",
                "Vulnerabilities": holes,
            }
        ],
    }
    return Case(
        "toolchain/trivy", "en", "trivy_scan", {"image": "imgproxy:9.1"},
        js(body),
        (("84",), ("vulnerabilit",), ("CRITICAL", "imgproxy")),
        (("Which version fixes the critical hole of libwebp7?", "1.2.4-0.2+deb12u3"), ("imgproxy 镜像里严重级别最高的漏洞编号是什么？", "CVE-2026-31337")),
    )  # fmt: skip


CASES = (
    jest,
    eslint,
    gradle_zh,
    cargo_build,
    npm_eresolve,
    coverage_zh,
    playwright,
    rust_panic,
    sonar_zh,
    trivy,
)

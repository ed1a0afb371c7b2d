"""Output of compilers, linters, package managers and planners."""

from benchmarks.judged.case import Case, dice, planted, subject


def gcc() -> Case:
    """A parallel build with many warnings and one error."""
    pick = dice("gcc")
    lines: list[str] = ["make -j8", "make[1]: Entering directory '/src/tracker'"]
    for n in range(170):
        unit = f"{pick.choice(('core', 'net', 'ui', 'codec'))}/{pick.choice(('buffer', 'socket', 'panel', 'frame', 'route'))}_{n}.cpp"
        lines.append(f"g++ -std=c++20 -O2 -Wall -Wextra -Iinclude -c {unit} -o build/{unit[:-4]}.o")
        if pick.random() < 0.25:
            lines += [f"{unit}: In function 'int {pick.choice(('decode', 'route', 'paint'))}(const Packet&)':", f"{unit}:{pick.randrange(9, 400)}:17: warning: comparison of integer expressions of different signedness: 'int' and 'size_t' [-Wsign-compare]",
                      f"  {pick.randrange(9, 400)} |   for (int i = 0; i < packet.size(); ++i)", "      |                   ~~^~~~~~~~~~~~~~~"]  # fmt: skip
        if n == 121:
            lines += ["net/handshake.cpp: In member function 'void Handshake::finish()':", "net/handshake.cpp:208:31: error: 'class Session' has no member named 'export_keying_material'; did you mean 'export_key'?",
                      "  208 |   const auto key = session_->export_keying_material(label);", "      |                               ^~~~~~~~~~~~~~~~~~~~~~", "make[1]: *** [Makefile:88: build/net/handshake.o] Error 1"]  # fmt: skip
    lines += [
        "make[1]: *** Waiting for unfinished jobs....",
        "make[1]: Leaving directory '/src/tracker'",
        "make: *** [Makefile:12: all] Error 2",
    ]
    return Case(
        "builds/gcc", "en", "bash", {"command": "make -j8 2>&1"},
        "\n".join(lines),
        (("error",), ("handshake.cpp", "export_keying_material")),
        (("What does the compiler suggest instead of export_keying_material?", "did you mean 'export_key'?"), ("make 编译 tracker 时 Handshake 在哪一行报错？", "net/handshake.cpp:208:31: error")),
    )  # fmt: skip


def tsc_zh() -> Case:
    """A type check whose messages are Chinese."""
    pick = dice("tsc zh")
    lines: list[str] = []
    for _ in range(140):
        file = f"src/{pick.choice(('views', 'stores', 'components', 'api'))}/{pick.choice(('order', 'cart', 'login', 'chart', 'table'))}{pick.randrange(30)}.ts"
        told = pick.choice(("error TS2322: 不能将类型“string | undefined”分配给类型“string”。\n  不能将类型“undefined”分配给类型“string”。", "error TS2345: 类型“number”的参数不能赋给类型“string”的参数。",
                            "error TS7006: 参数“row”隐式具有“any”类型。", "error TS2339: 类型“AxiosResponse”上不存在属性“records”。"))  # fmt: skip
        lines.append(f"{file}({pick.randrange(1, 400)},{pick.randrange(1, 60)}): {told}")
    lines = planted(
        lines,
        (
            0.72,
            'src/stores/session.ts(51,9): error TS2741: 类型 "{ token: string; }" 中缺少属性 "refreshAt"，但类型 "Session" 中需要该属性。',
        ),
    )
    lines += ["", "在 63 个文件中发现 141 个错误。"]
    return Case(
        "builds/tsc-zh", "zh", "bash", {"command": "npx vue-tsc --noEmit --locale zh-cn"},
        "\n".join(lines),
        (("141",), ("错误", "error")),
        (("vue-tsc 说 Session 类型少了什么字段？", '缺少属性 "refreshAt"'), ("In how many files did vue-tsc find errors?", "在 63 个文件中")),
    )  # fmt: skip


def maven_zh() -> Case:
    """A build of many modules that stops at one of them."""
    pick = dice("maven zh")
    modules = ("结算-公共", "结算-接口", "结算-核心", "结算-批处理", "结算-网关", "结算-报表")
    lines = [
        "[INFO] Scanning for projects...",
        "[INFO] Reactor Build Order:",
        *(f"[INFO] {name}" for name in modules),
    ]
    for module in modules[:4]:
        lines.append(f"[INFO] ----------------------< com.yunshang:{module} >----------------------")
        lines += [
            f"[INFO] Downloading from central: http://mvn.internal.example/repository/{pick.choice(('spring', 'netty', 'poi', 'druid'))}/{pick.randrange(9)}.{pick.randrange(40)}/lib.pom"
            for _ in range(60)
        ]
        lines += [
            f"[WARNING] {module}/src/main/java/S{pick.randrange(90)}.java:[{pick.randrange(300)},17] [deprecation] 已过时：{subject('code_comment_zh').sentence(pick)}"
            for _ in range(12)
        ]
    lines += [
        "[ERROR] COMPILATION ERROR : ", "[ERROR] /build/结算-批处理/src/main/java/DailyJob.java:[133,28] 错误: 找不到符号", "  符号:   方法 nextWorkday(LocalDate)", "  位置: 类型为WorkCalendar的变量 calendar",
        "[INFO] 1 error", "[INFO] Reactor Summary for 结算 3.7.0:", *(f"[INFO] {name} {'.' * 20} SUCCESS [ {pick.random() * 20:.3f} s]" for name in modules[:3]),
        "[INFO] 结算-批处理 .................... FAILURE [  4.118 s]", *(f"[INFO] {name} .................... SKIPPED" for name in modules[4:]), "[INFO] BUILD FAILURE", "[INFO] Total time:  01:12 min",
    ]  # fmt: skip
    return Case(
        "builds/maven-zh", "zh", "bash", {"command": "mvn -B package"},
        "\n".join(lines),
        (("BUILD FAILURE", "COMPILATION ERROR", "失败", "FAILURE"), ("DailyJob", "找不到符号", "结算-批处理")),
        (("mvn 编译结算-批处理时，DailyJob 缺的是哪个方法？", "方法 nextWorkday(LocalDate)"),),
    )  # fmt: skip


def docker_build() -> Case:
    """Plain progress, a step that fails."""
    pick = dice("docker build")
    lines = [
        "#1 [internal] load build definition from Dockerfile",
        "#1 transferring dockerfile: 1.42kB done",
        "#1 DONE 0.0s",
    ]
    for step in range(2, 15):
        lines.append(
            f"#{step} [{pick.choice(('deps', 'build', 'runtime'))} {step}/14] {pick.choice(('COPY src ./src', 'RUN apt-get update', 'RUN pnpm install --frozen-lockfile', 'WORKDIR /app'))}"
        )
        lines += [
            f"#{step} {n / 7:.3f} {pick.choice(('Get:', 'Unpacking', 'Setting up', 'Progress: resolved'))} {pick.choice(('libssl3', 'ca-certificates', 'esbuild', 'sharp', 'fonts-noto'))} ({pick.randrange(1, 9)}.{pick.randrange(30)}.{pick.randrange(9)})"
            for n in range(40)
        ]
        lines.append(f"#{step} DONE {pick.random() * 20:.1f}s")
    lines += [
        "#15 [build 6/7] RUN pnpm run build", "#15 3.911 > web@7.9.3 build /app", "#15 3.911 > vite build", "#15 61.02 x Build failed in 55.2s", "#15 61.02 error during build:", '#15 61.02 [vite]: Rollup failed to resolve import "@shop/tokens/dark.css" from "/app/src/theme.ts".',
        '#15 ERROR: process "/bin/sh -c pnpm run build" did not complete successfully: exit code: 1', "------", " > [build 6/7] RUN pnpm run build:", "------", "Dockerfile:11", "--------------------", "  11 | >>> RUN pnpm run build && pnpm prune --prod", "--------------------",
        'ERROR: failed to solve: process "/bin/sh -c pnpm run build" did not complete successfully: exit code: 1',
    ]  # fmt: skip
    return Case(
        "builds/docker", "en", "bash", {"command": "docker build --progress=plain ."},
        "\n".join(lines),
        (("error", "failed"), ("pnpm run build", "resolve import")),
        (("Which stylesheet could vite not find in the docker build?", "@shop/tokens/dark.css"),),
    )  # fmt: skip


def ruff() -> Case:
    """A linter's findings, concise."""
    pick = dice("ruff")
    rules = (
        ("F401", "`os` imported but unused"),
        ("E711", "Comparison to `None` should be `cond is None`"),
        ("B006", "Do not use mutable data structures for argument defaults"),
        ("UP007", "Use `X | Y` for type annotations"),
        ("SIM102", "Use a single `if` statement"),
    )
    lines: list[str] = []
    for n in range(210):
        rule, told = pick.choice(rules)
        lines.append(
            f"src/{pick.choice(('etl', 'web', 'jobs', 'models'))}/{pick.choice(('load', 'views', 'daily', 'schema'))}_{n % 40}.py:{pick.randrange(1, 600)}:{pick.randrange(1, 80)}: {rule} {told}"
        )
    lines = planted(
        lines,
        (
            0.57,
            "src/web/upload.py:88:13: S602 `subprocess` call with `shell=True` identified, security issue: `convert {name}`",
        ),
    )
    lines += ["Found 211 errors.", "[*] 143 fixable with the `--fix` option."]
    return Case(
        "builds/ruff", "en", "bash", {"command": "ruff check --output-format concise"},
        "\n".join(lines),
        (("211",), ("errors", "findings", "issues")),
        (("Is there a security finding among what ruff reported?", "src/web/upload.py:88:13"), ("ruff 的问题里有多少可以用 --fix 自动修？", "143 fixable")),
    )  # fmt: skip


def mypy() -> Case:
    """Type errors with notes; of middling length."""
    pick = dice("mypy")
    lines = [
        f'src/{pick.choice(("etl", "web", "jobs"))}/m{n % 11}.py:{pick.randrange(1, 500)}: error: {pick.choice(("Argument 1 to", "Return value of", "Item of"))} "{pick.choice(("load", "render", "submit"))}" has incompatible type "{pick.choice(("str", "bytes", "None"))}"; expected "{pick.choice(("int", "Path", "Frame"))}"  [arg-type]'
        for n in range(52)
    ]  # fmt: skip
    lines = planted(
        lines,
        (
            0.45,
            'src/jobs/nightly.py:140: error: Unsupported operand types for <= ("datetime" and "date")  [operator]',
        ),
    )
    lines.append("Found 53 errors in 12 files (checked 214 source files)")
    return Case(
        "builds/mypy", "en", "bash", {"command": "mypy src"},
        "\n".join(lines),
        (("53",), ("error",)),
        (("Where does mypy say that a datetime is compared with something else?", "src/jobs/nightly.py:140"),),
    )  # fmt: skip


def npm_audit() -> Case:
    """Advisories with their ways of repair."""
    pick = dice("npm audit")
    lines = ["# npm audit report", ""]
    for n in range(46):
        name = f"{pick.choice(('path', 'ws', 'xml', 'tar', 'css', 'semver', 'http'))}-{pick.choice(('parse', 'stream', 'utils', 'walk', 'proxy'))}"
        severity = "high" if n % 9 == 0 else pick.choice(("moderate", "low"))
        lines += [f"{name}  <{pick.randrange(1, 9)}.{pick.randrange(30)}.{pick.randrange(9)}", f"Severity: {severity}", f"{pick.choice(('Regular expression denial of service', 'Prototype pollution', 'Open redirect'))} in {name} - https://advisories.example/GHSA-{pick.getrandbits(32):08x}",
                  "fix available via `npm audit fix`", f"node_modules/{name}", f"  {pick.choice(('webpack-dev-server', 'nightwatch', 'imagemin'))}  *", f"  Depends on vulnerable versions of {name}", ""]  # fmt: skip
        if n == 30:
            lines += ["jwt-lite  2.0.0 - 2.4.1", "Severity: critical", 'Signature check skipped when header has alg "NONE" in mixed case - https://advisories.example/GHSA-7c11-jwtl', "fix available via `npm audit fix --force`", "Will install jwt-lite@3.1.0, which is a breaking change", "node_modules/jwt-lite", ""]  # fmt: skip
    lines += [
        "47 vulnerabilities (19 low, 21 moderate, 6 high, 1 critical)",
        "",
        "To address all issues (including breaking changes), run:",
        "  npm audit fix --force",
    ]
    return Case(
        "builds/npm-audit", "en", "bash", {"command": "npm audit"},
        "\n".join(lines),
        (("47 vulnerabilities",), ("1 critical", "critical")),
        (("What is wrong with the critical package in npm audit?", "Signature check skipped"), ("npm audit 里 jwt-lite 要升到哪个版本？", "jwt-lite@3.1.0")),
        wrong=("markdown document",),
    )  # fmt: skip


def terraform() -> Case:
    """A plan that would replace a database."""
    pick = dice("terraform")
    lines = [
        f"cloud_{pick.choice(('subnet', 'role', 'bucket', 'alarm'))}.{pick.choice(('core', 'edge', 'data'))}_{n}: Refreshing state... [id={pick.getrandbits(40):010x}]"
        for n in range(190)
    ]
    lines += [
        "",
        "Terraform used the selected providers to generate the following execution plan. Resource actions are indicated with the following symbols:",
        "  + create",
        "  ~ update in-place",
        "-/+ destroy and then create replacement",
        "",
        "Terraform will perform the following actions:",
        "",
    ]
    for n in range(9):
        lines += [
            f"  # cloud_alarm.latency[{n}] will be created",
            '  + resource "cloud_alarm" "latency" {',
            f"      + threshold = {pick.randrange(100, 900)}",
            "      + id        = (known after apply)",
            "    }",
            "",
        ]
    lines += ["  # cloud_db_instance.ledger must be replaced", '-/+ resource "cloud_db_instance" "ledger" {', '      ~ kms_key_id        = "key/8f21" -> "key/c09d" # forces replacement', '      ~ endpoint          = "ledger.db.example" -> (known after apply)', "        # (41 unchanged attributes hidden)", "    }", "",
              "Plan: 10 to add, 0 to change, 1 to destroy.", "", "Note: You didn't use the -out option to save this plan."]  # fmt: skip
    return Case(
        "builds/terraform-plan", "en", "bash", {"command": "terraform plan -no-color"},
        "\n".join(lines),
        (("10 to add",), ("1 to destroy",)),
        (("Why would terraform destroy the ledger database?", "# forces replacement"), ("terraform plan 里哪个数据库资源会被重建？", "cloud_db_instance.ledger must be replaced")),
        wrong=("YAML",),
    )  # fmt: skip


def msbuild_zh() -> Case:
    """A compiler on a Chinese Windows, with progress lines that overwrite each other."""
    pick = dice("msbuild zh")
    bar = "\r".join(f"还原包 [{'#' * (n // 5):<20}] {n}%" for n in range(0, 101, 2))
    lines = ["适用于 .NET 的 MSBuild 版本 17.12.0", bar]
    for n in range(240):
        lines.append(
            f"  {pick.choice(('采集端', '报表端', '公共库'))}\\{pick.choice(('Parser', 'Panel', 'Socket', 'Curve'))}{n}.cpp"
        )
        if pick.random() < 0.35:
            lines.append(
                f"D:\\work\\采集端\\Curve{n}.cpp({pick.randrange(9, 700)},14): warning C4244: “=”: 从“double”转换到“float”，可能丢失数据 [D:\\work\\采集端.vcxproj]"
            )
        if n == 171:
            lines.append(
                "D:\\work\\采集端\\ModbusMaster.cpp(312,9): error C2065: “CRC16_TABLE_V2”: 未声明的标识符 [D:\\work\\采集端.vcxproj]"
            )
    lines += ["", "生成失败。", "    84 个警告", "    1 个错误", "", "已用时间 00:01:52.40"]
    return Case(
        "builds/msbuild-zh", "zh", "run_command", {"cmd": "msbuild 采集端.sln /m"},
        "\r\n".join(lines),
        (("生成失败", "1 个错误", "error C2065"), ("ModbusMaster", "CRC16_TABLE_V2", "未声明的标识符", "84 个警告")),
        (("msbuild 编译采集端时 ModbusMaster 里哪个符号没定义？", "CRC16_TABLE_V2"), ("How long did the msbuild run of 采集端 take?", "00:01:52.40")),
    )  # fmt: skip


CASES = (gcc, tsc_zh, maven_zh, docker_build, ruff, mypy, npm_audit, terraform, msbuild_zh)

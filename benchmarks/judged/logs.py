"""Logs: of web servers, systems and services, as text and as JSON lines."""

from benchmarks.judged.case import Case, dice, js, planted, subject


def nginx() -> Case:
    """Access log with a burst of failures."""
    pick = dice("nginx")
    agents = (
        "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/145.0",
        "okhttp/5.1.0",
        "curl/8.11.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X)",
    )

    def line(n: int, status: int) -> str:
        path = pick.choice(("/", "/api/cart", "/api/items?page=2", "/static/app.js", "/login"))
        return f'198.51.100.{pick.randrange(250)} - - [16/Nov/2026:0{6 + n // 150}:{n % 60:02}:{pick.randrange(60):02} +0000] "GET {path} HTTP/2.0" {status} {pick.randrange(90, 90_000)} "-" "{pick.choice(agents)}"'

    lines = [line(n, 502 if 180 <= n < 214 else pick.choice((200, 200, 200, 304, 404))) for n in range(330)]
    lines = planted(
        lines,
        (
            0.8,
            '203.0.113.9 - - [16/Nov/2026:08:01:02 +0000] "GET /.git/config HTTP/1.1" 200 412 "-" "zgrab/0.x"',
        ),
    )
    return Case(
        "logs/nginx", "en", "read_log", {"path": "/var/log/nginx/access.log", "lines": 331},
        "\n".join(lines),
        (("331", "log", "requests"), ("502",)),
        (("Did a scanner read our git config through nginx?", 'GET /.git/config HTTP/1.1" 200'),),
        wrong=("search results",),
    )  # fmt: skip


def syslog() -> Case:
    """A machine's journal with a disk that fails."""
    pick = dice("syslog")
    units = ("systemd[1]", "sshd[811]", "kernel", "CRON[20931]", "dockerd[702]", "chronyd[519]")
    lines = [
        f"Nov 16 {n // 60 % 24:02}:{n % 60:02}:{pick.randrange(60):02} store-07 {pick.choice(units)}: {subject('app_log').sentence(pick)}"
        for n in range(330)
    ]
    lines = planted(
        lines,
        (0.41, "Nov 16 02:14:55 store-07 kernel: ata3.00: failed command: READ FPDMA QUEUED"),
        (0.42, "Nov 16 02:14:56 store-07 kernel: blk_update_request: I/O error, dev sdc, sector 1953520064"),
        (
            0.79,
            "Nov 16 04:22:09 store-07 smartd[640]: Device: /dev/sdc, 184 Currently unreadable (pending) sectors",
        ),
    )
    return Case(
        "logs/syslog", "en", "bash", {"command": "journalctl --since today"},
        "\n".join(lines),
        (("store-07", "333", "log"), ("I/O error", "error", "sdc", "failed command")),
        (("Is a disk of store-07 about to die, and how bad is it?", "184 Currently unreadable (pending) sectors"), ("store-07 的 sdc 出错的扇区号是多少？", "sector 1953520064")),
    )  # fmt: skip


def json_lines() -> Case:
    """Structured logs, one object a line."""
    pick = dice("json lines")
    lines = [
        js({"ts": f"2026-11-16T11:{n // 60 % 60:02}:{n % 60:02}.{pick.randrange(1000):03}Z", "level": pick.choice(("info", "info", "debug", "warn")), "svc": pick.choice(("quotes", "ledger", "mailer")),
            "msg": subject("app_log").sentence(pick), "trace_id": f"{pick.getrandbits(64):016x}", "dur_ms": pick.randrange(1, 900)})
        for n in range(190)
    ]  # fmt: skip
    lines = planted(
        lines,
        (
            0.55,
            js(
                {
                    "ts": "2026-11-16T11:01:44.002Z",
                    "level": "fatal",
                    "svc": "ledger",
                    "msg": "journal checksum mismatch at segment 5521, refusing to start",
                    "expected": "b1f0",
                    "found": "77ce",
                }
            ),
        ),
    )
    return Case(
        "logs/json-lines", "en", "search_logs", {"query": "svc:*", "limit": 191},
        "\n".join(lines),
        (("191", "log", "ledger"), ("fatal", "checksum mismatch")),
        (("Why does the ledger service refuse to start?", "journal checksum mismatch"), ("ledger 启动失败，哪个 segment 的校验不对？", "segment 5521")),
    )  # fmt: skip


def service_zh() -> Case:
    """A payment service's log in Chinese."""
    pick = dice("service log zh")
    told = (
        "接收支付请求 订单={o} 金额={a}",
        "风控评分完成 订单={o} 分数={s}",
        "调用渠道成功 渠道=银联 耗时={s}ms",
        "写入账务流水 订单={o}",
        "发送回调成功 商户=M{s}",
        "查询限额命中缓存 商户=M{s}",
    )
    lines = [
        f"2026-11-16 14:{n // 60 % 60:02}:{n % 60:02}.{pick.randrange(1000):03} {'WARN ' if n % 37 == 0 else 'INFO '} [pay-core-{pick.randrange(1, 5)}] {pick.choice(told).format(o=pick.randrange(10**8), a=pick.randrange(1, 9000), s=pick.randrange(10, 900))}"
        for n in range(560)
    ]
    lines = planted(
        lines,
        (
            0.52,
            "2026-11-16 14:03:02.771 ERROR [pay-core-2] 渠道证书校验失败 渠道=城商行联盟 序列号=5A:19:E2 原因=证书于 2026-11-16 14:00 过期",
        ),
        (0.53, "2026-11-16 14:03:02.790 WARN  [pay-core-2] 已切换到备用渠道 渠道=网联 影响订单=27"),
    )
    return Case(
        "logs/service-zh", "zh", "query_log", {"service": "pay-core", "last": "6m"},
        "\n".join(lines),
        (("证书校验失败", "ERROR"), ("562", "pay-core", "城商行联盟", "渠道证书")),
        (("pay-core 证书出问题后切到哪条通道，波及几单？", "渠道=网联 影响订单=27"), ("Which channel certificate of pay-core had run out?", "序列号=5A:19:E2")),
    )  # fmt: skip


def device_zh() -> Case:
    """A device's serial log without levels."""
    pick = dice("device log zh")
    lines = [
        f"[{n * 1.7:10.3f}] {pick.choice(('采样', '上报', '校时', '自检', '心跳'))} 通道{pick.randrange(1, 9)} 电压 {pick.uniform(218, 236):.1f}V 电流 {pick.uniform(0.2, 9):.2f}A 温度 {pick.uniform(20, 60):.1f}℃"
        for n in range(300)
    ]
    lines = planted(lines, (0.88, "[   451.220] 看门狗复位 原因码 0x3C 上次任务 flash_write 连续第 4 次"))
    return Case(
        "logs/device-zh", "zh", "read_serial", {"port": "COM7", "lines": 301},
        "\n".join(lines),
        (("301", "看门狗复位"), ("电压", "采样", "通道", "看门狗")),
        (("串口设备看门狗为什么老是重启？", "上次任务 flash_write"), ("What code does the watchdog of the serial device give?", "原因码 0x3C")),
    )  # fmt: skip


def ci_zh() -> Case:
    """A pipeline's log with groups and colours."""
    pick = dice("ci zh")
    lines: list[str] = []
    for stage in ("拉取代码", "安装依赖", "静态检查", "单元测试", "构建镜像", "推送镜像", "部署预发"):
        lines += [f"\x1b[36m##[group]{stage}\x1b[0m"]
        lines += [
            f"2026-11-16T02:{pick.randrange(60):02}:{pick.randrange(60):02}Z {subject('support_zh').sentence(pick)}"
            for _ in range(34)
        ]
        if stage == "部署预发":
            lines.append(
                "\x1b[31m##[error]部署预发失败：就绪探针 180 秒内未通过，最近一次返回 503，疑似缺少环境变量 TAX_REGION\x1b[0m"
            )
        lines += ["##[endgroup]"]
    lines += ["流水线 #2207 结束：失败（7 个阶段，6 成功，1 失败）"]
    return Case(
        "logs/pipeline-zh", "zh", "get_pipeline_log", {"id": 2207},
        "\n".join(lines),
        (("失败",), ("部署预发", "#2207", "就绪探针")),
        (("流水线 2207 部署预发失败，缺了什么变量？", "TAX_REGION"),),
    )  # fmt: skip


CASES = (nginx, syslog, json_lines, service_zh, device_zh, ci_zh)

"""Results of more trades and tools: hosts, networks, versions, schools, courts, farms, notebooks, certificates, sources."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, planted, subject


def sar() -> Case:
    """Samples of a processor with an average below."""
    pick = dice("sar")
    rows = [
        f"{n // 6:02}:{n % 6}0:01        all {pick.random() * 20:>9.2f}      0.00 {pick.random() * 6:>9.2f} {pick.random() * 3:>9.2f}      0.00 {60 + pick.random() * 20:>9.2f}"
        for n in range(140)
    ]
    rows[88] = "14:40:01        all      3.11      0.00     11.02     84.37      0.00      1.50"
    text = (
        "Linux 6.8.0-51 (store-db-2)  11/12/2026  _x86_64_  (16 CPU)\n\n00:00:01        CPU     %user     %nice   %system   %iowait    %steal     %idle\n"
        + "\n".join(rows)
        + "\nAverage:        all     10.42      0.00      3.20      2.11      0.00     70.27\n"
    )
    return Case(
        "field/sar", "en", "bash", {"command": "sar -u"},
        text,
        (("store-db-2", "%iowait", "CPU"), ("70.27", "Average", "140", "84.37")),
        (("When did store-db-2 wait longest for its disks?", "14:40:01"), ("store-db-2 当天 CPU 平均空闲率是多少？", "70.27")),
    )  # fmt: skip


def dmesg() -> Case:
    """A kernel that kills a process."""
    pick = dice("dmesg")
    lines = [
        f"[{n * 37.113:12.6f}] {pick.choice(('eth0: link up', 'audit: type=1400 apparmor allowed', 'usb 1-2: new high-speed device', 'EXT4-fs (sdb1): re-mounted', 'nfs: server nas-3 OK'))} {pick.getrandbits(16)}"
        for n in range(220)
    ]
    lines += [
        "[ 8211.400121] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task=vectorizer,pid=40112,uid=998",
        "[ 8211.400233] Memory cgroup out of memory: Killed process 40112 (vectorizer) total-vm:91822140kB, anon-rss:33550208kB, UID:998",
        "[ 8212.001200] docker0: port 3(veth9a) entered disabled state",
    ]
    return Case(
        "field/dmesg", "en", "bash", {"command": "dmesg"},
        "\n".join(lines),
        (("out of memory", "oom-kill"), ("vectorizer",)),
        (("How much resident memory did the killed vectorizer have?", "anon-rss:33550208kB"), ("被内核杀掉的进程号是多少？", "Killed process 40112")),
    )  # fmt: skip


def certificate() -> Case:
    """A certificate as text."""
    pick = dice("certificate")
    lines = "\n".join(
        "                    " + ":".join(f"{pick.randrange(256):02x}" for _ in range(15)) for _ in range(60)
    )
    text = f"""Certificate:
    Data:
        Version: 3 (0x2)
        Serial Number: 04:be:71:9c:02
        Signature Algorithm: ecdsa-with-SHA384
        Issuer: C = NO, O = Fjordtrust, CN = Fjordtrust Issuing CA 7
        Validity
            Not Before: Aug 14 00:00:00 2026 GMT
            Not After : Nov 12 23:59:59 2026 GMT
        Subject: CN = tickets.skerry.example
        Subject Public Key Info:
            Public Key Algorithm: rsaEncryption
                Modulus:
{lines}
        X509v3 extensions:
            X509v3 Subject Alternative Name:
                DNS:tickets.skerry.example, DNS:gate.skerry.example
"""
    return Case(
        "field/certificate", "en", "bash", {"command": "openssl x509 -in server.pem -noout -text"},
        text,
        (("certificate",), ("tickets.skerry.example", "Nov 12 23:59:59 2026", "Fjordtrust")),
        (("When does the certificate of the ticket shop expire?", "Nov 12 23:59:59 2026 GMT"), ("这张证书是哪个机构签发的？", "Fjordtrust Issuing CA 7")),
    )  # fmt: skip


def blame_zh() -> Case:
    """Lines with who wrote them, remarks in Chinese."""
    pick = dice("blame zh")
    people = ("王磊", "赵敏", "何静", "岑立")
    lines = [
        f"{pick.getrandbits(32):08x} ({pick.choice(people)} 2026-0{pick.randrange(1, 9)}-1{pick.randrange(9)} 10:0{pick.randrange(9)}:11 +0800 {n + 1:>4})     {pick.choice(('total += line.amount', 'if line.hidden: continue', 'rows.append(line)', 'ledger.flush()'))}  # {subject('code_comment_zh').sentence(pick)}"
        for n in range(150)
    ]
    lines[97] = (
        "a91f30c2 (钟离 2025-12-24 23:58:40 +0800   98)     return round(total * 0.97, 2)  # 临时打九七折，春节后删除"
    )
    return Case(
        "field/blame-zh", "zh", "git_blame", {"file": "settle/bill.py"},
        "\n".join(lines),
        (("150", "blame"), ("王磊", "赵敏", "何静", "岑立", "作者")),
        (("谁加的临时九七折？", "钟离"), ("When should the temporary discount have been deleted?", "春节后删除")),
    )  # fmt: skip


def notebook_zh() -> Case:
    """A notebook as its file, cells with outputs."""
    pick = dice("notebook zh")
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "markdown",
            "metadata": {},
            "source": ["# 共享单车投放量预测\n", "目标：预测下周各网格的需求"],
        }
    ]
    cells += [
        {
            "cell_type": "code",
            "execution_count": n,
            "metadata": {},
            "source": [f"df_{n} = load('grid_{n}.parquet')\n", f"df_{n}.describe()"],
            "outputs": [
                {
                    "output_type": "stream",
                    "name": "stdout",
                    "text": [
                        f"共 {pick.randrange(1000, 9000)} 行，缺失 {pick.randrange(90)} 个\n",
                        subject("metro").sentence(pick) + "\n",
                    ],
                }
            ],
        }
        for n in range(40)
    ]
    cells.append(
        {
            "cell_type": "code",
            "execution_count": 41,
            "metadata": {},
            "source": ["evaluate(model)"],
            "outputs": [
                {
                    "output_type": "stream",
                    "name": "stdout",
                    "text": ["测试集 MAPE = 11.83%，比线上模型低 2.4 个百分点\n"],
                }
            ],
        }
    )
    return Case(
        "field/notebook-zh", "zh", "read_file", {"path": "bike.ipynb"},
        js({"cells": cells, "metadata": {"kernelspec": {"name": "python3"}}, "nbformat": 4, "nbformat_minor": 5}, 1),
        (("42",), ("cells", "共享单车", "单元")),
        (("模型在测试集上的 MAPE 是多少？", "11.83%"), ("What does the notebook predict?", "共享单车投放量预测")),
    )  # fmt: skip


def judgment_zh() -> Case:
    """A judgment of a court."""
    pick = dice("judgment")
    body = planted(
        subject("clause_zh").paragraphs(pick, 6_500),
        (0.2, "本院经审理查明：2025 年 6 月 3 日，被告仓库屋面坍塌，原告寄存的 412 台冷柜受损。"),
        (
            0.9,
            "判决如下：一、被告甬江仓储有限公司于本判决生效之日起十日内赔偿原告损失 1,836,400 元；二、驳回原告其他诉讼请求。",
        ),
    )
    text = "\n".join(
        [
            "浙江省临江市中级人民法院",
            "民事判决书",
            "（2026）浙 09 民终 1127 号",
            "上诉人（原审被告）：甬江仓储有限公司",
            "被上诉人（原审原告）：北极光冷链股份有限公司",
            *body,
            "审判长  苏勉",
            "二〇二六年十月十五日",
        ]
    )
    return Case(
        "field/judgment-zh", "zh", "get_case", {"案号": "（2026）浙09民终1127号"},
        text,
        (("民事判决书", "中级人民法院"), ("甬江仓储", "北极光冷链", "1127 号", "1,836,400")),
        (("被告要赔多少钱？", "1,836,400 元"), ("How many freezers were damaged when the roof fell?", "412 台冷柜")),
    )  # fmt: skip


def grades_zh() -> Case:
    """Marks of a class, JSON with columns apart from rows."""
    pick = dice("grades")
    rows: list[list[Any]] = [
        [
            f"2026{n:04}",
            pick.choice("赵钱孙李周吴郑王")
            + pick.choice(("晓", "宇", "梓", "一"))
            + pick.choice(("航", "涵", "诺", "凡")),
            pick.randrange(60, 100),
            pick.randrange(60, 100),
            pick.randrange(60, 100),
        ]
        for n in range(130)
    ]
    rows[71] = ["20260071", "欧阳明远", 100, 99, 38]
    return Case(
        "field/grades-zh", "zh", "query_grades", {"班级": "高二"},
        js({"columns": ["学号", "姓名", "语文", "数学", "体育"], "data": rows, "index": list(range(130))}),
        (("130",), ("学号", "姓名", "语文")),
        (("谁的体育只考了 38 分？", "欧阳明远"), ("What is the student number of the pupil with 99 in mathematics and 38 in sports?", "20260071")),
    )  # fmt: skip


def qdrant() -> Case:
    """Points with payloads."""
    pick = dice("qdrant en")
    points = [
        {
            "id": pick.getrandbits(40),
            "version": 3,
            "score": round(0.88 - n / 100, 4),
            "payload": {
                "doc": pick.choice(("greenhouse-manual.pdf", "irrigation-faq.md", "pest-log.csv")),
                "page": n,
                "text": subject("manual").sentences(pick, 3),
            },
            "vector": None,
        }
        for n in range(15)
    ]
    points[9]["payload"] = {
        "doc": "pest-log.csv",
        "page": 212,
        "text": "Whitefly was seen in bay 14 on 3 May; Encarsia was released at 5 per square metre and the count fell below the threshold in 19 days.",
    }
    return Case(
        "field/qdrant", "en", "vector_search", {"query": "whitefly", "top_k": 15},
        js({"result": {"points": points}, "status": "ok", "time": 0.0041}),
        (("15",), ("greenhouse-manual.pdf", "irrigation-faq.md", "pest-log.csv")),
        (("How long did it take until the whitefly count fell?", "19 days"), ("粉虱出现在几号棚？", "bay 14")),
    )  # fmt: skip


def duckdb() -> Case:
    """A table drawn with lines, cut in the middle."""
    pick = dice("duckdb")
    rows = [
        f"│ {pick.choice(('Vigo', 'Faro', 'Cork', 'Brest')):<8} │ {pick.choice(('cod', 'eel', 'bass')):<7} │ {pick.randrange(10, 900):>6} │ 2026-0{pick.randrange(1, 9)}-0{pick.randrange(1, 9)} │"
        for _ in range(40)
    ]
    rows[21] = "│ Galway   │ lobster │      7 │ 2026-05-31 │"
    bar = "─"
    text = "\n".join(
        [
            f"┌{bar * 10}┬{bar * 9}┬{bar * 8}┬{bar * 12}┐",
            "│   port   │ species │ crates │   landed   │",
            "│ varchar  │ varchar │ int64  │    date    │",
            f"├{bar * 10}┼{bar * 9}┼{bar * 8}┼{bar * 12}┤",
            *rows[:20],
            "│    ·     │    ·    │      · │     ·      │",
            *rows[20:],
            f"├{bar * 10}┴{bar * 9}┴{bar * 8}┴{bar * 12}┤",
            "│ 91204 rows (40 shown)          4 columns │",
            f"└{bar * 42}┘",
        ]
    )
    return Case(
        "field/duckdb", "en", "duckdb", {"sql": "from landings"},
        text,
        (("91204", "91,204"), ("port", "species", "crates")),
        (("On which day did Galway land lobster?", "2026-05-31"),),
    )  # fmt: skip


def maven_tree_zh() -> Case:
    """Dependencies in a tree, with a conflict; the log is Maven's."""
    pick = dice("maven tree")
    lines = [
        f"[INFO] {pick.choice(('+- ', '|  +- ', '|  |  +- ', '|  +-+ '))}{pick.choice(('org.apache', 'com.alibaba', 'io.netty', 'cn.hutool'))}:{pick.choice(('codec', 'core', 'json', 'pool'))}-{n}:jar:{pick.randrange(1, 6)}.{pick.randrange(20)}.{pick.randrange(9)}:compile"
        for n in range(210)
    ]
    lines[133] = (
        "[INFO] |  |  \\- (com.google.guava:guava:jar:20.0:compile - omitted for conflict with 33.3.1-jre)"
    )
    text = "\n".join(
        [
            "[INFO] 正在扫描项目...",
            "[INFO] --- dependency:3.8.1:tree (default-cli) @ 清分服务 ---",
            "[INFO] com.bank:clearing:jar:8.2.0-SNAPSHOT",
            *lines,
            "[INFO] BUILD SUCCESS",
            "[INFO] 总耗时：12.204 s",
        ]
    )
    return Case(
        "field/maven-tree-zh", "zh", "bash", {"command": "mvn dependency:tree -Dverbose"},
        text,
        (("BUILD SUCCESS", "成功"), ("清分服务", "clearing", "dependency", "依赖")),
        (("guava 20.0 因为和哪个版本冲突被忽略？", "33.3.1-jre"),),
    )  # fmt: skip


def minified() -> Case:
    """A bundle on one line."""
    pick = dice("minified")
    parts = [
        f'function {pick.choice("abcdefgh")}{n}(e,t){{return e.{pick.choice(("map", "then", "push"))}(t=>t.{pick.choice("xyz")}+{pick.randrange(99)})}}var r{n}={{id:{n},k:"{pick.getrandbits(40):x}"}};'
        for n in range(190)
    ]
    parts[120] += 'window.__telemetry="https://collect.quietmetrics.example/v2/beacon";'
    return Case(
        "field/minified", "en", "fetch", {"url": "https://cdn.example/app.min.js"},
        '/*! harbourline-ui v9.4.1 | (c) Harbourline | BSD-3-Clause */!function(){"use strict";' + "".join(parts) + "}();",
        (("harbourline-ui",), ("javascript", "code", "v9.4.1", "min")),
        (("To which address does harbourline-ui report?", "collect.quietmetrics.example"),),
    )  # fmt: skip


def traceroute_zh() -> Case:
    """A probe of a network; short."""
    text = """PING 10.66.4.20 (10.66.4.20) 56(84) bytes of data.
64 bytes from 10.66.4.20: icmp_seq=1 ttl=58 time=4.11 ms
64 bytes from 10.66.4.20: icmp_seq=4 ttl=58 time=912 ms
来自 10.66.0.1 icmp_seq=5 目标主机不可达

--- 10.66.4.20 ping 统计 ---
已发送 50 个包，已接收 17 个包，66% 丢包，耗时 50112 毫秒
rtt 最小/平均/最大/偏差 = 4.011/388.204/912.551/301.900 ms
"""
    return Case(
        "field/ping-zh", "zh", "bash", {"command": "ping -c 50 10.66.4.20"},
        text,
        (("66%", "丢包"), ("10.66.4.20",)),
        (("What is the average round trip to 10.66.4.20?", "388.204"),),
    )  # fmt: skip


def mcp_error() -> Case:
    """A tool that failed, as MCP says it; short."""
    body = {
        "content": [
            {
                "type": "text",
                "text": "Error executing tool create_branch: 422 Validation Failed. Reference already exists: refs/heads/release/2026.46",
            }
        ],
        "isError": True,
    }
    return Case(
        "field/mcp-error", "en", "create_branch", {"name": "x"},
        js(body),
        (("422", "Validation Failed", "already exists"),),
        (("Which branch existed already?", "release/2026.46"),),
    )  # fmt: skip


def weather_xml() -> Case:
    """Observations as XML with attributes."""
    pick = dice("weather")
    rows = "".join(
        f"<obs station='{1000 + n}' name='{pick.choice(('Skagen', 'Thyboron', 'Gedser', 'Hanstholm'))} {n}'><t unit='C'>{pick.random() * 12:.1f}</t><wind unit='m/s'>{pick.random() * 18:.1f}</wind></obs>"
        for n in range(120)
    )
    rows = rows.replace("<obs station='1064'", "<obs station='1064' alert='storm surge 1.92 m at 04:10'")
    return Case(
        "field/weather-xml", "en", "http_get", {"url": "https://met.example/obs.xml"},
        f"<?xml version='1.0'?><observations issued='2026-11-12T03:00Z' region='Kattegat'>{rows}</observations>",
        (("120", "obs"), ("Kattegat", "observations", "station")),
        (("How high is the storm surge in the Kattegat observations?", "storm surge 1.92 m"), ("卡特加特海峡观测数据的发布时间？", "2026-11-12T03:00Z")),
    )  # fmt: skip


def complaints_zh() -> Case:
    """Rows of a search engine in Chinese."""
    pick = dice("complaints")
    hits = [
        {
            "_index": "hotline-2026",
            "_id": f"H{n:05}",
            "_score": round(9.1 - n / 9, 3),
            "_source": {
                "标题": f"{pick.choice(('噪音扰民', '路灯不亮', '井盖缺失', '违停占道'))}（{pick.choice(('东', '西', '南'))}城区第 {n} 件）",
                "内容": subject("property").sentences(pick, 2)
                if subject("property").space == ""
                else subject("support_zh").sentences(pick, 2),
                "承办": pick.choice(("城管局", "住建局", "交警队")),
            },
        }
        for n in range(22)
    ]
    hits[13]["_source"] = {
        "标题": "幼儿园旁化工气味",
        "内容": "文澜幼儿园旁夜间有刺鼻气味，经查为隔壁印刷厂丁酮泄漏，已责令停产。",
        "承办": "生态环境局",
    }
    return Case(
        "field/hotline-es-zh", "zh", "es_query", {"index": "hotline-2026"},
        js({"took": 8, "timed_out": False, "_shards": {"total": 5, "successful": 5, "failed": 0}, "hits": {"total": {"value": 3391, "relation": "eq"}, "max_score": 9.1, "hits": hits}}),
        (("3391", "3,391", "22"), ("噪音扰民", "路灯不亮", "井盖缺失", "违停占道", "hotline-2026")),
        (("幼儿园旁的刺鼻气味是什么泄漏？", "丁酮泄漏"), ("Which office handled the chemical smell beside the kindergarten?", "生态环境局")),
    )  # fmt: skip


def stored_mail_zh() -> Case:
    """A mail with a quoted thread, in Chinese."""
    pick = dice("mail zh")
    text = (
        "发件人: 罗蕊 <luorui@corp.example>\n收件人: 采购组\n日期: 2026-11-09 18:22\n主题: 回复：二期冷库压缩机改型\n\n"
        + "\n\n".join(
            planted(
                subject("supply").paragraphs(pick, 4_000),
                (0.5, "结论：同意改用并联螺杆机组，单价上浮不超过 6%，交期压到 12 月 20 日前。"),
            )
        )
        + "\n\n> 发件人: 王磊\n> 主题: 二期冷库压缩机改型\n> 原机型停产，请尽快确认。"
    )
    return Case(
        "field/mail-zh", "zh", "read_mail", {"id": "m-88"},
        text,
        (("冷库压缩机改型",), ("罗蕊", "邮件", "2 封")),
        (("压缩机的交期要压到什么时候？", "12 月 20 日前"), ("By how much may the unit price of the compressors rise?", "不超过 6%")),
    )  # fmt: skip


CASES = (
    sar, dmesg, certificate, blame_zh, notebook_zh, judgment_zh, grades_zh, qdrant, duckdb, maven_tree_zh, minified, traceroute_zh,
    mcp_error, weather_xml, complaints_zh, stored_mail_zh,
)  # fmt: skip

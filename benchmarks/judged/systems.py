"""What machines say about themselves: processes, disks, pods, requests, metrics, query plans; and XML and feeds."""

from benchmarks.judged.case import Case, dice, planted, subject


def processes() -> Case:
    """All processes, by memory."""
    pick = dice("ps")
    lines = [
        f"{pick.choice(('app', 'root', 'www-data', 'postgres')):<10}{pick.randrange(200, 40_000):>6} {pick.random() * 4:>4.1f} {pick.random() * 3:>4.1f} {pick.randrange(10**5, 10**7):>9} {pick.randrange(10**3, 10**6):>8} ?        S    Nov14   {pick.randrange(60)}:{pick.randrange(60):02} {pick.choice(('/usr/sbin/nginx: worker process', 'postgres: autovacuum worker', 'node dist/server.js', 'python -m worker --queue mail', '[kworker/3:1-events]'))}"
        for _ in range(190)
    ]
    lines = planted(
        lines,
        (
            0.33,
            "app        31877 389.0 61.4 214748364 80530636 ?      Rl   Nov15 911:07 java -Xmx96g -jar lake-export.jar --all-tenants",
        ),
    )
    return Case(
        "systems/ps", "en", "bash", {"command": "ps aux"},
        "USER         PID %CPU %MEM       VSZ      RSS TTY      STAT START   TIME COMMAND\n" + "\n".join(lines),
        (("191", "lake-export"), ("process", "PID", "java", "COMMAND")),
        (("Which java process eats most of the memory?", "lake-export.jar"),),
    )  # fmt: skip


def disks_zh() -> Case:
    """A short table in Chinese; one disk is full."""
    text = """文件系统                        容量  已用  可用 已用% 挂载点
udev                             63G     0   63G    0% /dev
tmpfs                            13G  2.1M   13G    1% /run
/dev/nvme0n1p2                  439G  121G  296G   30% /
/dev/nvme1n1                    3.5T  3.5T  1.1G  100% /data/采集
/dev/sda1                       7.3T  4.4T  2.6T   64% /backup
10.20.1.8:/export/影像           41T   33T  8.1T   81% /mnt/影像
"""
    return Case(
        "systems/df-zh", "zh", "bash", {"command": "df -h"},
        text,
        (("100%",), ("/data/采集", "nvme1n1")),
        (("How much room is left on /mnt/影像?", "8.1T"),),
    )  # fmt: skip


def pods_table() -> Case:
    """Pods in a table, a few of them unwell."""
    pick = dice("kubectl")
    lines = [
        f"{pick.choice(('shop', 'billing', 'search', 'monitoring')):<12}{pick.choice(('cart', 'quotes', 'mailer', 'indexer')) + '-' + format(pick.getrandbits(36), '09x'):<34}1/1     Running            {pick.randrange(3)}             {pick.randrange(1, 90)}d"
        for _ in range(170)
    ]
    lines = planted(
        lines,
        (0.4, "billing     dunning-cron-29384750-qqx7z       0/1     ImagePullBackOff   0             6h12m"),
        (0.75, "search      indexer-0                         1/2     CrashLoopBackOff   318 (2m ago)   31h"),
    )
    return Case(
        "systems/kubectl-pods", "en", "kubectl", {"args": "get pods -A"},
        "NAMESPACE   NAME                              READY   STATUS             RESTARTS      AGE\n" + "\n".join(lines),
        (("CrashLoopBackOff", "172"), ("pods", "Running", "ImagePullBackOff", "indexer-0")),
        (("Which billing pod cannot pull its image?", "dunning-cron-29384750-qqx7z"), ("search 命名空间里 CrashLoopBackOff 重启三百多次的 pod 是哪个？", "indexer-0")),
    )  # fmt: skip


def curl_verbose() -> Case:
    """A request with all that was said on the wire, of middling length; refused."""
    pick = dice("curl")
    cookies = [
        f"< set-cookie: _s{n}={pick.getrandbits(200):050x}; Path=/; HttpOnly; SameSite=Lax" for n in range(40)
    ]
    lines = [
        "* Host api.partner.example:443 was resolved.", "* IPv4: 192.0.2.61", "*   Trying 192.0.2.61:443...", "* ALPN: curl offers h2,http/1.1", "* TLSv1.3 (OUT), TLS handshake, Client hello (1):", "* SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384 / X25519MLKEM768",
        "*  subject: CN=api.partner.example", "*  expire date: Jan  9 23:59:59 2027 GMT", "> POST /v3/settlements HTTP/2", "> Host: api.partner.example", "> authorization: Bearer [redacted]", "> content-type: application/json", "> content-length: 412", ">", "* upload completely sent off: 412 bytes",
        "< HTTP/2 429", "< retry-after: 1740", '< x-ratelimit-policy: "settlements";q=50;w=3600', *cookies, "<", '{"type":"about:blank","title":"Too Many Requests","detail":"Quota of 50 settlements per hour used up by client svc-recon"}', "* Connection #0 to host api.partner.example left intact",
    ]  # fmt: skip
    return Case(
        "systems/curl", "en", "bash", {"command": "curl -v https://api.partner.example/v3/settlements -d @s.json"},
        "\n".join(lines),
        (("429", "too many requests"),),
        (("How long must we wait before we send settlements to the partner again?", "retry-after: 1740"), ("api.partner.example 返回 429，settlements 额度被谁用光了？", "client svc-recon")),
    )  # fmt: skip


def metrics() -> Case:
    """An exporter's page."""
    pick = dice("metrics")
    lines: list[str] = []
    for name in (
        "http_requests_total",
        "queue_depth",
        "db_pool_in_use",
        "cache_hits_total",
        "job_duration_seconds",
        "gc_pause_seconds",
        "tenant_quota_ratio",
    ):
        lines += [
            f"# HELP {name} {subject('code_comment').sentence(pick)}",
            f"# TYPE {name} {'counter' if name.endswith('total') else 'gauge'}",
        ]
        lines += [
            f'{name}{{service="{pick.choice(("cart", "quotes", "ledger"))}",zone="{pick.choice("abc")}",shard="{n}"}} {pick.random() * 1000:.3f}'
            for n in range(64)
        ]
    lines = planted(lines, (0.86, 'tenant_quota_ratio{service="ledger",zone="b",tenant="altamira"} 1.37'))
    return Case(
        "systems/prometheus", "en", "http_get", {"url": "http://ledger:9102/metrics"},
        "\n".join(lines) + "\n",
        (("metrics", "prometheus", "HELP", "指标"), ("http_requests_total", "queue_depth", "7")),
        (("Which tenant of the ledger is over its quota?", 'tenant="altamira"'),),
        wrong=("markdown document",),
    )  # fmt: skip


def explain_zh() -> Case:
    """A plan with its times, nested, and remarks of the console in Chinese."""
    pick = dice("explain zh")
    lines = [
        "执行计划（EXPLAIN ANALYZE），语句编号 Q-5531",
        "Limit  (cost=88123.41..88123.91 rows=200 width=312) (actual time=41877.204..41877.310 rows=200 loops=1)",
    ]
    for n in range(1, 60):
        node = pick.choice(
            (
                "Nested Loop",
                "Hash Join",
                "Index Scan using idx_order_time on t_order",
                "Bitmap Heap Scan on t_item",
                "Sort",
                "Materialize",
            )
        )
        lines += [
            f"{'  ' * (n % 24)}->  {node}  (cost={pick.random() * 900:.2f}..{pick.random() * 90000:.2f} rows={pick.randrange(1, 9999)} width={pick.randrange(8, 400)}) (actual time={pick.random() * 9:.3f}..{pick.random() * 90:.3f} rows={pick.randrange(9999)} loops=1)",
            f"{'  ' * (n % 24)}      Buffers: shared hit={pick.randrange(9999)} read={pick.randrange(900)}",
        ]
    lines = planted(
        lines,
        (
            0.78,
            "                    ->  Seq Scan on t_refund_archive  (cost=0.00..2841190.00 rows=91 width=88) (actual time=11.3..39904.8 rows=48211870 loops=1)",
        ),
        (
            0.8,
            "                          Filter: ((order_no)::text = (o.order_no)::text)  -- 隐式转换导致索引失效",
        ),
    )
    lines += [" Planning Time: 3.118 ms", " Execution Time: 41902.556 ms", "(124 行记录)"]
    return Case(
        "systems/explain-zh", "zh", "explain_sql", {"id": "Q-5531"},
        "\n".join(lines),
        (("41902", "41877", "41.9"), ("Execution Time", "执行计划", "EXPLAIN", "plan", "Limit")),
        (("Q-5531 的执行计划里全表扫描（Seq Scan）的是哪张表？", "t_refund_archive"), ("Why did the slow query Q-5531 use no index?", "隐式转换导致索引失效")),
    )  # fmt: skip


def pom_zh() -> Case:
    """A Maven file with remarks."""
    pick = dice("pom zh")
    dependencies = [
        f"    <dependency>\n      <groupId>{pick.choice(('org.springframework', 'com.alibaba', 'io.netty', 'org.apache.poi'))}</groupId>\n      <artifactId>{pick.choice(('core', 'druid', 'handler', 'ooxml'))}-{n}</artifactId>\n      <version>{pick.randrange(1, 7)}.{pick.randrange(30)}.{pick.randrange(9)}</version>\n    </dependency>"
        for n in range(48)
    ]
    dependencies = planted(
        dependencies,
        (
            0.7,
            "    <!-- 国密算法库，升级到 1.78 以上会导致旧签名验不过，勿动 -->\n    <dependency>\n      <groupId>org.bouncycastle</groupId>\n      <artifactId>bcprov-jdk18on</artifactId>\n      <version>1.77</version>\n    </dependency>",
        ),
    )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<project xmlns="http://maven.apache.org/POM/4.0.0">\n  <modelVersion>4.0.0</modelVersion>\n  <groupId>com.yunshang</groupId>\n  <artifactId>settle-core</artifactId>\n  <version>3.7.0</version>\n  <name>结算核心</name>\n  <dependencies>\n'
        + "\n".join(dependencies)
        + "\n  </dependencies>\n</project>\n"
    )
    return Case(
        "systems/pom-zh", "zh", "read_file", {"path": "settle-core/pom.xml"},
        text,
        (("settle-core", "结算核心"), ("49", "dependenc", "依赖", "maven", "3.7.0")),
        (("settle-core 的 pom 里国密库为什么不能升级？", "会导致旧签名验不过"),),
    )  # fmt: skip


def rss_zh() -> Case:
    """A feed of news."""
    pick = dice("rss zh")
    items: list[str] = []
    for n in range(40):
        title = f"{pick.choice(('储能', '光伏', '风电', '电网'))}{pick.choice(('项目开工', '招标公告', '技术突破', '价格周报'))}第{n + 1}期"
        text = subject("solar").sentences(pick, 4)
        if n == 24:
            title, text = (
                "海南首座钠电储能电站并网",
                "该站规模 60 兆瓦/120 兆瓦时，由琼能集团投资，系统效率实测 86.4%，度电成本 0.29 元。",
            )
        items.append(
            f"<item><title><![CDATA[{title}]]></title><link>https://news.example.cn/{n}</link><description><![CDATA[<p>{text}</p>]]></description><pubDate>Mon, 16 Nov 2026 0{n % 9}:00:00 +0800</pubDate><guid>{n}</guid></item>"
        )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>新能源日报</title><link>https://news.example.cn</link><description>每日要闻</description>'
        + "\n".join(items)
        + "</channel></rss>"
    )
    return Case(
        "systems/rss-zh", "zh", "fetch_feed", {"url": "https://news.example.cn/rss.xml"},
        text,
        (("新能源日报",), ("40", "RSS", "feed", "储能", "光伏")),
        (("海南钠电储能电站的效率有多高？", "系统效率实测 86.4%"), ("Who invested in the sodium storage plant on Hainan?", "琼能集团")),
        wrong=("CDATA",),
    )  # fmt: skip


def soap() -> Case:
    """A fault in an envelope, short."""
    text = """<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/">
  <soapenv:Body>
    <soapenv:Fault>
      <faultcode>soapenv:Client</faultcode>
      <faultstring>VAT number PL5842751979 is not registered for intra-community trade</faultstring>
      <detail><err:code xmlns:err="urn:tax">VIES-12</err:code></detail>
    </soapenv:Fault>
  </soapenv:Body>
</soapenv:Envelope>
"""
    return Case(
        "systems/soap-fault", "en", "call_soap", {"operation": "checkVat"},
        text,
        (("not registered", "VIES-12", "PL5842751979"),),
        (("Which code did the VAT check fail with?", "VIES-12"),),
    )  # fmt: skip


CASES = (processes, disks_zh, pods_table, curl_verbose, metrics, explain_zh, pom_zh, rss_zh, soap)

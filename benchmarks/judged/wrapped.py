"""Long texts inside JSON: MCP servers, web fetches, shells, notebooks, wikis and chats."""

import json

from benchmarks.judged.case import Case, dice, js, planted, subject


def mcp_fetch() -> Case:
    """A fetched page as an MCP server's text block."""
    pick = dice("mcp fetch")
    parts = planted(
        subject("incident").paragraphs(pick, 56_000),
        (0.0, "# Postmortem: checkout outage of 14 October\n\nStatus: final. Author: Platform Reliability."),
        (0.02, "## Timeline"),
        (0.31, ("## Root cause\n\nA certificate of the ledger writer's mutual TLS expired at 02:10 UTC; the "
               "renewal job had been silently disabled by flag `certbot_pause` on 3 October.")),
        (0.64, "## Impact\n\nIn total 18,412 carts could not be paid and refunds of EUR 96,300 were issued."),
        (0.93, "## Action items\n\nExpiry alerts at 21 days go to Priyanka Raghunathan's team, due 30 November."),
    )  # fmt: skip
    return Case(
        "wrapped/mcp-fetch", "en", "fetch", {"url": "https://wiki.ledgerly.example/postmortems/2026-10-14"},
        js([{"type": "text", "text": "Contents of the page:\n" + "\n\n".join(parts)}]),
        (("checkout outage",), ("postmortem",)),
        (
            ("What was the technical reason for the checkout outage in October?", "renewal job had been silently disabled"),
            ("How much money did the October checkout outage cost us in repayments to customers?", "EUR 96,300"),
            ("10 月 14 日结账故障之后，证书快到期由谁来提醒？", "Priyanka Raghunathan"),
        ),
    )  # fmt: skip


def mcp_fetch_zh() -> Case:
    """The same in Chinese, two blocks, the second a resource link."""
    pick = dice("mcp fetch zh")
    parts = planted(
        subject("solar").paragraphs(pick, 36_000),
        (0.0, "# 青山湖光伏电站 2026 年三季度运维报告"),
        (0.3, "## 二、发电情况\n\n三季度上网电量 4,318 万千瓦时，等效利用小时数 338 小时，同比下降 6.2%。"),
        (0.6, "## 四、主要缺陷\n\n9 月 12 日箱变 B07 低压侧铜排过热，最高温度 118℃，已更换并复电。"),
        (0.95, "## 六、下季度计划\n\n10 月 25 日起分三批清洗组件，由中标单位浙江洁源承担，预算 46.8 万元。"),
    )
    text = "\n\n".join(parts)
    link = {"type": "resource_link", "uri": "file:///reports/2026Q3.pdf", "name": "2026Q3.pdf"}
    return Case(
        "wrapped/mcp-fetch-zh", "zh", "fetch_document", {"doc_id": "OM-2026-Q3"},
        js([{"type": "text", "text": text, "annotations": {"audience": ["assistant"]}}, link]),
        (("青山湖",), ("运维报告", "三季度")),
        (
            ("青山湖电站三季度一共卖出去多少电？", "4,318 万千瓦时"),
            ("Which transformer of the Qingshanhu solar plant overheated in September?", "箱变 B07"),
            ("青山湖洗光伏板的活儿交给谁做、花多少钱？", "浙江洁源"),
        ),
    )  # fmt: skip


def web_fetch() -> Case:
    """A page as `{url, title, content}`."""
    pick = dice("web fetch")
    parts = planted(
        subject("grid").paragraphs(pick, 57_000),
        (0.0, "Europe's storage build-out passed a milestone this spring, but the queues tell another story."),
        (0.44, ("According to the regulator's ledger, 71 GW of projects hold a signed connection offer and no "
               "financing, twice the figure of 2024.")),
        (0.83, ("The one exception is Estonia: its auction in Kiisa cleared at 37 euros per kilowatt-year, the "
               "lowest price ever recorded for a two-hour battery.")),
    )  # fmt: skip
    fetched = {
        "url": "https://www.wattreview.example/analysis/storage-queues-2026",
        "title": "Why grid storage queues keep growing",
        "status": 200,
        "content": "\n\n".join(parts),
        "links": [{"href": f"/analysis/{n}", "text": f"Related {n}"} for n in range(12)],
    }
    return Case(
        "wrapped/web-fetch", "en", "web_fetch", {"url": fetched["url"], "prompt": "storage queues"},
        js(fetched),
        (("storage queues", "storage build-out"),),
        (
            ("How much battery storage waits in the grid queue with permission but no money?", "71 GW"),
            ("欧洲储能拍卖里 Kiisa 那次最低成交价是多少？", "37 euros per kilowatt-year"),
        ),
    )  # fmt: skip


def crawl_zh() -> Case:
    """A crawler's `{data: {markdown, metadata}}`."""
    pick = dice("crawl zh")
    parts = planted(
        subject("support_zh").paragraphs(pick, 30_000),
        (0.0, "# 开放平台接入指南\n\n本页说明第三方系统如何接入云商开放平台。"),
        (0.25, "## 签名算法\n\n自 5.2 版起仅支持 SM3-HMAC，旧的 MD5 签名在 2026 年 12 月 31 日停用。"),
        (0.58, "## 限流\n\n单个应用默认每秒 40 次请求，超出返回 42901，申请提额请联系商务顾问。"),
        (
            0.88,
            "## 回调重试\n\n回调失败按 1、5、30 分钟重试三次，仍失败则进入“待人工处理”队列并保留 72 小时。",
        ),
    )
    meta = {
        "title": "开放平台接入指南",
        "sourceURL": "https://open.yunshang.example/guide",
        "statusCode": 200,
    }
    return Case(
        "wrapped/crawl-markdown-zh", "zh", "firecrawl_scrape", {"url": meta["sourceURL"], "formats": ["markdown"]},
        js({"success": True, "data": {"markdown": "\n\n".join(parts), "metadata": meta}}),
        (("开放平台接入指南", "开放平台"), ("接入",)),
        (
            ("云商开放平台原来的 MD5 方式还能用到什么时候？", "2026 年 12 月 31 日"),
            ("On the Yunshang open platform, what happens to a callback once every attempt has failed?", "待人工处理"),
            ("第三方应用调用开放平台，一秒钟最多几次？", "每秒 40 次"),
        ),
    )  # fmt: skip


def shell_stdout() -> Case:
    """A shell tool's answer around an Ansible run in which one host failed."""
    pick = dice("ansible")
    hosts = [f"web-{n:02}.fra" for n in range(1, 15)] + ["db-01.fra", "db-02.fra", "cache-01.fra"]
    tasks = (
        "Gathering Facts", "common : install base packages", "common : configure chrony",
        "common : rotate journald logs", "nginx : render site templates", "nginx : validate configuration",
        "nginx : reload service", "app : fetch release tarball", "app : unpack release", "app : link current",
        "app : run migrations", "app : restart worker units", "postgres : tune shared_buffers",
        "postgres : install pg_stat_statements", "redis : set maxmemory policy", "monitoring : node exporter",
        "monitoring : register scrape target", "security : apply sshd hardening", "security : update CA bundle",
    )  # fmt: skip
    lines: list[str] = ["PLAY [Roll out release 4.18.2] " + "*" * 50]
    for task in tasks:
        lines += ["", f"TASK [{task}] ".ljust(80, "*")]
        for host in hosts:
            state = pick.choice(("ok", "ok", "changed"))
            extra = (
                f" => (item=/srv/app/releases/4.18.2/{pick.getrandbits(40):010x})" if "app" in task else ""
            )
            lines.append(f"{state}: [{host}]{extra}")
        if task == "app : run migrations":
            lines.append(
                'fatal: [db-02.fra]: FAILED! => {"changed": true, "cmd": "bin/migrate up", "rc": 3, "stderr": '
                '"ERROR 0142_add_ledger_index: could not obtain lock on relation \\"ledger_entries\\""}'
            )
    lines += ["", "PLAY RECAP " + "*" * 69]
    for host in hosts:
        failed = int(host == "db-02.fra")
        lines.append(f"{host:<26}: ok={19 - 8 * failed} changed=7 unreachable=0 failed={failed} skipped=2")
    return Case(
        "wrapped/shell-ansible", "en", "bash", {"command": "ansible-playbook -i prod site.yml --diff"},
        js({"stdout": "\n".join(lines), "stderr": "", "exit_code": 2, "duration_ms": 312_884}),
        (("failed",), ("db-02", "run migrations", "exit code 2", "exit_code 2", "exit_code=2", "exit_code: 2")),
        (
            ("On which machine did the Ansible roll-out of 4.18.2 break?", "fatal: [db-02.fra]: FAILED!"),
            ("ansible 上线 4.18.2 时数据库迁移为什么没有成功？", "could not obtain lock on relation"),
        ),
        wrong=("search results", "搜索结果"),
    )  # fmt: skip


def shell_escaped_zh() -> Case:
    """A shell tool's answer whose Chinese is escaped, around a data migration."""
    pick = dice("migration zh")
    tables = ("会员档案", "积分流水", "优惠券", "门店库存", "退货单", "发票抬头", "收货地址", "评价")
    lines = ["[迁移] 开始：旧会员库 → 新会员库，批次大小 2000"]
    for batch in range(1, 301):
        table = tables[(batch - 1) * len(tables) // 300]
        took = pick.randrange(180, 2600)
        lines.append(f"[迁移] 批次 {batch:03d}/300 表={table} 写入 2000 行 用时 {took} 毫秒 校验通过")
        if batch == 187:
            lines.append("[警告] 批次 187 有 46 行手机号为空，已写入隔离表 member_quarantine，未导入")
    lines.append("[迁移] 完成：共 599,954 行，隔离 46 行，总用时 6 分 41 秒")
    return Case(
        "wrapped/shell-escaped-zh", "zh", "run_command", {"cmd": "python migrate_members.py --apply"},
        json.dumps({"stdout": "\n".join(lines), "stderr": "", "exit_code": 0}),
        (("迁移",), ("599,954", "599954", "隔离 46", "46 行", "300")),
        (
            ("会员库迁移时有多少会员没导进去，为什么？", "46 行手机号为空"),
            ("How many rows did the member database migration move in the end?", "599,954 行"),
        ),
        wrong=("\\u8fc1",),
    )  # fmt: skip


def notebook() -> Case:
    """A notebook cell's outputs: a stream, a table, a picture and an error."""
    pick = dice("notebook")
    epochs = [
        f"epoch {n:3d}/120 - loss: {2.4 / (n**0.5) + pick.random() / 9:.4f} - val_auc: {0.71 + n / 700:.4f} "
        f"- lr: {0.001 * 0.97**n:.2e} - {pick.randrange(40, 61)}s"
        for n in range(1, 121)
    ]
    epochs = planted(
        epochs, (0.61, "early stopping patience reset: best val_auc 0.8137 at epoch 73, saved ckpt_73.pt")
    )
    rows = [f"{n:<4}{pick.choice(('rural', 'urban', 'coast')):<8}{pick.random():.4f}" for n in range(60)]
    png = "iVBORw0KGgo" + "".join(pick.choices("ABCDEFGHIJKLMNOPabcdefghijklmnop0123456789+/", k=12_000))
    trace = [
        "\x1b[0;31m---------------------------------------------------------------------------\x1b[0m",
        "\x1b[0;31mOutOfMemoryError\x1b[0m                          Traceback (most recent call last)",
        (
            "Cell \x1b[0;32mIn[14], line 22\x1b[0m\n\x1b[1;32m     20\x1b[0m model.eval()\n---> 22 shap_values = "
            "explainer(X_valid)"
        ),
        "\x1b[0;31mOutOfMemoryError\x1b[0m: CUDA out of memory. Tried to allocate 11.40 GiB",
    ]
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": [line + "\n" for line in epochs]},
        {"output_type": "display_data", "data": {"image/png": png, "text/plain": ["<Figure size 900x500>"]}},
        {"output_type": "execute_result", "execution_count": 14, "data": {"text/plain": "\n".join(rows)}},
        {"output_type": "error", "ename": "OutOfMemoryError", "evalue": "CUDA out of memory. Tried to allocate "
         "11.40 GiB", "traceback": trace},
    ]  # fmt: skip
    return Case(
        "wrapped/notebook", "en", "execute_cell", {"notebook": "churn.ipynb", "cell": 14},
        js({"cell_id": "b7", "outputs": outputs}),
        (("OutOfMemoryError", "out of memory"),),
        (
            ("In the churn notebook, at which point of training was the model best?", "best val_auc 0.8137 at epoch 73"),
            ("How much GPU memory did the churn notebook ask for when SHAP crashed?", "11.40 GiB"),
        ),
        wrong=("iVBORw0KGgo",),
    )  # fmt: skip


def notion_zh() -> Case:
    """The blocks of a Notion page, one rich text each."""
    pick = dice("notion zh")
    texts = planted(
        [subject("supply").sentences(pick, 2) for _ in range(70)],
        (0.0, "年中大促供应链复盘"),
        (0.37, "最大的失误：显示面板安全库存按 7 天设置，实际补货周期是 19 天，断货 4 天损失约 320 万元。"),
        (0.78, "决议：从 8 月起合肥科立改为寄售模式，由沈曼秋跟进合同。"),
    )
    blocks = [
        {
            "object": "block",
            "id": f"{pick.getrandbits(128):032x}",
            "type": (kind := "heading_1" if n == 0 else "paragraph"),
            "has_children": False,
            kind: {
                "rich_text": [
                    {
                        "type": "text",
                        "text": {"content": text, "link": None},
                        "plain_text": text,
                        "href": None,
                    }
                ],
                "color": "default",
            },
        }
        for n, text in enumerate(texts)
    ]
    return Case(
        "wrapped/notion-blocks-zh", "zh", "notion_get_block_children", {"block_id": "f3a1", "page_size": 100},
        js({"object": "list", "results": blocks, "next_cursor": None, "has_more": False}),
        (("大促",), ("供应链复盘", "复盘")),
        (
            ("年中大促显示面板为什么会缺货？", "实际补货周期是 19 天"),
            ("Who looks after the new agreement with 合肥科立 after the mid-year promotion review?", "沈曼秋"),
        ),
    )  # fmt: skip


def confluence() -> Case:
    """A wiki page whose body is storage-format HTML in JSON."""
    pick = dice("confluence")
    parts = planted(
        [f"<p>{text}</p>" for text in subject("warehouse").paragraphs(pick, 30_000)],
        (0.05, "<h2>Receiving</h2>"),
        (0.4, ('<h2>Cold chain</h2><ac:structured-macro ac:name="warning"><ac:rich-text-body><p>Reject any reefer '
              "whose logger shows more than 9&nbsp;&deg;C for 25 minutes; call Odalys Ferrer before unloading."
              "</p></ac:rich-text-body></ac:structured-macro>")),
        (0.8, ("<h2>Audits</h2><table><tbody><tr><th>Auditor</th><th>Next visit</th></tr><tr><td>Bureau Lindqvist"
              "</td><td>11 March 2027</td></tr></tbody></table>")),
    )  # fmt: skip
    page = {
        "id": "88211457", "type": "page", "status": "current", "title": "Warehouse handbook: receiving and storage",
        "space": {"key": "OPS", "name": "Operations"},
        "version": {"number": 41, "when": "2026-09-02T09:14:11.000Z"},
        "body": {"storage": {"value": "".join(parts), "representation": "storage"}},
        "_links": {"webui": "/spaces/OPS/pages/88211457", "base": "https://ledgerly.example/wiki"},
    }  # fmt: skip
    return Case(
        "wrapped/confluence", "en", "confluence_get_page", {"page_id": "88211457"},
        js(page),
        (("warehouse handbook",),),
        (
            ("According to the warehouse handbook, when do the inspectors come next?", "11 March 2027"),
            ("仓库手册里冷藏车到货什么情况必须拒收？", "for 25 minutes"),
        ),
    )  # fmt: skip


def slack_mixed() -> Case:
    """A channel's history, in two languages as it is spoken there."""
    pick = dice("slack")
    users = ("U04ADA", "U07LIN", "U09MAX", "U02YUE", "U05SVE")
    texts = planted(
        [(subject("office") if pick.random() < 0.5 else subject("support_zh")).sentences(pick, 1) for _ in range(150)],
        (0.35, "<@U07LIN> 我们把灰度改到周四 22:00，先放 5% 流量，回滚口令是 `kite-down` :rotating_light:"),
        (0.7, ("Decision: we drop the Oracle connector from 3.4, only Banco Altamira still uses it (contract ends in "
              "February)")),
    )  # fmt: skip
    messages = [
        {"type": "message", "user": pick.choice(users), "text": text, "ts": f"17629{n:05}.{pick.randrange(10**6):06}",
         "team": "T1", "blocks": [{"type": "rich_text", "block_id": f"{pick.getrandbits(24):06x}"}]}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    return Case(
        "wrapped/slack-history", "mixed", "slack_conversations_history", {"channel": "C0RELEASE", "limit": 200},
        js({"ok": True, "messages": messages, "has_more": False, "pin_count": 0}),
        (("152",), ("message", "消息")),
        (
            ("In the release channel on Slack: how do we roll back if the staged release of Thursday goes wrong?", "kite-down"),
            ("Slack 里说 3.4 为什么可以砍掉 Oracle 连接器？", "only Banco Altamira still uses it"),
        ),
    )  # fmt: skip


def jira_zh() -> Case:
    """An issue with a document of nodes and thirty comments."""
    pick = dice("jira zh")
    told = planted(
        [subject("support_zh").sentences(pick, 4) for _ in range(30)],
        (
            0.5,
            "复现成功：只有在优惠券和积分同时抵扣、且实付为 0 元时触发，原因是 settle() 里除数为零被吞掉。",
        ),
        (0.9, "修复已合入 release/7.9，预计 11 月 20 日随补丁 7.9.3 上线，回归由测试组贺连胜负责。"),
    )
    comments = [
        {"id": str(70_100 + n), "author": {"displayName": pick.choice(("周以宁", "贺连胜", "马思远"))},
         "body": {"type": "doc", "version": 1, "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}]},
         "created": f"2026-11-{1 + n // 3:02}T10:{n:02}:00.000+0800"}
        for n, text in enumerate(told)
    ]  # fmt: skip
    fields = {
        "summary": "零元订单无法完成支付",
        "issuetype": {"name": "缺陷"}, "priority": {"name": "P1"}, "status": {"name": "处理中"},
        "assignee": {"displayName": "周以宁"}, "fixVersions": [{"name": "7.9.3"}],
        "comment": {"total": len(comments), "comments": comments},
    }  # fmt: skip
    return Case(
        "wrapped/jira-issue-zh", "zh", "jira_get_issue", {"issue_key": "PAY-3318"},
        js({"expand": "renderedFields", "id": "90112", "key": "PAY-3318", "fields": fields}),
        (("零元订单",),),
        (
            ("零元订单付不了款，到底什么情况下才会出现？", "优惠券和积分同时抵扣"),
            ("Who tests the fix for PAY-3318 before it ships?", "回归由测试组贺连胜负责"),
        ),
    )  # fmt: skip


def structured_content() -> Case:
    """An MCP answer that says the same twice, as text and as a structure."""
    pick = dice("structured")
    routes = [
        {"line": f"RB{pick.randrange(10, 99)}", "from": pick.choice(("Lindau", "Bregenz", "Kempten")),
         "to": pick.choice(("Ulm", "Augsburg", "Memmingen")), "depart": f"{5 + n // 6:02}:{n % 6 * 10:02}",
         "platform": pick.randrange(1, 9), "delay_min": pick.choice((0, 0, 0, 3, 7))}
        for n in range(96)
    ]  # fmt: skip
    routes[61] = {**routes[61], "line": "RB77", "delay_min": 54, "reason": "signal box fire at Hergatz"}
    found = {"date": "2026-11-16", "stations": ["Lindau", "Bregenz", "Kempten"], "departures": routes}
    return Case(
        "wrapped/mcp-structured", "en", "get_departures", {"date": "2026-11-16"},
        js({"content": [{"type": "text", "text": js(found)}], "structuredContent": found, "isError": False}),
        (("96",), ("departures",)),
        (("Why did the train RB77 leave so late?", "signal box fire at Hergatz"),),
    )  # fmt: skip


def github_issue() -> Case:
    """An issue of a code host with its comments, Markdown inside."""
    pick = dice("github issue")
    bodies = planted(
        [subject("incident").sentences(pick, 5) + "\n\n```\nlatency p99 " + f"{pick.random():.3f}s\n```" for _ in range(34)],
        (0.55, ('Bisected it: the regression came in with 9f31c0e ("reuse TLS sessions across tenants"). Setting '
               "`session_reuse: per_tenant` works around it.")),
        (0.97, "Released in v2.11.4, thanks everybody. Closing."),
    )  # fmt: skip
    issue = {
        "number": 4821, "title": "Memory grows without bound when many tenants share a proxy", "state": "closed",
        "user": {"login": "mkessler"}, "labels": [{"name": "bug"}, {"name": "memory"}],
        "body": "RSS of the proxy reaches 14 GB after two days. Heap profile attached.", "comments": len(bodies),
    }  # fmt: skip
    comments = [
        {"id": 2_400_000_000 + n, "user": {"login": pick.choice(("mkessler", "tavia", "bot-triage"))},
         "created_at": f"2026-10-{1 + n % 28:02}T08:00:00Z", "body": body, "reactions": {"+1": pick.randrange(9)}}
        for n, body in enumerate(bodies)
    ]  # fmt: skip
    return Case(
        "wrapped/github-issue", "en", "get_issue", {"owner": "proxyhaus", "repo": "gate", "issue_number": 4821},
        js({"issue": issue, "comments": comments}, 2),
        (("memory grows",),),
        (
            ("Is there a setting that helps against the proxy's growing memory until we upgrade gate?", "session_reuse: per_tenant"),
            ("gate 代理内存不断增长的问题（issue 4821）在哪个版本修好了？", "v2.11.4"),
        ),
    )  # fmt: skip


CASES = (
    mcp_fetch, mcp_fetch_zh, web_fetch, crawl_zh, shell_stdout, shell_escaped_zh, notebook, notion_zh, confluence,
    slack_mixed, jira_zh, structured_content, github_issue,
)  # fmt: skip

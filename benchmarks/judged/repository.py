"""What a repository and a folder look like from the command line: diffs, histories, listings."""

from benchmarks.judged.case import Case, dice, planted, subject


def diff() -> Case:
    """A change over several files; one hunk alters a default."""
    pick = dice("diff")
    lines: list[str] = []
    for n in range(26):
        name = f"src/{pick.choice(('queue', 'api', 'store', 'cli'))}/{pick.choice(('client', 'retry', 'config', 'routes', 'models'))}_{n}.py"
        lines += [
            f"diff --git a/{name} b/{name}",
            f"index {pick.getrandbits(28):07x}..{pick.getrandbits(28):07x} 100644",
            f"--- a/{name}",
            f"+++ b/{name}",
        ]
        for _ in range(pick.randrange(2, 6)):
            start = pick.randrange(9, 400)
            lines += [f"@@ -{start},8 +{start},9 @@ class {pick.choice(('Worker', 'Pool', 'Router'))}:", "     def run(self, job: Job) -> Outcome:", f"-        {subject('app_log').sentence(pick)!r}",
                      f"+        log.info({subject('app_log').sentence(pick)!r})", "+        metrics.jobs.inc()", "         outcome = self.execute(job)", "         return outcome"]  # fmt: skip
        if n == 17:
            lines += ["diff --git a/src/queue/visibility.py b/src/queue/visibility.py", "index 91b2c40..7e0d118 100644", "--- a/src/queue/visibility.py", "+++ b/src/queue/visibility.py", "@@ -14,7 +14,7 @@",
                      " #: Seconds before an unacknowledged job is handed out again.", "-VISIBILITY_TIMEOUT = 30", "+VISIBILITY_TIMEOUT = 900", " "]  # fmt: skip
    return Case(
        "repository/diff", "en", "bash", {"command": "git diff release-4.2...main"},
        "\n".join(lines) + "\n",
        (("27",), ("files", "diff")),
        (("With the changes since release-4.2, after how many seconds is a lost job of the queue handed out again?", "+VISIBILITY_TIMEOUT = 900"), ("release-4.2 里队列的 VISIBILITY_TIMEOUT 原来是多少？", "-VISIBILITY_TIMEOUT = 30")),
    )  # fmt: skip


def diff_zh() -> Case:
    """A change of documents and code, messages in Chinese."""
    pick = dice("diff zh")
    lines: list[str] = []
    for n in range(14):
        name = f"文档/{pick.choice(('接入', '运维', '计费'))}/{n:02d}.md"
        lines += [
            f"diff --git a/{name} b/{name}",
            f"--- a/{name}",
            f"+++ b/{name}",
            f"@@ -1,{pick.randrange(8, 40)} +1,{pick.randrange(8, 40)} @@",
            f"-{subject('support_zh').sentence(pick)}",
            f"+{subject('support_zh').sentence(pick)}",
            f" {subject('support_zh').sentence(pick)}",
            f"+{subject('support_zh').sentence(pick)}",
        ]
    lines += [
        "diff --git a/计费/rates.yaml b/计费/rates.yaml",
        "--- a/计费/rates.yaml",
        "+++ b/计费/rates.yaml",
        "@@ -3,6 +3,6 @@",
        " 短信:",
        "-  单价: 0.038",
        "+  单价: 0.045   # 2026-12-01 起生效",
        "   币种: CNY",
    ]
    return Case(
        "repository/diff-zh", "zh", "bash", {"command": "git diff HEAD~1"},
        "\n".join(lines) + "\n",
        (("15",), ("文件", "files", "diff")),
        (("计费 rates.yaml 里短信涨到多少钱一条？", "单价: 0.045"), ("From when on does the new price for text messages hold?", "2026-12-01 起生效")),
    )  # fmt: skip


def history_zh() -> Case:
    """A log of commits with bodies."""
    pick = dice("git log zh")
    entries: list[str] = []
    for n in range(150):
        who = pick.choice(("周以宁", "贺连胜", "马思远", "Elena Petrova"))
        title = (
            f"{pick.choice(('修复', '优化', '新增', '回退'))}：{subject('support_zh').sentence(pick)[:26]}"
        )
        body = subject("support_zh").sentence(pick) if n % 3 == 0 else ""
        if n == 97:
            title, body = (
                "回退：撤销订单分库",
                "上线后跨库分页漏单 1,140 笔，先退回单库，待分页改造完成后重做（见 RFC-31）。",
            )
        entries.append(
            f"commit {pick.getrandbits(160):040x}\nAuthor: {who} <dev{pick.randrange(30)}@yunshang.example>\nDate:   2026-{10 - n // 20:02}-{28 - n % 20:02} 1{n % 10}:20:00 +0800\n\n    {title}\n"
            + (f"\n    {body}\n" if body else "")
        )
    return Case(
        "repository/git-log-zh", "zh", "bash", {"command": "git log -n 150"},
        "\n".join(entries),
        (("150",), ("commit", "提交")),
        (("订单分库为什么又撤销了？", "跨库分页漏单 1,140 笔"), ("Which document describes how sharding of orders will be redone?", "RFC-31")),
        wrong=("search results", "搜索结果"),
    )  # fmt: skip


def blame() -> Case:
    """Who wrote which line."""
    pick = dice("blame")
    lines: list[str] = []
    for n in range(1, 260):
        who = pick.choice(("Noor Haddad", "Ewa Lis", "Samir Khan"))
        lines.append(
            f"{pick.getrandbits(32):08x} ({who:<14} 202{pick.randrange(2, 7)}-0{pick.randrange(1, 10)}-{pick.randrange(10, 29)} 11:02:14 +0100 {n:4d})     {pick.choice(('self.pool.release(conn)', 'if not rows: return []', 'await self._flush()', 'retries += 1', 'yield batch'))}"
        )
    lines = planted(
        lines,
        (
            0.52,
            "0c41f9aa (Ingvild Moen    2026-02-19 23:48:01 +0100  135)     SAFE_BATCH = 512  # larger ones deadlock the replica, do not touch",
        ),
    )
    return Case(
        "repository/blame", "en", "bash", {"command": "git blame src/store/batch.py"},
        "\n".join(lines),
        (("blame", "260", "lines"), ("Noor Haddad", "Ewa Lis", "Samir Khan", "batch.py", "authors")),
        (("Who set SAFE_BATCH in batch.py?", "Ingvild Moen"),),
        wrong=("Log, 260 lines", "search results"),
    )  # fmt: skip


def listing() -> Case:
    """A recursive listing with sizes and dates."""
    pick = dice("ls")
    lines: list[str] = []
    folders = [
        f"./{top}/{sub}"
        for top in ("ingest", "models", "exports", "logs", "tmp")
        for sub in ("2024", "2025", "2026", "shared")
    ]
    for folder in folders:
        lines += [
            f"{folder}:",
            f"total {pick.randrange(40, 90_000)}",
            "drwxr-x--- 2 etl etl     4096 Nov 10 02:00 .",
            "drwxr-x--- 6 etl etl     4096 Nov 10 02:00 ..",
        ]
        lines += [
            f"-rw-r----- 1 etl etl {pick.randrange(900, 9_000_000):>10} {pick.choice(('Sep', 'Oct', 'Nov'))} {pick.randrange(10, 29)} 0{pick.randrange(9)}:14 {pick.choice(('orders', 'events', 'users'))}_{pick.randrange(9999):04}.{pick.choice(('parquet', 'csv.gz', 'log'))}"
            for _ in range(24)
        ]
        if folder == "./tmp/2026":
            lines.append("-rw-r----- 1 etl etl 412316860416 Nov 15 23:59 core.export.31877")
        lines.append("")
    return Case(
        "repository/ls", "en", "bash", {"command": "ls -laR /data/lake"},
        "\n".join(lines),
        (("20", "481", "480", "exports", "412316860416"), ("folder", "director", "files", "entries", "ingest")),
        (("How large is the core dump of the export under /data/lake?", "412316860416"), ("/data/lake 的 tmp 里那个 core 转储文件叫什么？", "core.export.31877")),
        wrong=("search results",),
    )  # fmt: skip


def tree_zh() -> Case:
    """A tree of folders with Chinese names."""
    pick = dice("tree zh")
    lines = ["档案库"]
    count = 0
    for top in ("合同", "投标", "人事", "财务", "验收"):
        lines.append(f"├── {top}")
        for year in (2023, 2024, 2025, 2026):
            lines.append(f"│   ├── {year}")
            for _ in range(16):
                count += 1
                lines.append(
                    f"│   │   ├── {pick.choice(('华东', '西南', '总部'))}-{pick.choice(('框架协议', '补充协议', '会议纪要', '报价单', '清单'))}-{pick.randrange(999):03}.{pick.choice(('docx', 'pdf', 'xlsx'))}"
                )
            if top == "验收" and year == 2025:
                count += 1
                lines.append("│   │   └── 二期储能-终验报告-整改未完成.pdf")
    lines += ["", f"25 directories, {count} files"]
    return Case(
        "repository/tree-zh", "zh", "bash", {"command": "tree /mnt/档案库"},
        "\n".join(lines),
        (("321", "25", "投标"), ("文件", "目录", "files", "directories", "档案库")),
        (("档案库里储能二期有没有没整改完的验收材料？", "整改未完成.pdf"),),
    )  # fmt: skip


def status_zh() -> Case:
    """A short status on a Chinese machine."""
    text = """位于分支 feature/对账重构
您的分支领先 'origin/feature/对账重构' 共 3 个提交，落后 11 个提交。
  （使用 "git pull" 来合并远程分支）

您有尚未合并的路径。
  （解决冲突并运行 "git commit"）
  （使用 "git merge --abort" 终止合并）

未合并的路径：
  （使用 "git add <文件>..." 标记解决方案）
\t双方修改：   settle/daily.py
\t由他们删除：   settle/legacy_fx.py

尚未暂存以备提交的变更：
\t修改：     config/holidays.yaml

未跟踪的文件:
\tscripts/重算_2026Q3.py
"""
    return Case(
        "repository/status-zh", "zh", "bash", {"command": "git status"},
        text,
        (("尚未合并", "未合并", "冲突", "unmerged", "conflict"),),
        (("Which file of settle did the other side remove in the merge on feature/对账重构?", "settle/legacy_fx.py"),),
    )  # fmt: skip


CASES = (diff, diff_zh, history_zh, blame, listing, tree_zh, status_zh)

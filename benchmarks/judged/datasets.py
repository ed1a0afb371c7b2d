"""Rows of databases and files of more shapes than `rows` has: quoted CSV, printed frames, documents, sheets, plans, statements."""

from benchmarks.judged.case import Case, dice, js, planted, subject


def quoted_csv_zh() -> Case:
    """A CSV whose remarks have commas, quotes and line breaks."""
    pick = dice("quoted csv")
    rows = [
        f'{20261000 + n},"{pick.choice(("华北", "华东", "西南"))}大区",{pick.choice(("李娜", "周强", "吴桐", "孙悦"))},"{subject("support_zh").sentence(pick)}\n客户说""尽快处理"",已登记",{pick.randrange(1, 6)}'
        for n in range(120)
    ]
    rows[83] = (
        '20261083,"西南大区",周强,"客户投诉新机开箱即黑屏,要求""退一赔三""\n门店已封存样机,序列号 SN-77A0-4431",5'
    )
    return Case(
        "data/csv-quotes-zh", "zh", "read_file", {"path": "投诉明细.csv"},
        "工单号,大区,坐席,内容,级别\n" + "\n".join(rows) + "\n",
        (("120",), ("工单号",), ("坐席", "大区", "投诉")),
        (("开箱黑屏的样机序列号是多少？", "SN-77A0-4431"), ("Which agent handled the complaint about the black screen out of the box?", '周强,"客户投诉新机')),
    )  # fmt: skip


def printed_frame() -> Case:
    """A frame as an interpreter prints it, of middling length, with its shape below."""
    pick = dice("frame")
    lines = [
        f"{n:<5}{pick.choice(('GB', 'NO', 'PT', 'CL'))}   {pick.choice(('hake', 'mackerel', 'sardine', 'squid')):>10}   {pick.randrange(100, 9000):>6}   {pick.random() * 9:>6.2f}   2026-{pick.randrange(1, 12):02}-{pick.randrange(1, 28):02}"
        for n in range(30)
    ]
    tail = [
        f"{n:<5}{pick.choice(('GB', 'NO'))}   {pick.choice(('hake', 'squid')):>10}   {pick.randrange(100, 9000):>6}   {pick.random() * 9:>6.2f}   2026-10-{pick.randrange(1, 28):02}"
        for n in range(8410, 8440)
    ]
    lines[17] = "17   PT      octopus     71   14.90   2026-03-09"
    text = (
        "     flag      species   tonnes   price        landed\n"
        + "\n".join([*lines, "...   ..         ...      ...     ...          ...", *tail])
        + "\n\n[8440 rows x 5 columns]\n"
    )
    return Case(
        "data/pandas", "en", "python", {"code": "print(landings)"},
        text,
        (("8440", "8,440"), ("species", "tonnes", "landed")),
        (("What was paid for octopus?", "14.90"),),
    )  # fmt: skip


def mongo_zh() -> Case:
    """Documents with extended JSON types."""
    pick = dice("mongo")
    docs = [
        {"_id": {"$oid": f"{pick.getrandbits(96):024x}"}, "课程": pick.choice(("急救基础", "叉车操作", "消防演练", "数据合规")), "学员": {"姓名": pick.choice(("钱伟", "冯洁", "蒋涛", "沈璐")) + str(n), "部门": pick.choice(("仓储部", "运维部", "客服部"))}, "成绩": {"$numberInt": str(pick.randrange(60, 100))}, "考试时间": {"$date": f"2026-10-{pick.randrange(1, 30):02}T02:00:00Z"}, "通过": True}
        for n in range(110)
    ]  # fmt: skip
    docs[64] |= {
        "课程": "叉车操作",
        "学员": {"姓名": "严国栋", "部门": "仓储部"},
        "成绩": {"$numberInt": "31"},
        "通过": False,
        "备注": "倒车入库撞倒货架，需三个月后补考",
    }
    return Case(
        "data/mongo-zh", "zh", "mongo_find", {"collection": "training_exam"},
        js(docs),
        (("110",), ("课程", "学员", "急救基础", "叉车操作", "成绩")),
        (("谁的叉车操作考试没通过？", "严国栋"), ("When may the person who knocked over the rack take the exam again?", "三个月后补考")),
    )  # fmt: skip


def bigquery() -> Case:
    """Rows of values without names, and the schema apart."""
    pick = dice("bigquery")
    rows = [
        {
            "f": [
                {"v": pick.choice(("tram", "metro", "bus", "ferry"))},
                {"v": f"L{pick.randrange(1, 60)}"},
                {"v": str(pick.randrange(400, 90_000))},
                {"v": f"{pick.random() * 20:.2f}"},
            ]
        }
        for _ in range(240)
    ]
    rows[151] = {"f": [{"v": "funicular"}, {"v": "F2"}, {"v": "1187"}, {"v": "46.31"}]}
    schema = {
        "fields": [
            {"name": "mode", "type": "STRING"},
            {"name": "line", "type": "STRING"},
            {"name": "boardings", "type": "INTEGER"},
            {"name": "late_share", "type": "FLOAT"},
        ]
    }
    body = {
        "kind": "bigquery#queryResponse",
        "schema": schema,
        "jobReference": {"projectId": "transit-eu", "jobId": "job_8Xk2"},
        "totalRows": "240",
        "rows": rows,
        "jobComplete": True,
        "cacheHit": False,
    }
    return Case(
        "data/bigquery", "en", "bigquery", {"sql": "select mode, line, boardings, late_share from daily"},
        js(body),
        (("240",), ("boardings", "late_share", "tram")),
        (("Which share of the funicular's runs is late?", "46.31"), ("缆索铁路 F2 线有多少人次？", "1187")),
    )  # fmt: skip


def redis_info() -> Case:
    """Sections of names and values; short of memory."""
    pick = dice("redis")
    names = (
        "total_connections_received",
        "expired_keys",
        "evicted_keys",
        "keyspace_hits",
        "keyspace_misses",
        "sync_full",
        "latest_fork_usec",
        "io_threads_active",
    )
    text = f"""# Server
redis_version:7.4.1
redis_mode:standalone
os:Linux 6.8.0 x86_64
tcp_port:6379
uptime_in_days:214
# Clients
connected_clients:9811
blocked_clients:37
# Memory
used_memory:17094213120
used_memory_human:15.92G
maxmemory_human:16.00G
maxmemory_policy:noeviction
mem_fragmentation_ratio:1.71
# Persistence
rdb_last_bgsave_status:err
rdb_last_save_time:1762471201
aof_enabled:0
# Stats
{chr(10).join(f"{name}:{pick.randrange(10**6)}" for name in names)}
# Replication
role:master
connected_slaves:2
slave0:ip=10.3.0.9,port=6379,state=online,offset=88121,lag=0
slave1:ip=10.3.0.14,port=6379,state=wait_bgsave,offset=0,lag=0
# Keyspace
db0:keys=21903311,expires=118,avg_ttl=0
db3:keys=4,expires=0,avg_ttl=0
"""
    return Case(
        "data/redis-info", "en", "redis_info", {},
        text,
        (("redis_version", "redis"), ("used_memory_human", "15.92G", "rdb_last_bgsave_status", "# Server", "Server", "7.4.1")),
        (("Did the last background save of redis work?", "rdb_last_bgsave_status:err"), ("redis 内存写满后采用什么淘汰策略？", "noeviction")),
    )  # fmt: skip


def plan_json_zh() -> Case:
    """A plan of MySQL as JSON inside of a result with remarks."""
    pick = dice("plan json")
    loop = [
        {"table": {"table_name": pick.choice(("t_order", "t_item", "t_coupon", "t_user")) + f"_{n:02}", "access_type": "ref", "possible_keys": [f"idx_{n}"], "key": f"idx_{n}", "rows_examined_per_scan": pick.randrange(1, 900), "filtered": f"{pick.random() * 100:.2f}", "cost_info": {"read_cost": f"{pick.random() * 900:.2f}", "eval_cost": f"{pick.random() * 90:.2f}"}, "used_columns": [f"c{m}" for m in range(12)]}}
        for n in range(36)
    ]  # fmt: skip
    loop[23] = {
        "table": {
            "table_name": "t_refund_log",
            "access_type": "ALL",
            "possible_keys": [],
            "key": "",
            "rows_examined_per_scan": 48211903,
            "filtered": "0.10",
            "cost_info": {"read_cost": "9120034.77", "eval_cost": "48211.90"},
            "attached_condition": "(`t_refund_log`.`refund_no` = cast(42 as char))",
        }
    }
    body = {
        "语句": "对账日报",
        "建议": "存在全表扫描，请为 t_refund_log.refund_no 补充索引并避免隐式类型转换",
        "计划": {
            "query_block": {"select_id": 1, "cost_info": {"query_cost": "9204411.03"}, "nested_loop": loop}
        },
    }
    return Case(
        "data/plan-json-zh", "zh", "explain", {"sql_id": 8821},
        js(body),
        (("全表扫描", "t_refund_log", "9204411"), ("对账日报", "建议", "query_block", "计划", "索引")),
        (("全表扫描的是哪张表，扫了多少行？", "48211903"), ("What is the total cost of the query of the daily reconciliation?", "9204411.03")),
    )  # fmt: skip


def sheet_zh() -> Case:
    """Ranges of a spreadsheet; the header is the third row."""
    pick = dice("sheet")
    rows = [
        ["2026 年车队年检计划", "", "", "", ""],
        ["制表：车辆管理科", "", "", "", ""],
        ["车牌", "车型", "年检到期", "保险公司", "备注"],
    ]
    rows += [
        [
            f"浙A{pick.randrange(10_000, 99_999)}",
            pick.choice(("厢式货车", "冷藏车", "平板车")),
            f"2026-{pick.randrange(1, 13):02}-{pick.randrange(1, 29):02}",
            pick.choice(("安诚", "永泰", "中联")),
            "",
        ]
        for _ in range(150)
    ]
    rows[97] = ["浙A70C61", "冷藏车", "2026-02-11", "永泰", "已逾期未检，停运整改"]
    body = {
        "spreadsheetId": "1xQ",
        "valueRanges": [{"range": "年检!A1:E153", "majorDimension": "ROWS", "values": rows}],
    }
    return Case(
        "data/sheet-zh", "zh", "sheets_batch_get", {"range": "年检!A1:E153"},
        js(body),
        (("年检",), ("153", "150", "车牌", "车队")),
        (("哪辆车年检逾期被停运？", "浙A70C61"), ("Who insures the refrigerated truck that was taken off the road?", '"永泰", "已逾期未检')),
    )  # fmt: skip


def bank_zh() -> Case:
    """A statement as text in columns, with totals at the end."""
    pick = dice("bank")
    rows = [
        f"2026-09-{1 + n // 6:02}  {pick.choice(('网银转账', '快捷支付', '代发工资', '手续费', 'POS 消费')):<8}  {pick.choice(('支出', '收入'))}  {pick.random() * 20000:>12,.2f}  {pick.random() * 900000:>14,.2f}  {pick.choice(('杭州云栖物流', '顺和印务', '个人代发', '财付通', '浙江电网'))}"
        for n in range(170)
    ]
    rows = planted(
        rows,
        (
            0.61,
            "2026-09-18  电汇      支出    1,480,000.00      112,903.44  宁波甬港重工（设备尾款 合同 YG-0917）",
        ),
    )
    text = "\n".join(
        [
            "中国某某银行 对公账户交易明细",
            "户名：杭州知远供应链有限公司    账号：3301****8820    币种：人民币",
            "期间：2026-09-01 至 2026-09-30",
            "日期        摘要      方向          金额            余额  对方户名",
            *rows,
            "",
            "合计：收入 83 笔 4,112,309.18 元；支出 88 笔 5,027,744.61 元；期末余额 96,120.07 元",
        ]
    )
    return Case(
        "data/bank-zh", "zh", "get_statement", {"账号": "3301****8820", "月份": "2026-09"},
        text,
        (("交易明细", "对公账户"), ("知远供应链", "96,120.07", "期末余额", "5,027,744.61", "171")),
        (("付给宁波甬港重工的设备尾款是多少？", "1,480,000.00"), ("What is the closing balance of the corporate account in September?", "96,120.07")),
    )  # fmt: skip


CASES = (quoted_csv_zh, printed_frame, mongo_zh, bigquery, redis_info, plan_json_zh, sheet_zh, bank_zh)

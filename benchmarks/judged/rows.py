"""Tables: CSV and TSV, Markdown, what database clients print, rows as JSON."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, planted, subject


def sales_csv_zh() -> Case:
    """Sales by day and shop."""
    pick = dice("sales csv zh")
    lines = [
        f"2026-{1 + n // 45:02}-{1 + n % 28:02},{pick.choice(('解放碑店', '春熙路店', '江汉路店', '五一店'))},{pick.choice(('面包', '饮品', '蛋糕', '礼盒'))},{pick.randrange(10, 400)},{pick.randrange(2000, 90000) / 100:.2f},{pick.choice(('会员', '散客'))},"
        for n in range(480)
    ]  # fmt: skip
    lines = planted(
        lines, (0.63, "2026-07-18,江汉路店,礼盒,1260,163800.00,团购,中建三局中秋预订，已付定金三成")
    )
    return Case(
        "tables/csv-zh", "zh", "read_file", {"path": "门店销售_2026.csv"},
        "日期,门店,品类,数量,金额,客群,备注\n" + "\n".join(lines) + "\n",
        (("481",), ("门店",), ("金额", "品类", "销售")),
        (("门店销售里最大的一笔团购礼盒是谁订的？", "中建三局中秋预订"), ("What did the big group order of gift boxes in July come to?", "163800.00")),
    )  # fmt: skip


def sensors_tsv() -> Case:
    """Readings of sensors, one of them absurd."""
    pick = dice("sensors")
    lines = [
        f"2026-11-1{n % 6}T{n % 24:02}:{pick.randrange(60):02}:00Z\tGH-{pick.randrange(1, 40):02}\t{pick.uniform(14, 29):.2f}\t{pick.uniform(40, 90):.1f}\t{pick.randrange(380, 900)}\tok"
        for n in range(700)
    ]
    lines = planted(
        lines, (0.71, "2026-11-14T03:17:00Z\tGH-23\t-41.80\t0.0\t0\tprobe disconnected, see work order 5528")
    )
    return Case(
        "tables/tsv", "en", "query_readings", {"from": "2026-11-10", "format": "tsv"},
        "timestamp\tsensor\ttemp_c\thumidity\tco2_ppm\tstatus\n" + "\n".join(lines) + "\n",
        (("701",), ("sensor",), ("temp", "humidity", "co2")),
        (("Which greenhouse sensor has lost its probe?", "GH-23\t-41.80"), ("温室传感器 GH-23 的维修单号是多少？", "work order 5528")),
    )  # fmt: skip


def psql() -> Case:
    """A client's table with a rule and a row count."""
    pick = dice("psql")
    head = " id    | customer               | plan       | mrr_cents | churn_risk | renewed_at "
    rows = [
        f" {5000 + n:<5} | {pick.choice(('Orchard', 'Pioneer', 'Lakeside', 'Summit', 'Harbor')) + ' ' + pick.choice(('Dental', 'Logistics', 'Foods', 'Studios')):<22} | {pick.choice(('team', 'business', 'enterprise')):<10} | {pick.randrange(4900, 900_000):>9} | {pick.random():>10.3f} | 2026-0{pick.randrange(1, 10)}-11 "
        for n in range(310)
    ]
    rows = planted(
        rows, (0.48, " 9917  | Vantaa Heart Clinic    | enterprise |   2480000 |      0.971 | 2025-12-01 ")
    )
    return Case(
        "tables/psql", "en", "psql", {"command": "SELECT … FROM subscriptions ORDER BY id"},
        head + "\n" + "-------+".ljust(len(head), "-") + "\n" + "\n".join(rows) + "\n(311 rows)\n",
        (("311",), ("customer",), ("churn_risk", "plan", "mrr")),
        (("What is the name of the heart clinic among the subscriptions?", "Vantaa Heart Clinic"), ("订阅表里 Vantaa 那家诊所的 mrr_cents 是多少？", "2480000")),
    )  # fmt: skip


def markdown_table_zh() -> Case:
    """A long table in Markdown, as converters of spreadsheets give it."""
    pick = dice("markdown table zh")
    lines = [
        f"| {n:03d} | {pick.choice(('逆变器', '箱变', '开关柜', '电缆', '支架'))} | {pick.choice(('三号方阵', '鱼塘南区', '屋顶一期'))} | {subject('solar').sentence(pick)[:34]} | {pick.choice(('一般', '重要'))} | {pick.choice(('已关闭', '处理中'))} | {pick.choice(('丁卓', '范思远', '沈玉'))} |"
        for n in range(1, 321)
    ]
    lines[205] = (
        "| 206 | 避雷器 | 升压站东侧 | 计数器三个月动作 19 次，远高于同类设备 | 紧急 | 待备件 | 丁卓 |"
    )
    head = (
        "## 缺陷台账\n\n| 编号 | 设备 | 位置 | 描述 | 等级 | 状态 | 负责人 |\n|---|---|---|---|---|---|---|\n"
    )
    return Case(
        "tables/markdown-zh", "zh", "read_sheet", {"sheet": "缺陷台账"},
        head + "\n".join(lines) + "\n",
        (("缺陷台账",), ("320",)),
        (("缺陷台账里有没有紧急的还没处理？", "计数器三个月动作 19 次"), ("Which device in the defect register is waiting for spare parts?", "避雷器")),
    )  # fmt: skip


def rows_json_zh() -> Case:
    """Rows of a query as JSON, columns apart."""
    pick = dice("rows json zh")
    rows: list[list[Any]] = [
        [
            f"S{n:04}",
            pick.choice(("张家港", "太仓", "昆山", "常熟")),
            pick.choice(("冷轧卷", "镀锌板", "线材")),
            pick.randrange(5, 400),
            round(pick.uniform(3200, 6900), 1),
            "合格",
        ]
        for n in range(380)
    ]
    rows[233] = ["S0233", "太仓", "镀锌板", 312, 5120.0, "不合格：锌层厚度 41 克，低于 60 克"]
    return Case(
        "tables/rows-json-zh", "zh", "run_sql", {"sql": "select * from 入库 where 日期 >= '2026-10-01'"},
        js({"columns": ["批号", "仓库", "品名", "吨数", "单价", "质检"], "rows": rows, "row_count": 380, "truncated": False}),
        (("380",), ("批号", "入库", "质检", "仓库")),
        (("10 月入库的镀锌板哪一批质检没过，差在哪？", "锌层厚度 41 克"),),
    )  # fmt: skip


def records_json() -> Case:
    """Rows as a bare list of objects, one value being an outlier."""
    pick = dice("records json")
    rows: list[dict[str, Any]] = [
        {
            "shipment": f"SH{70000 + n}",
            "lane": pick.choice(("GDN-OSL", "TRS-VAR", "RTM-BIL")),
            "pallets": pick.randrange(1, 33),
            "temp_max": round(pick.uniform(2, 7), 1),
            "delivered": f"2026-10-{pick.randrange(1, 31):02}",
            "pod": "signed",
        }
        for n in range(260)
    ]
    rows[181] |= {"temp_max": 23.4, "pod": "refused by Oslo Fiskehall, claim 4471 filed"}
    return Case(
        "tables/records-json", "en", "execute_query", {"query": "SELECT * FROM shipments WHERE month = '2026-10'"},
        js(rows),
        (("260",), ("shipment",)),
        (("Which consignee turned a shipment away in October?", "Oslo Fiskehall"), ("10 月 shipments 里被拒收那票的理赔编号是多少？", "claim 4471")),
    )  # fmt: skip


def mysql_zh() -> Case:
    """A boxed table, of middling length."""
    pick = dice("mysql zh")
    bar = "+--------+----------------+----------+-----------+---------------------+"
    rows = [
        f"| {8000 + n:<6} | {pick.choice(('杭州西湖店', '宁波天一店', '温州南站店')):<9} | {pick.choice(('已开票', '待开票')):<5} | {pick.randrange(100, 99999):>9} | 2026-11-{pick.randrange(1, 16):02} 10:00:00 |"
        for n in range(70)
    ]
    rows = planted(
        rows, (0.6, "| 9931   | 绍兴柯桥店       | 拒绝开票   |    -45000 | 2026-11-09 23:58:13 |")
    )
    text = "\n".join(
        [
            bar,
            "| id     | 门店           | 状态     | 金额      | 更新时间            |",
            bar,
            *rows,
            bar,
            "71 rows in set (0.04 sec)",
        ]
    )
    return Case(
        "tables/mysql-zh", "zh", "mysql", {"sql": "SELECT id, 门店, 状态, 金额, 更新时间 FROM 发票任务"},
        text,
        (("71",), ("门店",), ("状态", "金额", "发票")),
        (("发票任务表里哪家店被拒绝，金额是负的？", "绍兴柯桥店"),),
    )  # fmt: skip


CASES = (sales_csv_zh, sensors_tsv, psql, markdown_table_zh, rows_json_zh, records_json, mysql_zh)

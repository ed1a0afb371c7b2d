"""Answers of APIs: lists in envelopes, nested lists, objects of clusters, GraphQL, GeoJSON, feeds of events."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, subject

_CITIES = ("杭州", "成都", "武汉", "厦门", "西安", "沈阳", "长沙", "南宁")
_SKUS = ("空气炸锅", "儿童雨衣", "机械键盘", "保温杯", "露营灯", "电动牙刷", "瑜伽垫", "行李箱")


def orders_zh() -> Case:
    """180 orders in the envelope that most Chinese services use."""
    pick = dice("orders zh")
    rows: list[dict[str, Any]] = [
        {
            "orderNo": f"DD2026{pick.randrange(10**9):09}",
            "status": pick.choice(("已发货", "已签收", "待付款", "已签收")),
            "buyer": {"nick": f"用户{pick.randrange(10**5)}", "city": pick.choice(_CITIES)},
            "items": [{"name": pick.choice(_SKUS), "qty": pick.randrange(1, 4), "price": pick.randrange(1900, 89900) / 100}],
            "payTime": f"2026-11-{pick.randrange(1, 12):02} {pick.randrange(24):02}:{pick.randrange(60):02}:00",
            "remark": None,
        }
        for _ in range(180)
    ]  # fmt: skip
    rows[64]["buyer"] |= {"city": "澳门氹仔", "note": "需附报关单"}
    rows[121] |= {"status": "拒收退回", "remark": "客户称外箱进水，要求换新并赔付 60 元"}
    return Case(
        "api/orders-zh", "zh", "query_orders", {"shopId": 3107, "pageSize": 200},
        js({"code": 0, "msg": "ok", "data": {"total": 180, "pageNo": 1, "list": rows}}),
        (("180",), ("订单", "order")),
        (
            ("店铺 3107 的订单里有没有人不肯收货？为什么？", "客户称外箱进水"),
            ("Among the orders of shop 3107, which buyer's parcel needs a customs form, and where does it go?", "澳门氹仔"),
        ),
    )  # fmt: skip


def tickets() -> Case:
    """Support tickets with cursors, one of them urgent."""
    pick = dice("tickets")
    rows: list[dict[str, Any]] = [
        {
            "id": 51_000 + n,
            "url": f"https://acme.helpdesk.example/api/v2/tickets/{51_000 + n}.json",
            "subject": pick.choice(("Cannot export invoice", "Login loop on tablet", "Wrong VAT on quote",
                                    "Webhook signature mismatch", "Slow dashboard", "Typo in Spanish mail")),
            "description": subject("complaint").sentences(pick, 2),
            "priority": pick.choice(("low", "normal", "normal", "high")),
            "status": pick.choice(("open", "pending", "solved", "solved")),
            "tags": pick.sample(("billing", "mobile", "eu", "vip", "api"), 2),
            "custom_fields": [{"id": 3600, "value": None}, {"id": 3601, "value": pick.choice(("web", "ios"))}],
        }
        for n in range(75)
    ]  # fmt: skip
    rows[48] |= {
        "subject": "Data of another customer visible", "priority": "urgent", "status": "open",
        "description": "Our controller saw the payslips of Halvorsen Fisk AS in her own download folder on Monday.",
    }  # fmt: skip
    body = {"tickets": rows, "meta": {"has_more": True, "after_cursor": "eyJvIjoiMTAwIn0="}, "count": 214}
    return Case(
        "api/tickets", "en", "list_tickets", {"page[size]": 75},
        js(body),
        (("75", "214"), ("ticket",)),
        (
            ("Did a customer's support ticket report a privacy breach?", "payslips of Halvorsen Fisk AS"),
            ("helpdesk 里 urgent 的那张工单讲的是什么？", "Data of another customer visible"),
        ),
    )  # fmt: skip


def charges() -> Case:
    """A payment provider's list of charges."""
    pick = dice("charges")
    rows: list[dict[str, Any]] = [
        {
            "id": f"ch_3Q{pick.getrandbits(60):015x}", "object": "charge", "amount": pick.randrange(900, 99_000),
            "currency": pick.choice(("eur", "usd", "gbp")), "paid": True, "status": "succeeded",
            "billing_details": {"address": {"country": pick.choice(("DE", "US", "GB", "NL"))}, "name": None},
            "outcome": {"network_status": "approved_by_network", "risk_score": pick.randrange(60)},
            "metadata": {"order": str(pick.randrange(10**6))}, "refunded": False, "created": 1_763_000_000 + n * 977,
        }
        for n in range(100)
    ]  # fmt: skip
    rows[37] |= {
        "amount": 741_900, "status": "failed", "paid": False, "failure_code": "do_not_honor",
        "failure_message": "The card was declined by Sparebank Nordvest.",
    }  # fmt: skip
    return Case(
        "api/charges", "en", "list_charges", {"limit": 100},
        js({"object": "list", "data": rows, "has_more": True, "url": "/v1/charges"}, 2),
        (("100",), ("charge",)),
        (
            ("Which bank refused one of the card charges?", "Sparebank Nordvest"),
            ("信用卡扣款里被银行拒绝的那笔是多少钱（分）？", "741900"),
        ),
    )  # fmt: skip


def pods() -> Case:
    """Objects of a cluster, deep and wordy; one container is killed again and again."""
    pick = dice("pods")
    items: list[dict[str, Any]] = []
    for n in range(24):
        app = pick.choice(("cart", "quotes", "mailer", "reports", "edge"))
        name = f"{app}-{pick.getrandbits(36):09x}-{pick.getrandbits(20):05x}"
        state: dict[str, Any] = {"running": {"startedAt": "2026-11-12T04:11:02Z"}}
        last: dict[str, Any] = {}
        restarts = 0
        if n == 15:
            name, restarts = "reports-7c9d5b8f4-x2lqp", 41
            state = {
                "waiting": {
                    "reason": "CrashLoopBackOff",
                    "message": "back-off 5m0s restarting failed container",
                }
            }
            last = {
                "terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-16T17:55:40Z"}
            }
        items.append({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": app, "tier": "backend"},
                         "uid": f"{pick.getrandbits(64):016x}", "ownerReferences": [{"kind": "ReplicaSet", "controller": True}]},
            "spec": {"nodeName": f"ip-10-2-{pick.randrange(9)}-{pick.randrange(200)}", "containers": [
                {"name": app, "image": f"images.shop.example/{app}:2.{pick.randrange(40)}",
                 "resources": {"limits": {"cpu": "500m", "memory": "384Mi"}},
                 "env": [{"name": "TZ", "value": "UTC"}, {"name": "POOL", "value": str(pick.randrange(5, 40))}]}]},
            "status": {"phase": "Running", "podIP": f"10.2.{pick.randrange(9)}.{pick.randrange(250)}",
                       "containerStatuses": [{"name": app, "ready": n != 15, "restartCount": restarts, "state": state, "lastState": last}]},
        })  # fmt: skip
    return Case(
        "api/kubernetes-pods", "en", "kubectl", {"args": "get pods -n shop -o json"},
        js({"apiVersion": "v1", "kind": "List", "items": items}, 4),
        (("24",), ("pod",)),
        (
            ("Which pod in the shop namespace keeps dying, and of what?", "OOMKilled"),
            ("shop 命名空间里重启了 41 次的 pod 叫什么？", "reports-7c9d5b8f4-x2lqp"),
        ),
    )  # fmt: skip


def graphql() -> Case:
    """Edges and nodes of a GraphQL answer, with a partial error."""
    pick = dice("graphql")
    edges: list[dict[str, Any]] = [
        {"cursor": f"Y3Vyc29yOn{n:03}", "node": {
            "id": f"PVT_{pick.getrandbits(40):010x}", "title": pick.choice(("Bump", "Refactor", "Document", "Fix", "Test")) + " " + pick.choice(("the retry budget", "tenant routing", "slow exports", "the CSV parser", "flaky fixtures")) + f" (part {n % 4 + 1})", "mergedAt": None,
            "author": {"login": pick.choice(("ewa", "samir", "noor"))},
            "reviews": {"totalCount": pick.randrange(6), "nodes": [{"state": pick.choice(("APPROVED", "COMMENTED"))}]},
            "changedFiles": pick.randrange(1, 60)}}
        for n in range(50)
    ]  # fmt: skip
    edges[33]["node"] |= {
        "title": "Encrypt backups with per-tenant keys",
        "changedFiles": 212,
        "headRefName": "feat/envelope-kms",
    }
    body = {
        "data": {"repository": {"pullRequests": {"totalCount": 131, "edges": edges, "pageInfo": {"hasNextPage": True}}}},
        "errors": [{"type": "FORBIDDEN", "path": ["repository", "secretScanning"], "message": "Resource not accessible by integration"}],
    }  # fmt: skip
    return Case(
        "api/graphql-pulls", "en", "graphql", {"query": "query { repository(owner: …) { pullRequests(first: 50) …"},
        js(body),
        (("50", "131"), ("pull request", "pullRequest")),
        (("On which branch is the pull request about encrypted backups?", "feat/envelope-kms"),),
    )  # fmt: skip


def stations_zh() -> Case:
    """A feature collection of charging stations."""
    pick = dice("stations zh")
    features: list[dict[str, Any]] = [
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [round(104 + pick.random(), 6), round(30.5 + pick.random() / 2, 6)]},
         "properties": {"站名": f"{pick.choice(('天府', '锦江', '武侯', '双流', '龙泉'))}{pick.choice(('体育公园', '地铁口', '产业园', '医院', '商场'))}站",
                        "快充": pick.randrange(2, 30), "慢充": pick.randrange(0, 20), "营业": "00:00-24:00",
                        "停车费": pick.choice(("免费", "充电免 2 小时", "每小时 5 元")), "状态": "正常"}}
        for _ in range(140)
    ]  # fmt: skip
    features[88]["properties"] |= {
        "站名": "青龙湖换电站",
        "状态": "停运",
        "原因": "变压器扩容，预计 12 月 8 日恢复",
    }
    return Case(
        "api/geojson-stations-zh", "zh", "search_stations", {"city": "成都", "type": "充电站"},
        js({"type": "FeatureCollection", "name": "chengdu_charging", "features": features}),
        (("140",), ("Feature", "站", "station")),
        (
            ("成都哪个充电站点现在停用，什么时候恢复营业？", "预计 12 月 8 日恢复"),
            ("Which of the charging sites in Chengdu offers battery swapping?", "青龙湖换电站"),
        ),
    )  # fmt: skip


def departments_zh() -> Case:
    """An organisation as a tree of trees."""
    pick = dice("departments zh")

    def branch(name: str, depth: int) -> dict[str, Any]:
        node: dict[str, Any] = {
            "deptId": pick.randrange(10**6), "deptName": name, "leader": pick.choice(("陈嘉木", "陆望舒", "许澄", "顾南枝")),
            "memberCount": pick.randrange(3, 90), "createTime": f"20{pick.randrange(15, 26)}-0{pick.randrange(1, 10)}-11",
        }  # fmt: skip
        if depth:
            node["children"] = [
                branch(f"{name}{part}", depth - 1) for part in ("一部", "二部", "三部", "四部")
            ]
        return node

    tree = branch("华东大区", 3)
    tree["children"][2]["children"][1]["children"] += [
        {
            "deptId": 990_017,
            "deptName": "数据合规专班",
            "leader": "宁采薇",
            "memberCount": 6,
            "createTime": "2026-10-08",
        }
    ]
    return Case(
        "api/departments-zh", "zh", "get_department_tree", {"rootId": 17},
        js({"errcode": 0, "errmsg": "ok", "result": {"tree": tree}}),
        (("华东大区",), ("部门", "deptName", "dept")),
        (
            ("华东大区新成立的合规小组归谁管？", "宁采薇"),
            ("Which team was created under 华东大区 in October 2026?", "数据合规专班"),
        ),
    )  # fmt: skip


def invoices_zh() -> Case:
    """Invoices to check, of a service that pages."""
    pick = dice("invoices zh")
    rows: list[dict[str, Any]] = [
        {"fphm": f"2633{pick.randrange(10**16):016}", "gfmc": f"{pick.choice(_CITIES)}{pick.choice(('恒远', '百川', '云图', '万和'))}科技有限公司",
         "je": round(pick.uniform(200, 90_000), 2), "sl": pick.choice((0.06, 0.09, 0.13)), "kprq": f"2026-10-{pick.randrange(1, 29):02}",
         "zt": "正常", "bz": subject("supply").sentence(pick) if pick.random() < 0.3 else ""}
        for _ in range(120)
    ]  # fmt: skip
    rows[77] |= {
        "gfmc": "西安大唐盛饮食品有限公司",
        "zt": "红冲",
        "bz": "因规格型号开错，10 月 23 日全额红冲，重开号码尾数 8821",
    }
    body = {
        "success": True,
        "errorCode": "",
        "result": {"records": rows, "total": 1263, "size": 120, "current": 1, "pages": 11},
    }
    return Case(
        "api/invoices-zh", "zh", "list_invoices", {"kprq": "2026-10", "size": 120},
        js(body),
        (("1263", "1,263", "120"), ("发票", "invoice", "红冲", "records", "记录")),
        (
            ("10 月的发票里哪张冲掉重开了，原因是什么？", "因规格型号开错"),
            ("Whose invoice was reversed in October?", "西安大唐盛饮食品有限公司"),
        ),
    )  # fmt: skip


def weather_zh() -> Case:
    """A forecast by the hour, parallel lists under their units."""
    pick = dice("weather zh")
    hours = [f"2026-11-{17 + n // 24:02}T{n % 24:02}:00" for n in range(168)]
    temps = [round(9 + 5 * pick.random(), 1) for _ in hours]
    rain = [0.0] * 168
    rain[101] = 38.6
    hourly = {"time": hours, "temperature_2m": temps, "precipitation": rain,
              "wind_gusts_10m": [round(20 * pick.random(), 1) for _ in hours]}  # fmt: skip
    alerts = [
        {
            "标题": "暴雨橙色预警",
            "发布单位": "福州市气象台",
            "内容": "预计 21 日凌晨局地小时雨量超过 35 毫米，请停止户外作业",
        }
    ]
    body = {
        "location": {"name": "福州", "lat": 26.08, "lon": 119.3}, "timezone": "Asia/Shanghai",
        "hourly_units": {"temperature_2m": "°C", "precipitation": "mm"}, "hourly": hourly, "alerts": alerts,
    }  # fmt: skip
    return Case(
        "api/forecast-zh", "zh", "get_forecast", {"city": "福州", "days": 7},
        js(body),
        (("福州",), ("预警", "预报", "forecast", "hourly", "precipitation", "temperature")),
        (
            ("Is there an official weather warning for Fuzhou?", "暴雨橙色预警"),
            ("福州这几天下大雨，室外工地要注意什么？", "请停止户外作业"),
        ),
    )  # fmt: skip


def events() -> Case:
    """An audit trail, newest first; one line matters."""
    pick = dice("events")
    rows: list[dict[str, Any]] = [
        {"eventTime": f"2026-11-15T{23 - n // 12:02}:{59 - n % 12 * 5:02}:11Z", "eventSource": pick.choice(("s3", "iam", "ec2", "kms")) + ".cloud.example",
         "eventName": pick.choice(("GetObject", "AssumeRole", "DescribeInstances", "Decrypt", "ListKeys")),
         "userIdentity": {"type": "AssumedRole", "arn": f"arn:cloud:sts::4410:assumed-role/{pick.choice(('ci', 'app', 'backup'))}/i-{pick.getrandbits(32):08x}"},
         "sourceIPAddress": f"10.{pick.randrange(9)}.{pick.randrange(250)}.{pick.randrange(250)}", "readOnly": True}
        for n in range(150)
    ]  # fmt: skip
    rows[94] |= {
        "eventName": "DeleteBackupVault", "readOnly": False, "sourceIPAddress": "203.0.113.77",
        "userIdentity": {"type": "IAMUser", "userName": "terraform-legacy"}, "errorCode": "AccessDenied",
    }  # fmt: skip
    return Case(
        "api/audit-events", "en", "lookup_events", {"start": "2026-11-15", "maxResults": 150},
        js({"Events": rows, "NextToken": "AAMA-EFRS"}),
        (("150",), ("event",)),
        (
            ("Does the cloud audit trail show that someone tried to destroy our backups?", "DeleteBackupVault"),
            ("审计事件里 terraform-legacy 是从哪个外部 IP 操作的？", "203.0.113.77"),
        ),
    )  # fmt: skip


def translations_mixed() -> Case:
    """The texts of a shop in two languages."""
    pick = dice("translations")
    texts: dict[str, Any] = {
        f"{pick.choice(('cart', 'account', 'returns', 'loyalty'))}.{pick.choice(('hint', 'title', 'error', 'note'))}_{n}": {
            "en": subject("office").sentence(pick), "zh-CN": subject("support_zh").sentence(pick), "reviewed": pick.random() < 0.7}
        for n in range(150)
    }  # fmt: skip
    texts["returns.deadline"] = {"en": "Send it back within 17 days of delivery.", "zh-CN": "签收后 17 天内可寄回，定制商品除外。", "reviewed": False}  # fmt: skip
    return Case(
        "api/translations", "mixed", "export_strings", {"project": "storefront", "locales": ["en", "zh-CN"]},
        js({"project": "storefront", "locales": ["en", "zh-CN"], "strings": texts}),
        (("storefront",), ("151", "strings", "zh-CN", "翻译", "translation")),
        (("What do the storefront's strings tell customers about the time they have for returns?", "within 17 days of delivery"), ("商城 storefront 的文案里，哪些东西不能退货？", "定制商品除外")),
    )  # fmt: skip


CASES = (
    orders_zh, tickets, charges, pods, graphql, stations_zh, departments_zh, invoices_zh, weather_zh, events,
    translations_mixed,
)  # fmt: skip

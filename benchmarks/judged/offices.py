"""What offices produce: lab reports, service logs, notices, contracts from a scanner, mail, calendars, invoices, deliveries."""

import base64
from typing import Any

from benchmarks.judged.case import Case, dice, js, planted, subject


def lab_report_zh() -> Case:
    """A report of a hospital, with what is out of range marked by arrows."""
    pick = dice("lab")
    names = (
        "白细胞计数",
        "红细胞计数",
        "血红蛋白",
        "血小板",
        "总胆红素",
        "谷丙转氨酶",
        "谷草转氨酶",
        "肌酐",
        "尿素氮",
        "尿酸",
        "总胆固醇",
        "甘油三酯",
        "空腹血糖",
        "钾",
        "钠",
        "氯",
        "钙",
    )
    rows = [
        f"{n + 1:<4}{name:<12}{pick.random() * 90:>8.2f}    {pick.choice(('×10^9/L', 'g/L', 'U/L', 'μmol/L', 'mmol/L')):<10}{pick.random() * 10:.1f}-{90 + pick.random() * 10:.1f}"
        for n, name in enumerate(names * 3)
    ]
    rows[23] = "24  肌酸激酶同工酶      86.40 ↑  U/L       0.0-24.0"
    rows[24] = "25  高敏肌钙蛋白 I     1.372 ↑  ng/mL     0.000-0.034   危急值，10:42 已电话通知心内科张医生"
    text = "\n".join(
        [
            "临江市第一人民医院 检验报告单",
            "姓名：周某  性别：男  年龄：58 岁  病历号：00887123  科室：急诊内科",
            "标本：静脉血  采集时间：2026-11-09 10:05  报告时间：2026-11-09 10:51",
            "序号 项目            结果        单位      参考区间",
            *rows,
            "检验者：罗蕊    审核者：马向东",
            "本报告仅对所检标本负责",
        ]
    )
    return Case(
        "office/lab-zh", "zh", "get_lab_report", {"病历号": "00887123"},
        text,
        (("检验报告",), ("肌钙蛋白", "危急值", "↑", "临江市第一人民医院")),
        (("高敏肌钙蛋白的结果是多少？", "1.372"), ("Who was phoned about the critical value?", "心内科张医生")),
    )  # fmt: skip


def service_log_zh() -> Case:
    """A talk with customer service as records; what was promised is in the middle."""
    pick = dice("service log")
    rows: list[dict[str, Any]] = [
        {
            "msgId": 9000 + n,
            "from": pick.choice(("客户", "坐席小蔡")),
            "time": f"2026-11-08 14:{n // 2 % 60:02}:{30 * (n % 2):02}",
            "type": "text",
            "content": subject("support_zh").sentence(pick),
        }
        for n in range(96)
    ]
    rows[0] |= {"from": "客户", "content": "你们上门装的智能门锁把我家门框划坏了，要怎么赔？"}
    rows[61] |= {
        "from": "坐席小蔡",
        "content": "已为您申请门框补漆赔付 380 元，三个工作日内原路退回，工单号 FW20261108-055。",
    }
    return Case(
        "office/service-log-zh", "zh", "get_session_messages", {"sessionId": "s-71"},
        js({"success": True, "data": {"sessionId": "s-71", "channel": "微信", "满意度": 2, "messages": rows}}),
        (("96",), ("门锁", "消息", "messages")),
        (("门框赔付的工单号是什么？", "FW20261108-055"), ("How much will the customer get for the scratched door frame?", "380 元")),
    )  # fmt: skip


def notice_zh() -> Case:
    """A notice of a government, with its number, parts and annexes."""
    pick = dice("notice")
    body = subject("rule_zh").paragraphs(pick, 6_000)
    parts = [
        "临江市人民政府办公室关于印发《临江市老旧小区加装充电设施三年行动方案》的通知",
        "临政办发〔2026〕58 号",
        "各区人民政府，市政府各部门：",
        "《临江市老旧小区加装充电设施三年行动方案》已经市政府第 41 次常务会议审议通过，现印发给你们，请认真贯彻执行。",
        *planted(
            body,
            (0.3, "（三）到 2028 年底，全市 2005 年以前建成的小区充电桩覆盖率达到 85% 以上。"),
            (0.6, "（七）市级财政按每个公共充电桩 1,200 元给予一次性补助，拆除的全额追回。"),
        ),
        "附件：1. 任务分解表  2. 补助申领流程",
        "临江市人民政府办公室",
        "2026 年 9 月 30 日",
    ]
    return Case(
        "office/notice-zh", "zh", "read_gov_doc", {"url": "https://gov.example/58"},
        "\n\n".join(parts),
        (("充电设施",), ("三年行动方案", "临政办发〔2026〕58 号")),
        (("每个公共充电桩补助多少钱？", "1,200 元"), ("What coverage of charging points is wanted by the end of 2028?", "85% 以上")),
    )  # fmt: skip


def scan_zh() -> Case:
    """A lease as a scanner reads it: lines broken anywhere, numbers of pages between them."""
    pick = dice("scan")
    text = (
        "房屋租赁合同\n合同编号：ZL-2026-0417\n出租方（甲方）：苏州澄湖置业有限公司\n承租方（乙方）：上海拾光咖啡管理有限公司\n"
        + "".join(
            planted(
                subject("clause_zh").paragraphs(pick, 9_000),
                (0.35, "第九条 装修免租期自交付之日起共四十五日，免租期内乙方仍应承担物业管理费。"),
                (
                    0.75,
                    "第二十一条 乙方逾期支付租金超过十五日的，甲方有权解除合同并没收保证金人民币贰拾壹万元整。",
                ),
            )
        )
    )
    broken = "\n".join(text[at : at + 34] for at in range(0, len(text), 34))
    lines = [
        f"{line}\n— {n // 30 + 1} —" if n % 30 == 29 else line for n, line in enumerate(broken.split("\n"))
    ]
    return Case(
        "office/lease-scan-zh", "zh", "ocr_pdf", {"file": "合同扫描件.pdf"},
        "\n".join(lines),
        (("房屋租赁合同",), ("澄湖置业", "拾光咖啡", "ZL-2026-0417")),
        (("装修免租期有多少天？", "四十五日"), ("After how many days of late rent may the landlord end the lease?", "超过十五日")),
    )  # fmt: skip


def gmail() -> Case:
    """A message as the service has it: headers as pairs, and the text in base64url beside a snippet."""
    pick = dice("gmail")
    body = "\n\n".join(
        planted(
            subject("office").paragraphs(pick, 5_000),
            (
                0.5,
                "Please book the return flight for the 22nd, not the 21st; Priyanka's hearing was moved to 9:30.",
            ),
        )
    )
    headers = [
        {"name": name, "value": value}
        for name, value in (
            ("Delivered-To", "ops@corp.example"),
            ("Received", f"by 2002:a05:{pick.getrandbits(64):x} with SMTP id {pick.getrandbits(80):x}"),
            ("ARC-Seal", f"i=1; a=rsa-sha256; b={pick.getrandbits(1500):x}"),
            ("From", "Dalia Serrano <dalia@serrano-law.example>"),
            ("To", "Travel desk <travel@corp.example>"),
            ("Date", "Tue, 10 Nov 2026 16:20:41 +0100"),
            ("Subject", "Change of travel dates for the Lisbon hearing"),
        )
    ]
    message = {
        "id": "19a7",
        "threadId": "19a2",
        "labelIds": ["INBOX", "IMPORTANT"],
        "snippet": "Dear travel desk, the hearing in Lisbon was moved, so the tickets must change …",
        "payload": {
            "mimeType": "multipart/alternative",
            "headers": headers,
            "parts": [
                {
                    "partId": "0",
                    "mimeType": "text/plain",
                    "body": {"size": len(body), "data": base64.urlsafe_b64encode(body.encode()).decode()},
                }
            ],
        },
        "sizeEstimate": 9_820,
    }
    return Case(
        "office/gmail", "en", "gmail_get_message", {"id": "19a7"},
        js(message),
        (("Change of travel dates", "hearing in Lisbon", "Lisbon hearing"),),
        (("Who wrote about the Lisbon hearing?", "dalia@serrano-law.example"),),
        wrong=(base64.urlsafe_b64encode(body.encode()).decode()[:40],),
    )  # fmt: skip


def calendar_zh() -> Case:
    """Events of a week."""
    pick = dice("calendar")
    rows: list[dict[str, Any]] = [
        {
            "event_id": f"e{pick.getrandbits(40):x}",
            "summary": pick.choice(("项目周会", "面试：后端工程师", "供应商沟通", "一对一", "需求评审")),
            "start_time": {"timestamp": str(1763000000 + 5400 * n), "timezone": "Asia/Shanghai"},
            "end_time": {"timestamp": str(1763003600 + 5400 * n), "timezone": "Asia/Shanghai"},
            "location": {"name": f"{pick.choice('ABC')} 座 {pick.randrange(3, 19)}0{pick.randrange(1, 9)}"},
            "status": "confirmed",
            "attendees": [{"display_name": name, "rsvp_status": "accept"} for name in ("王磊", "何静")],
            "organizer": "赵敏",
        }
        for n in range(52)
    ]
    rows[29] |= {
        "summary": "与海关技术中心联调（闭门）",
        "location": {"name": "滨江园区 7 号楼地下实验室"},
        "organizer": "岑立",
    }
    return Case(
        "office/calendar-zh", "zh", "list_events", {"calendar": "primary"},
        js({"code": 0, "msg": "success", "data": {"has_more": False, "items": rows}}),
        (("52",), ("项目周会", "日程", "event", "供应商沟通", "一对一", "需求评审", "面试")),
        (("与海关技术中心的联调在哪里开？", "滨江园区 7 号楼地下实验室"), ("Who organizes the closed session with the customs technology centre?", "岑立")),
    )  # fmt: skip


def invoice() -> Case:
    """An invoice as text of a PDF, columns broken into lines."""
    pick = dice("invoice")
    rows: list[str] = []
    for n in range(60):
        rows += [
            f"{n + 1}",
            pick.choice(("Toner cartridge", "Desk riser", "Cable tray", "Whiteboard film", "Monitor arm"))
            + f" {pick.randrange(100, 999)}",
            f"{pick.randrange(1, 20)} pcs",
            f"{pick.random() * 90:.2f}",
            f"{pick.random() * 900:.2f}",
        ]
    text = "\n".join(
        [
            "INVOICE",
            "Halden Office Supply AS",
            "Invoice no. HO-2026-44817",
            "Invoice date 03.11.2026",
            "Due date 17.11.2026",
            "Bill to",
            "Kestrel Optics GmbH, Jena",
            "Pos",
            "Description",
            "Quantity",
            "Unit EUR",
            "Total EUR",
            *rows,
            "Subtotal",
            "18,422.60",
            "VAT 19 %",
            "3,500.29",
            "Total due",
            "21,922.89",
            "Payment by transfer to NO31 8601 1117 947, reference HO-2026-44817.",
            "Late payments bear interest of 9.25 percent a year.",
        ]
    )
    return Case(
        "office/invoice", "en", "pdf_text", {"file": "HO-2026-44817.pdf"},
        text,
        (("Halden Office Supply", "invoice"), ("21,922.89", "HO-2026-44817", "Kestrel Optics")),
        (("What interest do late payments of the Halden invoice bear?", "9.25 percent a year"), ("Halden 发票的到期日是哪天？", "Due date 17.11.2026")),
    )  # fmt: skip


def vtt() -> Case:
    """A meeting with its speakers."""
    pick = dice("vtt")
    speakers = ("Ingrid Holm", "Paolo Reyes", "Tendai Moyo")
    said = [(pick.choice(speakers), subject("incident").sentence(pick)) for _ in range(120)]
    said[0] = ("Ingrid Holm", "Welcome to the review of the ledger outage of November third.")
    said[88] = (
        "Tendai Moyo",
        "Decision: we freeze schema changes until the failover drill on the nineteenth has passed.",
    )
    cues = [
        f"{n}\n00:{n * 9 // 60:02}:{n * 9 % 60:02}.000 --> 00:{(n * 9 + 8) // 60:02}:{(n * 9 + 8) % 60:02}.000\n<v {who}>{text}</v>\n"
        for n, (who, text) in enumerate(said)
    ]
    return Case(
        "office/meeting-vtt", "en", "get_meeting_transcript", {"meeting": "m-1103"},
        "WEBVTT\n\n" + "\n".join(cues),
        (("ledger outage",), ("Ingrid Holm", "transcript", "120", "subtitle", "captions")),
        (("Until when are schema changes frozen?", "failover drill on the nineteenth"), ("账本故障复盘会是谁主持开场的？", "Ingrid Holm>Welcome")),
    )  # fmt: skip


def tracking_zh() -> Case:
    """Where a parcel was; the newest first. Of middling length."""
    pick = dice("tracking")
    cities = ("杭州", "嘉兴", "上海", "南京", "徐州", "济南", "天津")
    traces = [
        {
            "ftime": f"2026-11-{10 - n // 6:02} {23 - n % 24:02}:05:11",
            "context": f"【{pick.choice(cities)}分拨中心】{pick.choice(('已装车，发往下一站', '已到达，正在卸货', '扫描称重完成'))}",
            "areaCode": f"CN{pick.randrange(10**11)}",
            "status": "在途",
        }
        for n in range(40)
    ]
    traces[0] = {
        "ftime": "2026-11-11 09:12:40",
        "context": "【北京市大兴区】派件异常：收件人地址为拆迁区域，已联系寄件人改址",
        "areaCode": "CN110115000000",
        "status": "疑难",
    }
    return Case(
        "office/tracking-zh", "zh", "query_express", {"单号": "YT7719****203"},
        js({"message": "ok", "state": "2", "com": "yuantong", "nu": "YT7719****203", "data": traces}),
        (("派件异常", "疑难", "拆迁"), ("40", "大兴", "yuantong", "改址")),
        (("包裹为什么派件异常？", "收件人地址为拆迁区域"),),
    )  # fmt: skip


def catalogue_zh() -> Case:
    """Orders as an English API with Chinese values, two levels of lists."""
    pick = dice("catalogue")
    orders: list[dict[str, Any]] = [
        {
            "orderNo": f"PO2026{n:05}",
            "buyer": pick.choice(("江南中学", "滨河小学", "实验幼儿园", "职教中心")),
            "status": pick.choice(("已发货", "待付款", "已签收")),
            "amount": round(pick.random() * 9000, 2),
            "lines": [
                {
                    "sku": f"SKU{pick.randrange(10**5)}",
                    "name": pick.choice(("课桌椅", "投影幕布", "显微镜", "跳绳", "护眼灯")),
                    "qty": pick.randrange(1, 60),
                }
                for _ in range(3)
            ],
        }
        for n in range(90)
    ]
    orders[66] |= {
        "buyer": "临江特殊教育学校",
        "status": "退货中",
        "lines": [{"sku": "SKU90017", "name": "盲文打字机", "qty": 4, "reason": "键位与教材不符"}],
    }
    return Case(
        "office/orders-zh", "zh", "search_purchase_orders", {"year": 2026},
        js({"pageNum": 1, "pageSize": 90, "totalPages": 12, "totalElements": 1071, "content": orders}),
        (("1071", "1,071", "90"), ("订单", "order", "PO2026", "江南中学")),
        (("哪所学校在退货盲文打字机？", "临江特殊教育学校"), ("Why are the braille typewriters being returned?", "键位与教材不符")),
    )  # fmt: skip


CASES = (
    lab_report_zh,
    service_log_zh,
    notice_zh,
    scan_zh,
    gmail,
    calendar_zh,
    invoice,
    vtt,
    tracking_zh,
    catalogue_zh,
)

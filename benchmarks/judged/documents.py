"""Documents: pages in HTML and Markdown, contracts, statutes, minutes, mails, pages of PDFs, transcripts."""

import textwrap

from benchmarks.judged.case import Case, dice, planted, subject

_NUMERALS = "零一二三四五六七八九"


def _zh_number(n: int) -> str:
    """A number below two hundred as statutes write it."""
    hundred, rest = ("一百" if n >= 100 else ""), n % 100
    tens, ones = divmod(rest, 10)
    if not rest:
        return hundred
    ten = ("零" if hundred and not tens else "") + (
        "" if not tens else ("十" if tens == 1 and not hundred else _NUMERALS[tens] + "十")
    )
    return hundred + ten + (_NUMERALS[ones] if ones else "")


def html_zh() -> Case:
    """A raw page: scripts, navigation, the text, a footer."""
    pick = dice("html zh")
    script = (
        "<script>window.__INIT__="
        "{" + ",".join(f'"k{n}":"{pick.getrandbits(64):016x}"' for n in range(120)) + "}</script>"
    )
    nav = (
        '<nav class="top"><ul>'
        + "".join(
            f'<li><a href="/{n}.html">{name}</a></li>'
            for n, name in enumerate(("首页", "政务公开", "办事服务", "互动交流", "数据发布", "专题专栏"))
        )
        + "</ul></nav>"
    )
    parts = planted(
        [f"<p>{text}</p>" for text in subject("property").paragraphs(pick, 26_000)],
        (
            0.2,
            "<h2>二、补贴标准</h2><table><tr><th>楼层</th><th>每部补贴</th></tr><tr><td>六层及以下</td><td>28 万元</td></tr><tr><td>七层及以上</td><td>33 万元</td></tr></table>",
        ),
        (
            0.55,
            "<h2>四、申请条件</h2><p>首层业主书面同意可适当放宽，但<strong>相邻采光受影响的住户</strong>须单独签署补偿协议。</p>",
        ),
        (0.9, "<h2>六、咨询</h2><p>市住建局旧改办，窗口 B12，电话 0571-5550-1187。</p>"),
    )
    text = (
        f'<!DOCTYPE html>\n<html lang="zh-CN"><head><meta charset="utf-8"><title>老旧小区加装电梯补贴办法（2026 年修订）- 市住房和城乡建设局</title>{script}<style>.top{{display:flex}}</style></head>\n<body>{nav}<div id="content"><h1>老旧小区加装电梯补贴办法</h1>'
        + "\n".join(parts)
        + '</div><footer>版权所有 备案号 33010002000</footer><script src="/static/stat.js"></script></body></html>'
    )
    return Case(
        "documents/html-zh", "zh", "http_get", {"url": "https://zj.example.gov.cn/a/2026/elevator.html"},
        text,
        (("加装电梯",), ("补贴",)),
        (("老旧小区装电梯，七楼以上的每部能拿多少钱？", "33 万元"), ("Where can one ask in person about the lift subsidy?", "窗口 B12"), ("加装电梯挡了邻居家光线怎么办？", "须单独签署补偿协议")),
        wrong=("window.__INIT__", "<!doctype"),
    )  # fmt: skip


def html_docs() -> Case:
    """A documentation page as it comes over the wire."""
    pick = dice("html docs")
    side = "".join(f'<li class="nav-item"><a href="/v4/{n}">Chapter {n}</a></li>' for n in range(60))
    parts = planted(
        [f"<p>{text}</p>" for text in subject("manual").paragraphs(pick, 48_000)],
        (0.1, '<h2 id="limits">Limits</h2>'),
        (
            0.5,
            '<h3>Replay</h3><pre><code class="language-sh">gatectl replay --from 2026-01-01 --rate 250/s\n</code></pre><p>Replays older than 19 days need the flag <code>--cold</code>.</p>',
        ),
        (
            0.86,
            "<h3>Dead letters</h3><p>A message is parked after 7 deliveries; parked messages count against the quota of their tenant.</p>",
        ),
    )
    text = (
        f'<!doctype html><html lang="en"><head><title>Delivery guarantees | Gate manual</title><link rel="stylesheet" href="/a.css"><script>dataLayer=[];function gtag(){{dataLayer.push(arguments)}}</script></head><body class="theme-light"><aside><ul>{side}</ul></aside><main><h1>Delivery guarantees</h1>'
        + "".join(parts)
        + "</main><footer>Was this page helpful?</footer></body></html>"
    )
    return Case(
        "documents/html", "en", "fetch_url", {"url": "https://docs.gate.example/v4/delivery"},
        text,
        (("Delivery guarantees",),),
        (("Which option does gatectl need for very old replays?", "--cold"), ("Gate 手册里 dead letters 投递几次以后会被搁置？", "parked after 7 deliveries")),
        wrong=("dataLayer", "<!doctype"),
    )  # fmt: skip


def handbook() -> Case:
    """A long Markdown document with code and lists."""
    pick = dice("handbook")
    parts = planted(
        subject("warehouse").paragraphs(pick, 57_000),
        (0.0, "# Peak season handbook 2026\n\nFor site leads. Valid from 1 November to 15 January."),
        (0.15, "## Staffing\n\n- Temps are booked through *Axis Crew*.\n- One trainer for nine temps."),
        (
            0.45,
            "## Overtime\n\n> Nobody works more than 52 hours a week. Exceptions are signed by Benedikta Sørli, and by nobody else.",
        ),
        (
            0.7,
            "## When the WMS is down\n\n```\n1. switch scanners to mode 4\n2. print the paper pick list from station K2\n```",
        ),
        (
            0.92,
            "## Theft\n\nBag checks need two witnesses; the code word for security on the radio is *blue ladder*.",
        ),
    )
    return Case(
        "documents/markdown", "en", "read_file", {"path": "handbook/peak-2026.md"},
        "\n\n".join(parts),
        (("Peak season handbook",),),
        (("Who may allow overtime beyond the limit in peak season?", "Benedikta Sørli"), ("旺季手册里 WMS 宕机时去哪里打印纸质单？", "station K2"), ("What do I say over the radio to call security in peak season?", "blue ladder")),
    )  # fmt: skip


def contract_zh() -> Case:
    """A service contract by articles."""
    pick = dice("contract zh")
    articles = [f"第{_zh_number(n + 1)}条　{subject('clause_zh').sentences(pick, 5)}" for n in range(110)]
    articles[0] = (
        "第一条　甲方委托乙方提供显示面板驱动芯片的设计与流片服务，合同总价人民币 2,860 万元（含税）。"
    )
    articles[47] = (
        "第四十八条　乙方逾期交付的，每逾期一日按合同总价的万分之六支付违约金，累计不超过合同总价的 8%；逾期超过 45 日的，甲方有权解除合同。"
    )
    articles[88] = "第八十九条　流片产生的掩模版所有权归甲方，乙方保留其自有 IP 核的全部权利。"
    articles[103] = (
        "第一百零四条　因本合同产生的争议，提交深圳国际仲裁院，按其现行规则在深圳仲裁，裁决为终局。"
    )
    text = (
        "委托设计与流片服务合同\n\n合同编号：HF-2026-0931\n甲方：合肥科立光电股份有限公司\n乙方：无锡芯澜微电子有限公司\n签订日期：2026 年 9 月 3 日\n\n"
        + "\n\n".join(articles)
        + "\n\n（以下无正文）\n甲方（盖章）：　　　　　乙方（盖章）：\n"
    )
    return Case(
        "documents/contract-zh", "zh", "read_docx", {"path": "合同/HF-2026-0931.docx"},
        text,
        (("流片", "委托设计"), ("合肥科立", "无锡芯澜", "HF-2026-0931")),
        (("Where will disputes under the tape-out contract be settled?", "深圳国际仲裁院"), ("流片合同里乙方晚交一天要赔多少？", "合同总价的万分之六"), ("流片做出来的掩模归谁？", "掩模版所有权归甲方")),
    )  # fmt: skip


def statute_zh() -> Case:
    """A regulation in chapters, as text."""
    pick = dice("statute zh")
    chapters = ("总则", "规划与建设", "运营服务", "安全管理", "应急处置", "法律责任", "附则")
    articles = [subject("rule_zh").sentences(pick, 5) for _ in range(98)]
    articles[36] = "乘客不得携带充有额定能量超过 160 瓦时的锂电池进站；折叠电动自行车一律不得带入车厢。"
    articles[62] = (
        "发生大客流时，运营单位应当在 5 分钟内启动限流，并通过官方渠道公布；限流超过 40 分钟的，应当接驳公共汽车。"
    )
    articles[84] = "违反本条例第三十七条规定的，由运营单位责令改正；拒不改正的，处二百元以上一千元以下罚款。"
    lines: list[str] = [
        "临江市轨道交通条例",
        "（2026 年 5 月 28 日临江市第十五届人民代表大会常务委员会第三十一次会议通过）",
        "",
    ]
    for n, article in enumerate(articles):
        if n % 14 == 0:
            lines += ["", f"第{_zh_number(n // 14 + 1)}章　{chapters[n // 14]}", ""]
        lines.append(f"第{_zh_number(n + 1)}条　{article}")
    return Case(
        "documents/statute-zh", "zh", "get_regulation", {"name": "轨道交通条例"},
        "\n".join(lines),
        (("轨道交通条例",), ("临江市", "98", "第一章", "总则", "九十八")),
        (("坐轨道交通，多大的锂电池不让带？", "额定能量超过 160 瓦时"), ("What fine does the metro regulation set for passengers who refuse to comply?", "处二百元以上一千元以下罚款"), ("轨道交通大客流限流太久，要安排什么？", "应当接驳公共汽车")),
    )  # fmt: skip


def minutes_zh() -> Case:
    """Minutes of a meeting, with speakers."""
    pick = dice("minutes zh")
    lines = [
        f"{pick.choice(('沈曼秋', '陆望舒', '顾南枝', '许澄'))}：{subject('supply').sentences(pick, 5)}"
        for _ in range(190)
    ]
    lines = planted(
        lines,
        (
            0.0,
            "2026 年第四季度产销协调会会议纪要\n时间：2026 年 10 月 30 日 14:00\n地点：三号楼 502\n主持：陆望舒\n",
        ),
        (0.4, "【决议】东莞威越的包装纸箱自 12 月 1 日起停止采购，由成都锦联替代，单价锁定 2.36 元。"),
        (0.74, "【决议】春节前西安前置仓备货提高到 21 天，资金缺口 1,450 万元由总部调剂。"),
        (0.99, "【待办】顾南枝于 11 月 6 日前提交限电预案。"),
    )
    return Case(
        "documents/minutes-zh", "zh", "read_doc", {"doc": "产销协调会1030"},
        "\n".join(lines),
        (("产销协调会", "第四季度产销"), ("纪要", "决议")),
        (("产销协调会决定包装纸箱以后找哪家买？", "由成都锦联替代"), ("Who has to hand in the power-cut plan after the coordination meeting?", "顾南枝于 11 月 6 日前"), ("产销协调会上说西安前置仓备货的钱不够，谁来补？", "由总部调剂")),
    )  # fmt: skip


def mail() -> Case:
    """A mail with headers, a thread below it and an attachment's first lines."""
    pick = dice("mail")
    thread: list[str] = []
    for depth in range(1, 9):
        quoted = [textwrap.fill(text, 70) for text in subject("office").paragraphs(pick, 1_600)]
        if depth == 5:
            quoted.insert(
                2,
                "The landlord accepts 14.80 per square metre if we sign for seven years;\nthe break clause after year four stays in.",
            )
        thread += [
            f"\n{'>' * depth} On 0{depth} Nov 2026, Noor wrote:",
            *("\n".join(f"{'>' * depth} {line}" for line in block.split("\n")) for block in quoted),
        ]
    text = (
        "Return-Path: <greta@harborlight.example>\nReceived: from mx2.harborlight.example (mx2 [192.0.2.44]) by in.shop.example with ESMTPS; Mon, 16 Nov 2026 08:02:11 +0000\n"
        'From: Greta Lindholm <greta@harborlight.example>\nTo: facilities@shop.example\nCc: "Ewa Lis" <ewa@shop.example>\nSubject: Re: Lease renewal for the Gothenburg office\nDate: Mon, 16 Nov 2026 09:02:03 +0100\n'
        'Message-ID: <a81f@harborlight.example>\nMIME-Version: 1.0\nContent-Type: text/plain; charset="utf-8"\n\nDear all,\n\nattached is the final draft. Please note that the deposit drops to two months,\nand that we must answer by Friday 20 November, noon.\n\nBest\nGreta\n'
        + "\n".join(thread)
        + "\n"
    )
    return Case(
        "documents/mail", "en", "get_message", {"id": "a81f", "format": "raw"},
        text,
        (("Lease renewal",), ("Greta", "Gothenburg")),
        (("What rent did the landlord of the Gothenburg office offer for a long term?", "14.80 per square metre"), ("Gothenburg 办公室 lease 最晚什么时候要答复？", "Friday 20 November, noon")),
        wrong=("search results",),
    )  # fmt: skip


def pdf_text() -> Case:
    """Pages of a PDF with running heads, page numbers and wrapped lines."""
    pick = dice("pdf")
    pages: list[str] = []
    for n in range(1, 25):
        body = [textwrap.fill(text, 82) for text in subject("clinic").paragraphs(pick, 1_500)]
        if n == 15:
            body.insert(
                1,
                "7.3 Renal impairment\n\nBelow an eGFR of 28 ml/min the dose of colchicine is halved and given\nevery second day; dialysis does not remove it.",
            )
        if n == 22:
            body.insert(
                2,
                "9.1 Declarations\n\nProfessor Aurelio Conti received fees from two manufacturers and did not vote\non recommendation 14.",
            )
        pages.append(
            "Clinical guideline CG-311            Gout: diagnosis and management            Version 2.0\n\n"
            + "\n\n".join(body)
            + f"\n\n                                     Page {n} of 24\n"
        )
    pages[0] = (
        "GOUT: DIAGNOSIS AND MANAGEMENT\n\nClinical guideline CG-311\nPublished: 9 June 2026\n\n" + pages[0]
    )
    return Case(
        "documents/pdf", "en", "pdf_to_text", {"file": "CG-311.pdf"},
        "\f".join(pages),
        (("gout",), ("guideline", "CG-311", "diagnosis and management")),
        (("How is the colchicine dose changed for patients with bad kidneys?", "every second day"), ("CG-311 痛风指南里谁因为利益关系没有投票？", "Aurelio Conti")),
    )  # fmt: skip


def pdf_zh() -> Case:
    """A tender document out of a PDF, with page marks."""
    pick = dice("pdf zh")
    pages: list[str] = []
    for n in range(1, 19):
        body = subject("solar").paragraphs(pick, 700)
        if n == 7:
            body.insert(
                1, "3.4 业绩要求：投标人须在近三年内完成不少于 2 个 50MW 及以上光伏清洗项目，以竣工证明为准。"
            )
        if n == 13:
            body.insert(
                2, "5.2 投标保证金：人民币 18 万元，须在 2026 年 12 月 2 日 17:00 前到账，现金不予接受。"
            )
        lines = [line for text in body for line in textwrap.wrap(text, 40)]
        pages.append(
            "青山湖光伏电站组件清洗服务招标文件　　　　　　　　招标编号 QSH-2026-17\n"
            + "\n".join(lines)
            + f"\n　　　　　　　　　　　　　　- {n} -\n"
        )
    return Case(
        "documents/pdf-zh", "zh", "parse_pdf", {"path": "招标文件.pdf"},
        "\n".join(pages),
        (("招标文件", "招标"), ("组件清洗", "青山湖", "QSH-2026-17")),
        (("投标光伏组件清洗要有过多少类似工程？", "不少于 2 个 50MW"), ("By when must the deposit for the panel cleaning tender arrive?", "2026 年 12 月 2 日")),
    )  # fmt: skip


def subtitles_zh() -> Case:
    """Subtitles of a talk, by the second."""
    pick = dice("srt zh")
    lines = [subject("clinic_zh").sentence(pick) for _ in range(480)]
    lines = planted(
        lines,
        (0.0, "各位同道下午好，今天我讲的题目是老年高血压的个体化降压"),
        (0.57, "八十岁以上的老人，我个人的底线是站立位收缩压不低于 118"),
        (0.9, "最后提醒一句，葡萄柚汁会让氨氯地平的浓度升高，门诊一定要问"),
    )
    blocks = [
        f"{n}\n00:{n * 6 // 60:02}:{n * 6 % 60:02},000 --> 00:{(n * 6 + 5) // 60:02}:{(n * 6 + 5) % 60:02},400\n{line}\n"
        for n, line in enumerate(lines, 1)
    ]
    return Case(
        "documents/subtitles-zh", "zh", "get_transcript", {"video": "BV1hx"},
        "\n".join(blocks),
        (("高血压",), ("老年", "降压", "字幕", "subtitle")),
        (("老年高血压讲座里，八十岁以上血压最低不能低于多少？", "收缩压不低于 118"), ("Which drink should doctors ask about when a patient takes amlodipine?", "葡萄柚汁")),
    )  # fmt: skip


def transcript() -> Case:
    """A call's transcript with speakers, of middling length."""
    pick = dice("transcript")
    lines = [
        f"[00:{n // 6:02}:{n % 6 * 10:02}] {pick.choice(('Agent', 'Caller'))}: {subject('office').sentence(pick)}"
        for n in range(80)
    ]
    lines = planted(
        lines,
        (0.0, "Call 2026-11-13 #88412, Northline Broadband, topic: repeated outages"),
        (
            0.7,
            "[00:09:21] Agent: I have credited 3 months and booked technician Owusu for the 19th between eight and ten.",
        ),
    )
    return Case(
        "documents/call-transcript", "en", "get_call_transcript", {"call": 88412},
        "\n".join(lines),
        (("outages", "Northline"), ("call", "transcript", "Agent")),
        (("What compensation did Northline promise for the outages?", "credited 3 months"), ("Northline 的技术员 Owusu 什么时候上门？", "the 19th between eight and ten")),
    )  # fmt: skip


CASES = (
    html_zh, html_docs, handbook, contract_zh, statute_zh, minutes_zh, mail, pdf_text, pdf_zh, subtitles_zh, transcript,
)  # fmt: skip

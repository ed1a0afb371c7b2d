"""What the web answers: search services, repositories, feeds, specifications, pages with menus, encyclopaedias, transcripts."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, planted, subject


def serpapi() -> Case:
    """Organic results below an answer, with much that nobody asks for."""
    pick = dice("serpapi")
    titles = (
        "Heat pump noise limits by country",
        "Where to place an outdoor unit",
        "Monoblock or split?",
        "Defrost cycles explained",
        "Cascade systems for old radiators",
        "Buffer tanks: needed or not",
        "Subsidies for air-to-water units",
        "Propane as a refrigerant",
        "Sizing a pump for a leaky house",
    )
    organic: list[dict[str, Any]] = [
        {
            "position": n + 1,
            "title": title,
            "link": f"https://www.{pick.choice(('warmehus', 'thermoblog', 'installateur'))}.example/{n}",
            "displayed_link": "https://www.example › …",
            "thumbnail": f"data:image/png;base64,{pick.getrandbits(900):0300x}",
            "snippet": subject("grid").sentences(pick, 2),
            "sitelinks": {"inline": [{"title": "Calculator", "link": "https://www.example/c"}]},
        }
        for n, title in enumerate(titles)
    ]
    organic[5]["snippet"] = (
        "Below 40 litres per kilowatt a buffer tank mainly hides a badly balanced circuit; our field test in Tampere covered 212 houses."
    )
    body = {
        "search_metadata": {"id": "6733ab", "status": "Success", "total_time_taken": 1.71},
        "search_parameters": {"engine": "google", "q": "heat pump buffer tank", "hl": "en"},
        "search_information": {"total_results": 2_840_000, "query_displayed": "heat pump buffer tank"},
        "answer_box": {
            "type": "organic_result",
            "title": "Do heat pumps need a buffer tank?",
            "answer": "Usually 10 to 15 litres per kilowatt",
        },
        "organic_results": organic,
        "related_questions": [
            {"question": "How loud is a heat pump?", "snippet": subject("grid").sentence(pick)}
        ],
        "pagination": {"current": 1},
    }
    return Case(
        "web/serpapi", "en", "serpapi_search", {"q": "heat pump buffer tank"},
        js(body, 2),
        (("9", "2,840,000", "2840000"), (*titles[:4], "Do heat pumps need a buffer tank", "10 to 15 litres")),
        (("In which town was the field test of 212 houses?", "Tampere"), ("热泵一般需要每千瓦多少升的缓冲水箱？", "10 to 15 litres per kilowatt")),
        wrong=("base64,",),
    )  # fmt: skip


def shop_zh() -> Case:
    """A product page among menus, scripts and footers."""
    pick = dice("shop")
    menu = "".join(
        f"<li class='nav'><a href='/c/{n}'>{name}</a></li>"
        for n, name in enumerate(
            ("手机数码", "家用电器", "食品生鲜", "图书文娱", "运动户外", "母婴玩具", "汽车用品", "医药健康")
            * 12
        )
    )
    reviews = "".join(
        f"<div class='review'><span>用户{pick.randrange(999)}</span><p>{subject('support_zh').sentence(pick)}</p></div>"
        for _ in range(80)
    )
    reviews += "<div class='review'><span>用户***海</span><p>用了三个月，滤芯提示灯误报，客服让我长按净化键 8 秒清零就好了。</p></div>"
    html = f"<!DOCTYPE html><html lang='zh'><head><meta charset='utf-8'><title>清屿 A7 全屋净水器 1200G 大通量 - 知源商城</title><script>window.__S={{'ab':{list(range(900))}}}</script><style>.nav{{color:red}}</style></head><body><header><ul>{menu}</ul></header><main><h1>清屿 A7 全屋净水器</h1><div class='price'>到手价 ¥2,699</div><table><tr><th>参数</th><th>值</th></tr><tr><td>额定总净水量</td><td>6000L</td></tr><tr><td>废水比</td><td>3:1</td></tr><tr><td>保修</td><td>整机六年</td></tr></table><section>{reviews}</section></main><footer>增值电信业务经营许可证 浙B2-2026</footer></body></html>"
    return Case(
        "web/shop-zh", "zh", "browse", {"url": "https://shop.example/i/7731"},
        html,
        (("清屿 A7", "全屋净水器"),),
        (("滤芯提示灯误报怎么清零？", "长按净化键 8 秒"), ("How long is the warranty of the water purifier?", "整机六年")),
        wrong=("window.__S", "手机数码"),
    )  # fmt: skip


def atom() -> Case:
    """Releases of a program as a feed."""
    pick = dice("atom")
    entries = [
        f"<entry><id>tag:forge.example,2026:Repository/4/v3.{40 - n}.0</id><updated>2026-{1 + (40 - n) // 4:02}-02T10:00:00Z</updated><link rel='alternate' type='text/html' href='https://forge.example/cask/releases/v3.{40 - n}.0'/><title>cask v3.{40 - n}.0</title><content type='html'>&lt;p&gt;{subject('code_comment').sentences(pick, 4)}&lt;/p&gt;</content><author><name>{pick.choice(('mirela', 'tomasz', 'ines'))}</name></author></entry>"
        for n in range(38)
    ]
    entries[11] = entries[11].replace(
        "&lt;p&gt;", "&lt;p&gt;Yanked: this release could truncate archives larger than 4 GiB. "
    )
    return Case(
        "web/atom-releases", "en", "fetch", {"url": "https://forge.example/cask/releases.atom"},
        "<?xml version='1.0' encoding='UTF-8'?><feed xmlns='http://www.w3.org/2005/Atom' xml:lang='en-US'><id>tag:forge.example,2026:/cask/releases</id><title>Release notes from cask</title><updated>2026-11-02T10:00:00Z</updated>" + "".join(entries) + "</feed>",
        (("Release notes from cask", "cask v3.40.0"), ("38", "v3.40.0")),
        (("Which release of cask was yanked because it could cut archives?", "v3.29.0"), ("cask 的哪个问题会影响超过 4 GiB 的归档？", "could truncate archives larger than 4 GiB")),
    )  # fmt: skip


def openapi() -> Case:
    """A specification with many paths."""
    pick = dice("openapi")
    things = (
        "parcels",
        "labels",
        "depots",
        "couriers",
        "claims",
        "slots",
        "tariffs",
        "pallets",
        "manifests",
        "scans",
    )
    paths: dict[str, Any] = {}
    for thing in things:
        for path, verbs in (
            (f"/{thing}", ("get", "post")),
            (f"/{thing}/{{id}}", ("get", "delete")),
            (f"/{thing}/{{id}}/events", ("get",)),
        ):
            paths[path] = {
                verb: {
                    "operationId": f"{verb}{thing.title()}{len(paths)}",
                    "summary": subject("code_comment").sentence(pick),
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                    ],
                    "responses": {"200": {"description": "OK"}, "404": {"description": "No such thing"}},
                }
                for verb in verbs
            }
    paths["/claims"]["post"]["description"] = (
        "A claim must be filed within 21 days of delivery; later ones are answered with 422 and code CLAIM_EXPIRED."
    )
    body = {
        "openapi": "3.1.0",
        "info": {
            "title": "Northline Parcel API",
            "version": "2026-10-01",
            "description": "Everything a shop needs to ship.",
        },
        "servers": [{"url": "https://api.northline.example/v4"}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Northline-Key"}}
        },
    }
    return Case(
        "web/openapi", "en", "fetch_json", {"url": "https://api.northline.example/openapi.json"},
        js(body),
        (("Northline Parcel API",), ("30", "paths", "/parcels", "OpenAPI")),
        (("Within how many days must a claim be filed?", "within 21 days of delivery"), ("Northline 接口用哪个请求头传密钥？", "X-Northline-Key")),
    )  # fmt: skip


def repositories() -> Case:
    """A search for repositories, each with fifty links of its own."""
    pick = dice("repositories")
    links = (
        "forks_url",
        "keys_url",
        "hooks_url",
        "events_url",
        "branches_url",
        "tags_url",
        "blobs_url",
        "trees_url",
        "issues_url",
        "pulls_url",
    )
    items = [{"id": pick.randrange(10**8), "node_id": f"R_{pick.getrandbits(60):x}", "name": name, "full_name": f"{owner}/{name}", "private": False, "owner": {"login": owner, "id": pick.randrange(10**7), "type": "Organization"}, "html_url": f"https://forge.example/{owner}/{name}", "description": what, **{link: f"https://api.forge.example/repos/{owner}/{name}/{link}{{/id}}" for link in links}, "stargazers_count": stars, "language": tongue, "archived": archived, "license": {"key": licence}} for owner, name, what, stars, tongue, licence, archived in (
        ("tidewater", "slipway", "Deploys from a single SQLite file", 18_204, "Go", "mit", False), ("oakfern", "ropewalk", "CRDT ropes for collaborative editors", 9_377, "Rust", "apache-2.0", False), ("lumenlab", "prism-queue", "Priority queues with fairness", 4_410, "Python", "bsd-3-clause", False),
        ("quietcode", "hushlog", "Structured logs that compress themselves", 3_021, "Zig", "mpl-2.0", True), ("northgate", "turnstile", "Rate limits at the edge", 2_764, "TypeScript", "mit", False), ("bramble", "thicket", "An LSM tree in 2,000 lines", 1_909, "C", "unlicense", False), ("saltmarsh", "heron", "Watches folders without polling", 977, "Nim", "isc", False))]  # fmt: skip
    return Case(
        "web/github-repositories", "en", "search_repositories", {"q": "storage sort:stars"},
        js({"total_count": 1_834, "incomplete_results": False, "items": items}),
        (("tidewater/slipway", "slipway"), ("1,834", "1834", "7")),
        (("Under which licence is the LSM tree in 2,000 lines?", "unlicense"), ("用 Zig 写的、已归档的那个仓库是做什么的？", "Structured logs that compress themselves")),
    )  # fmt: skip


def commits_zh() -> Case:
    """Commits as an API lists them, with messages in Chinese."""
    pick = dice("commits")
    verbs = ("修复", "重构", "补充", "调整", "删除")
    things = ("登录页文案", "分页参数校验", "导出任务的日志", "权限缓存的过期时间", "报表 SQL", "对账脚本")
    rows: list[dict[str, Any]] = [
        {
            "sha": f"{pick.getrandbits(160):040x}",
            "commit": {
                "author": {
                    "name": pick.choice(("王磊", "赵敏", "何静")),
                    "email": "dev@corp.example",
                    "date": f"2026-10-{28 - n // 4:02}T0{n % 10}:12:00Z",
                },
                "message": f"{pick.choice(verbs)}{pick.choice(things)}（#{4000 - n}）",
                "comment_count": 0,
            },
            "html_url": f"https://forge.example/mall/admin/commit/{n}",
            "parents": [{"sha": f"{pick.getrandbits(160):040x}"}],
        }
        for n in range(60)
    ]
    rows[38]["commit"]["message"] = (
        "回滚“批量改价”功能：线上误将 312 个商品价格写成 0（#3962）\n\n值班确认后由何静执行，详见事故单 INC-2291"
    )
    return Case(
        "web/github-commits-zh", "zh", "list_commits", {"repo": "mall/admin", "per_page": 60},
        js(rows),
        (("60",), ("提交", "commit")),
        (("回滚批量改价的事故单号是什么？", "INC-2291"), ("How many products got a price of 0 by mistake?", "312 个商品")),
    )  # fmt: skip


def encyclopaedia_zh() -> Case:
    """An extract below a number for a key."""
    pick = dice("encyclopaedia")
    said = subject("metro").paragraphs(pick, 9_000)
    body = "\n\n".join(
        planted(
            said,
            (0.0, "屏山站是临江地铁 2 号线与 5 号线的换乘站，位于屏山区人民路地下。"),
            (0.55, "== 命名 ==\n车站规划阶段曾名“南门兜站”，2014 年公示后改为现名。"),
            (0.8, "== 事故 ==\n2019 年 7 月 9 日，因市政施工打穿顶板，车站进水停运 11 小时。"),
        )
    )
    return Case(
        "web/encyclopaedia-zh", "zh", "wiki_extract", {"title": "屏山站"},
        js({"batchcomplete": "", "query": {"pages": {"661204": {"pageid": 661204, "ns": 0, "title": "屏山站", "extract": body}}}}),
        (("屏山站",), ("换乘站", "2 号线", "地铁")),
        (("屏山站以前叫什么名字？", "南门兜站"), ("How long was the station closed after water came in?", "停运 11 小时")),
    )  # fmt: skip


def article() -> Case:
    """A report among banners for cookies and lists of other articles."""
    pick = dice("article")
    side = "".join(
        f"<li><a href='/n/{n}'>{subject('property').sentence(pick)[:60]}</a></li>" for n in range(70)
    )
    paragraphs = "".join(
        f"<p>{text}</p>"
        for text in planted(
            subject("warehouse").paragraphs(pick, 14_000),
            (
                0.0,
                "The Port of Vlissingen will close its east terminal for nine weeks from 4 January to rebuild quay wall 3.",
            ),
            (
                0.66,
                "Ships above 180 metres will be sent to Terneuzen, where the pilotage fee is waived until 12 March.",
            ),
        )
    )
    html = f"<html><head><title>Vlissingen closes east terminal for nine weeks | Harbour Wire</title></head><body><div id='cookie'>We value your privacy. Accept all. Reject all. Manage 412 partners.</div><nav><ul>{side}</ul></nav><article><h1>Vlissingen closes east terminal for nine weeks</h1><p class='by'>By Marit Vos, 11 November 2026</p>{paragraphs}</article><aside><h2>Most read</h2><ul>{side}</ul></aside></body></html>"
    return Case(
        "web/article", "en", "fetch_page", {"url": "https://harbourwire.example/vlissingen"},
        html,
        (("Vlissingen closes east terminal", "close its east terminal"),),
        (("Until when is the pilotage fee waived in Terneuzen?", "until 12 March"), ("弗利辛恩港东码头从什么时候开始关闭？", "from 4 January")),
        wrong=("We value your privacy", "412 partners"),
    )  # fmt: skip


def captions() -> Case:
    """A talk as pieces with their times."""
    pick = dice("captions")
    said = [
        "today I want to talk about beekeeping in cold climates",
        "and why most colonies die in March and not in January",
        *(subject("manual").sentence(pick).lower() for _ in range(150)),
    ]
    said = planted(
        said, (0.7, "so the rule I use is eighteen kilos of stores per hive, weighed on the first of October")
    )
    rows = [{"text": text, "start": round(4.2 * n, 2), "duration": 4.1} for n, text in enumerate(said)]
    return Case(
        "web/captions", "en", "get_transcript", {"video": "kPq71"},
        js(rows),
        (("beekeeping", "153"), ("cold climates", "text", "transcript", "segments")),
        (("How much food per hive does the speaker want?", "eighteen kilos"), ("演讲者在哪一天称蜂箱的重量？", "first of october")),
    )  # fmt: skip


def exa_zh() -> Case:
    """Results with highlights and long texts."""
    pick = dice("exa")
    titles = (
        "工商业储能电站消防验收要点",
        "磷酸铁锂热失控早期预警方法综述",
        "储能集装箱全氟己酮灭火系统对比",
        "某省新型储能电站安全管理办法解读",
        "储能电站保险费率为何翻倍",
    )
    results: list[dict[str, Any]] = [
        {
            "id": f"https://chuneng.example/{n}",
            "title": title,
            "url": f"https://chuneng.example/{n}",
            "publishedDate": f"2026-0{n + 3}-11",
            "author": pick.choice(("储能观察", "")),
            "score": 0.31 - n / 100,
            "highlights": [subject("solar").sentence(pick)],
            "text": "\n".join(subject("solar").paragraphs(pick, 3_500)),
        }
        for n, title in enumerate(titles)
    ]
    results[4]["text"] += "\n再保人把单舱免赔额由 50 万元提高到 200 万元，是费率翻倍的主因。"
    return Case(
        "web/exa-zh", "zh", "exa_search", {"query": "储能电站 消防"},
        js({"requestId": "c1f0", "autopromptString": "储能电站消防安全", "results": results, "costDollars": {"total": 0.011}}),
        (("消防验收要点", "热失控早期预警", "全氟己酮"), ("5",)),
        (("储能保险的单舱免赔额提高到多少？", "200 万元"), ("Which article explains why insurance rates of storage plants doubled?", "储能电站保险费率为何翻倍")),
    )  # fmt: skip


CASES = (
    serpapi,
    shop_zh,
    atom,
    openapi,
    repositories,
    commits_zh,
    encyclopaedia_zh,
    article,
    captions,
    exa_zh,
)

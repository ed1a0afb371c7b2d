"""Search results in the shapes that search tools return: web, vector stores, engines, papers, code."""

from typing import Any

from benchmarks.judged.case import Case, dice, js, planted, subject


def tavily() -> Case:
    """Web search with an answer, scores and raw pages."""
    pick = dice("tavily")
    titles = (
        "Sodium-ion cells enter series production", "Grid storage: sodium against LFP", "What sodium-ion means for winter range",
        "Prussian white cathodes explained", "Recycling sodium-ion packs", "Sodium battery start-ups to watch",
        "Factory tour: from slurry to cell", "Cost models for sodium-ion in 2027",
    )  # fmt: skip
    pages = [subject("grid").paragraphs(pick, 5_000) for _ in titles]
    pages[5] = planted(
        pages[5],
        (
            0.6,
            "Natrivolt of Graz has raised 140 million euros and will deliver 2 GWh to Wien Energie from May 2027.",
        ),
    )
    results = [
        {"title": title, "url": f"https://batterynews{n}.example/{title.lower().replace(' ', '-')}", "score": 0.93 - n / 20,
         "content": " ".join(page)[:600], "raw_content": "\n\n".join(page)}
        for n, (title, page) in enumerate(zip(titles, pages, strict=True))
    ]  # fmt: skip
    body = {
        "query": "sodium-ion battery suppliers 2026", "follow_up_questions": None, "images": [],
        "answer": "Several makers started series production of sodium-ion cells in 2026.",
        "results": results, "response_time": 1.74,
    }  # fmt: skip
    return Case(
        "search/tavily", "en", "tavily_search", {"query": "sodium-ion battery suppliers 2026", "include_raw_content": True},
        js(body),
        (("series production", "sodium against LFP"), ("8",)),
        (
            ("Which Austrian maker of sodium-ion batteries got fresh capital?", "Natrivolt of Graz"),
            ("sodium-ion 钠电池供应商里，谁会从 2027 年 5 月起收到 Natrivolt 的电池？", "Wien Energie"),
        ),
    )  # fmt: skip


def tavily_zh() -> Case:
    """A bare list of hits, as some wrappers hand them on, nulls included."""
    pick = dice("tavily zh")
    titles = (
        "2026 年新版医保目录解读",
        "高血压门诊用药保障政策问答",
        "异地就医直接结算流程",
        "慢病长处方管理规范全文",
        "带量采购对基层用药的影响",
        "家庭医生签约服务包价格表",
    )
    hits: list[dict[str, Any]] = []
    for n, title in enumerate(titles):
        text = subject("clinic_zh").paragraphs(pick, 4_600)
        if n == 3:
            text = planted(
                text, (0.7, "长处方一般不超过 12 周，初次开具须由主治以上医师签字，麻精药品除外。")
            )
        hits.append(
            {
                "type": "page",
                "title": title,
                "url": f"https://health{n}.example.cn/a/{n}",
                "content": "".join(text),
                "raw_content": None,
                "favicon": None,
            }
        )
    return Case(
        "search/tavily-list-zh", "zh", "web_search", {"query": "慢性病 长处方 规定"},
        js(hits),
        (("医保目录解读", "高血压门诊用药", "长处方管理规范"), ("6",)),
        (
            ("慢性病长处方一次最多开几个星期的药？", "一般不超过 12 周"),
            ("Which doctor has to sign the first long-term prescription for a chronic disease?", "须由主治以上医师签字"),
        ),
        wrong=("null",),
    )  # fmt: skip


def bing() -> Case:
    """`webPages.value` with deep links, news beside it."""
    pick = dice("bing")
    pages = [
        {"id": f"https://api.search.example/#WebPages.{n}", "name": f"{name} | PortWatch", "url": f"https://portwatch.example/{n}",
         "displayUrl": f"portwatch.example/{n}", "snippet": subject("warehouse").sentences(pick, 3), "dateLastCrawled": "2026-11-14T08:00:00Z",
         "language": "en", "isNavigational": False, "deepLinks": [{"name": "Archive", "url": f"https://portwatch.example/{n}/archive"}]}
        for n, name in enumerate(("Rotterdam strike update", "Dwell times at Felixstowe", "Reefer plugs short in Algeciras", "Rail corridor closed",
                                  "Berth windows explained", "Carrier surcharges in Q4", "Empty container imbalance", "Customs IT outage",
                                  "Pilot shortage in Antwerp", "Port fees 2027"))
    ]  # fmt: skip
    pages[7]["snippet"] = (
        "The declaration system ATLAS-3 was down for 31 hours; the fallback is form T2L-P by e-mail to the Hamburg desk."
    )
    body = {
        "_type": "SearchResponse", "queryContext": {"originalQuery": "port disruption november 2026"},
        "webPages": {"webSearchUrl": "https://search.example/?q=port", "totalEstimatedMatches": 48_200, "value": pages},
        "rankingResponse": {"mainline": {"items": [{"answerType": "WebPages", "resultIndex": n} for n in range(10)]}},
    }  # fmt: skip
    return Case(
        "search/bing", "en", "bing_search", {"q": "port disruption november 2026"},
        js(body),
        (("Rotterdam strike", "Dwell times at Felixstowe"), ("10", "48,200", "48200")),
        (("What do we send to customs while their IT is down at the port?", "form T2L-P"),),
    )  # fmt: skip


def google_zh() -> Case:
    """A custom search with page maps."""
    pick = dice("google zh")
    names = (
        "地铁票价调整听证会公告",
        "轨道交通线网规划（2026—2035）",
        "9号线南延段环评公示",
        "乘客守则修订对比",
        "站内便利店招租",
        "残疾人免费乘车办法",
        "早高峰限流车站名单",
        "末班车时间汇总",
    )
    items = [
        {"kind": "customsearch#result", "title": name, "htmlTitle": f"<b>{name}</b>", "link": f"https://metro{n}.example.cn/n", "displayLink": f"metro{n}.example.cn",
         "snippet": subject("metro").sentences(pick, 2), "cacheId": f"{pick.getrandbits(48):012x}",
         "pagemap": {"metatags": [{"og:title": name, "og:description": subject("metro").sentence(pick), "viewport": "width=device-width"}]}}
        for n, name in enumerate(names)
    ]  # fmt: skip
    items[5]["snippet"] = "持二级及以上残疾证者本人免费，另可有一名陪护人员免票，须在人工通道登记。"
    body = {
        "kind": "customsearch#search", "queries": {"request": [{"totalResults": "3180", "searchTerms": "地铁 优惠 乘车"}]},
        "searchInformation": {"searchTime": 0.31, "totalResults": "3180"}, "items": items,
    }  # fmt: skip
    return Case(
        "search/google-zh", "zh", "google_search", {"q": "地铁 优惠 乘车", "num": 8},
        js(body),
        (("地铁票价调整", "线网规划", "环评公示"), ("8", "3180", "3,180")),
        (
            ("坐地铁时，陪残疾人一起的人也不要钱吗？", "一名陪护人员免票"),
            ("Where in the metro station do disabled people register to ride for free?", "须在人工通道登记"),
        ),
    )  # fmt: skip


def elasticsearch() -> Case:
    """Hits with highlights and aggregations."""
    pick = dice("elastic")
    hits = [
        {"_index": "contracts-2026", "_id": f"c{pick.getrandbits(32):08x}", "_score": round(17 - n / 3, 3),
         "_source": {"title": f"Lease {pick.randrange(100, 999)}: {pick.choice(('hall', 'office', 'yard'))} in {pick.choice(('Gdynia', 'Trieste', 'Varna'))}",
                     "body": subject("clause").sentences(pick, 6), "signed": f"202{pick.randrange(6)}-0{pick.randrange(1, 10)}-14"},
         "highlight": {"body": [f"… <em>termination</em> {subject('clause').sentence(pick)}"]}}
        for n in range(25)
    ]  # fmt: skip
    hits[17]["_source"] = {"title": "Lease 377: yard in Varna", "signed": "2021-05-14", "body": "The lessee may terminate at any time if the quay wall settles by more than 4 centimetres; notice goes to Stoyanov & Partners."}  # fmt: skip
    body = {
        "took": 12, "timed_out": False, "_shards": {"total": 5, "successful": 5, "failed": 0},
        "hits": {"total": {"value": 1284, "relation": "eq"}, "max_score": 17.0, "hits": hits},
        "aggregations": {"year": {"buckets": [{"key": 2020 + n, "doc_count": pick.randrange(99)} for n in range(6)]}},
    }  # fmt: skip
    return Case(
        "search/elasticsearch", "en", "es_search", {"index": "contracts-2026", "query": "early termination lease"},
        js(body),
        (("Gdynia", "Trieste", "Varna"), ("25", "1284", "1,284")),
        (
            ("Which lease lets the tenant leave early if the quay sinks?", "settles by more than 4 centimetres"),
            ("Varna 那份 lease 提前解约，通知寄给哪家律所？", "Stoyanov & Partners"),
        ),
    )  # fmt: skip


def qdrant_zh() -> Case:
    """Points with payloads and, as happens, their vectors."""
    pick = dice("qdrant zh")
    points = [
        {"id": n, "version": 3, "score": round(0.86 - n / 60, 6),
         "payload": {"doc": f"设备手册-{pick.randrange(10, 60)}.pdf", "page": pick.randrange(1, 240), "text": subject("solar").sentences(pick, 5)},
         "vector": [round(pick.uniform(-0.1, 0.1), 5) for _ in range(64)]}
        for n in range(20)
    ]  # fmt: skip
    points[13]["payload"] = {
        "doc": "设备手册-41.pdf",
        "page": 118,
        "text": "逆变器报 F-217 时，先断开直流侧隔离开关静置 8 分钟，再测 PV2 对地电阻，低于 0.5 兆欧须更换线缆。",
    }
    return Case(
        "search/qdrant-zh", "zh", "qdrant_find", {"query": "逆变器 故障代码 处理", "limit": 20},
        js({"result": {"points": points}, "status": "ok", "time": 0.0041}),
        (("20",), ("设备手册",)),
        (
            ("逆变器出现 F-217 告警，先做什么？", "静置 8 分钟"),
            ("For inverter fault F-217, below which resistance must the cable be replaced?", "低于 0.5 兆欧"),
        ),
    )  # fmt: skip


def milvus_zh() -> Case:
    """A list of lists of hits, one list for each query vector."""
    pick = dice("milvus zh")
    hits: list[dict[str, Any]] = [
        {"id": 440_000 + n, "distance": round(0.79 - n / 90, 5), "entity": {"chunk": subject("property").sentences(pick, 6), "source": f"物业管理条例汇编/{n % 7}.docx"}}
        for n in range(24)
    ]  # fmt: skip
    hits[9]["entity"]["chunk"] = (
        "电梯大修动用维修资金，须经专有部分面积占比三分之二以上的业主参与表决，并由参与者过半数同意。"
    )
    return Case(
        "search/milvus-zh", "zh", "milvus_text_search", {"collection": "reg_zh", "query_text": "维修资金 表决"},
        js([hits]),
        (("24",), ("物业管理条例", "物业")),
        (("用维修资金修电梯，要多少业主点头？", "参与者过半数同意"),),
    )  # fmt: skip


def chroma() -> Case:
    """Parallel lists: ids, documents, metadatas, distances."""
    pick = dice("chroma")
    documents = [subject("clinic").sentences(pick, 6) for _ in range(20)]
    documents[11] = (
        "Children below 20 kg receive 2.5 mg of the syrup once a day; the bottle keeps for 60 days after opening and must not be frozen."
    )
    body = {
        "ids": [[f"leaflet-{n}" for n in range(20)]], "embeddings": None, "documents": [documents], "uris": None,
        "included": ["metadatas", "documents", "distances"],
        "metadatas": [[{"file": f"leaflet_{pick.choice(('bilastine', 'apixaban'))}.pdf", "page": pick.randrange(1, 9)} for _ in documents]],
        "distances": [[round(0.2 + n / 40, 4) for n in range(20)]],
    }  # fmt: skip
    return Case(
        "search/chroma", "en", "chroma_query_documents", {"collection_name": "leaflets", "query_texts": ["paediatric dose"]},
        js(body),
        (("20",), ("leaflet", "bilastine", "apixaban")),
        (
            ("How long may the syrup be used once the bottle's seal is broken?", "keeps for 60 days after opening"),
            ("说明书里二十公斤以下的孩子，糖浆吃多少？", "2.5 mg of the syrup"),
        ),
    )  # fmt: skip


def lightrag_zh() -> Case:
    """Entities, relations and chunks as one text, as graph retrievers give it."""
    pick = dice("lightrag zh")
    entities = [js({"id": n, "entity": name, "type": "organization", "description": subject("supply").sentence(pick)})
                for n, name in enumerate(("宁波恒泰", "苏州总仓", "合肥科立", "佛山嘉禾", "武汉分拨中心", "青岛海瑞"))]  # fmt: skip
    relations = [
        js(
            {
                "id": n,
                "entity1": "苏州总仓",
                "entity2": pick.choice(("宁波恒泰", "合肥科立")),
                "description": subject("supply").sentence(pick),
            }
        )
        for n in range(25)
    ]
    chunks = [subject("supply").sentences(pick, 14) for _ in range(40)]
    chunks[26] = (
        "合肥科立面板的质保期为 26 个月，暗点超过 3 个即可整批退换，联系人为售后经理袁牧之。" + chunks[26]
    )
    blocks = [js({"reference_id": str(n % 5 + 1), "content": text}) for n, text in enumerate(chunks)]
    files = [
        f"[{n + 1}] 供应商档案/{name}.docx"
        for n, name in enumerate(("合肥科立", "宁波恒泰", "青岛海瑞", "框架协议2026", "质量月报"))
    ]
    text = "\n".join([
        "-----Entities(KG)-----", "", "```json", *entities, "```", "", "-----Relationships(KG)-----", "", "```json", *relations, "```", "",
        "-----Document Chunks(DC)-----", "", "```json", *blocks, "```", "", "-----References-----", "", *files,
    ])  # fmt: skip
    return Case(
        "search/lightrag-zh", "zh", "query_knowledge", {"query": "合肥科立 面板 质保", "mode": "mix"},
        text,
        (("合肥科立",), ("供应商档案", "40", "chunks", "片段", "实体", "entities")),
        (
            ("合肥科立的屏幕有几个坏点就可以退？", "暗点超过 3 个"),
            ("Who is the after-sales contact at 合肥科立?", "袁牧之"),
        ),
    )  # fmt: skip


def arxiv() -> Case:
    """An Atom feed of papers."""
    pick = dice("arxiv")
    entries: list[str] = []
    titles: list[str] = []
    for n in range(15):
        title = f"{pick.choice(('Sparse', 'Paged', 'Streaming', 'Hierarchical'))} {pick.choice(('attention', 'caches', 'memory', 'retrieval'))} for long {pick.choice(('contexts', 'dialogues', 'documents'))}"
        summary = subject("paper").sentences(pick, 5)
        if n == 10:
            title, summary = (
                "Eviction without regret in key-value caches",
                "We show that dropping 83% of the cache costs 0.4 points on LongBench when the entries are chosen by future-query sketches. Code is released as sketchkv.",
            )
        titles.append(title)
        entries.append(
            f"  <entry>\n    <id>http://arxiv.org/abs/2610.{pick.randrange(20000):05}v1</id>\n    <updated>2026-10-{10 + n:02}T17:59:59Z</updated>\n"
            f"    <title>{title}</title>\n    <summary>  {summary}\n</summary>\n    <author>\n      <name>{pick.choice(('Ilse Brandt', 'Kwame Osei', 'Yuki Hara'))}</name>\n    </author>\n"
            f'    <link href="http://arxiv.org/pdf/2610.{n:05}v1" rel="related" type="application/pdf" title="pdf"/>\n    <category term="cs.CL" scheme="http://arxiv.org/schemas/atom"/>\n  </entry>'
        )
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n  <title type="html">ArXiv Query: search_query=all:"kv cache"</title>\n'
        '  <opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">412</opensearch:totalResults>\n'
        + "\n".join(entries)
        + "\n</feed>\n"
    )
    return Case(
        "search/arxiv", "en", "arxiv_search", {"search_query": 'all:"kv cache"', "max_results": 15},
        text,
        (("15", "412"), tuple(titles)),
        (
            ("Which arXiv paper drops most of the KV cache and loses almost nothing?", "Eviction without regret"),
            ("arXiv 上那篇讲 KV cache 淘汰的论文，代码叫什么名字？", "sketchkv"),
        ),
        wrong=('<?xml version="1.0" encoding="utf-8"?> <feed',),
    )  # fmt: skip


def ripgrep() -> Case:
    """Matches with paths and line numbers."""
    pick = dice("ripgrep")
    files = [
        f"src/{part}/{name}.ts"
        for part in ("billing", "auth", "reports", "shared")
        for name in ("index", "types", "service", "controller", "helpers", "worker")
    ]
    lines: list[str] = []
    for file in files:
        for _ in range(pick.randrange(6, 14)):
            call = pick.choice(("await legacyFetch(`/v1/${id}`)", "return legacyFetch(url, { retry: 2 })", "const res = await legacyFetch(endpoint, opts)",
                                "expect(legacyFetch).toHaveBeenCalledTimes(1)", "import { legacyFetch } from '../shared/http'"))  # fmt: skip
            lines.append(f"{file}:{pick.randrange(3, 900)}:{' ' * pick.randrange(0, 8)}{call}")
    lines = planted(
        lines,
        (
            0.66,
            "src/shared/http.ts:41:/** @deprecated since 8.2, use `request()`; removal is tracked in PLAT-6120 */",
        ),
    )
    return Case(
        "search/ripgrep", "en", "grep", {"pattern": "legacyFetch", "path": "src"},
        "\n".join(lines) + "\n",
        (("legacyFetch",), (str(len(lines)), "24", "25")),
        (("What should be called instead of legacyFetch?", "use `request()`"), ("删除 legacyFetch 的任务编号是多少？", "PLAT-6120")),
    )  # fmt: skip


def code_search_zh() -> Case:
    """A code host's search with text matches, comments in Chinese."""
    pick = dice("code search zh")
    items: list[dict[str, Any]] = [
        {"name": f"{name}.py", "path": f"settle/{name}.py", "sha": f"{pick.getrandbits(64):016x}", "score": 1.0,
         "repository": {"full_name": "yunshang/settlement", "private": True},
         "text_matches": [{"property": "content", "fragment": f"# {subject('code_comment_zh').sentence(pick)}\nfee = round_half_even(amount * {pick.random():.4f}, 2)", "matches": [{"text": "round_half_even", "indices": [40, 55]}]}]}
        for name in ("daily", "refund", "rebate", "platform_fee", "withholding", "statement", "fx", "adjust", "carry", "audit")
    ]  # fmt: skip
    items[6]["text_matches"][0]["fragment"] = (
        "# 日元没有小数位：先折算再取整，否则每月差 7 元左右（见 2026-08 对账）\nfee = round_half_even(amount * rate, 0)"
    )
    return Case(
        "search/code-host-zh", "zh", "search_code", {"q": "round_half_even repo:yunshang/settlement"},
        js({"total_count": 10, "incomplete_results": False, "items": items}, 2),
        (("daily.py", "refund.py", "settle/"), ("10",)),
        (("settlement 仓库里日元的 round_half_even 为什么单独处理？", "先折算再取整"),),
    )  # fmt: skip


def weaviate_mixed() -> Case:
    """`data.Get.Class` with additional properties; English questions answered from Chinese notes."""
    pick = dice("weaviate")
    rows = [
        {"question": subject("office").sentence(pick), "note": subject("support_zh").sentences(pick, 3), "_additional": {"certainty": round(0.93 - n / 70, 4), "id": f"{pick.getrandbits(64):016x}"}}
        for n in range(30)
    ]  # fmt: skip
    rows[21] |= {
        "question": "How do I give a contractor access for one day?",
        "note": "在“临时访客”里生成 24 小时令牌，令牌只读，到期自动吊销，审批人为信息安全部楼一鸣。",
    }
    return Case(
        "search/weaviate", "mixed", "weaviate_near_text", {"class": "HelpNote", "concepts": ["temporary access"]},
        js({"data": {"Get": {"HelpNote": rows}}}),
        (("30",), ("HelpNote", "note", "question")),
        (("Who approves access for a contractor who comes for one day?", "楼一鸣"), ("给外包人员的临时访客权限多久失效？", "24 小时令牌")),
    )  # fmt: skip


CASES = (
    tavily, tavily_zh, bing, google_zh, elasticsearch, qdrant_zh, milvus_zh, chroma, lightrag_zh, arxiv, ripgrep,
    code_search_zh, weaviate_mixed,
)  # fmt: skip

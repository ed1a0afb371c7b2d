"""Tool results to measure the archive with: made up from a seed, as long as they have to be."""

import json
import random
from collections.abc import Callable, Iterator

_CHINESE = (
    "{who}在{where}里可以{act}{what}，{then}。",
    "如果{what}没有生效，请先检查{where}，再由{who}重新{act}。",
    "{act}{what}之前，{who}需要确认{where}已经启用，否则{then}。",
    "{where}默认只对{who}开放；需要{act}{what}时，应当提交申请并说明原因。",
    "从{number}版本开始，{what}与{where}分开保存，{then}。",
    "按照规定，{who}每{number}天复核一次{what}，复核结果保存在{where}。",
    "常见的问题是{what}与{where}不一致，这时{then}，然后通知{who}。",
    "为了避免误操作，系统会在{who}{act}{what}时弹出提示，并把记录写入{where}。",
)
_CHINESE_SLOTS = {
    "who": ("系统管理员", "部门主管", "审计人员", "普通用户", "项目负责人", "外部顾问", "值班工程师"),
    "where": ("权限中心", "角色列表", "数据字典", "审批流程", "操作日志", "组织架构", "消息模板", "备份策略"),
    "act": ("修改", "导出", "停用", "复制", "批量分配", "恢复", "查看", "合并"),
    "what": ("菜单权限", "数据范围", "字段规则", "接口密钥", "登录策略", "报表模板", "岗位角色", "共享文件"),
    "then": (
        "保存后立即生效",
        "十分钟之内会同步到所有节点",
        "需要重新登录才能看到变化",
        "原有的设置会自动归档",
        "系统会拒绝并给出说明",
        "下一次审计会列出这一项",
    ),
}
_ENGLISH = (
    "The {thing} in {place} was checked on the {number}th by {name}, who found nothing unusual.",
    "Before the {thing} can be replaced, {name} has to order {number} parts from the supplier in {place}.",
    "According to the report, about {number} visitors asked for the {thing}, most of them in {place}.",
    "{name} explains that the older {thing} still works, although it needs {number} minutes to start.",
    "None of this applies to {place}, where the {thing} is shared between {number} departments.",
    "A second source describes the {thing} differently: {name} measured {number} millimetres at its widest point.",
    "If the {thing} fails again, the agreement with {place} allows a refund of {number} euros.",
)
_ENGLISH_SLOTS = {
    "name": ("Anna Kowalska", "Piotr", "Mei Ling", "Yusuf Demir", "Carla", "Thomas", "Ravi", "Ingrid"),
    "place": ("Rotterdam", "Shenzhen", "Lyon", "Porto Alegre", "Nairobi", "Osaka", "the old harbour"),
    "thing": ("compressor", "sensor", "filter", "contract", "bridge", "printer", "control unit", "archive"),
}
_PATHS = ("orders", "users", "invoices", "stock", "login")
_LEVELS = ("INFO",) * 12 + ("DEBUG",) * 4 + ("WARN", "WARN", "ERROR")
_SENTENCES_A_PARAGRAPH = 6


def chinese_prose(chars: int, seed: int = 0) -> str:
    """Exactly this many characters of a handbook in Chinese, in sections and paragraphs."""
    return _joined(_sections(random.Random(seed), _CHINESE, _CHINESE_SLOTS, "## 第{}节\n\n", ""), chars)


def english_prose(chars: int, seed: int = 0) -> str:
    """Exactly this many characters of a report in English, in sections and paragraphs."""
    return _joined(_sections(random.Random(seed), _ENGLISH, _ENGLISH_SLOTS, "## Part {}\n\n", " "), chars)


def json_records(chars: int, seed: int = 0) -> str:
    """A JSON list of nested records, at least this many characters, and at most one record more."""
    pick = random.Random(seed)
    made: list[str] = []
    length = 2
    while length < chars:
        made.append(json.dumps(_record(pick, len(made)), ensure_ascii=False))
        length += len(made[-1]) + 2
    return f"[{', '.join(made)}]"


def log_lines(chars: int, seed: int = 0) -> str:
    """Exactly this many characters of a service's log."""
    return _joined(_log(random.Random(seed)), chars)


#: The kinds of results that are archived, each as a function of length and seed.
KINDS: dict[str, Callable[[int, int], str]] = {
    "English prose": english_prose,
    "Chinese prose": chinese_prose,
    "JSON": json_records,
    "log": log_lines,
}


def _joined(pieces: Iterator[str], chars: int) -> str:
    made: list[str] = []
    length = 0
    while length < chars:
        made.append(next(pieces))
        length += len(made[-1])
    return "".join(made)[:chars]


def _sections(
    pick: random.Random,
    patterns: tuple[str, ...],
    slots: dict[str, tuple[str, ...]],
    heading: str,
    space: str,
) -> Iterator[str]:
    section = 0
    while True:
        section += 1
        yield heading.format(section)
        for _ in range(pick.randrange(2, 6)):
            sentences = [_sentence(pick, patterns, slots) for _ in range(_SENTENCES_A_PARAGRAPH)]
            yield space.join(sentences) + "\n\n"


def _sentence(pick: random.Random, patterns: tuple[str, ...], slots: dict[str, tuple[str, ...]]) -> str:
    words = {slot: pick.choice(choices) for slot, choices in slots.items()}
    return pick.choice(patterns).format(**words, number=pick.randrange(2, 900))


def _record(pick: random.Random, number: int) -> dict[str, object]:
    return {
        "id": number,
        "sku": f"{pick.choice('ABKTX')}-{pick.randrange(10**6):06}",
        "price": round(pick.uniform(1, 900), 2),
        "in_stock": pick.random() < 0.7,
        "tags": [pick.choice(_ENGLISH_SLOTS["thing"]) for _ in range(3)],
        "supplier": {
            "name": pick.choice(_ENGLISH_SLOTS["name"]),
            "city": pick.choice(_ENGLISH_SLOTS["place"]),
        },
        "description": _sentence(pick, _ENGLISH, _ENGLISH_SLOTS),
        "备注": _sentence(pick, _CHINESE, _CHINESE_SLOTS) if number % 5 == 0 else None,
    }


def _log(pick: random.Random) -> Iterator[str]:
    second = 0.0
    while True:
        second += pick.expovariate(3)
        clock = f"{int(second) // 3600 % 24:02}:{int(second) // 60 % 60:02}:{second % 60:06.3f}"
        level = pick.choice(_LEVELS)
        told = f"GET /api/v1/{pick.choice(_PATHS)}/{pick.randrange(10**5)} {pick.randrange(3, 2500)} ms"
        yield f"2026-01-05T{clock}Z {level} worker-{pick.randrange(16)} {pick.getrandbits(32):08x} {told}\n"

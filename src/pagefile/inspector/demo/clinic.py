"""The clinic's follow-up assistant, in Chinese."""

from collections.abc import Mapping, Sequence
from functools import cache

from pagefile.inspector.demo import results
from pagefile.inspector.demo.script import Learnt, Picks, Said, Tool
from pagefile.records import JsonValue

_DRUGS = ("氨氯地平", "缬沙坦", "二甲双胍", "阿托伐他汀", "美托洛尔")
_FOODS = ("低盐面条", "清蒸鱼", "燕麦粥", "凉拌木耳", "番茄豆腐汤")
_SIGNS = ("头晕", "脚踝有点肿", "夜里起来两次", "心跳有点快", "口干")

_CLINIC = (
    (
        "今天早上血压{high}/{low}，要不要紧？",
        "早上{high}/{low}比目标值略高。请静坐五分钟后再测一次，连续三天记录；如果都高于150/95，请联系门诊调整用药。",
    ),
    (
        "{drug}是饭前吃还是饭后吃？",
        "{drug}一般每天固定时间服用，饭前饭后都可以，关键是不要漏服。您目前的剂量是每天{small}毫克，如需调整请由医生决定。",
    ),
    (
        "这两天{sign}，和{drug}有关系吗？",
        "{sign}可能与{drug}有关，也可能与天气和睡眠有关。请记录出现的时间，和血压一起发给我；如果加重或伴有胸痛，请立即就医。",
    ),
    (
        "晚饭想吃{food}，可以吗？",
        "可以。{food}清淡，适合高血压饮食，注意盐不超过{small}克，晚饭后散步二十分钟更好。",
    ),
    (
        "下次复查是哪天？需要空腹吗？",
        "下次复查在{month}月{day}日上午八点，需要空腹八小时，可以喝少量白水；请带上最近两周的血压记录。",
    ),
    (
        "我昨天忘了吃{drug}，今天要补吗？",
        "如果离下一次服药不到{small}个小时，不要补服，按原时间继续；不要一次吃两份。偶尔漏服一次影响不大。",
    ),
    (
        "空腹血糖{sugar}，比上个月高了吗？",
        "上个月是{before}，这次{sugar}，变化在正常波动范围内。继续控制主食量，两周后再测一次。",
    ),
)


def _snapshot(*allergies: str) -> Mapping[str, JsonValue]:
    return {
        "name": "林女士",
        "allergies": list(allergies),
        "history": ["高血压"],
        "surgery_history": ["2019年阑尾切除术"],
    }


def _scenes() -> dict[int, Said]:
    return {
        0: Said(
            "您好，我姓林，今年六十三岁，有高血压，对青霉素过敏。",
            "林女士您好，我已记录：六十三岁，高血压，青霉素过敏。以后每次建议都会先核对。",
            learnt=(
                Learnt("林女士对青霉素过敏", "allergy", confidence=1.0),
                Learnt("林女士患有高血压"),
                Learnt("林女士六十三岁"),
            ),
            snapshot=_snapshot("青霉素"),
        ),
        6: Said(
            "医生给我开了氨氯地平，每天五毫克。",
            "已记录：氨氯地平，每天一次，每次五毫克。",
            learnt=(Learnt("林女士每天服用氨氯地平5毫克", "blood pressure drug"),),
        ),
        18: Said(
            "帮我看看这几次的化验单，有没有需要注意的？",
            "我看完了几次化验单：血脂在参考区间内，尿酸有两次偏高，建议少吃海鲜、多喝水，一个月后复查尿酸和肌酐。",
            (Tool("get_lab_reports", {"patient": "林女士", "months": 6}, results.lab_report(5, 26_000)),),
            window=True,
        ),
        27: Said(
            "脚肿得厉害，医生把药换成缬沙坦了，每天八十毫克。",
            "已更新：停用氨氯地平，改为缬沙坦，每天八十毫克。换药后第一周请每天早晚各测一次血压。",
            learnt=(Learnt("林女士每天服用缬沙坦80毫克", "blood pressure drug"),),
        ),
        41: Said(
            "我上次化验的肌酐到底是多少？",
            "我又调出了之前的化验单：最近一次肌酐在参考区间内，与上次相比变化不大，可以继续服用缬沙坦。",
            loads="get_lab_reports",
            window=True,
        ),
        49: Said("帮我把这半年的血压做成一张表……", "", aborted=True),
        50: Said(
            "网络断了。请把这半年的血压整理一下。",
            "半年来早晨平均血压为138/86，晚间为131/82；换药后早晨平均下降了6毫米汞柱。三月有两天超过150，都在漏服之后。",
            (Tool("get_lab_reports", {"patient": "林女士", "kind": "血压"}, results.lab_report(9, 17_000)),),
            window=True,
        ),
        60: Said(
            "我不是六十三岁，是六十五岁，你记错了。",
            "对不起，已更正：您今年六十五岁。",
            learnt=(
                Learnt("林女士六十三岁", kind="wrong"),
                Learnt("林女士今年六十五岁，不是六十三岁", category="correction"),
            ),
        ),
        72: Said(
            "女儿帮我查过，头孢我也过敏，小时候起过疹子。",
            "非常重要，已更新过敏史：青霉素和头孢。任何抗生素都请先告知医生。",
            learnt=(Learnt("林女士对青霉素和头孢过敏", "allergy", confidence=1.0),),
            snapshot=_snapshot("青霉素", "头孢"),
        ),
        88: Said(
            "我能吃阿莫西林吗？牙医给我开了。",
            "不能。阿莫西林属于青霉素类，而您对青霉素和头孢过敏。请把过敏史告诉牙医，请他换用其他药物。",
            window=True,
        ),
    }


@cache
def clinic_turns() -> Sequence[Said]:
    """Four months of follow-up: drugs that change, an allergy that must never be forgotten, reports that come back."""
    picks = Picks(13)
    scenes = _scenes()
    turns: list[Said] = []
    for number in range(150):
        if number in scenes:
            turns.append(scenes[number])
            continue
        sugar = picks.number(52, 68)
        slots = {
            "high": picks.number(126, 158),
            "low": picks.number(78, 97),
            "drug": picks.one(_DRUGS),
            "sign": picks.one(_SIGNS),
            "food": picks.one(_FOODS),
            "month": picks.number(2, 6),
            "day": picks.number(3, 27),
            "small": picks.number(3, 9),
            "sugar": sugar / 10,
            "before": (sugar - picks.number(1, 6)) / 10,
        }
        asked, answered = _CLINIC[number % len(_CLINIC)]
        turns.append(Said(asked.format(**slots), answered.format(**slots), window=number % 3 == 1))
    return turns

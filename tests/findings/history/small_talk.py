"""Talk that says nothing worth keeping, and statements that are corrected later."""

from typing import NamedTuple


class Correction(NamedTuple):
    """A statement, what took its place, and the words by which each is known."""

    before: str
    after: str
    old: str
    new: str


CORRECTIONS = [
    Correction("我住在北京朝阳区。", "我搬家了，现在住在上海浦东。", "北京朝阳", "上海浦东"),
    Correction("白鹭项目的预算是85万。", "白鹭项目的预算追加到120万了。", "85万", "120万"),
    Correction("会议定在周三下午三点。", "会议改到周五上午十点了。", "周三下午三点", "周五上午十点"),
    Correction("My meeting with Tom is at 3 pm.", "My meeting with Tom moved to 5 pm.", "3 pm", "5 pm"),
    Correction(
        "我的手机号是13800001111。", "我的手机号换了，新的是13900002222。", "13800001111", "13900002222"
    ),
    Correction(
        "我每天吃一片氨氯地平5毫克。", "医生让我把氨氯地平停了，换成缬沙坦80毫克。", "5毫克", "缬沙坦"
    ),
    Correction("我女朋友叫小雅。", "我和小雅分手了。", "女朋友叫小雅", "分手"),
    Correction("The server runs on port 8080.", "The server now runs on port 9090.", "8080", "9090"),
    Correction("我打算国庆去大理。", "我不去大理了，国庆去青岛。", "打算国庆去大理", "青岛"),
    Correction("我不吃辣。", "我最近又能吃辣了。", "不吃辣", "又能吃辣"),
]
SMALL_TALK = [
    ("帮我想几个周末带孩子的活动", "可以去植物园、科技馆，或者在家做简单的烘焙，雨天的话科技馆最合适。"),
    ("今天开会又拖堂了，好累", "辛苦了，连续开会很消耗精力，散会后走动十分钟会好些。"),
    ("怎么写一份清楚的周报？", "先写结论和进展，再写风险与需要的支持，最后是下周计划，每条不超过两行。"),
    ("晚饭吃什么比较清淡？", "可以考虑清蒸鲈鱼、西兰花炒虾仁，主食用杂粮饭，少盐。"),
    (
        "Can you explain what a vector index is?",
        "A vector index organises embeddings so that nearest neighbours can be found quickly, usually with graphs such as HNSW or with clusters such as IVF.",
    ),
    (
        "我最近睡得不太好，有什么办法？",
        "睡前一小时少看屏幕，下午后不喝咖啡，固定起床时间，必要时记录睡眠日记。",
    ),
    ("这个季度的OKR怎么定？", "目标定方向，关键结果要可量化，建议三个目标以内，每个目标三到四个关键结果。"),
    ("好的", "还有什么可以帮你的吗？"),
    ("谢谢，明白了", "不客气，随时找我。"),
    (
        "How do I centre a div?",
        "Use flexbox: display:flex; justify-content:center; align-items:center on the parent.",
    ),
    ("推荐一本关于谈判的书", "《谈判力》和《掌控谈话》都不错，前者偏原则，后者偏技巧。"),
    ("天气突然变冷了", "注意添衣保暖，早晚温差大，外出带一件薄外套。"),
    ("帮我润色一句话：我们需要尽快推进这个事情", "可以写成：为确保进度，请相关同事本周内完成各自的部分。"),
    ("Python 里怎么读取 CSV？", "用 csv 模块或者 pandas.read_csv，数据量大时用分块读取。"),
    (
        "what's a good stretching routine for back pain",
        "Cat-cow, child's pose and a gentle hamstring stretch, thirty seconds each, twice a day.",
    ),
    ("猫粮换牌子要注意什么？", "用七天过渡，新旧粮比例逐步从一比三到全部新粮，观察大便情况。"),
    ("公司团建去哪里好", "莫干山两天一夜比较均衡，徒步加民宿，预算也好控制。"),
]

"""Words that say little or nothing about the topic of a text, in English and Chinese. Our own list, short on purpose.

Words that can be the whole point of a question are not in it: "may" is a month, 不 reverses a meaning.
"""

_ENGLISH = """
a about after all also am an and any are as at be because been before being but by can could did do does doing
don't for from had has have having he her here hers him his how i i'd i'll i'm i've if in into is isn't it it's its
itself just let's me more most my myself of off on once only or other our ours out over own please same she should so
some such than that that's the their theirs them themselves then there these they this those through to too under
until up very was we were what what's when where which while who whom why will with would you you're you've your
yours yourself
"""

_CHINESE = """
的 了 着 过 地 得 之 和 与 及 或 而 且 但 是 在 有 也 都 就 还 又 才 很 太 吗 呢 吧 啊 呀 嘛 哦 嗯 哈 我 你 您 他 她 它
我们 你们 他们 她们 它们 咱们 自己 这 那 这个 那个 这些 那些 这里 那里 这样 那样 什么 怎么 怎样 如何 哪 哪个 哪些 哪里
为什么 因为 所以 如果 但是 可是 不过 然后 而且 以及 或者 还是 就是 只是 可以 可能 应该 需要 一个 一些 一下 一种 有点
把 被 让 给 对 对于 关于 从 到 向 于 由 以 为 为了 会 能 要 想 请 请问 来 去 上 下 里 中 个 们 所 等 其 此 某 每 各 该
"""

#: Terms that only make a question of a certain kind: a turn may contain them, but hardly ever answers because
#: of them.
_ENGLISH_ASKING = """
amount current describ differ done kind long mani mention might much number often previous recent remind said say sort
specif total type
"""
_CHINESE_ASKING = """
具体 哪一 哪一天 哪两 哪位 哪家 哪项 多少 几次 总共 分别 主要 最近 近期 目前 之后 推断 发生 相关 情况 另一 步骤 特定 原因
直接 谁 得知 表达 提到 是否 通过
"""

STOP_WORDS = frozenset(_ENGLISH.split()) | frozenset(_CHINESE.split())
ASKING_TERMS = frozenset(_ENGLISH_ASKING.split()) | frozenset(_CHINESE_ASKING.split())

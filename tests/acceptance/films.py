"""A conversation about films, indexed."""

from pagefile import ModelUnavailableError
from pagefile.records import Scope
from pagefile.testing import HashingEmbedder

FILMS = ("推荐一部科幻电影吧", "推荐《星际穿越》，导演是克里斯托弗·诺兰，讲的是穿越虫洞寻找新家园。")
CHAT = [
    ("今天天气怎么样", "晴，二十五度，适合出门。"),
    ("帮我订明早八点的闹钟", "好的，闹钟已经设置为明早八点。"),
    ("红烧肉怎么做", "先焯水，再炒糖色，小火炖一个小时。"),
    ("附近有没有健身房", "两公里内有三家健身房。"),
    ("英语四级什么时候报名", "一般在三月和九月报名。"),
    ("我的快递到哪了", "快递已经到达本地的分拨中心。"),
    ("空调不制冷了怎么办", "先清洗滤网，再看看外机有没有转。"),
    ("周末去哪里爬山", "可以去香山，人不多的话更好。"),
    ("怎么把照片传到电脑", "用数据线连接，选择文件传输。"),
    ("猫咪不吃饭怎么回事", "先看看有没有发烧，再换一种粮试试。"),
]


async def indexed(memory, user="u", tenant="default"):
    """Ids of the turns that have a vector."""
    vectors = memory.engine.kit.vectors
    asked = (await vectors.embedder.embed(["的一是不了 the of and a e"]))[0]
    near = await vectors.index.search(vectors.embedder.model, Scope(tenant, user), asked, 100_000)
    return sorted(one.turn_id for one in near)


class Moody(HashingEmbedder):
    """Works when it likes to."""

    broken = True

    async def embed(self, texts):
        if self.broken:
            raise ModelUnavailableError("the embedder is on strike")
        return await super().embed(texts)


async def vectors(memory):
    found = (await memory.describe())["recall"]["vectors"]
    return {model: number for model, number in found.items() if number}

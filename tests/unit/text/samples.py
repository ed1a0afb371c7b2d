"""Texts of each kind."""

from pagefile.text.fact_ranking import (
    FactIndex,
)

PYTHON = 'import json\n\n\ndef read(path):\n    """Read it."""\n    with open(path) as file:\n        return json.load(file)\n\n\nclass Engine:\n    pass\n'
GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tx := 1\n\tfmt.Println(x)\n}\n'
YAML = "name: pagefile\nversion: 1\nitems:\n  - a\n  - b\nnested:\n  key: value\n"
CHINESE = "智能体会忘记。窗口很小，世界很大。\n所以页面离开，又回来。什么都没有丢失。"


CONTEXT = "我在做一个 Python 项目 使用 FastAPI 和 SQLAlchemy 怎么写测试？"
FACTS = (
    "Prefers pytest for testing",
    "Expert in Python and FastAPI",
    "Likes type hints in Python",
    "Uses Docker for containerization",
)
MIXED = (
    *FACTS,
    "用户对青霉素过敏",
    "用户喜欢爬山和摄影",
    "对青霉素过敏，曾经休克",
    "likes hiking",
    "",
    "测试工程师",
)


def index_of(texts) -> FactIndex[int]:
    index: FactIndex[int] = FactIndex()
    index.add(enumerate(texts))
    return index

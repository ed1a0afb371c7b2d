"""Texts of each kind."""

PYTHON = 'import json\n\n\ndef read(path):\n    """Read it."""\n    with open(path) as file:\n        return json.load(file)\n\n\nclass Engine:\n    pass\n'
GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tx := 1\n\tfmt.Println(x)\n}\n'
YAML = "name: pagefile\nversion: 1\nitems:\n  - a\n  - b\nnested:\n  key: value\n"
CHINESE = "智能体会忘记。窗口很小，世界很大。\n所以页面离开，又回来。什么都没有丢失。"

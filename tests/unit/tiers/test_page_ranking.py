"""Which page a search of the archive finds first, by words alone."""

from pagefile.ports import PageTerms
from pagefile.tiers.page_search import _Index, segmented


def ranked(texts, query):
    index = _Index()
    for uuid, text in texts.items():
        spans = ((0, len(text)),)
        index.add(PageTerms(uuid, spans, ()), segmented(text, spans), "")
    return [found.uuid for found in index.ranked(query, {}, {}, 20)]


def test_a_name_in_another_script_leads_to_its_page():
    """The other words of a question match only pages in its own language, of which there are many."""
    texts = {f"zh-{n}": f"第 {n} 个文件：有多少警告可以手动修复，见第 {n} 页。" for n in range(12)}
    texts["en"] = "ESLint: 212 problems (3 errors, 209 warnings), 34 warnings potentially fixable"
    assert "en" == ranked(texts, "eslint 有多少警告可以自动修复？")[0]
    texts = {
        f"en-{n}": f"Who looks after the new agreement with supplier {n} of the mid-year review?"
        for n in range(12)
    }
    texts["zh"] = "年中大促复盘：沈曼秋负责与合肥科立重签补货协议。"
    assert "zh" == ranked(texts, "Who looks after the new agreement with 合肥科立?")[0]


def test_without_another_script_nothing_changes():
    texts = {"a": "ESLint found 34 warnings", "b": "warnings of the weather service"}
    assert ["a", "b"] == ranked(texts, "eslint warnings")

"""What is remembered of which tool is in a table, not in the code."""

import pytest

from pagefile.errors import SettingsError
from pagefile.tiers.workspace.rules import DEFAULT_RULES, ToolRule, parsed_rules, rule_for
from pagefile.tiers.workspace.tool_names import bare_name


@pytest.mark.parametrize(
    ("tool", "remembers", "cacheable"),
    [
        ("get_toc", "toc", True),
        ("mcp__gridcode__get_toc", "toc", True),
        ("smart_search", "search", True),
        ("mcp__x__smart_search", "search", True),
        ("read_page_range", "page", True),
        ("mcp__a_b__read_chapter_content", "page", True),
        ("bash", "nothing", False),
        ("", "nothing", False),
    ],
)
def test_the_tools_of_the_document(tool, remembers, cacheable):
    """With and without the prefix of an MCP server."""
    rule = rule_for(tool, DEFAULT_RULES)
    assert (remembers, cacheable) == (rule.remembers, rule.cacheable)


def test_bare_names():
    """Only what an MCP client puts before a tool's name is taken away."""
    assert ["get_toc", "get__toc", "mcp__x", "mcp__x__", "a__b__c"] == [
        bare_name(name) for name in ("mcp__x__get_toc", "mcp__x__get__toc", "mcp__x", "mcp__x__", "a__b__c")
    ]


def test_the_first_rule_that_fits_counts():
    """A user's own rules come first, and can switch a default off."""
    rules = (ToolRule("mcp__books__*", "toc", cacheable=True), ToolRule("get_toc"), *DEFAULT_RULES)
    assert "toc" == rule_for("mcp__books__anything", rules).remembers
    assert "nothing" == rule_for("get_toc", rules).remembers


def test_rules_as_a_setting():
    """A line of text that TOML, the environment and a person can hold."""
    assert (
        ToolRule("list_*", "toc", cacheable=True),
        ToolRule("grep", "search"),
        ToolRule("now", "nothing", cacheable=True),
    ) == parsed_rules(" list_*=toc+cache, grep = search ,now=nothing+cache,")
    assert () == parsed_rules(None)


@pytest.mark.parametrize("text", ["grep", "grep=find", "grep=search+soon", "=search"])
def test_a_rule_that_cannot_be_read_is_refused(text):
    """With what is wrong, and how it is written."""
    with pytest.raises(SettingsError):
        parsed_rules(text)


@pytest.mark.parametrize(
    "given", [{"pattern": " "}, {"pattern": "a", "remembers": "all"}, {"pattern": "a", "relevance": 2}]
)
def test_a_rule_checks_itself(given):
    """At birth."""
    with pytest.raises(SettingsError):
        ToolRule(**given)

"""How a run of tests or a build ended: what a reader needs of its output, whatever the question was."""

import re

#: A line that tells the counts at the end of a run: pytest, unittest, jest, vitest, go, cargo, maven, gradle, dotnet, mocha.
_COUNTS = re.compile(
    r"^[ =\-]*(?:\d+ (?:failed|passed|errors?|skipped|xfailed|deselected)\b.*\b(?:in|passed|failed)\b.*"
    r"|(?:FAILED|OK) ?\((?:failures|errors|skipped|tests)=.*|Ran \d+ tests? in .*"
    r"|Tests?(?: Files| Suites)?:? +.*\d+ (?:failed|passed).*|test result: .*\d+ passed.*"
    r"|(?:\[\w+\] +)?Tests run: \d+, Failures: .*|\d+ tests? completed, \d+ failed.*|\d+ (?:passing|failing)\b.*"
    r"|(?:FAIL|ok)\t.*|BUILD (?:FAILED|SUCCESSFUL|SUCCESS|FAILURE).*|(?:Passed|Failed)! +- Failed: .*"
    r"|(?:error|make): .*(?:could not compile|Error \d+).*)$",
    re.MULTILINE,
)
#: A line that names what failed.
_FAILED = re.compile(
    r"^(?:FAILED|ERROR) \S*[./:]\S.*$|^(?:--- FAIL|FAIL): .*$|^\s*(?:✕|✗|×|●) \S.*$|^test \S+ \.\.\. FAILED$",
    re.MULTILINE,
)
#: The end of an output, where runs tell their counts.
_END_CHARS = 6000
_MOST_FAILED = 20


def outcome(text: str) -> list[str]:
    """The lines that tell how a run ended: what failed, then the counts; none if the text is no such output."""
    counts = [match[0].strip() for match in _COUNTS.finditer(text, max(0, len(text) - _END_CHARS))]
    if not counts:
        return []
    failed = [match[0].strip() for match in _FAILED.finditer(text)]
    return list(dict.fromkeys([*failed[:_MOST_FAILED], *counts[-4:]]))

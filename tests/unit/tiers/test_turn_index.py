"""What recall derives: the name of the analyzer changes with the terms, and failures are told once and left alone."""

import hashlib
import logging

from pagefile.engine.metrics import NoMeter
from pagefile.errors import ModelUnavailableError
from pagefile.text.speech import said_terms
from pagefile.text.words import terms
from pagefile.tiers.derivation import LONGEST_REST_S, Health
from pagefile.tiers.turn_index import ANALYZER

#: A text with everything that the segmenter treats in a way of its own.
PROBE = (
    "I'm running 3.5 km on 2024-05-03 with Anna's dog; order A-1234, /usr/bin, a@b.org, C++ and C#, 1,234.50 USD, v1.2.3. "
    "我对青霉素过敏，2024年5月3日服用了50毫克阿莫西林，订单号是XK-2201。カタカナ 한국어 ＡＢＣ who are you 不是 谢谢"
)
KNOWN = {"words-3": "208c687ab858ed90"}


def test_the_analyzer_is_named_again_when_terms_change():
    """Kept terms of another way to cut would never meet a question: a new name makes them count as none."""
    digest = hashlib.sha256(" ".join([*said_terms(PROBE), *terms(PROBE)]).encode()).hexdigest()[:16]
    assert KNOWN[ANALYZER] == digest, "the terms changed: give ANALYZER a new name, and note its digest here"


def test_a_failure_is_told_once_and_left_alone_for_longer_each_time(caplog):
    """The same reason is one line in the log; after a while there is another trial; a success forgets all."""
    now = [0.0]
    health = Health(NoMeter(), lambda: now[0])
    rests = []
    with caplog.at_level(logging.INFO, "pagefile"):
        for _ in range(9):
            health.failed(ModelUnavailableError("away"))
            assert health.resting
            rests.append(health.rest_s)
            now[0] += health.rest_s
            assert not health.resting
        health.well()
        health.well()
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert rests[-1] == LONGEST_REST_S
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    assert health.trouble is None
    health.failed(RuntimeError("bug"))
    assert health.trouble == "RuntimeError: bug"
    assert health.rest_s == 1

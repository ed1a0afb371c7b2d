"""Scores of facts beside those of scikit-learn."""

import numpy as np
import pytest

from pagefile.text.fact_ranking import features
from tests.unit.text.samples import CONTEXT, FACTS, MIXED, index_of


def refitted(query: str, texts) -> np.ndarray:
    """What is usually done: a vectorizer fitted over all texts and the question, for each question."""
    text = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is not installed")
    vectorizer = text.TfidfVectorizer(analyzer=lambda given: list(features(given).elements()))
    matrix = vectorizer.fit_transform([query, *texts])
    return (matrix[1:] @ matrix[0].T).toarray().ravel()


@pytest.mark.parametrize("query", [CONTEXT, "医生说我不能用青霉素", "hiking 爬山", "zzz", "a"])
def test_the_same_as_a_vectorizer_fitted_again(query):
    """To the last digits, in Chinese and English."""
    texts = [text for text in MIXED if text]
    assert index_of(texts).similarity_array(query, range(len(texts))) == pytest.approx(
        refitted(query, texts), abs=1e-12
    )


def test_words_alone_cannot_tell_document_004s_example():
    """scikit-learn's own analyzer sees no similarity in pytest, nor in Docker: 测试 is not testing, and a Chinese run is one word."""
    text = pytest.importorskip("sklearn.feature_extraction.text", reason="scikit-learn is not installed")
    matrix = text.TfidfVectorizer().fit_transform([CONTEXT, *FACTS])
    pytest_, expert, hints, docker = (matrix[1:] @ matrix[0].T).toarray().ravel()
    assert (0, 0) == (pytest_, docker)
    assert expert > hints > 0
    ours = dict(zip(FACTS, index_of(FACTS).similarity_array(CONTEXT, range(4)), strict=True))
    assert ours[FACTS[0]] > ours[FACTS[3]]

"""Recall in the shape that MTEB evaluates."""

from benchmarks.mteb_search import PagefileSearch
from pagefile.testing import HashingEmbedder

CORPUS = [
    {"id": "d1", "title": "", "text": "Ada: I adopted a grey cat named Turing."},
    {"id": "d2", "title": "Sport", "text": "Bo: I started climbing in the hall by the river."},
    {"id": "d3", "text": "Ada: The cat sleeps all day."},
]
QUERIES = [{"id": "q1", "text": "What is Ada's cat named?"}, {"id": "q2", "text": "Where does Bo climb?"}]
#: What MTEB passes beside these.
ASIDE = {
    "task_metadata": None,
    "hf_split": "test",
    "hf_subset": "default",
    "encode_kwargs": {},
    "num_proc": None,
}


def test_the_best_document_has_the_highest_score():
    search = PagefileSearch(HashingEmbedder())
    search.index(CORPUS, **ASIDE)
    found = search.search(QUERIES, top_k=2, **ASIDE)
    assert {"q1": "d1", "q2": "d2"} == {
        query: max(those, key=those.__getitem__) for query, those in found.items()
    }
    assert all(len(those) <= 2 for those in found.values())


def test_a_query_is_asked_of_the_documents_that_the_task_names():
    search = PagefileSearch("none")
    search.index(CORPUS, **ASIDE)
    found = search.search(QUERIES, top_k=10, top_ranked={"q1": ["d3", "d2"], "q2": ["d1", "d2"]}, **ASIDE)
    assert "d3" == max(found["q1"], key=found["q1"].__getitem__)
    assert "d1" not in found["q1"]
    assert "d3" not in found["q2"]

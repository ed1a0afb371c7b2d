"""What a problem response must say."""

from pagefile.wire.responses import Problem


def check(answer, status, code):
    """The one shape: media type, members, and nothing else."""
    assert (status, "application/problem+json") == (answer.status_code, answer.headers["content-type"]), (
        answer.text
    )
    told = answer.json()
    assert set(Problem.model_fields) == set(told)
    assert (status, code, f"/problems/{code}") == (told["status"], told["code"], told["type"])
    assert told["title"]
    assert told["detail"]
    assert told["instance"].startswith("urn:uuid:")
    assert "nosniff" == answer.headers["x-content-type-options"]
    Problem.model_validate(told)
    return told

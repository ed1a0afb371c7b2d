"""Build the wheel and the source distribution, look into them, install the wheel alone, and print what that costs.

Everything happens in a folder that is removed afterwards. Building needs hatchling, which `make setup` installs; installing takes
the dependencies from wherever this machine takes packages.
"""

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What a bare install can do.
INCLUDED = ("pagefile.service.app", "pagefile.client")
#: What runs when somebody has installed the wheel; each line is printed with the extra that it needs.
EXTRAS = {
    "postgres": "pagefile.stores.postgres",
    "redis": "pagefile.stores.redis.sessions",
    "langchain": "pagefile.integrations.langchain",
    "langgraph": "pagefile.integrations.langgraph",
    "pydantic-ai": "pagefile.integrations.pydantic_ai",
    "claude": "pagefile.integrations.claude_agent",
    "mcp": "pagefile.mcp.server",
}
_TIMES = 7
_SECONDS = (
    "import sys, time; began = time.perf_counter(); import {module}; print(time.perf_counter() - began)"
)


def build(folder: Path, python: str = sys.executable) -> tuple[Path, Path]:
    """The wheel and the source distribution, built with the hatchling of this environment: nothing is fetched."""
    code = (
        "import os, sys; os.chdir(sys.argv[1]); import hatchling.build as b; "
        "print(b.build_wheel(sys.argv[2])); print(b.build_sdist(sys.argv[2]))"
    )
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [python, "-c", code, str(ROOT), str(folder)], capture_output=True, text=True, check=True
    )
    wheel, sdist = done.stdout.split()
    return folder / wheel, folder / sdist


def names(archive: Path) -> list[str]:
    """The files of a wheel or of a source distribution."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return sorted(wheel.namelist())
    with tarfile.open(archive) as sdist:
        return sorted(member.name for member in sdist.getmembers() if member.isfile())


def install(wheel: Path, folder: Path, *extras: str, base: str = sys.executable) -> Path:
    """An empty environment with the wheel, what it needs, and these extras; returns its interpreter."""
    uv = Path(sys.executable).with_name("uv")
    python = folder / "bin" / "python"
    what = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    for command in (
        [str(uv), "venv", "--quiet", "--python", base, str(folder)],
        [str(uv), "pip", "install", "--quiet", "--python", str(python), what],
    ):
        subprocess.run(command, check=True)  # noqa: S603 - our own tool
    return python


def taken(folder: Path) -> int:
    """Bytes on disk of everything that is installed."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def seconds(python: Path, module: str) -> float:
    """The best of a few imports, each in a fresh interpreter."""
    code = _SECONDS.format(module=module)
    return min(
        float(subprocess.run([str(python), "-I", "-c", code], capture_output=True, check=True).stdout)  # noqa: S603 - our own interpreter
        for _ in range(_TIMES)
    )


def alone(python: Path, module: str) -> str:
    """What importing a module says: nothing when it is there, else the error."""
    command = [str(python), "-I", "-c", f"import {module}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - likewise
    return "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]


def main() -> None:
    """Print it."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--python", default=sys.executable, help="the interpreter to install with")
    given.add_argument(
        "--extras", nargs="*", default=[], help=f"also try these alone, among {', '.join(EXTRAS)}"
    )
    given.add_argument("--into", type=Path, help="only build, and leave what was built in this folder")
    options = given.parse_args()
    if options.into:
        options.into.mkdir(exist_ok=True)
        for built in build(options.into.resolve()):
            print(f"{options.into / built.name}: {built.stat().st_size / 1e6:.2f} MB")
        return
    with tempfile.TemporaryDirectory(prefix="pagefile-wheel-") as made:
        folder = Path(made)
        wheel, sdist = build(folder)
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(names(wheel))} files")
        print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.2f} MB, {len(names(sdist))} files")
        python = install(wheel, folder / "bare", base=options.python)
        packages = [one for one in (folder / "bare").rglob("*.dist-info") if one.is_dir()]
        print(f"installed with its {len(packages) - 1} dependencies: {taken(folder / 'bare') / 1e6:.0f} MB")
        ours, theirs = seconds(python, "pagefile"), seconds(python, "asyncio")
        print(
            f"import pagefile: {ours * 1000:.0f} ms, {ours / theirs:.1f} times `import asyncio` ({theirs * 1000:.0f} ms)"
        )
        command = [str(python.with_name("pagefile")), "--version"]
        said = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - likewise
        print(f"pagefile --version: {said.stdout.strip()}")
        for module in INCLUDED:
            error = alone(python, module)
            print(f"{module}: {error or 'imports'}")
            if error:
                raise SystemExit(1)
        for extra, module in EXTRAS.items():
            error = alone(python, module)
            helpful = not error or re.search(r"pip install 'pagefile\[", error)
            print(f"without [{extra}], {module}: {error or 'imports'}")
            if not helpful:
                raise SystemExit(f"{module} does not say which extra it needs")
        for extra in options.extras:
            error = alone(install(wheel, folder / extra, extra, base=options.python), EXTRAS[extra])
            print(f"with [{extra}] alone, {EXTRAS[extra]}: {error or 'imports'}")
            if error:
                raise SystemExit(1)


if __name__ == "__main__":
    main()

"""The image, the chart and the release, as far as they can be tried without an engine, a cluster or an owner."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from pagefile.cli.app import COMMANDS
from pagefile.settings import Settings
from pagefile.settings.sources import load
from tests.heavy import heavy

from .scans import ROOT

CHART = ROOT / "deploy" / "helm" / "pagefile"
VALUES = {
    "sqlite": [],
    "postgres": [
        *("--set", "database.existingSecret=db", "--set", "replicas=3", "--set", "ingress.enabled=true"),
        *("--set", "ingress.tlsSecret=tls", "--set", "ingress.className=nginx"),
        *("--set-json", 'extraVolumes=[{"name":"audit","emptyDir":{}}]'),
        *("--set-json", 'extraVolumeMounts=[{"name":"audit","mountPath":"/var/log/pagefile"}]'),
        *("--set", "settings.window_tokens=8000", "--set", "settings.facts.extract=rules"),
    ],
}


def run(*command: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **extra}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


# -- the image -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path):
    """A folder that is all of the path, and a way to put builders into it that only say how they were called."""
    for tool in ("sh", "dirname"):
        (tmp_path / tool).symlink_to(
            next(Path(place, tool) for place in ("/bin", "/usr/bin") if Path(place, tool).exists())
        )

    def builder(name: str, *, works: bool = True) -> None:
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\necho "{name} $*"\nexit {0 if works else 1}\n', encoding="utf-8")
        script.chmod(0o755)

    return tmp_path, builder


def test_an_image_is_built_with_what_is_there(desk):
    """The first of the known builders; a docker without an engine is passed over, one that was asked for is not."""
    path, builder = desk
    builder("buildah")
    done = run("scripts/image.sh", "mine:1", PATH=str(path))
    assert (0, "buildah build --format docker --tag mine:1 .\n") == (done.returncode, done.stdout)
    builder("docker", works=False)
    done = run("scripts/image.sh", PATH=str(path))
    assert (0, "buildah build --format docker --tag pagefile .\n") == (done.returncode, done.stdout)
    assert "its engine does not answer" in done.stderr
    done = run("scripts/image.sh", PATH=str(path), BUILDER="docker")
    assert (1, "docker build --tag pagefile .\n") == (done.returncode, done.stdout)


def test_no_builder_is_said(desk):
    """Which ones would do; a name that is none of them is refused."""
    done = run("scripts/image.sh", PATH=str(desk[0]))
    assert 1 == done.returncode
    assert "error: no builder here: install docker, podman, buildah or nerdctl" in done.stderr
    done = run("scripts/image.sh", PATH=str(desk[0]), BUILDER="moby")
    assert (2, True) == (done.returncode, "BUILDER=moby is not known" in done.stderr)


def test_the_image_copies_what_the_context_has():
    """`.dockerignore` lets through what the Dockerfile copies, and nothing else."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = {
        name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for name in line.split()
    }
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert "*" == ignored[0]
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)


@heavy("helm")
def test_the_dockerfile_passes_hadolint():
    """No finding at all."""
    done = run(str(Path(sys.executable).with_name("hadolint")), "Dockerfile")
    assert (0, "") == (done.returncode, done.stdout)


# -- the chart -----------------------------------------------------------------------------------------------------------


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(str(Path(sys.executable).with_name("helm")), *arguments)


def rendered(*values: str) -> list[dict]:
    done = helm("template", "pf", str(CHART), *values)
    assert 0 == done.returncode, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


def containers(objects: list[dict]) -> list[dict]:
    pods = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"]
    return [container for pod in pods for container in (*pod.get("initContainers", ()), *pod["containers"])]


def test_the_chart_has_the_version_of_the_package():
    """One number for all."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    (version,) = re.findall(
        r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert (version, version) == (chart["version"], chart["appVersion"])


@heavy("helm")
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_chart_is_what_kubernetes_takes(values):
    """Linted strictly, and every object fits the schema of its kind, with no field that the schema does not know."""
    import kubernetes_validate

    done = helm("lint", "--strict", str(CHART), *values)
    assert 0 == done.returncode, done.stdout
    objects = rendered(*values)
    for version in ("1.28", "1.31"):
        for one in objects:
            kubernetes_validate.validate(one, version, strict=True)


@heavy("helm")
@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_the_chart_starts_what_exists(values):
    """Commands and settings that there are, as a user without rights; what is probed is answered without a key."""
    objects = rendered(*values)
    (config,) = [one for one in objects if one["kind"] == "ConfigMap"]
    for container in containers(objects):
        assert container["args"][0] in COMMANDS
        environ = {one["name"]: one.get("value", "postgresql://x@y/z") for one in container["env"]}
        file = environ.pop("PAGEFILE_CONFIG")
        assert file == f"/etc/pagefile/{next(iter(config['data']))}"
        settings = load(environ=environ).settings
        assert "pf-pagefile.default.svc" in (settings.service.hosts or "")
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"]
        assert not security["allowPrivilegeEscalation"]
    for one in objects:
        if one["kind"] == "Deployment":
            assert one["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]
    assert yaml.safe_load(next(iter(config["data"].values()))) in (
        {},
        {"window_tokens": 8000, "facts": {"extract": "rules"}},
    )


@heavy("helm")
def test_sqlite_is_of_one_pod_and_postgres_has_a_worker():
    """A volume and one pod, or neither and a worker; a second pod on SQLite is refused, and so is a value that does not exist."""
    kinds = {name: [one["kind"] for one in rendered(*values)] for name, values in VALUES.items()}
    assert ("PersistentVolumeClaim" in kinds["sqlite"], 1) == (True, kinds["sqlite"].count("Deployment"))
    assert ("PersistentVolumeClaim" in kinds["postgres"], 2) == (False, kinds["postgres"].count("Deployment"))
    assert "Ingress" in kinds["postgres"]
    refused = helm("template", "pf", str(CHART), "--set", "replicas=2")
    assert "replicas > 1 needs PostgreSQL" in refused.stderr
    assert "replcas" in helm("template", "pf", str(CHART), "--set", "replcas=2").stderr


@heavy("helm")
def test_several_pods_end_one_after_the_other():
    """Each takes requests until the cluster has noticed, and lets running ones end before it is killed; files that must stay are mounted."""
    objects = rendered(*VALUES["postgres"])
    (budget,) = [one for one in objects if one["kind"] == "PodDisruptionBudget"]
    assert 1 == budget["spec"]["maxUnavailable"]
    for pod in (one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"):
        (container,) = pod["containers"]
        environ = {one["name"]: one.get("value") for one in container["env"]}
        waits = [float(environ[f"PAGEFILE_SERVICE__{name}"]) for name in ("STOP_DELAY_S", "GRACE_S")]
        assert [5.0, 60.0] == waits
        assert sum(waits) + Settings().drain_s < pod["terminationGracePeriodSeconds"]
        assert {"name": "audit", "mountPath": "/var/log/pagefile"} in container["volumeMounts"]
        assert {"name": "audit", "emptyDir": {}} in pod["volumes"]
    assert "PodDisruptionBudget" not in [one["kind"] for one in rendered()]


# -- the release ---------------------------------------------------------------------------------------------------------


def test_the_release_names_what_exists():
    """Targets of the Makefile, jobs that wait for each other, rights where they are needed, and what is signed."""
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    for line in re.findall(r"^      - run: make (.+)$", text, re.MULTILINE):
        for target in (word for word in line.split() if "=" not in word):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for job in jobs.values():
        needs = job.get("needs", [])
        assert {needs} <= set(jobs) if isinstance(needs, str) else set(needs) <= set(jobs)
    signing = [name for name, job in jobs.items() if "actions/attest-build-provenance@v2" in json.dumps(job)]
    assert ["build", "image"] == signing
    assert all(jobs[name]["permissions"]["attestations"] == "write" for name in signing)
    assert {"contents": "read"} == yaml.safe_load(text)["permissions"]


def test_the_owner_is_to_be_filled_in():
    """Every address of the project has the same word where the owner belongs, and the release replaces it."""
    import tomllib

    urls = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    assert {"Homepage", "Documentation", "Repository", "Issues", "Changelog"} == set(urls)
    assert all("OWNER" in url for url in urls.values())
    assert 's/OWNER/$OWNER/g" pyproject.toml' in (ROOT / ".github/workflows/release.yml").read_text(
        encoding="utf-8"
    )

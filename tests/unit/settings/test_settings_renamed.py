"""Settings that had another name before: refused where people write them, understood where they were recorded."""

import pytest

from pagefile.engine.snapshots import present_names
from pagefile.errors import SettingsError
from pagefile.settings.model import RENAMED
from pagefile.settings.sources import load_settings


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[memory]\nenabled = false\n", "'memory' is called 'facts' now: rename it."),
        ("memory = 1\n", "'memory' is called 'facts' now: rename it."),
        (
            "[embedder]\npatience_s = 2\n",
            "'embedder.patience_s' is called 'embedder.query_timeout_s' now: rename it.",
        ),
    ],
)
def test_a_file_with_a_former_name_is_refused(tmp_path, text, said):
    """The error names the file and the name of today."""
    file = tmp_path / "pagefile.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_settings(file=file, environ={})
    assert f"{file}: {said}" == str(refused.value)


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("PAGEFILE_MEMORY__EXTRACT", "PAGEFILE_FACTS__EXTRACT"),
        ("PAGEFILE_EMBEDDER__PATIENCE_S", "PAGEFILE_EMBEDDER__QUERY_TIMEOUT_S"),
    ],
)
def test_a_variable_with_a_former_name_is_refused(variable, said):
    """The error names the variable of today."""
    with pytest.raises(SettingsError) as refused:
        load_settings(environ={variable: "1"})
    assert f"${variable}: this setting is called ${said} now: rename the variable." == str(refused.value)


def test_a_recorded_window_keeps_its_settings():
    """Windows were recorded with the names of their time."""
    recorded = {"memory.enabled": False, "recall": "auto"}
    assert {"facts.enabled": False, "recall": "auto"} == present_names(recorded)
    assert set() == set(RENAMED) & set(RENAMED.values())

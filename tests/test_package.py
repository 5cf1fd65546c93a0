"""What a wheel declares and holds: ranges, extras, the lock, shipped files and their places."""

from __future__ import annotations

import importlib.metadata as metadata
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from cotlab.cli.doctor import PURPOSES, _print_packages
from cotlab.core import resources
from cotlab.core.errors import PACKAGES_BY_EXTRA, MissingExtra
from cotlab.core.installation import DISTRIBUTION, install_command, other_owners
from cotlab.store.database import Store, store_folder

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = dict(
    line.split("==")
    for line in (ROOT / "requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
)
NAMED = (
    *("streamlit", "plotly", "pandas", "numpy", "scipy", "statsmodels", "sentence-transformers"),
    *("openai", "anthropic", "torch", "transformer-lens", "duckdb", "pytest"),
)


def package(requirement: str) -> str:
    return re.split(r"[\[<>=~! ;]", requirement)[0].lower().replace("_", "-")


LOCKED = {package(name): version for name, version in LOCK.items()}


def test_dependencies_are_ranges_that_the_lock_lies_in() -> None:
    extras = {k: v for k, v in PROJECT["optional-dependencies"].items() if k != "all"}
    for requirement in (*PROJECT["dependencies"], *(r for of in extras.values() for r in of)):
        name, bound = re.fullmatch(r"([\w.\[\],-]+)>=([\d.]+)(?:,<[\d.]+)?", requirement).groups()
        if package(name) == "inspect-ai":
            continue  # its importer is tested beside the locked environment
        locked = tuple(int(part) for part in LOCKED[package(name)].split("."))
        assert locked >= tuple(int(part) for part in bound.split(".")), requirement


def test_the_lock_pins_every_package_once_and_names_what_users_ask_for() -> None:
    assert set(NAMED) <= set(LOCKED) and LOCKED["torch"] == "2.13.0"
    assert all(re.fullmatch(r"[\d.]+[ab]?\d*", version) for version in LOCK.values())


def test_the_core_needs_no_model_and_no_vendor() -> None:
    core = {package(requirement) for requirement in PROJECT["dependencies"]}
    heavy = {name for names in PACKAGES_BY_EXTRA.values() for name in names}
    assert not core & heavy
    for extra, names in PACKAGES_BY_EXTRA.items():
        for other, declared in PROJECT["optional-dependencies"].items():
            known = {package(name) for name in declared} & {package(name) for name in names}
            assert len(known) == (len(declared) - (extra == "app") if other == extra else 0), extra
    of_all = set(re.findall(r"\w+", PROJECT["optional-dependencies"]["all"][0])) - {
        "cotlab",
        "trust",
    }
    assert (
        of_all == set(PACKAGES_BY_EXTRA) == set(PROJECT["optional-dependencies"]) - {"all", "dev"}
    )


def test_a_missing_extra_is_named() -> None:
    assert str(MissingExtra("this", "torch")).endswith(f": pip install -e '{ROOT}[local]'")
    assert "[vendors]" in str(MissingExtra("this", "google.genai"))
    assert "pip install" not in str(MissingExtra("this", "other"))


# "pip install 'cotlab[app]'", "pip install --upgrade cotlab", "pip install cotlab-trust"
INDEX_NAME_RE = re.compile(r"pip3? install\b[^`\n]*?(?<![\w./-])cotlab(?:[-_]trust)?(?![\w/.-])")


def test_no_printed_command_fetches_a_project_by_our_name() -> None:
    files = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    printed = [name for name in files if not name.startswith(("tests/", "data/")) and name]
    assert {"README.md", "cotlab/core/installation.py", ".ci/wheel.sh"} <= set(printed)
    for name in printed:
        text = (ROOT / name).read_bytes().decode("utf-8", "replace")
        joined = re.sub(r'"\s*\n\s*f?"', "", text)  # a message over two lines of source
        assert not INDEX_NAME_RE.findall(joined), name
    for command in ("pip install 'cotlab[app]'", "pip install --upgrade cotlab"):
        assert INDEX_NAME_RE.search(command), command
    assert not INDEX_NAME_RE.search(install_command("app"))


def test_the_command_names_the_wheel_that_was_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        version = "0.1.0"

        def read_text(self, name: str) -> str | None:
            return '{"url": "file:///my%20files/cotlab_trust-0.1.0-py3-none-any.whl"}'

    monkeypatch.setattr("cotlab.core.installation.checkout_root", lambda: None)
    monkeypatch.setattr(metadata, "distribution", lambda name: Installed())
    wheel = "/my files/cotlab_trust-0.1.0-py3-none-any.whl"
    assert install_command("app") == f"pip install '{wheel}[app]'"
    monkeypatch.setattr(Installed, "read_text", lambda self, name: None)
    assert install_command() == "pip install ./COTLAB_TRUST.whl"


def test_another_project_of_the_same_import_name_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cotlab-0.12.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: cotlab\nVersion: 0.12.0\n")
    (folder / "top_level.txt").write_text("cotlab\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "cotlab 0.12.0" in other_owners()
    _print_packages()
    assert "cotlab 0.12.0" in capsys.readouterr().out.splitlines()[0]


def test_doctor_names_what_is_declared(capsys: pytest.CaptureFixture[str]) -> None:
    assert PROJECT["name"] == DISTRIBUTION
    assert set(PURPOSES) == {"", *PROJECT["optional-dependencies"]} - {"all"}
    _print_packages()
    lines = capsys.readouterr().out.splitlines()
    declared = [*PROJECT["dependencies"]]
    declared += [
        requirement
        for extra, requirements in PROJECT["optional-dependencies"].items()
        for requirement in requirements
        if extra != "all"
    ]
    named = {re.match(r"(?:ok|missing) +[^:]+: (\S+)", line)[1] for line in lines}
    assert {package(name) for name in named} == {package(name) for name in declared}


def test_the_store_is_in_the_checkout_or_in_a_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COTLAB_STORE", raising=False)
    assert store_folder() == ROOT / "data" / "store"
    monkeypatch.setattr("cotlab.store.database.checkout_root", lambda: None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert store_folder().is_relative_to(tmp_path) and store_folder().name == "store"
    monkeypatch.setenv("COTLAB_STORE", str(tmp_path / "chosen"))
    assert Store().folder == tmp_path / "chosen"


def test_a_checkout_is_known_by_its_files() -> None:
    assert resources.checkout_root() == ROOT
    assert resources.data_path("suites", "math.jsonl").is_file()
    assert resources.dashboard_path("pages", "home.py").is_file()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the tracked files, built with the setuptools of this environment."""
    pytest.importorskip("setuptools", minversion="77")
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    tracked = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    ).stdout.splitlines()
    for name in tracked or pytest.skip("no git checkout"):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(ROOT / name, source / name)
    done = subprocess.run(
        [sys.executable, "-c", f"import setuptools.build_meta as b; b.build_wheel({str(built)!r})"],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (made,) = built.glob("*.whl")
    return made


def test_a_wheel_holds_the_package_its_data_and_the_dashboard(wheel: Path) -> None:
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "cotlab").rglob("*.py")}
    pages = {f"cotlab/dashboard/pages/{path.name}" for path in (ROOT / "pages").glob("*.py")}
    data = {
        f"cotlab/{path.relative_to(ROOT).as_posix()}"
        for folder in ("suites", "organisms")
        for path in (ROOT / "data" / folder).rglob("*")
        if path.is_file()
    }
    shipped = {
        *("cotlab/py.typed", "cotlab/data/__init__.py"),
        *("cotlab/data/validation.json", "cotlab/data/construct_validation.json"),
        *("cotlab/dashboard/app.py", "cotlab/dashboard/.streamlit/config.toml"),
    }
    looks = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "cotlab").rglob("*")
        if path.suffix in (".js", ".css", ".png", ".txt")
    }
    assert names == sources | pages | data | shipped | looks


def test_an_unpacked_wheel_finds_its_files_away_from_the_checkout(
    wheel: Path, tmp_path: Path
) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "from cotlab.core import resources as r; from cotlab.store.database import store_folder\n"
        "from cotlab.suites.shipped import shipped_suites\n"
        "from cotlab.core.resources import shipped_organisms\n"
        "from cotlab.validation.report import SHIPPED_REPORT_PATH\n"
        "print(r.checkout_root(), sorted(shipped_suites()), len(shipped_organisms()))\n"
        "print(r.dashboard_path('app.py').is_file(), SHIPPED_REPORT_PATH.is_file(), store_folder())"
    )
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(tmp_path / "site"),
        "HOME": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "None ['commonsense', 'evaluation', 'math', 'wordproblems'] 20"
    assert second == f"True True {tmp_path}/.local/share/cotlab/store"


def test_a_copy_of_a_newer_duckdb_is_made_again(tmp_path: Path) -> None:
    with Store(tmp_path).writing():
        pass
    file = tmp_path / "cotlab.duckdb"
    content = bytearray(file.read_bytes())
    content[12:20] = (999).to_bytes(8, "little")  # the version of its format
    file.write_bytes(content)
    assert Store(tmp_path).query_rows("SELECT count(*) FROM labels") == [(0,)]

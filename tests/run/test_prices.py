"""Files of prices: what they say holds over everything else, and what is wrong with one is said at
once."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from cotlab.core.errors import ConfigError
from cotlab.core.requests import Usage
from cotlab.core.types import ModelRef
from cotlab.run.config import read_config
from cotlab.run.resolved import ResolvedRun
from cotlab.run.transport.budget import Price, price_of, read_prices

HOME = ModelRef("openai_compat", "served", base_url="http://127.0.0.1:8000/v1")


def written(folder: Path, text: str) -> Path:
    path = folder / "prices.yaml"
    path.write_text(text, "utf-8")
    return path


def test_a_file_names_models_with_or_without_their_provider(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "gpt-4o-mini: {input: 0.5, output: 1.5, cached: 0.1, reasoning: 2}\nopenai_compat/served:"
        " {input: 1e-3, output: 0}\n",
    )
    prices = read_prices(path)
    assert prices == {
        "gpt-4o-mini": Price(
            Decimal("0.5"),
            Decimal("1.5"),
            cached_price=Decimal("0.1"),
            reasoning_price=Decimal(2),
            source=str(path),
        ),
        "openai_compat/served": Price(Decimal("0.001"), Decimal(0), source=str(path)),
    }
    # 100 · 0.5 + 900 · 0.1 + 40 · 1.5 + 60 · 2 = 50 + 90 + 60 + 120
    assert prices["gpt-4o-mini"].cost(Usage(1000, 100, 900, 60)) == 320


def test_no_file_and_an_empty_one_name_nothing(tmp_path: Path) -> None:
    assert read_prices(None) == read_prices(written(tmp_path, "# to be filled in\n")) == {}


def test_a_file_holds_over_the_table_and_over_a_free_address(tmp_path: Path) -> None:
    ref = ModelRef("openai", "gpt-4o-mini")
    prices = read_prices(
        written(tmp_path, "gpt-4o-mini: {input: 7, output: 8}\nserved: {input: 1, output: 2}\n")
    )
    assert price_of(HOME).is_free and not price_of(HOME, prices=prices).is_free
    for batch in (False, True):
        found = price_of(ref, prices=prices, batch=batch)
        assert (found.input_price, found.output_price, found.cached_price) == (7, 8, None)
        assert found.cost(Usage(10, 10)) == 150
    assert price_of(ModelRef("openai", "gpt-4o"), prices=prices) == price_of(
        ModelRef("openai", "gpt-4o")
    )


def test_the_longer_name_is_meant(tmp_path: Path) -> None:
    prices = read_prices(
        written(tmp_path, "m: {input: 1, output: 1}\nopenai/m: {input: 2, output: 2}\n")
    )
    assert price_of(ModelRef("openai", "m"), prices=prices).input_price == 2
    assert price_of(ModelRef("google", "m"), prices=prices).input_price == 1


def test_a_price_of_a_file_reserves_what_the_model_may_use_unseen(tmp_path: Path) -> None:
    prices = read_prices(written(tmp_path, "gpt-5: {input: 1, output: 1}\n"))
    assert price_of(ModelRef("openai", "gpt-5"), prices=prices).headroom == 8192


def test_a_run_takes_its_prices_from_its_file(tmp_path: Path) -> None:
    path = written(tmp_path, "none-9x: {input: 1, output: 2}\n")
    ref = ModelRef("openai", "none-9x")
    config = read_config({"provider": "openai", "model": "none-9x", "prices": str(path)})
    price = ResolvedRun(config).price_of(ref)
    assert (price.input_price, price.output_price, price.is_known, price.source) == (
        1,
        2,
        True,
        str(path),
    )
    with pytest.raises(ConfigError, match="--prices"):
        ResolvedRun(read_config({"provider": "openai", "model": "none-9x"})).price_of(ref)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("m: {input: -1, output: 1}", "m.input: Input should be greater than or equal to 0"),
        ("m: {input: .nan, output: 1}", "m.input: Input should be a finite number"),
        ("m: {input: 1, output: .inf}", "m.output: Input should be a finite number"),
        ("m: {input: 1, output: 1, cached: -0.1}", "m.cached: Input should be greater"),
        (
            "m: {input: 1, output: 1, reasoning: .nan}",
            "m.reasoning: Input should be a finite number",
        ),
        ("m: {input: cheap, output: 1}", "m.input: Input should be a valid decimal"),
        ("m: {input: true, output: 1}", "m.input: "),
        ("m: {input: 1}", "m.output: Field required"),
        ("m: {input: 1, output: 1, prompt: 1}", "m.prompt: Extra inputs are not permitted"),
        ("m:", "m: Input should be a valid dictionary"),
        ("4: {input: 1, output: 1}", "4.[key]: Input should be a valid string"),
        ("- m", "file: Input should be a valid dictionary"),
        ("m: {input: 1, output: 1", "line 1"),
        ("!!python/object/apply:os.system ['true']", "could not determine a constructor"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_field(
    tmp_path: Path, text: str, field: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_prices(path)
    assert str(path) in str(caught.value) and field in str(caught.value)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.input: .*; b\.output: "):
        read_prices(written(tmp_path, "a: {input: -1, output: 1}\nb: {input: 1}\n"))


@pytest.mark.parametrize("name", ["missing.yaml", ".", "bytes.yaml"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00m")
    with pytest.raises(ConfigError) as caught:
        read_prices(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)

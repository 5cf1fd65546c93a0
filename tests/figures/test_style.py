"""Colours, numbers as text, escaping, and the theme that shares the palette."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotlab.figures import style
from cotlab.figures.layout import card_template

CONFIG = tomllib.loads((Path(__file__).parents[2] / ".streamlit" / "config.toml").read_text())


def test_the_theme_has_the_palette_of_the_figures() -> None:
    theme = CONFIG["theme"]
    assert tuple(theme["chartCategoricalColors"]) == style.PALETTE
    assert tuple(theme["chartSequentialColors"]) == style.VIRIDIS
    assert {
        theme["primaryColor"],
        theme["light"]["primaryColor"],
        theme["dark"]["primaryColor"],
    } == {style.ACCENT_COLOUR}
    assert theme["light"]["linkColor"] == style.ACCENT_COLOUR
    assert theme["dark"]["linkColor"] == style.ACCENT_COLOUR_ON_DARK
    on_dark = {style.BLACK: "#ffffff", style.BLUE: style.SKY, style.SKY: style.BLUE}
    assert theme["dark"]["chartCategoricalColors"] == [
        on_dark.get(colour, colour) for colour in style.PALETTE
    ]


def test_the_theme_is_legible() -> None:
    light = CONFIG["theme"]["light"]
    assert style.contrast_ratio(light["textColor"], light["backgroundColor"]) > 4.5
    assert style.contrast_ratio(light["linkColor"], light["backgroundColor"]) > 4.5
    assert (
        style.contrast_ratio("#ffffff", style.ACCENT_COLOUR) > 4.5
    )  # the label of a primary button
    assert (
        style.contrast_ratio(style.ACCENT_COLOUR_ON_DARK, "#171614") > 4.5
    )  # the dark theme's own background
    assert (
        min(
            style.contrast_ratio(ink, style.BACKGROUND_COLOUR)
            for ink in (style.TEXT_COLOUR, style.SOFT_TEXT_COLOUR)
        )
        > 4.5
    )


def test_the_server_is_private_and_quiet() -> None:
    assert CONFIG["server"] == {
        "address": "127.0.0.1",
        "port": 8501,
        "headless": True,
        "fileWatcherType": "none",
        "maxUploadSize": 64,
    }
    assert CONFIG["browser"] == {"gatherUsageStats": False}
    assert CONFIG["client"] == {
        "toolbarMode": "minimal",
        "showErrorDetails": "none",
        "showErrorLinks": False,
    }


def test_streamlit_knows_every_option_of_the_config() -> None:
    from streamlit import config

    known = set(config.get_config_options())
    found = {
        f"{section}.{name}" + (f".{inner}" if isinstance(value, dict) else "")
        for section, options in CONFIG.items()
        for name, value in options.items()
        for inner in (value if isinstance(value, dict) else ("",))
    }
    assert found - known == set()


def test_the_palette_is_that_of_okabe_and_ito() -> None:
    # Okabe and Ito (2008), Color Universal Design, figure 16, as sRGB.
    published = {
        (0, 0, 0),
        (230, 159, 0),
        (86, 180, 233),
        (0, 158, 115),
        (240, 228, 66),
        (0, 114, 178),
        (213, 94, 0),
        (204, 121, 167),
    }
    assert {
        tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in style.PALETTE
    } == published


def test_contrast_agrees_with_the_standard() -> None:
    assert style.contrast_ratio("#000000", "#ffffff") == pytest.approx(
        21
    )  # WCAG 2.2: (1 + 0.05) / (0 + 0.05)
    assert style.contrast_ratio("#777777", "#ffffff") == pytest.approx(
        4.48, abs=0.005
    )  # the well-known grey that just fails


@given(st.floats(0, 1))
def test_text_on_any_shade_is_legible(value: float) -> None:
    background = style.viridis_colour(value)
    assert style.contrast_ratio(style.text_colour_on(background), background) >= 4.5


@given(st.integers(0, 0xFFFFFF))
def test_text_on_any_colour_is_legible(colour: int) -> None:
    background = f"#{colour:06x}"
    assert style.contrast_ratio(style.text_colour_on(background), background) >= 4.5


def test_shades_run_along_viridis() -> None:
    assert [style.viridis_colour(i / 9) for i in range(10)] == list(style.VIRIDIS)
    assert style.viridis_colour(-1) == style.viridis_colour(0) == style.VIRIDIS[0]
    assert style.viridis_colour(9.0, 0, 8) == style.VIRIDIS[-1]
    assert style.viridis_colour(4.5, 0, 9) == style.viridis_colour(0.5)
    assert style.viridis_colour(None) == style.viridis_colour(float("nan")) == style.MISSING_COLOUR
    with pytest.raises(ValueError, match="lo < hi"):
        style.viridis_colour(0.5, 1, 1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.361, "0.361"),
        (0.5, "0.500"),
        (1, "1.00"),
        (0.9996, "1.00"),
        (12.34, "12.3"),
        (123.4, "123"),
        (12345.6, "12,346"),
        (0, "0"),
        (-0.0361, "−0.0361"),
        (0.000123, "0.000123"),
        (0.0000119, "1.19e−5"),
        (5.56e-6, "5.56e−6"),
        (9.87e-19, "< 1e−6"),
        (-1.2e-7, "> −1e−6"),
        (None, "n/a"),
        (float("nan"), "n/a"),
        (float("inf"), "n/a"),
    ],
)
def test_numbers_have_three_significant_digits(value: float | None, text: str) -> None:
    assert style.format_number(value) == text


def test_an_interval_is_never_half_said() -> None:
    assert style.interval_text(0.361, 0.34, 0.382) == "0.361 [0.340, 0.382]"
    assert style.interval_text(0.361, None, None) == "0.361 [no interval]"
    assert style.interval_text(0.361, 0.34, None) == "0.361 [no interval]"
    assert style.interval_text(0.94, 0.9, 0.9999, is_share=True) == "94% [90, >99.9]"
    assert style.interval_text(None, None, None) == style.interval_text(float("nan"), 0, 1) == "n/a"


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (1, "100%"),
        (0.505, "50.5%"),
        (0.94, "94%"),
        (0.0002, "<0.1%"),
        (0.9999, ">99.9%"),
        (-0.25, "−25%"),
        (None, "n/a"),
    ],
)
def test_a_share_in_percent_is_never_rounded_to_its_ends(share: float | None, text: str) -> None:
    assert style.format_percent(share) == text
    assert style.interval_text(share, None, None, is_share=True).startswith(text)


def test_text_from_data_is_neither_markup_nor_tex() -> None:
    assert (
        style.escape("<b>x</b> & $1$ %{y} 5%")
        == "&lt;b&gt;x&lt;/b&gt; &amp; &#36;1&#36; &#37;{y} 5%"
    )
    assert style.wrap_text("a <b> c & d", 5) == "a &lt;b&gt;<br>c &amp; d"
    assert style.wrap_text("one two three four", 9) == "one two<br>three…"


@given(st.text(), st.integers(5, 80))
def test_shortened_text_fits_on_one_line(text: str, most: int) -> None:
    short = style.truncate_text(text, most)
    assert len(short) <= most
    assert len(short.splitlines()) <= 1


def test_a_known_category_keeps_its_code() -> None:
    known = ("a", "b", "c")
    assert (
        style.category_styles(["c", "z"], known)["c"]
        == style.category_styles(["a", "b", "c"], known)["c"]
    )
    assert style.category_styles(["c"], known)["c"] == style.CategoryStyle(style.GREEN, "diamond")


@given(st.lists(st.text(), unique=True, max_size=72))
def test_seventy_two_categories_have_distinct_codes(names: list[str]) -> None:
    found = style.category_styles(names, ("remove", "truncate"))
    assert set(found) == set(names)
    assert len(set(found.values())) == len(names)


def test_the_card_needs_no_theme_around_it() -> None:
    layout = card_template().layout.to_plotly_json()
    assert layout["paper_bgcolor"] == layout["plot_bgcolor"] == "#ffffff"
    assert layout["xaxis"]["automargin"] and layout["yaxis"]["automargin"]
    assert (
        min(style.TITLE_SIZE, style.TEXT_SIZE, style.SMALL_TEXT_SIZE) * 0.75 >= 7
    )  # pt at print size

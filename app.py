"""The dashboard's entry for `streamlit run app.py`; the script is cotlab/ui/main.py, so that deep
links pass through it."""

from pathlib import Path

import streamlit as st

from cotlab.ui.problems import show_error

app = st.App(Path(__file__).parent / "cotlab" / "ui" / "main.py", on_script_error=show_error)

"""Entry point of ``streamlit run app.py``.

The script is cotlab/ui/main.py, so that links to a page pass through the navigation.
"""

from pathlib import Path

import streamlit as st

from cotlab.ui.text import show_error

app = st.App(Path(__file__).parent / "cotlab" / "ui" / "main.py", on_script_error=show_error)

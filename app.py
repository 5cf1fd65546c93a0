"""The dashboard's entry, for `cotlab app` and `streamlit run app.py`.

The script is cotlab/ui/main.py, so that deep links pass through it.
"""

from importlib.resources import files

import streamlit as st

from cotlab.ui.problems import show_error

app = st.App(str(files("cotlab.ui") / "main.py"), on_script_error=show_error)

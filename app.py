"""The dashboard's entry, for `cotlab app` and `streamlit run app.py`.

The script is cotlab/ui/main.py, so that deep links pass through it.
"""

from importlib.resources import files

import streamlit as st
from starlette.middleware import Middleware

from cotlab.ui.guard import Guard
from cotlab.ui.text import show_error

app = st.App(
    str(files("cotlab.ui") / "main.py"),
    middleware=[Middleware(Guard)],
    on_script_error=show_error,
)

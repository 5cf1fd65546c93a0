"""Search: a text in the questions, the chains and the stored replies of runs."""

from cotlab.ui import components, search
from cotlab.ui.glossary import render_terms

components.render_heading("Search", "Where does a text occur in questions, chains and replies?")
query = search.pick_query()
if query is not None:
    render_terms(query.text)
    search.render_hits(query)

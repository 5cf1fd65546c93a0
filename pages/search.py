"""Search: a text in the questions, the chains and the stored replies of runs."""

from cotlab.ui import components, search

components.render_heading("Search", "Where does a text occur in questions, chains and replies?")
query = search.pick_query()
if query is not None:
    search.render_hits(query)

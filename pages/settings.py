"""Settings: which keys are present, how large the store is, a backup, and what models cost."""

from cotlab.ui import components as parts
from cotlab.ui import settings

parts.head("Settings", "What can this installation reach, and what does it hold?")
settings.render_keys()
settings.render_sharing()
settings.render_connection_test()
settings.render_store()
settings.render_prices()

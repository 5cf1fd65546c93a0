"""Settings: API keys, access, the store and a backup, and model prices."""

from cotlab.ui import components, settings

components.head(
    "Settings", ("Which providers can this installation reach, and what does it store?")
)
settings.render_keys()
settings.render_sharing()
settings.render_connection_test()
settings.render_store()
settings.render_prices()

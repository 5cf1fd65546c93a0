"""Settings: API keys, access, the store and a backup, and model prices."""

from cotlab.ui import components, settings

components.render_heading(
    "Settings", ("Which providers can this installation reach, and what does it store?")
)
settings.render_api_keys()
settings.render_access()
settings.render_connection_test()
settings.render_store()
settings.render_prices()

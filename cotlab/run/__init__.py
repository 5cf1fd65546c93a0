"""From a plan to scores and estimates: the only async code, and the place where both wings meet."""

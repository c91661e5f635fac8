"""Beyond the paper's assumptions: changes, an unknown horizon, unknown states."""

"""Pictures of advice."""

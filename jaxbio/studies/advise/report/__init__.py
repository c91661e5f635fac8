"""Advice for a log as a page for whoever has to decide."""

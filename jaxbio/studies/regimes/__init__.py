"""Mappings and losses, each stochastic or adversarial."""

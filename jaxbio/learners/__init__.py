"""Learners: one protocol (`jaxbio.core.Learner`), each a frozen pytree of its own numbers."""

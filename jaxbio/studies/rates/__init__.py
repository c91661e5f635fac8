"""How regret grows with T, S, d and K."""

"""The problem: who decides which state an action shows, what a state costs, and when it is seen."""

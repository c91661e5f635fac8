"""Objects that show themselves: a few lines of text, and HTML in a notebook."""

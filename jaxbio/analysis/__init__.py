"""What results say: intervals, comparisons, and the search for parameters."""

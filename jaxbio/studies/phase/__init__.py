"""Where intermediate observations help, over states and delays."""

"""What is kept: blocks of a sweep, data as netCDF, and what their bits depend on."""

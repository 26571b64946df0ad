"""Private records of tables with columns of several types."""

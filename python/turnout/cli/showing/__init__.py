"""What is shown of estimates on a terminal, as JSON and as a picture."""

"""How good samplers are: metrics, targets, and comparisons over epsilon."""

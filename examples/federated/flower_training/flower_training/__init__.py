"""Handwritten digits, learned from nodes that take part at random."""

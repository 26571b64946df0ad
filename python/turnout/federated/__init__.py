"""Federated training in which clients join at random and sample their data at random."""

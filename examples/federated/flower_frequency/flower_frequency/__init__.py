"""How often people do something that they would rather not say."""

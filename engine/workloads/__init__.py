"""What is run: models, parallel layouts, training steps; scenarios that name them."""

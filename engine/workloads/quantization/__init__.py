"""What fewer bits do to the weights of a model: measured on the tensors themselves, never guessed."""

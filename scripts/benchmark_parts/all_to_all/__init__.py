"""What the all-to-all benchmark is made of."""

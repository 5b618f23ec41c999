"""Decides what runs where and at which learning rate, and remembers what happened."""

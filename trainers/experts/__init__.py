"""Mixture of experts: a router, experts that are spread over ranks, and the exchange of tokens between them."""

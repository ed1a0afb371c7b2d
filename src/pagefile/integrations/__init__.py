"""Pagefile inside other people's frameworks: one module each, importing this package alone loads none of them."""

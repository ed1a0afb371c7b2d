"""Durability, erasure, isolation and denial of service."""

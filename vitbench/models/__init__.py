"""Whole models on paper: variant tables that cite their papers, and the cost of the whole; no torch."""

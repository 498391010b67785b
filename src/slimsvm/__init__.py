"""Kernel machines that stay small."""

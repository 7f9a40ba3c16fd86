"""The exact count of any module, on meta tensors."""

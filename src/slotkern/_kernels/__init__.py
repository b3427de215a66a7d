"""Compiled bindings of the C++ kernels, one module for each layer."""

"""What legality stands on: conflicts, orders, kernels, value flow, and the words for what went wrong."""

"""The commands of ``slotkern``, one module per group; ``main`` assembles them."""

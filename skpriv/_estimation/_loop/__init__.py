"""The loop: whitened, clipped Newton steps of any link, with their pool, rules and intervals."""

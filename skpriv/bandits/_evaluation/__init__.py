"""What is measured of policies: regret on environments, value on logs."""

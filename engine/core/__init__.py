"""Units, errors, progress and cancellation, the registry, number formatting: what every floor may use."""

"""A run as tasks, what they wait for, and the memory they hold; see ``TaskGraph``."""

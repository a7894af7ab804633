"""The Details dock: everything known of what is selected."""

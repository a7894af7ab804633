"""Device allocators, each a policy behind one small interface, address-exact."""

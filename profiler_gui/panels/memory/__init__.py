"""The Memory page: what the allocator held over time, what was alive at the peak, what was never freed."""

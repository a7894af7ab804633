"""What every reader of Chrome trace events shares: scanning JSON to columns, flows, labels, arguments."""

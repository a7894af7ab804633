"""What a user can do, as data; and what a pane of the window gets and gives (``panes``)."""

"""The window's model, QtCore only: document, selection, viewport, filters, background work, and the one writer.

``Session`` is the only writer. A view (panel, timeline, dialog)

* reads ``session.document``, ``.summary``, ``.rank``, ``.selection``, ``.viewport`` … when a signal says they changed,
* asks for change by calling a method of the session (usually through a command),
* keeps nothing else but hover and drag,
* never imports the engine's tables or analyses at module level: they are imported after the first paint,
* computes anything derived through ``session.derived(key, compute)`` or, where it may take longer than a frame, through
  a ``LatestCall`` of its own (numpy work in a thread) or a ``LatestJob`` (Python work in a process).

All times in the session are ns from the start of the trace of ``session.rank``.
"""

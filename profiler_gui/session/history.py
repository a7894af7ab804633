"""An immutable undo history."""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

State = TypeVar("State")
MAX_STATES = 200


@dataclass(frozen=True, slots=True)
class History(Generic[State]):
    """A current state, the states before it and, after going back, the ones after it.

    Attributes:
        current: What holds now.
        past: Earlier states, the latest last.
        future: States that were gone back from, the nearest last.
    """

    current: State
    past: tuple[State, ...] = ()
    future: tuple[State, ...] = ()

    def push(self, state: State) -> "History[State]":
        """Returns the history with ``state`` as a new current state; an equal state changes nothing."""
        if state == self.current:
            return self
        return History(state, (*self.past, self.current)[-MAX_STATES:])

    def replace_current(self, state: State) -> "History[State]":
        """Returns the history with the current state exchanged, as while a gesture lasts."""
        return replace(self, current=state)

    def back(self) -> "History[State]":
        """Returns the history one state earlier; itself where there is none."""
        if not self.past:
            return self
        return History(self.past[-1], self.past[:-1], (*self.future, self.current))

    def forward(self) -> "History[State]":
        """Returns the history one state later; itself where there is none."""
        if not self.future:
            return self
        return History(self.future[-1], (*self.past, self.current), self.future[:-1])

"""Device time as a tree of phases, modules and source lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from PySide6.QtGui import QFont

from engine.core.number_format import format_count, format_duration_ns, format_ratio
from profiler_gui.item_models.table_model import RAW_ROLE, SORT_ROLE
from profiler_gui.toolkit.translations import tr

if TYPE_CHECKING:  # the engine's analyses are imported after the first paint
    from engine.analyses.modules import ModuleTime

Index = QModelIndex | QPersistentModelIndex
_ROOT = QModelIndex()
PHASE, MODULE, SOURCE = "phase", "module", "source"


@dataclass(frozen=True, slots=True, eq=False)
class ModuleNode:
    """A phase, a module or a source line, with everything below it.

    Attributes:
        kind: PHASE, MODULE or SOURCE; "" for the root.
        title: Last part of the path; "" for the root.
        total_ns: Device time below it and its own.
        own_ns: Device time of no child.
        count: Device tasks, those below it included.
        inferred: Whether anything in it was inferred from the period of the kernels.
        children: The largest first.
    """

    kind: str
    title: str
    total_ns: int
    own_ns: int
    count: int
    inferred: bool
    children: tuple[ModuleNode, ...]


Path = tuple[tuple[str, str], ...]


def phase_first(module: ModuleTime) -> Path:
    """Returns the path phase › modules › source line."""
    return ((PHASE, module.phase), *_modules(module), *_source(module))


def module_first(module: ModuleTime) -> Path:
    """Returns the path modules › phase › source line."""
    return (*_modules(module), (PHASE, module.phase), *_source(module))


def source_first(module: ModuleTime) -> Path:
    """Returns the path source line › modules › phase."""
    return ((SOURCE, module.source), *_modules(module), (PHASE, module.phase))


def module_tree(modules: Sequence[ModuleTime], path_of: Callable[[ModuleTime], Path]) -> ModuleNode:
    """Returns the root over all module times, ordered by ``path_of``."""
    return _node("", "", [(path_of(module), module) for module in modules])


def _node(kind: str, title: str, items: list[tuple[Path, ModuleTime]]) -> ModuleNode:
    """Returns a node over what lies below it; paths are relative to it. A loop over modules, not over events."""
    own = [module for path, module in items if not path]
    groups: dict[tuple[str, str], list[tuple[Path, ModuleTime]]] = {}
    for path, module in items:
        if path:
            groups.setdefault(path[0], []).append((path[1:], module))
    children = sorted((_node(*head, part) for head, part in groups.items()), key=lambda node: -node.total_ns)
    own_ns = sum(module.total_ns for module in own)
    return ModuleNode(
        kind=kind,
        title=title,
        total_ns=own_ns + sum(child.total_ns for child in children),
        own_ns=own_ns,
        count=sum(module.count for module in own) + sum(child.count for child in children),
        inferred=any(module.inferred for module in own) or any(child.inferred for child in children),
        children=tuple(children),
    )


def _modules(module: ModuleTime) -> Path:
    return tuple((MODULE, part) for part in module.path.split("/"))


def _source(module: ModuleTime) -> Path:
    return ((SOURCE, module.source),) if module.source else ()


class ModuleTreeModel(QAbstractItemModel):
    """The tree as an item model: module, total, share, own time, tasks, how it was found.

    Args:
        root: From ``module_tree``.
    """

    def __init__(self, root: ModuleNode, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._titles = (tr("Module"), tr("Total"), tr("Share"), tr("Own"), tr("Tasks"), tr("Found by"))
        # The number of a node is the internal id of its indices: parents stand before their children.
        self._nodes: list[ModuleNode] = [root]
        self._parents: list[int] = [-1]
        self._rows: list[int] = [0]
        self._first_child: list[int] = []
        for number, node in enumerate(self._nodes):  # grows while it is walked: breadth first
            self._first_child.append(len(self._nodes))
            self._nodes += node.children
            self._parents += [number] * len(node.children)
            self._rows += range(len(node.children))

    def node(self, index: Index) -> ModuleNode:
        """Returns the node an index stands for; the root for an invalid one."""
        return self._nodes[self._number(index)]

    def _number(self, index: Index) -> int:
        return int(index.internalId()) if index.isValid() else 0

    def index(self, row: int, column: int, parent: Index = _ROOT) -> QModelIndex:
        """Qt: the index of a child."""
        number = self._number(parent)
        if not 0 <= row < len(self._nodes[number].children) or not 0 <= column < len(self._titles):
            return QModelIndex()
        if parent.isValid() and parent.column() != 0:
            return QModelIndex()
        return self.createIndex(row, column, self._first_child[number] + row)

    def parent(self, index: Index = _ROOT) -> Any:
        """Qt: the index of the node above."""
        number = self._parents[self._number(index)] if index.isValid() else -1
        return self.createIndex(self._rows[number], 0, number) if number > 0 else QModelIndex()

    def rowCount(self, parent: Index = _ROOT) -> int:
        """Qt: children."""
        return 0 if parent.isValid() and parent.column() != 0 else len(self.node(parent).children)

    def columnCount(self, parent: Index = _ROOT) -> int:
        """Qt: columns."""
        return len(self._titles)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: a header."""
        if orientation is Qt.Orientation.Vertical or not 0 <= section < len(self._titles):
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(section)
        return self._titles[section] if role == Qt.ItemDataRole.DisplayRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Qt: a cell."""
        if not index.isValid():
            return None
        node, column = self.node(index), index.column()
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.FontRole and node.inferred and column == 0:
            font = QFont()
            font.setItalic(True)
            return font
        if role == SORT_ROLE:
            return self._values(node)[column]
        if role == RAW_ROLE:
            return str(self._values(node)[column])
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self._texts(node)[column]
        return None

    def _values(self, node: ModuleNode) -> tuple[Any, ...]:
        return title_of(node), node.total_ns, self._share(node), node.own_ns, node.count, found_by(node)

    def _texts(self, node: ModuleNode) -> tuple[str, ...]:
        own = format_duration_ns(node.own_ns) if node.own_ns else "–"
        total, share = format_duration_ns(node.total_ns), format_ratio(self._share(node))
        return title_of(node), total, share, own, format_count(node.count), found_by(node)

    def _share(self, node: ModuleNode) -> float:
        whole_ns = self._nodes[0].total_ns
        return node.total_ns / whole_ns if whole_ns else 0.0


def title_of(node: ModuleNode) -> str:
    """Returns what a person reads: unknown phases and sources say so."""
    if node.title:
        phases = {
            "forward": tr("forward"),
            "backward": tr("backward"),
            "optimizer": tr("optimizer"),
            "communication": tr("computing for communication"),
        }
        return phases.get(node.title, node.title) if node.kind == PHASE else node.title
    return tr("(phase unknown)") if node.kind == PHASE else tr("(source unknown)")


def found_by(node: ModuleNode) -> str:
    """Returns where the node's path comes from."""
    return tr("inferred") if node.inferred else tr("recorded")


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if 1 <= column <= 4 else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter

"""Every text a user sees goes through ``tr``: English in the source, other languages in JSON beside this file."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QLocale, QObject, QTranslator

CONTEXT = "cannscope"
LANGUAGES = ("system", "en", "zh_CN")

logger = logging.getLogger(__name__)


def tr(text: str, **values: Any) -> str:
    """Returns ``text`` in the user's language, with ``{named}`` places filled in.

    Fill in values here, never before: the untranslated text is the key of the catalogue.
    """
    translated = QCoreApplication.translate(CONTEXT, text)
    return translated.format(**values) if values else translated


class CatalogueTranslator(QTranslator):
    """Translates by a mapping from English to another language; what it lacks stays English."""

    def __init__(self, catalogue: Mapping[str, str], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._catalogue = catalogue

    def isEmpty(self) -> bool:
        """Qt: whether there is nothing to translate with."""
        return not self._catalogue

    def translate(self, context: str, text: str, disambiguation: str | None = None, n: int = -1) -> str:
        """Qt: the translation, or the source text where there is none."""
        return self._catalogue.get(text, text) if context == CONTEXT else text


def catalogue_of(language: str) -> Mapping[str, str]:
    """Returns the catalogue of ``"zh_CN"``, of the system's language, or an empty one for English."""
    name = QLocale.system().name() if language == "system" else language
    wanted = "zh_CN" if name.startswith("zh") else name
    path = Path(__file__).with_name(f"{wanted}.json")
    if wanted not in LANGUAGES or not path.exists():
        return {}
    catalogue: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return catalogue


def install_language(application: QCoreApplication, language: str) -> None:
    """Makes ``tr`` answer in ``language`` from now on; the application owns the translator."""
    catalogue = catalogue_of(language)
    if catalogue:
        application.installTranslator(CatalogueTranslator(catalogue, application))
        logger.debug("language %s: %d texts", language, len(catalogue))

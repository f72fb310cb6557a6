"""Take every part of a skill to the reader of its language, and what these decode back to a reader again."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Final

from submissions.verification.engine.code_flows import MOST_STATEMENTS, CodeFlows
from submissions.verification.engine.decoding import decoded_texts, is_telling, is_wording
from submissions.verification.engine.files import SkillParts, parts_within
from submissions.verification.engine.grammar_flows import GrammarFlows
from submissions.verification.engine.grammars import LONGEST, has_grammar
from submissions.verification.engine.guessing import guess_language
from submissions.verification.engine.markdown import read_markdown
from submissions.verification.engine.office_signs import macro_signs, office_signs, pdf_signs
from submissions.verification.engine.packages import package_signs
from submissions.verification.engine.parts import Kind, Part, Sign
from submissions.verification.engine.prose import MOST_SENTENCES, prose_signs
from submissions.verification.engine.put_together import put_together
from submissions.verification.engine.python_flows import PythonFlows
from submissions.verification.engine.shell_flows import ShellFlows
from submissions.verification.engine.shell_outputs import ShellState
from submissions.verification.engine.values import Functions
from submissions.verification.engine.whole import whole_signs

# What is decoded is read again this often, and so many parts in all.
DEEPEST: Final = 4
MOST_PARTS: Final = 6000
# Letters that are read again in one skill, because code writes, decodes or runs them.
_MOST_AGAIN: Final = 2_000_000
# Files of Python that use each other are read together where they are few and short.
_MOST_RELATED: Final = 8
_LONGEST_RELATED: Final = 40_000
# Letters that grammars read in one skill; the rest is read statement by statement alone.
_MOST_PARSED: Final = 600_000
# What is decoded in these is often of the same language, and hard to tell from others.
_OWN: Final = frozenset({"perl", "powershell", "ruby", "php"})


class Reading:
    """All signs of a skill, in the order of its parts."""

    def __init__(self, skill: SkillParts) -> None:
        self.signs: list[Sign] = []
        self.unread: list[tuple[str, str]] = []
        self._shells: dict[str, ShellState] = {}
        self._functions = Functions()
        self._parsed = 0
        waiting = deque((part, 0) for part in self._ordered(skill.parts))
        read = letters = 0
        again: set[tuple[str, str, str]] = set()
        while waiting:
            part, depth = waiting.popleft()
            read += 1
            if read > MOST_PARTS or letters > _MOST_AGAIN:
                left = dict.fromkeys((part.file, *(one.file for one, _depth in waiting)))
                self.unread += [(file, "The skill has more parts than this engine reads.") for file in left]
                break
            for inner in self._read(part):
                key = (inner.file, inner.language, inner.text)
                if depth < DEEPEST and (inner.kind is not Kind.CODE or key not in again):
                    again.add(key)
                    letters += len(inner.text)
                    waiting.append((inner, depth + 1))

    def _ordered(self, parts: list[Part]) -> list[Part]:
        """Read Python once more where its files use each other, so that what one returns is known in the others."""
        scripts = [
            part for part in parts if part.language == "python" and part.kind is Kind.CODE and not part.is_document
        ]
        if 1 < len(scripts) <= _MOST_RELATED and sum(len(part.text) for part in scripts) < _LONGEST_RELATED:
            for part in scripts * 2:
                self._python(part)
            self.signs.clear()
        return parts

    def _read(self, part: Part) -> list[Part]:
        found: list[Part] = []
        if part.kind is Kind.CODE:
            before = len(self.signs)
            found += self._code(part)
            self.signs += whole_signs(part, self.signs[before:])
        elif part.kind in {Kind.PROSE, Kind.COMMENT}:
            if part.text.count("\n") + part.text.count(". ") > MOST_SENTENCES:
                self.unread.append((part.file, f"Only the first {MOST_SENTENCES:,} sentences of a section were read."))
            self.signs += prose_signs(part)
        elif part.language == "office":
            self.signs += office_signs(part)
        elif part.origin == "":
            self.signs += package_signs(part)
        if part.kind is not Kind.DATA or part.origin == "frontmatter":
            found += self._decoded(part)
        if part.origin == "frontmatter":
            self.signs += prose_signs(part)
        return found

    def _code(self, part: Part) -> list[Part]:
        language = part.language
        if language == "python":
            return self._python(part)
        if language in {"shell", "makefile", "dockerfile"} or (language == "" and part.is_document):
            return self._shell(part) + (self._loose(part) if language == "" else [])
        if language == "vba":
            signs, found = macro_signs(part)
            self.signs += signs
            return found
        if language == "pdf script":
            self.signs += pdf_signs(part)
            return []
        if language == "powershell":
            return self._shell(part) + self._loose(part) + _put_together(part)
        if language in {"json", "yaml", "toml", "ini", "html", "sql", "markdown"}:
            return []
        if language == "text":
            return self._shell(part, ShellState())
        return self._loose(part)

    def _shell(self, part: Part, state: ShellState | None = None) -> list[Part]:
        """Read commands, after what is known of the shell of their file unless a ``state`` is given."""
        shell = ShellFlows(part, state or self._shells.setdefault(part.file, ShellState()))
        self.signs += shell.run()
        if shell.is_cut:
            self._cut(part)
        return shell.found

    def _cut(self, part: Part) -> None:
        cut = (part.file, "It puts together more code than this engine reads.")
        if cut not in self.unread:
            self.unread.append(cut)

    def _loose(self, part: Part) -> list[Part]:
        if part.text.count("\n") > MOST_STATEMENTS:
            self.unread.append((part.file, f"Only the first {MOST_STATEMENTS:,} statements were read."))
        code = CodeFlows(part)
        self.signs += code.run()
        if part.language == "perl":
            code.found.extend(_put_together(part))
        if not has_grammar(part.language) or self._parsed > _MOST_PARSED:
            return code.found
        self._parsed += min(len(part.text), LONGEST)
        grammar = GrammarFlows(part)
        self.signs += grammar.run()
        if not grammar.is_read:
            self.unread.append((part.file, "Its grammar takes too long to parse it."))
        if grammar.is_cut:
            self._cut(part)
        return [*code.found, *grammar.found]

    def _python(self, part: Part) -> list[Part]:
        flows = PythonFlows(part, self._functions)
        try:
            self.signs += flows.run()
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            found = self._loose(part)
            if not part.is_document and part.origin == "":
                self.unread.append((part.file, "Python cannot parse it, so its values were not followed."))
            if part.is_document:
                # A fence with the wrong name.
                found += self._shell(part)
            return found
        if flows.is_cut:
            self._cut(part)
        return flows.found

    def _decoded(self, part: Part) -> list[Part]:
        found: list[Part] = []
        for place, way, text in decoded_texts(part.text[:400_000]):
            prose = part.kind is not Kind.CODE
            if not (is_telling(text) or (prose and is_wording(text))) or len(found) >= 50:
                continue
            line = part.line + (0 if part.origin else part.text.count("\n", 0, place))
            if prose:
                found += [
                    replace(one, line=line, origin=way, hidden=part.hidden)
                    for read in read_markdown(text, part.file)
                    for one in (read, *parts_within(read))
                    if one.kind is not Kind.DATA
                ]
                continue
            own = (part.language,) if part.language in _OWN else ()
            for language in dict.fromkeys((guess_language(text) or "shell", "shell", "python", *own)):
                found.append(Part(Kind.CODE, text, part.file, line, language, part.heading, part.lead, way))
        return found


def _put_together(part: Part) -> list[Part]:
    """Return what constants of a part make, as code that is read again; a command of a shell is one as well."""
    made = [one for one in put_together(part.text, part.language) if is_telling(one)][:50]
    languages = ("shell",) if part.language == "perl" else (part.language,)
    return [
        replace(part, text=one, language=language, origin="text that is put together")
        for one in made
        for language in languages
    ]

"""A reader of C++ sources that knows as much as clang-format leaves to know: where functions and
types begin and end."""

import dataclasses
import functools
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ("engine", "fs", "gpu", "tools")
SUFFIXES = (".h", ".cc", ".cu", ".cuh")

TEXTS = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n'
                   r'])+\'|//[^\n]*|/\*.*?\*/', re.S)
NO_FUNCTION = re.compile(
    r"(template\s*<.*?>\s*)?(namespace|struct|class|enum|union|if|for|while|switch|do|else|try|"
    r"catch|return|using|typedef|static_assert|friend|public|private|protected|extern \"C\" \{)\b")
FUNCTION_NAME = re.compile(r"([\w:~]+)\s*\(")


def without_texts(source):
    """The source with blanks in place of comments, strings and characters: lines and columns
    stay."""
    def blank(found):
        text = found[0]
        kept = '""' if text[0] in '"R' else ""
        return kept + re.sub(r"[^\n]", " ", text[len(kept):])

    return TEXTS.sub(blank, re.sub(r"(?<=[\da-fA-F])'(?=[\da-fA-F])", "0", source))


@dataclasses.dataclass(frozen=True)
class Function:
    name: str  # without namespaces and types
    line: int
    end: int  # the last line; that of a declaration where there is no body
    head: str  # from its type to before the body

    @property
    def is_definition(self):
        return self.head.endswith("{")

    @property
    def length(self):
        return self.end - self.line + 1


def function_of(head):
    """The name in a statement that declares or defines a function, else None."""
    if NO_FUNCTION.match(head) or "(" not in head:
        return None
    flat = re.sub(r"\b(__launch_bounds__|__attribute__|alignas|explicit|decltype)\s*\((?"
                  r":[^()]|\([^()]*\))*\)", " ", head)
    flat = re.sub(r"^template\s*<(?:[^<>]|<(?:[^<>]|<[^<>]*>)*>)*>\s*(requires [^\n]*\n)?", "",
                  flat)
    before = flat.split("(")[0]
    if "=" in before and "operator" not in before:
        return None
    if "operator" in before:
        return "operator"
    found = FUNCTION_NAME.search(flat)
    # A call of a macro, or a variable: nothing stands before the name.
    if found is None or (found.start() == 0
                         and not re.search(r"\)\s*(:|\{|noexcept|override|=|;)|::", flat)):
        return None
    if found[1] in ("void", "bool", "int", "double"):  # std::function<void(int)> member;
        return None
    return found[1].rsplit("::", 1)[-1]


def functions_in(source):
    """All functions outside of bodies of functions, of a source that clang-format formatted."""
    lines = without_texts(source).split("\n")
    found, i = [], 0
    while i < len(lines):
        line = lines[i]
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text or text.startswith(("#", "}",
                                        ")")) or re.fullmatch(r"(public|private|protected):", text):
            i += 1
            if text.startswith("#"):
                while lines[i - 1].endswith("\\"):
                    i += 1
            continue
        begin, head = i, text
        while i + 1 < len(lines) and not (head.endswith((";", "{", "}", "},"))
                                          and head.count("(") == head.count(")")):
            i += 1
            head += "\n" + lines[i].strip()
            head = head.rstrip()
        name = function_of(head)
        body = head.endswith("{")
        end = i
        if body and (name is not None or re.search(r"[=\w)]\s*\{$", head)
                     and not NO_FUNCTION.match(head)):
            while end + 1 < len(lines) and not (lines[end + 1].strip().startswith("}")
                                                and len(lines[end + 1])
                                                - len(lines[end + 1].lstrip()) <= indent):
                end += 1
            end = min(end + 1, len(lines) - 1)
        if name is not None:
            one_line = "{" in head and not body
            found.append(Function(name, begin + 1, end + 1, head + (" {" if one_line else "")))
        i = end + 1
    return found


@functools.cache
def product():
    """{path from the root: text} of the sources of the product."""
    return {str(path.relative_to(ROOT)): path.read_text() for folder in FOLDERS
            for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES
                and "/build/" not in str(path)}


@functools.cache
def test_sources():
    return {str(path.relative_to(ROOT)): path.read_text()
            for path in sorted((ROOT / "tests").rglob("*")) if path.suffix in (*SUFFIXES, ".c")}

"""Words and phrases that must not come back in what users read, in comments and in names: each has
a plainer one in English."""

import ast
import io
import pathlib
import re
import subprocess
import sys
import tokenize

# What must not come back -> what to write instead.
WORDS = [
    (r"told", "reported, printed, shown"),
    (r"tells? of", "reports, shows"),
    (r"tell (?:more|what|how)", "print, show"),
    (r"(?:it|that|this) is said", "a message says"),
    (r"remarks?", "notes, incomplete stacks"),
    (r"whom", "which, who; recording scope, targets"),
    (r"behind", "after, below"),
    (r"(?:is|are|was) no (?:time|size|number|way|program|file|fifo|script|capture|event|modifier|"
     r"loss|losses|idle time|advice|wait|process id|FROM-TO)",
     "is not a ..., invalid ..., expected ..."),
    (r"stands? for (?:the others|all of it|how many)", "1 in N, scaled by N; represents"),
    (r"must agree", "are combined with AND"),
    (r"passes (?:of )?a tracepoint", "hits of a tracepoint"),
    (r"(?:small|large) letters", "case is ignored"),
    (r"folders?", "directory"),
    (r"doors?", "function, interface"),
    (r"standing events|(?:states?|stated) again", "snapshot, repeated"),
    (r"walk guides?", "unwind cache"),
    (r"invitations?", "connection string"),
    (r"thinn(?:ed|ing)", "subsampling"),
    (r"mend|mends", "fix"),
    (r"parted by", "separated by"),
    (r"not whole|stacks? (?:are|is) whole", "incomplete, complete"),
    (r"(?:is|are) not seen", "is not recorded"),
    (r"(?:copy|copies)(?:,| and) sets?", "memory copies and memsets, memory operations"),
    (r"(?:its|their|and) kin", "related, similar"),
    (r"in the place of", "instead of"),
    (r"goes? without saying", "is implied, is the default"),
    (r"as ever", "as usual"),
    (r"(?:the|its|their|from) begin", "start"),
    (r"obey(?:s|ed)?", "handle, execute"),
    (r"makes? no sense", "is invalid"),
    (r"somebody", "another user, another process"),
    (r"(?:out|in)side of", "outside, inside"),
    (r"gives (?:it|them) privileges|whose start gives", "gains privileges when it starts"),
    (r"frames of Python(?! stacks)", "Python frames"),
    (r"threads? of the kernel", "kernel threads"),
    (r"tracepoints? of the kernel", "kernel tracepoints"),
    (r"what it (?:saw|sees) of", "records"),
    (r"for fingers that know", "for users of"),
    (r"is it [\w-]+\?", "did you mean ...?"),
    (r"(?:colour|neighbour|behaviour|favour)\w*|\w+isations?|"
     r"(?:\w+chron|\w*initial|recogn|summar|optim|organ|normal|serial)is(?:es?|ed|ing)|"
     r"(?:anal|cata)lyse[sd]?|licence|cancelled|labelled", "the American spelling"),
]
# Directories whose comments are held to them.
CODE = ["record", "bpf", "cupti_inject", "format", "report", "symbolize", "tests"]
PATTERNS = [(re.compile(rf"\b(?:{words})(?!\w)", re.IGNORECASE), instead)
            for words, instead in WORDS]


def plain_roff(line):
    """The words of a line of a man page: no macro, no change of font."""
    line = re.sub(r"\\f[A-Z]|\\c$|\\&", "", line)
    line = line.replace("\\-", "-").replace("\\e", "\\")
    return re.sub(r"^\.\s*(?:\\\".*|[A-Za-z]{1,2}\b)", "", line).replace('"', "")


def plain_markdown(line):
    """Not what programs print or take: indented lines and `code`."""
    return "" if line.startswith("    ") else re.sub(r"`[^`]*`", "`", line)


def plain_schema(line):
    """The comment of a declaration."""
    return line.partition("#")[2]


def plain_code(line):
    """The comment of a line of C or C++: from // on, or lines and ends of lines in /* */."""
    code = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
    if "//" in code:
        return code.partition("//")[2]
    if "/*" in code:
        return code.partition("/*")[2]
    return code.strip()[1:] if code.strip().startswith("* ") else ""


def python_comments(text):
    """The text with everything but its comments and docstrings left out, line by line."""
    lines = [""] * (text.count("\n") + 1)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] += token.string[1:]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            start = node.body[0].lineno - 1
            for number, line in enumerate(node.body[0].value.value.split("\n")):
                lines[start + number] = line
    return "\n".join(lines)


# Parts of names in code that must not come back -> what to write instead.
NAMES = [
    (r"Told|Tells|TellOf|TellThat|TellWhat", "Report, Send, ...AreReported"),
    (r"Obey|MindSize|TakeOrders", "Handle, Enforce, Poll"),
    (r"Fate", "Status"),
    (r"Whom", "scope, targets"),
    (r"Behind", "After, Below"),
    (r"Invitation|invitation", "ConnectionString"),
    (r"WalkGuide|walk_guide", "WalkCache"),
    (r"\bBell\b|\bbell\b", "WakeDescriptor"),
    (r"Thinned|ThinOut|ThinWork|is_thinned", "Subsample"),
    (r"OtherHalves", "MissingCounterparts"),
    (r"Remark|remark", "Note"),
    (r"[cC]olour|[nN]eighbour", "the American spelling"),
    (r"(?<!kLibrary)[fF]older", "directory"),
    (r"(?:^|[^a-z])[dD]oors?\b|Doors?(?![a-z])", "EntryPoint"),
    (r"\brooms?_of\b|\brooms\b", "module"),
    (r"\bcure\b|_cure\b|\bCure", "hint"),
    (r"\bSee(?:[A-Z]\w*)?\(", "Observe..., Visit..."),
    (r"MayTell|Habit|LookAt[A-Z]|SeenFile", "a word of the domain"),
]
NAME_PATTERNS = [(re.compile(words), instead) for words, instead in NAMES]
# Directories whose names are held to them.
NAMED = ("record", "bpf", "cupti_inject", "format", "report", "symbolize", "man", "tests")


def code_hits(name, text):
    """In names, not in comments and texts."""
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r'"(?:[^"\\]|\\.)*"|//.*|^\s*\*.*|/\*.*|(?:^|\s)#.*', "", line)
        for pattern, instead in NAME_PATTERNS:
            if found := pattern.search(line):
                yield f"{name}:{number}: name \"{found.group()}\": write {instead}"


def hits(name, text, plain):
    """Also of phrases that go over the end of a line."""
    lines = [" ".join(plain(line).split()) for line in text.splitlines()]
    joined, starts = "", []
    for line in lines:
        starts.append(len(joined))
        joined += line + " "
    for pattern, instead in PATTERNS:
        for found in pattern.finditer(joined):
            number = sum(start <= found.start() for start in starts)
            yield f"{name}:{number}: \"{found.group()}\": write {instead}"


def self_test():
    """The patterns find what they are for, and nothing else."""
    bad = [
        ("a.1", ".BR xpu-record (1)\nis told with advice.", plain_roff),
        ("a.1", "Everything \\fBbehind\\fP the name", plain_roff),
        ("a.md", "The capture is no\nfile.", plain_markdown),
        ("a.md", "- the folder of a capture", plain_markdown),
        ("a.capnp", "  name @1 :Column $text;  # from the begin of it", plain_schema),
        ("help", "  --check   tell what works on this machine", str),
        ("a.cpp", "  Take();  // what the kernel\n  // told", plain_code),
        ("a.h", "/*\n * What the kernel\n * told.\n */", plain_code),
        ("a.h", "  int count; /* 0: not told yet */", plain_code),
        ("a.py", python_comments('def a():\n    """What it\n    told."""\n    return "x"'), str),
        ("a.py", python_comments("a = 1  # what it told"), str),
    ]
    good = [
        ("a.md", "    $ xpu-report    what is behind this line", plain_markdown),
        ("a.md", "Rename `folder` to `directory`.", plain_markdown),
        ("a.1", ".\\\" told\n.TP\n.B folders_of", plain_roff),
        ("a.capnp", "  behind @1 :Column $text;  # bytes that follow", plain_schema),
        ("help", "the beginning of a recommended doorway", str),
        ("a.cpp", "folder.Take();  // it", plain_code),
        ("a.h", "int* told = &folder;", plain_code),
        ("a.py", python_comments("told = 'whom'"), str),
    ]
    for name, text, plain in bad:
        assert list(hits(name, text, plain)), f"not found: {text}"
    assert list(code_hits("a.h", "LaunchFate FateOf();"))
    assert list(code_hits("a.cpp", "TEST(Rings, FullOnesAreTold) {"))
    assert list(code_hits("a.h", "Status CheckFolder(int fd);"))
    assert list(code_hits("a.h", "void SeeThread(uint32_t tid);"))
    assert list(code_hits("a.py", "def test_every_door(): pass  # one"))
    assert not list(code_hits("a.h", "int bells;  // Told"))
    assert not list(code_hits("a.py", "x = 1  # the folder"))
    for name, text, plain in good:
        assert not list(hits(name, text, plain)), f"wrongly found: {text}"


def main():
    self_test()
    root, made, *binaries = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), *sys.argv[3:]
    texts = [(page.name, page.read_text(), plain_roff)
             for page in [*sorted((root / "man").glob("*.1")), made]]
    texts += [(name, (root / name).read_text(), plain_markdown)
              for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
    schema = root / "format/capture.capnp"
    texts.append((schema.name, schema.read_text(), plain_schema))
    texts += [(path.relative_to(root).as_posix(), path.read_text(), plain_code)
              for directory in CODE for path in sorted((root / directory).rglob("*"))
              if path.suffix in (".h", ".cpp", ".c", ".cu")]
    for binary in binaries:
        for group in ([], ["all"]):
            words = [binary, "--help", *group]
            text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
            texts.append((" ".join([pathlib.Path(binary).name, *words[1:]]), text, str))
    for path in sorted((root / "tests").rglob("*.py")):
        if path.name != "words.py":
            name = path.relative_to(root).as_posix()
            texts.append((name, python_comments(path.read_text()), str))
    problems = [line for name, text, plain in texts for line in hits(name, text, plain)]
    for path in sorted(p for code in NAMED for p in (root / code).rglob("*")
                       if p.suffix in (".h", ".cpp", ".c", ".cu", ".js", ".py")):
        if path.name == "words.py":
            continue
        problems += code_hits(path.relative_to(root).as_posix(), path.read_text())
    print("\n".join(problems) or f"{len(texts)} texts have none of {len(WORDS)} phrases")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

"""TVMScript in colours, where the output shows them."""

import sys


def show(text):
    """Print a text of TVMScript: in colours on a terminal and in a notebook, plain elsewhere."""
    if _in_notebook() and _show_in_notebook(text):
        return
    print(_coloured(text) if sys.stdout.isatty() else text)


def _in_notebook():
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def _show_in_notebook(text):
    try:
        from IPython.display import HTML, display
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer
    except ImportError:
        return False
    display(HTML(highlight(text, PythonLexer(), HtmlFormatter(noclasses=True))))
    return True


def _coloured(text):
    """The text with the terminal's colours: words of the language, names of operators, numbers, text, comments."""
    import io
    import keyword
    import tokenize

    colours = {tokenize.COMMENT: 90, tokenize.STRING: 32, tokenize.NUMBER: 36}
    lines = text.splitlines(keepends=True)
    marks = []
    try:
        previous = None
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            colour = colours.get(token.type)
            if token.type == tokenize.NAME:
                if keyword.iskeyword(token.string):
                    colour = 35
                elif token.string in ("R", "T", "I") and previous != ".":
                    colour = 34
            elif token.type == tokenize.OP and token.string == "@":
                colour = 33
            if colour and token.start[0] == token.end[0]:
                marks.append((token.start, token.end, colour))
            previous = token.string
    except (tokenize.TokenError, IndentationError):
        return text
    for (row, start), (_, end), colour in reversed(marks):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:start]}\x1b[{colour}m{line[start:end]}\x1b[0m{line[end:]}"
    return "".join(lines)

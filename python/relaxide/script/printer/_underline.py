"""Underlines below parts of a text, line numbers, and the lines around what is underlined."""

import bisect

#: Gaps of fewer lines are written out: saying that they are left out is as long.
_LEAST_CUT = 2


def merged(spans, exempted):
    """Spans ``(begin, end)`` of a text in order, those that meet as one, without what is exempted."""
    stamps = [(place, change) for begin, end in spans for place, change in ((begin, 1), (end, -1))]
    enough = len(spans) + 1
    stamps += [(place, change) for begin, end in exempted for place, change in ((begin, -enough), (end, enough))]
    stamps.sort()
    found, depth = [], 0
    for (begin, change), (end, _) in zip(stamps, stamps[1:]):
        depth += change
        if depth > 0 and begin < end:
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], end)
            else:
                found.append((begin, end))
    return found


def decorated(text, spans, with_numbers, context):
    """The text with underlines below the spans; where there are spans, only lines that lie at most ``context`` lines from one."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    width = len(str(len(lines))) + 1 if with_numbers else 0
    told = []
    done = 0
    for begin, end in _chunks(spans, starts, len(lines), context):
        _cut(told, begin - done)
        for index in range(begin, end):
            number = f"{index + 1} ".rjust(width) if with_numbers else ""
            told.append(number + lines[index])
            marks = _marks(lines[index], starts[index], spans)
            if marks:
                told.append(" " * width + marks + "\n")
        done = end
    _cut(told, len(lines) - done)
    return "".join(told)


def _chunks(spans, starts, count, context):
    """Ranges of lines that are written."""
    if not spans:
        return [(0, count)]
    chunks = []
    for begin, end in spans:
        first = bisect.bisect_right(starts, begin) - 1
        last = bisect.bisect_right(starts, end - 1)
        chunk = (max(first - context, 0), min(last + context, count))
        if chunks and chunk[0] < chunks[-1][1] + _LEAST_CUT:
            chunks[-1] = (chunks[-1][0], chunk[1])
        else:
            chunks.append(chunk)
    if chunks[0][0] < _LEAST_CUT:
        chunks[0] = (0, chunks[0][1])
    if count - chunks[-1][1] < _LEAST_CUT:
        chunks[-1] = (chunks[-1][0], count)
    return chunks


def _cut(told, skipped):
    if skipped:
        told.append(f"(... {skipped} lines skipped ...)\n")


def _marks(line, start, spans):
    """Carets below the parts of a line that lie in a span."""
    width = len(line.rstrip("\n"))
    marks = [" "] * width
    for begin, end in spans:
        for place in range(max(begin - start, 0), min(end - start, width)):
            marks[place] = "^"
    return "".join(marks).rstrip()


__all__ = ["decorated", "merged"]
